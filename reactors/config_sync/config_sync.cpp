#include "reactors/config_sync/config_sync.hpp"

#include "core/channel.hpp"
#include "core/hash.hpp"
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

/// Counts the Runtimes in each state, and how long they have waited.
class state_metrics {
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
    if (waits(state)) ++waiting_;
    all_.at(index(state)).insert(now.since);
    publish(state);
    return before;
  }

  std::optional<entry> remove(const k8s::object_key& key) {
    const auto at = entries_.find(key);
    if (at == entries_.end()) return std::nullopt;
    const auto before = at->second;
    entries_.erase(at);
    if (waits(before.state)) --waiting_;
    auto& all = all_.at(index(before.state));
    all.erase(all.find(before.since));
    publish(before.state);
    return before;
  }

  std::size_t waiting() const noexcept { return waiting_; }
  std::size_t size() const noexcept { return entries_.size(); }

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
  std::size_t waiting_ = 0;
};

}  // namespace

k8s::informer_options runtimes_informer() {
  return {.what = {.ns = std::string(kcp_namespace)},
          .keep = k8s::projection::metadata({"status.state"})};
}

class config_sync::implementation final : public k8s::reconciler {
 public:
  implementation(asio::any_io_executor executor, source_watch& sources, k8s::informer& runtimes,
                 sync_options options, sync_environment environment);

  asio::awaitable<void> run();

 private:
  struct tracked {
    signal_machine machine = {};
    bool mode_unknown = false;  ///< an event says so
    bool rejected = false;      ///< an event says so
  };

  asio::awaitable<reconcile_result> reconcile(k8s::object_key key) override;
  asio::awaitable<reconcile_result> write(json::value runtime, signal_decision decision);
  reconcile_result on_failure(const json::value& runtime, const k8s::failure& error);
  signal_decision decide(tracked& one, const json::value& runtime);
  bootstrapper_mode mode_for(tracked& one, const json::value& runtime);
  void report(const json::value& runtime, signal_state state);
  core::duration place(const std::string& name) const;
  void warn(const json::value& runtime, const std::string& reason, const std::string& text);
  void on_target();

  const asio::any_io_executor executor_;
  k8s::informer& runtimes_;
  const sync_options options_;
  const sync_environment environment_;
  std::array<core::counter*, 2> marks_{};
  std::array<core::counter*, write_names.size()> writes_{};
  core::counter& conflicts_;
  core::gauge& revision_;
  state_metrics states_;
  k8s::own_writes own_writes_;
  std::unordered_map<k8s::object_key, tracked, k8s::object_key_hash> tracked_;
  core::time_point published_at_{};
  std::uint64_t complete_ = 0;  ///< the last revision that no Runtime waited for any longer
  std::shared_ptr<core::channel<std::uint64_t>> published_;
  target_tracker tracker_;
  k8s::controller core_;
};

config_sync::implementation::implementation(asio::any_io_executor executor, source_watch& sources,
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
      states_(environment_.metrics),
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

asio::awaitable<void> config_sync::implementation::run() {
  core::task_group tasks(executor_);
  tasks.spawn(core_.run());
  tasks.spawn(tracker_.run());
  co_await tasks.join();
}

/// Enqueues every Runtime. One notice that was not received yet is enough.
void config_sync::implementation::on_target() {
  const auto& of = tracker_.current()->of;
  published_at_ = environment_.clock.now();
  revision_.Set(static_cast<double>(of.number));
  environment_.log.info(
      "configuration revision published",
      {{"revision", of.number}, {"digest", of.digest}, {"runtimes", runtimes_.objects().size()}});
  published_->try_send(std::uint64_t{of.number});
}

void config_sync::implementation::warn(const json::value& runtime, const std::string& reason,
                                       const std::string& text) {
  environment_.log.warning(
      "Runtime can't be signalled as it should be",
      {{"name", k8s::key_of(runtime).name}, {"reason", reason}, {"error", text}});
  environment_.events.warning(k8s::reference_to(runtime), reason, text);
}

bootstrapper_mode config_sync::implementation::mode_for(tracked& one, const json::value& runtime) {
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

/// How long the Runtime's mark comes after those of a change begin. Each has a place of its own.
core::duration config_sync::implementation::place(const std::string& name) const {
  constexpr std::size_t places = 1024;
  const auto count = static_cast<core::duration::rep>(runtimes_.objects().size());
  const auto spread = std::min(options_.spread_each * count, options_.spread_limit);
  const auto at = core::string_hash().add(name).value() % places;
  return spread * static_cast<core::duration::rep>(at) / static_cast<core::duration::rep>(places);
}

signal_decision config_sync::implementation::decide(tracked& one, const json::value& runtime) {
  const auto now = environment_.clock.now();
  const auto seen = view_of(runtime, mode_for(one, runtime), options_.form);
  auto version = number_of(k8s::resource_version_of(runtime));
  const auto stored = runtimes_.objects().get(k8s::key_of(runtime));
  if (stored && stored.resource_version() == k8s::resource_version_of(runtime)) {
    version = std::max(version, number_of(runtimes_.resource_version()));
  }
  one.machine.observe(seen, version, options_.timing, now);
  const auto later = place(k8s::key_of(runtime).name);
  const auto limit = tracker_.series_began() + options_.settle_limit;
  return one.machine.poll(seen, options_.timing,
                          {.now = now,
                           .wall = environment_.clock.wall(),
                           .to = *tracker_.current(),
                           .visible_at = tracker_.visible_at(),
                           .due = std::max(tracker_.still_at(), published_at_) + later,
                           .due_in_series = limit + later,
                           .gap = options_.settle_limit});
}

void config_sync::implementation::report(const json::value& runtime, signal_state state) {
  const auto& to = *tracker_.current();
  const auto wall = environment_.clock.wall();
  const auto key = k8s::key_of(runtime);
  const auto before = states_.set(key, state, std::min(wall, to.since.value_or(wall)));
  const bool fails = state == signal_state::failed;
  if (fails && !(before && before->state == state)) {
    warn(runtime, "ConfigurationFailed",
         "Kyma Infrastructure Manager has taken the mark off and has not reached Ready; the "
         "Runtime is marked again after a backoff");
  }
  const bool all = states_.waiting() == 0 && states_.size() == runtimes_.objects().size();
  if (!all || complete_ == to.of.number) return;
  complete_ = to.of.number;
  const std::chrono::duration<double> took = environment_.clock.now() - published_at_;
  environment_.log.info("no Runtime waits for the newest configuration",
                        {{"revision", to.of.number}, {"seconds", took.count()}});
}

asio::awaitable<reconcile_result> config_sync::implementation::reconcile(k8s::object_key key) {
  // Before there is a target nothing can be compared; with one, every Runtime is enqueued.
  if (!tracker_.current()) co_return reconcile_result::done();
  const auto found = runtimes_.objects().get(key);
  if (!found) {
    own_writes_.forget(key);
    tracked_.erase(key);
    states_.remove(key);
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

asio::awaitable<reconcile_result> config_sync::implementation::write(json::value runtime,
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

reconcile_result config_sync::implementation::on_failure(const json::value& runtime,
                                                         const k8s::failure& error) {
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

config_sync::config_sync(asio::any_io_executor executor, source_watch& sources,
                         k8s::informer& runtimes, sync_options options,
                         sync_environment environment)
    : impl_(std::make_unique<implementation>(std::move(executor), sources, runtimes,
                                             std::move(options), std::move(environment))) {}

config_sync::~config_sync() = default;

asio::awaitable<void> config_sync::run() {
  return impl_->run();
}

}  // namespace rw::config_sync
