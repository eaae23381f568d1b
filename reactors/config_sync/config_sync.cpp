#include "rw/reactors/config_sync/config_sync.hpp"

#include "rw/core/text.hpp"
#include "rw/k8s/objects/types.hpp"
#include "rw/reactors/shared/content_digest.hpp"
#include "rw/reactors/shared/explanations.hpp"
#include "rw/reactors/shared/kyma_resources.hpp"

#include <boost/json/object.hpp>

#include <algorithm>
#include <limits>
#include <utility>

namespace rw::config_sync {
namespace {

namespace asio = boost::asio;
namespace json = boost::json;
using k8s::reconcile_result;

/// How long another client's change may take from the API server to the informer.
constexpr auto catch_up = std::chrono::milliseconds(200);

/// The key of the target. Runtimes have a namespace.
const k8s::object_key target_key{{}, std::string(record_name)};
const k8s::object_key record_key{std::string(kcp_namespace), std::string(record_name)};

constexpr std::array<std::string_view, 4> write_names{"none", "mark", "note", "withdraw"};

bool waits(signal_state state) {
  return state != signal_state::current && state != signal_state::suspended &&
         state != signal_state::direct && state != signal_state::unmanaged;
}

constexpr auto newest = std::numeric_limits<std::uint64_t>::max();

std::uint64_t number_of(std::string_view version, std::uint64_t otherwise = 0) {
  return core::parse_number<std::uint64_t>(version).value_or(otherwise);
}

k8s::controller_options controller_options_of(const sync_options& options) {
  return {.name = "config-sync",
          .concurrent = options.concurrent,
          .queue = {.retry_base = std::chrono::milliseconds(200),
                    .retry_limit = std::chrono::minutes(2),
                    .retries_per_second = 50,
                    .retry_burst = 200}};
}

}  // namespace

k8s::informer_options runtimes_informer(bool conditions) {
  auto keep = conditions ? k8s::projection::metadata({"status.state", "status.conditions"})
                         : k8s::projection::metadata({"status.state"});
  return {.objects = {.ns = std::string(kcp_namespace)}, .keep = std::move(keep)};
}

config_sync::config_sync(asio::any_io_executor executor, source_informers sources,
                         k8s::informer& runtimes, sync_options options,
                         sync_environment environment)
    : sources_(sources),
      runtimes_(runtimes),
      options_(std::move(options)),
      environment_(std::move(environment)),
      conflicts_(
          core::make_counter(environment_.common.metrics, "rw_config_sync_conflicts_total",
                             "Number of Runtime writes rejected with a resourceVersion conflict")),
      revision_(core::make_gauge(environment_.common.metrics, "rw_config_sync_revision",
                                 "Number of the sources' revision that all Runtimes are to have")),
      states_(environment_.common.metrics, "rw_config_sync",
              {"current", "outdated", "marked", "in_progress", "failed", "suspended", "direct",
               "direct_marked", "unmanaged"}),
      controller_(std::move(executor), controller_options_of(options_), *this,
                  environment_.common) {
  for (const auto* reason : {"change", "retry"}) {
    marks_.at(*reason == 'r') =
        &core::make_counter(environment_.common.metrics, "rw_config_sync_marks_total",
                            "Number of marks set on Runtimes", {{"reason", reason}});
  }
  controller_.watch(runtimes_);
  for (auto* const from : {&sources_.config_maps, &sources_.secrets, &sources_.trust_bundles}) {
    controller_.watch(*from, [this, from](const k8s::delta& change, k8s::controller::keys& out) {
      on_source(*from, change, out);
    });
  }
}

config_sync::~config_sync() = default;

asio::awaitable<void> config_sync::run() {
  controller_.add(target_key);
  co_await controller_.run();
}

// --- the target ------------------------------------------------------------------------

/// Counts each change at once, so that none is missed while a request is under way.
void config_sync::on_source(const k8s::informer& from, const k8s::delta& change,
                            k8s::controller::keys& out) {
  const bool concerned = std::ranges::any_of(all_sources, [&](source which) {
    return &from == &sources_.of(which) && change.latest().key() == options_.sources.key_of(which);
  });
  // The first digest waits until all sources are known.
  if (!concerned || target_.digest.empty() || !update_digest()) return;
  ++target_.changes;
  target_.version = std::max(target_.version, number_of(from.resource_version(), newest));
  out.push_back(target_key);
}

/// False if it stays the same.
bool config_sync::update_digest() {
  content_digest all;
  for (const auto which : all_sources) {
    const auto digest = digest_of(which, sources_.find(which, options_.sources));
    all.add(std::string_view(digest));
  }
  auto digest = all.hex();
  if (digest == target_.digest) return false;
  target_.digest = std::move(digest);
  const auto now = environment_.common.clock.now();
  if (now >= target_.changed_at + options_.settle) target_.series_began = now;
  target_.changed_at = now;
  return true;
}

/// For target_input.
std::optional<std::uint64_t> config_sync::last_signalled() const {
  std::optional<std::uint64_t> out;
  runtimes_.objects().for_each([&](const k8s::object& each) {
    const auto runtime = each.parse();
    const auto text = k8s::annotation(runtime, signalled_annotation);
    if (!k8s::has_annotation(runtime, signalled_annotation)) return;
    const auto last = parse_signal(text);
    out = std::max(out.value_or(0), last ? last->of.number : 0);
  });
  return out;
}

/// Stores the target for the sources as they are, and publishes it.
asio::awaitable<reconcile_result> config_sync::record_target() {
  auto& stored = target_.stored;
  if (target_.digest.empty()) {
    update_digest();
    for (const auto* const from :
         {&sources_.config_maps, &sources_.secrets, &sources_.trust_bundles}) {
      target_.version = std::max(target_.version, number_of(from->resource_version(), newest));
    }
  }
  if (!stored) {
    auto found = co_await environment_.api.get(config_maps_type(), record_key);
    const bool absent = found.has_error() && found.error().is(k8s::errc::not_found);
    if (found.has_error() && !absent) co_return result::error(found.error());
    stored = absent ? json::value() : std::move(*found);
  }
  const auto changes = target_.changes;
  const auto version = target_.version;
  const auto recorded = read_record(*stored);
  auto to = next_target({.recorded = recorded,
                         .digest = target_.digest,
                         .changed = changes != target_.recorded_changes,
                         .all_once = options_.signal_all_once,
                         .last_signalled = recorded ? std::nullopt : last_signalled(),
                         .now = environment_.common.clock.wall()});
  if (!recorded && last_signalled()) {
    environment_.common.log.warning("record of signals lost; each Runtime is marked once",
                                    {{"record", record_name}, {"revision", to.of.number}});
  }
  if (recorded != to) {
    auto object = write_record(to, *stored);
    const k8s::write_options by{.field_manager = options_.field_manager};
    auto& api = environment_.api;
    auto request = stored->is_null() ? api.create(config_maps_type(), std::move(object), by)
                                     : api.update(config_maps_type(), std::move(object), by);
    auto written = co_await std::move(request);
    if (written.has_error()) {
      stored.reset();
      co_return result::error(written.error());
    }
    stored = std::move(*written);
  }
  target_.recorded_changes = changes;
  target_.visible_at = version;
  publish(std::move(to));
  co_return result::done();  // a change meanwhile has added the key again
}

void config_sync::publish(target to) {
  const bool first = !std::exchange(target_.current, std::move(to));
  const auto& now = *target_.current;
  revision_.Set(static_cast<double>(now.of.number));
  auto& log = environment_.common.log;
  log.info("configuration revision published", {{"revision", now.of.number},
                                                {"digest", now.of.digest},
                                                {"runtimes", runtimes_.objects().size()}});
  if (first && !now.since) {
    log.info(
        "first start: no Runtime is marked, since all are taken to have the present "
        "configuration; --signal-all-once marks each of them once",
        {{"revision", now.of.number}});
  } else if (first && options_.signal_all_once) {
    log.info("--signal-all-once: Runtimes are marked for this revision, unless they were already",
             {{"revision", now.of.number}});
  }
  runtimes_.objects().for_each([&](const k8s::object& one) { controller_.add(one.key()); });
}

// --- Runtimes --------------------------------------------------------------------------

void config_sync::warn(const json::value& runtime, const std::string& reason,
                       const std::string& text) {
  environment_.common.log.warning(
      "Runtime can't be signalled as it should be",
      {{"name", k8s::key_of(runtime).name}, {"reason", reason}, {"error", text}});
  environment_.events.warning(k8s::reference_to(runtime), reason, text);
}

bootstrapper_mode config_sync::mode_for(tracked& state, const json::value& runtime) {
  bool unknown = false;
  const auto mode = mode_of(runtime, options_.mode, &unknown);
  if (unknown && !state.mode_unknown) {
    warn(runtime, "BootstrapperModeUnknown"_reason,
         "the annotation " + std::string(bootstrapper_mode_annotation) +
             " must be off, signal, shadow or direct; until it is, the runtime's configuration is "
             "left alone");
  }
  state.mode_unknown = unknown;
  return mode;
}

signal_decision config_sync::decide(tracked& state, const json::value& runtime) {
  const auto seen = view_of(runtime, mode_for(state, runtime), options_.form);
  auto version = number_of(k8s::resource_version_of(runtime));
  const auto stored = runtimes_.objects().get(k8s::key_of(runtime));
  if (stored && stored.resource_version() == k8s::resource_version_of(runtime)) {
    version = std::max(version, number_of(runtimes_.resource_version()));
  }
  const signal_moment at{.now = environment_.common.clock.now(),
                         .wall = environment_.common.clock.wall(),
                         .timing = options_.timing,
                         .to = *target_.current,
                         .visible_at = target_.visible_at,
                         .due = target_.changed_at + options_.settle,
                         .due_in_series = target_.series_began + options_.settle_limit,
                         .gap = options_.settle_limit};
  state.machine.observe(seen, version, at);
  return state.machine.poll(seen, at);
}

void config_sync::report(const json::value& runtime, const signal_decision& decision) {
  const auto wall = environment_.common.clock.wall();
  const auto since =
      waits(decision.state) ? std::optional(decision.since.value_or(wall)) : std::nullopt;
  const bool is_new = states_.set(k8s::key_of(runtime), to_string(decision.state),
                                  since ? std::min(wall, *since) : since);
  if (decision.state != signal_state::failed || !is_new) return;
  warn(runtime, "ConfigurationFailed"_reason,
       "Kyma Infrastructure Manager has taken the mark off, and the Runtime has not reached Ready "
       "or is no longer; it is marked again after a backoff");
}

reconcile_result config_sync::recheck_at(core::time_point time) const {
  if (time == core::time_point::max()) return result::done();
  return result::requeue_after(time - environment_.common.clock.now());
}

asio::awaitable<reconcile_result> config_sync::reconcile(k8s::object_key key) {
  if (key == target_key) {
    auto recorded = co_await record_target();
    co_return recorded;
  }
  // Before there is a target nothing can be compared; with one, every Runtime is enqueued.
  if (!target_.current) co_return result::done();
  const auto found = runtimes_.objects().get(key);
  auto& one = tracked_[key];
  if (!found) {
    states_.forget(key);
    tracked_.erase(key);
    co_return result::done();
  }
  if (number_of(found.resource_version()) < std::exchange(one.written, 0)) {
    co_return result::requeue_after(catch_up);  // a write of ours is on its way
  }
  auto runtime = found.parse();
  auto decision = decide(one, runtime);
  report(runtime, decision);
  if (decision.write == signal_write::none) co_return recheck_at(decision.recheck_at);
  auto written = co_await write(std::move(runtime), std::move(decision));
  co_return written;
}

asio::awaitable<reconcile_result> config_sync::write(json::value runtime,
                                                     signal_decision decision) {
  auto change = render(runtime, decision.write, decision.as, options_.form);
  auto written = co_await environment_.api.apply(
      runtimes_type(), std::move(change), {.field_manager = options_.field_manager, .force = true});
  if (written.has_error()) co_return on_failure(runtime, written.error());
  const bool is_retry = decision.as.attempt > 1 || decision.state == signal_state::failed;
  const bool is_mark =
      decision.write == signal_write::mark && (is_retry || !carries_mark(runtime, options_.form));
  if (is_mark) marks_.at(is_retry ? 1 : 0)->Increment();
  environment_.common.log.debug(
      "Runtime written", {{"name", k8s::key_of(*written).name},
                          {"write", write_names.at(static_cast<std::size_t>(decision.write))},
                          {"revision", decision.as.of.number},
                          {"attempt", decision.as.attempt}});
  auto& one = tracked_[k8s::key_of(*written)];
  one.rejected = false;
  one.written = number_of(k8s::resource_version_of(*written));
  const auto next_decision = decide(one, *written);
  report(*written, next_decision);
  co_return recheck_at(next_decision.recheck_at);
}

reconcile_result config_sync::on_failure(const json::value& runtime, const k8s::failure& error) {
  if (error.is(k8s::errc::not_found)) return result::done();
  const auto key = k8s::key_of(runtime);
  if (error.is(k8s::errc::conflict)) {
    conflicts_.Increment();
    return result::requeue_after(catch_up);
  }
  const bool is_our_own = error.is(k8s::errc::fenced) || error.is(k8s::errc::shut_down);
  const bool is_new = !is_our_own && !std::exchange(tracked_[key].rejected, true);
  if (is_new) warn(runtime, "ConfigurationNotSignalled"_reason, error.message);
  return result::error(error);
}

}  // namespace rw::config_sync
