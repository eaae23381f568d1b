#include "reactors/config_sync/config_sync.hpp"

#include "core/channel.hpp"
#include "core/task_group.hpp"
#include "k8s/controller.hpp"
#include "k8s/own_writes.hpp"
#include "k8s/reconciler.hpp"
#include "k8s/types.hpp"
#include "reactors/config_sync/target.hpp"
#include "reactors/kyma_resources.hpp"

#include <boost/json/object.hpp>

#include <algorithm>
#include <array>
#include <charconv>
#include <optional>
#include <set>
#include <unordered_map>
#include <utility>

namespace rw::config_sync {
namespace {

namespace asio = boost::asio;
namespace json = boost::json;
using k8s::reconcile_result;
using wall_time = std::chrono::system_clock::time_point;

/// How long another client's change may take from the API server to the informer.
constexpr auto catch_up = std::chrono::milliseconds(200);
/// Between two checks whether a write to a runtime has ended.
constexpr auto poll_period = std::chrono::milliseconds(100);

constexpr std::array<std::string_view, 4> write_names{"none", "mark", "note", "withdraw"};

std::size_t index(signal_state state) {
  return static_cast<std::size_t>(state);
}

bool waits(signal_state state) {
  return state != signal_state::current && state != signal_state::suspended &&
         state != signal_state::direct && state != signal_state::unmanaged;
}

/// 0 if it is no number.
std::uint64_t number_of(std::string_view version) {
  std::uint64_t out = 0;
  std::from_chars(version.data(), version.data() + version.size(), out);
  return out;
}

k8s::controller_options controller_options_of(const sync_options& options) {
  return {.name = "config-sync",
          .concurrent = options.concurrent,
          .queue = {.retry_base = std::chrono::milliseconds(200),
                    .retry_limit = std::chrono::minutes(2),
                    .retries_per_second = 50,
                    .retry_burst = 200}};
}

/// As the informer would show a Runtime that was written.
json::value projected(const json::value& runtime) {
  json::object metadata = runtime.at("metadata").as_object();
  metadata.erase("managedFields");
  json::object out{{"apiVersion", runtimes_type().gvk.api_version()},
                   {"kind", runtimes_type().gvk.kind},
                   {"metadata", std::move(metadata)}};
  if (const auto* const status = k8s::find(runtime, {"status"})) out["status"] = *status;
  return out;
}

}  // namespace

/// Counts the Runtimes in each state, and how long they have waited.
class config_sync::state_metrics {
 public:
  explicit state_metrics(core::metrics& metrics) {
    for (const auto state : all_signal_states) {
      const core::labels with{{"state", std::string(to_string(state))}};
      counts_.at(index(state)) = &core::make_gauge(metrics, "rw_config_sync_runtimes",
                                                   "Number of Runtimes in each state", with);
      oldest_.at(index(state)) = &core::make_gauge(
          metrics, "rw_config_sync_state_since_timestamp_seconds",
          "When the Runtime of each state that has waited longest began to, in Unix time", with);
      publish(state);
    }
  }

  struct entry {
    signal_state state = signal_state::current;
    wall_time since = {};  ///< has waited, if it does
  };

  /// Returns what was known before.
  std::optional<entry> set(const k8s::object_key& key, signal_state state, wall_time since) {
    const auto before = remove(key);
    const bool went_on = before && waits(before->state) && waits(state);
    const entry now{state, went_on ? before->since : since};
    entries_[key] = now;
    all_.at(index(state)).insert(now.since);
    publish(state);
    return before;
  }

  std::optional<entry> remove(const k8s::object_key& key) {
    const auto at = entries_.find(key);
    if (at == entries_.end()) return std::nullopt;
    const auto before = at->second;
    entries_.erase(at);
    auto& all = all_.at(index(before.state));
    all.erase(all.find(before.since));
    publish(before.state);
    return before;
  }

 private:
  void publish(signal_state state) {
    const auto& all = all_.at(index(state));
    counts_.at(index(state))->Set(static_cast<double>(all.size()));
    std::chrono::duration<double> since{};
    if (waits(state) && !all.empty()) since = all.begin()->time_since_epoch();
    oldest_.at(index(state))->Set(since.count());
  }

  std::unordered_map<k8s::object_key, entry, k8s::object_key_hash> entries_;
  std::array<std::multiset<wall_time>, all_signal_states.size()> all_;
  std::array<core::gauge*, all_signal_states.size()> counts_{};
  std::array<core::gauge*, all_signal_states.size()> oldest_{};
};

k8s::informer_options runtimes_informer() {
  return {.what = {.ns = std::string(kcp_namespace)},
          .keep = k8s::projection::metadata({"status.state"})};
}

config_sync::config_sync(asio::any_io_executor executor, source_watch& sources,
                         k8s::informer& runtimes, sync_options options,
                         sync_environment environment)
    : executor_(std::move(executor)),
      runtimes_(runtimes),
      options_(std::move(options)),
      environment_(std::move(environment)),
      conflicts_(
          core::make_counter(environment_.metrics, "rw_config_sync_conflicts_total",
                             "Number of Runtime writes rejected with a resourceVersion conflict")),
      revision_(core::make_gauge(environment_.metrics, "rw_config_sync_revision",
                                 "Number of the sources' revision that all Runtimes are to have")),
      states_(std::make_unique<state_metrics>(environment_.metrics)),
      published_(std::make_shared<core::channel<std::uint64_t>>(1)),
      tracker_(executor_, sources, runtimes,
               {options_.field_manager, options_.settle, options_.signal_all_once},
               {environment_.api, environment_.clock, environment_.log, environment_.random},
               [this] { on_target(); }),
      core_(executor_, controller_options_of(options_), *this,
            {environment_.clock, environment_.watchdog, environment_.log, environment_.metrics,
             environment_.random}) {
  for (const auto* reason : {"change", "retry"}) {
    marks_.at(*reason == 'r') =
        &core::make_counter(environment_.metrics, "rw_config_sync_marks_total",
                            "Number of marks set on Runtimes", {{"reason", reason}});
  }
  for (std::size_t i = 1; i < write_names.size(); ++i) {
    writes_.at(i) = &core::make_counter(environment_.metrics, "rw_config_sync_writes_total",
                                        "Number of writes to Runtimes, by kind",
                                        {{"write", std::string(write_names.at(i))}});
  }
  core_.watch(runtimes_);
  core_.watch<std::uint64_t>(published_, [this](const std::uint64_t&, k8s::controller::keys& keys) {
    runtimes_.objects().for_each([&](const k8s::object& one) { keys.push_back(one.key()); });
  });
}

config_sync::~config_sync() = default;

asio::awaitable<void> config_sync::run() {
  core::task_group tasks(executor_);
  tasks.spawn(core_.run());
  tasks.spawn(tracker_.run());
  co_await tasks.join();
}

/// Enqueues every Runtime. One notice that was not received yet is enough.
void config_sync::on_target() {
  const auto& of = tracker_.current()->of;
  revision_.Set(static_cast<double>(of.number));
  environment_.log.info(
      "configuration revision published",
      {{"revision", of.number}, {"digest", of.digest}, {"runtimes", runtimes_.objects().size()}});
  published_->try_send(std::uint64_t{of.number});
}

void config_sync::warn(const json::value& runtime, const std::string& reason,
                       const std::string& text) {
  environment_.log.warning(
      "Runtime can't be signalled as it should be",
      {{"name", k8s::key_of(runtime).name}, {"reason", reason}, {"error", text}});
  environment_.events.warning(k8s::reference_to(runtime), reason, text);
}

bootstrapper_mode config_sync::mode_for(tracked& one, const json::value& runtime) {
  bool unknown = false;
  const auto mode = mode_of(runtime, options_.mode, &unknown);
  if (unknown && !one.mode_unknown) {
    warn(runtime, "BootstrapperModeUnknown",
         "the annotation " + std::string(bootstrapper_mode_annotation) +
             " must be off, signal, shadow or direct; until it is, the runtime's configuration is "
             "left alone");
  }
  one.mode_unknown = unknown;
  return mode;
}

signal_decision config_sync::decide(tracked& one, const json::value& runtime) {
  const auto now = environment_.clock.now();
  const auto seen = view_of(runtime, mode_for(one, runtime), options_.form);
  auto version = number_of(k8s::resource_version_of(runtime));
  const auto stored = runtimes_.objects().get(k8s::key_of(runtime));
  if (stored && stored.resource_version() == k8s::resource_version_of(runtime)) {
    version = std::max(version, number_of(runtimes_.resource_version()));
  }
  one.machine.observe(seen, version, options_.timing, now);
  return one.machine.poll(seen, options_.timing,
                          {.now = now,
                           .wall = environment_.clock.wall(),
                           .to = *tracker_.current(),
                           .visible_at = tracker_.visible_at(),
                           .due = tracker_.still_at(),
                           .due_in_series = tracker_.series_began() + options_.settle_limit,
                           .gap = options_.settle_limit});
}

void config_sync::report(const json::value& runtime, signal_state state) {
  const auto& to = *tracker_.current();
  const auto wall = environment_.clock.wall();
  const auto key = k8s::key_of(runtime);
  const auto before = states_->set(key, state, std::min(wall, to.since.value_or(wall)));
  const bool fails = state == signal_state::failed;
  if (fails && !(before && before->state == state)) {
    warn(runtime, "ConfigurationFailed",
         "Kyma Infrastructure Manager has taken the mark off and has not reached Ready; the "
         "Runtime is marked again after a backoff");
  }
}

asio::awaitable<reconcile_result> config_sync::reconcile(k8s::object_key key) {
  // Before there is a target nothing can be compared; with one, every Runtime is enqueued.
  if (!tracker_.current()) co_return reconcile_result::done();
  const auto found = runtimes_.objects().get(key);
  if (!found) {
    own_writes_.forget(key);
    tracked_.erase(key);
    states_->remove(key);
    co_return reconcile_result::done();
  }
  auto runtime = own_writes_.newest(found);
  auto decision = decide(tracked_[key], runtime);
  report(runtime, decision.state);
  if (decision.write != signal_write::none) {
    const bool is_mark = decision.write == signal_write::mark;
    if (is_mark && environment_.is_written && environment_.is_written(key)) {
      co_return reconcile_result::requeue_after(poll_period);
    }
    auto result = co_await write(std::move(runtime), std::move(decision));
    co_return result;
  }
  if (decision.recheck_at == core::time_point::max()) co_return reconcile_result::done();
  co_return reconcile_result::requeue_after(decision.recheck_at - environment_.clock.now());
}

asio::awaitable<reconcile_result> config_sync::write(json::value runtime,
                                                     signal_decision decision) {
  auto change = render(runtime, decision.write, decision.as, options_.form);
  auto written = co_await environment_.api.apply(
      runtimes_type(), std::move(change), {.field_manager = options_.field_manager, .force = true});
  if (written.has_error()) co_return on_failure(runtime, written.error());
  const auto kind = static_cast<std::size_t>(decision.write);
  writes_.at(kind)->Increment();
  const bool is_retry = decision.as.attempt > 1;
  const bool is_mark =
      decision.write == signal_write::mark && (is_retry || !carries_mark(runtime, options_.form));
  if (is_mark) marks_.at(is_retry ? 1 : 0)->Increment();
  const auto after = projected(*written);
  const auto key = k8s::key_of(after);
  environment_.log.debug("Runtime written", {{"name", key.name},
                                             {"write", write_names.at(kind)},
                                             {"revision", decision.as.of.number},
                                             {"attempt", decision.as.attempt}});
  own_writes_.wrote(after);
  auto& one = tracked_[key];
  one.rejected = false;
  const auto next = decide(one, after);
  report(after, next.state);
  if (next.recheck_at == core::time_point::max()) co_return reconcile_result::done();
  co_return reconcile_result::requeue_after(next.recheck_at - environment_.clock.now());
}

reconcile_result config_sync::on_failure(const json::value& runtime, const k8s::failure& error) {
  if (error.is(k8s::errc::not_found)) return reconcile_result::done();
  const auto key = k8s::key_of(runtime);
  if (error.is(k8s::errc::conflict)) {
    own_writes_.forget(key);
    conflicts_.Increment();
    return reconcile_result::requeue_after(catch_up);
  }
  const bool is_our_own = error.is(k8s::errc::fenced) || error.is(k8s::errc::shut_down);
  const bool is_new = !is_our_own && !std::exchange(tracked_[key].rejected, true);
  if (is_new) warn(runtime, "ConfigurationNotSignalled", error.message);
  return reconcile_result::error(error);
}

}  // namespace rw::config_sync
