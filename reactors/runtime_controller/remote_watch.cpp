#include "rw/reactors/runtime_controller/remote_watch.hpp"

#include "rw/core/backoff.hpp"
#include "rw/core/wake.hpp"
#include "rw/k8s/cache/watch_decoder.hpp"
#include "rw/k8s/cache/watch_health.hpp"
#include "rw/k8s/client/client_pool.hpp"
#include "rw/k8s/objects/object_reader.hpp"

#include <boost/asio/cancellation_type.hpp>
#include <boost/asio/post.hpp>
#include <boost/asio/this_coro.hpp>
#include <boost/asio/use_awaitable.hpp>

#include <algorithm>
#include <functional>
#include <list>
#include <optional>
#include <utility>

namespace rw {
namespace {

namespace asio = boost::asio;
using event_kind = k8s::decoded_event::kind;

constexpr std::size_t event_bytes = 1u << 20;
constexpr auto retry_base = std::chrono::seconds(1);
constexpr auto retry_limit = std::chrono::minutes(1);
/// Attempts in a row after which a cluster that does not respond is no longer watched.
constexpr unsigned attempts_until_lost = 3;
/// From a cluster whose watches do not begin to the next reconcile: at once for the first time,
/// then twice as long each time, as its API server may respond to all else.
constexpr drift_backoff::options of_losses{.base = std::chrono::seconds(4),
                                           .limit = std::chrono::minutes(10),
                                           .quiet = std::chrono::minutes(5)};
/// A watch ends between this and twice this, so that those of many clusters do not end at once.
constexpr std::uint64_t timeout_seconds = 300;

/// Servers before 1.32 may know the parameter and not allow it.
bool refuses_streams(const k8s::failure& error) {
  return error.is(k8s::errc::bad_request) || error.is(k8s::errc::invalid) ||
         error.is(k8s::errc::unsupported) || error.is(k8s::errc::method_not_allowed);
}

/// Copies share it.
const k8s::projection& names_only() {
  static const auto out = k8s::projection::fields({"metadata.name"});
  return out;
}

}  // namespace

// --- one watch ---------------------------------------------------------------------------

/// The shared part of many clusters' watches.
struct remote_watch::kind {
  const watched_set::watch watch;
  const k8s::object_format format{watch.type, true};
};

/// One watch on one cluster, restarted whenever it ends.
class remote_watch::stream final : public k8s::watch_sink {
 public:
  stream(remote_watch& owner, entry& cluster, const kind& kind, std::size_t index)
      : owner_(owner), cluster_(cluster), kind_(kind), index_(index) {}
  ~stream() override { note_suspicion(false); }

  const watched_set::watch& watch() const noexcept { return kind_.watch; }
  /// Whether it runs, has begun with all objects or goes on from there, and can be trusted.
  bool is_live() const noexcept;

  /// Returns the delay before the restart.
  core::duration wait() const;
  void waited(core::duration length) { health_.paused(length); }
  /// A reconcile has compared all objects, and found changes or not.
  void reconciled(bool changed);
  void await_reconcile();
  /// Returns true if another watch of the cluster finds out whether that responds again: this one
  /// goes on when it does.
  bool stands_by();
  bool goes_on() { return std::exchange(stands_by_, false); }
  /// Returns true, and gives the cluster up, if that has not responded for too long.
  bool is_lost();
  /// Begins the watch. Returns true if it runs until `end`.
  asio::awaitable<bool> open();

  // watch_sink
  void begin() override;
  bool take(std::string_view bytes) override;
  void end(boost::system::error_code error) override;

 private:
  bool handle(const k8s::decoded_event& event);
  void note_missing();
  void note_end(const k8s::failure* error);
  void note_progress();
  void note_suspicion(bool suspect);

  remote_watch& owner_;
  entry& cluster_;
  const kind& kind_;
  const std::size_t index_;
  k8s::opened_watch opened_;
  std::unique_ptr<k8s::watch_decoder> decoder_;  ///< while an event is incomplete
  std::string version_;                          ///< empty: it begins with all objects
  std::vector<std::size_t> listed_;              ///< of these, until the first bookmark
  std::optional<core::time_point> began_;        ///< when the server accepted it
  k8s::watch_health health_;
  unsigned failures_ = 0;
  bool listing_ = false;
  bool progressed_ = false;    ///< this watch brought something
  bool on_suspicion_ = false;  ///< a reconcile is due because of `health_`
  bool counted_ = false;       ///< in the metric of suspect watches
  bool broken_ = false;        ///< the stream was unreadable
  bool expired_ = false;       ///< the server no longer has the version
  bool stands_by_ = false;
};

struct remote_watch::entry : std::enable_shared_from_this<entry> {
  entry(remote_watch& of_all, k8s::object_key of, std::shared_ptr<k8s::client> through,
        watched_set set)
      : key(std::move(of)),
        api(std::move(through)),
        owner(of_all),
        expected(std::move(set.versions)),
        over(owner.executor_) {
    for (const auto& watch : set.watches) {
      watches.emplace_back(owner, *this, owner.kind_of(watch), watches.size());
    }
  }

  void reconciled(bool changed) {
    for (auto& each : watches) each.reconciled(changed);
  }
  /// A reconcile will compare all objects, those of every watch.
  void mark_suspect() {
    for (auto& each : watches) each.await_reconcile();
    owner.on_change_(key, {});
  }

  bool watches_the_same(const watched_set& as) const {
    return std::ranges::equal(watches, as.watches, {}, &stream::watch);
  }

  /// Records whether an attempt of a watch to begin got a response.
  void tried(stream& by, bool responded);

  const k8s::object_key key;
  const std::shared_ptr<k8s::client> api;
  remote_watch& owner;
  watched_set::version_list expected;
  watched_set::version_list pending;  ///< the newest ones
  std::list<stream> watches;
  stream* scout = nullptr;  ///< the only one that tries to begin while the cluster does not respond
  unsigned attempts = 0;    ///< of the scout, in a row
  core::wake over;
  core::task_group* tasks = nullptr;  ///< of watch_cluster; null at its end
};

remote_watch::remote_watch(asio::any_io_executor executor, remote_watch_options options,
                           callback on_change, remote_watch_environment in)
    : executor_(std::move(executor)),
      options_(std::move(options)),
      on_change_(std::move(on_change)),
      environment_(std::move(in)),
      watched_(core::make_gauge(environment_.metrics, options_.metrics + "_watched_runtimes",
                                "Number of runtimes that are watched for drift")),
      suspect_(core::make_gauge(environment_.metrics, options_.metrics + "_suspect_watches",
                                "Number of watches on runtimes that ended without an event, one "
                                "after the other")),
      own_(core::make_counter(environment_.metrics, options_.metrics + "_observed_changes_total",
                              "Number of changes of applied objects on runtimes",
                              {{"from", "own"}})),
      foreign_(core::make_counter(
          environment_.metrics, options_.metrics + "_observed_changes_total",
          "Number of changes of applied objects on runtimes", {{"from", "others"}})),
      held_back_(core::make_counter(environment_.metrics, options_.metrics + "_held_back_total",
                                    "Number of reconciles delayed by the backoff of drift")),
      backoff_(options_.backoff),
      losses_(of_losses) {}

remote_watch::~remote_watch() = default;

void remote_watch::watch(const k8s::object_key& key, std::shared_ptr<k8s::client> api,
                         watched_set set) {
  if (!tasks_) return;
  const auto found = entries_.find(key);
  if (found != entries_.end()) {
    if (found->second->api->shares_connections_with(*api) && found->second->watches_the_same(set)) {
      found->second->expected = std::move(set.versions);
      return;
    }
    unwatch(key);
  }
  auto added = std::make_shared<entry>(*this, key, std::move(api), std::move(set));
  entries_.emplace(key, added);
  publish();
  tasks_->spawn(watch_cluster(std::move(added)));
}

watched_set remote_watch::expected(const k8s::object_key& key) const {
  const auto found = entries_.find(key);
  if (found == entries_.end()) return {};
  watched_set out{.versions = found->second->expected};
  std::ranges::transform(found->second->watches, std::back_inserter(out.watches), &stream::watch);
  return out;
}

void remote_watch::unwatch(const k8s::object_key& key) {
  const auto found = entries_.find(key);
  if (found == entries_.end()) return;
  found->second->over.set();
  entries_.erase(found);
  publish();
}

void remote_watch::forget(const k8s::object_key& key) {
  unwatch(key);
  backoff_.forget(key);
  losses_.forget(key);
  changed_.erase(key);
}

bool remote_watch::is_unchanged(const k8s::object_key& key) const {
  const auto found = entries_.find(key);
  if (found == entries_.end() || changed(key)) return false;
  const auto& cluster = *found->second;
  return cluster.pending.empty() && std::ranges::all_of(cluster.watches, &stream::is_live);
}

unsigned remote_watch::reconciled(const k8s::object_key& key, bool repaired, bool wrote) {
  const auto found = entries_.find(key);
  if (found != entries_.end()) found->second->reconciled(wrote);
  const bool caused = changed_.erase(key) > 0;
  return caused || repaired ? backoff_.noted(key, repaired, environment_.clock.now()) : 0;
}

core::duration remote_watch::stream::wait() const {
  if (failures_ == 0) return {};
  core::backoff backoff(retry_base, retry_limit, std::ref(owner_.environment_.random));
  backoff.skip(failures_ - 1);
  return backoff.next();
}

bool remote_watch::stream::is_live() const noexcept {
  if (!began_ || listing_) return false;
  return !health_.is_suspect() ||
         owner_.environment_.clock.now() - *began_ >= k8s::watch_health::proof_of_life;
}

void remote_watch::stream::reconciled(bool changed) {
  if (std::exchange(on_suspicion_, false)) health_.listed(changed);
}

void remote_watch::stream::await_reconcile() {
  health_.listing();
  on_suspicion_ = true;
}

asio::awaitable<bool> remote_watch::stream::open() {
  broken_ = expired_ = progressed_ = false;
  listing_ = version_.empty();
  listed_.clear();
  began_.reset();
  decoder_.reset();
  const auto seconds = timeout_seconds + owner_.environment_.random() % timeout_seconds;
  // The bookmark that ends a streaming list comes at once, and any other within a minute only.
  const bool streams = listing_ && cluster_.api->streams_lists();
  k8s::watch_options options{.resource_version = version_,
                             .timeout = std::chrono::seconds(seconds),
                             .send_initial_events = streams};
  auto opened =
      co_await cluster_.api->open_watch(watch().type, watch().selection, std::move(options), *this);
  // With HTTP/1.1 the watch is over, which says nothing of an attempt to begin.
  if (!began_) cluster_.tried(*this, opened.has_value() || !k8s::is_unhealthy(opened.error()));
  if (opened && *opened) {
    opened_ = std::move(*opened);
    co_return true;
  }
  if (!opened && opened.error().is(k8s::errc::gone)) expired_ = true;
  if (streams && !opened && refuses_streams(opened.error())) {
    cluster_.api->rule_out_streaming_lists();
    began_.reset();
    co_return false;
  }
  if (opened) {
    note_end(nullptr);
  } else {
    const auto error = opened.error();
    note_end(&error);
  }
  co_return false;
}

void remote_watch::stream::begin() {
  began_ = owner_.environment_.clock.now();
  cluster_.tried(*this, true);
}

bool remote_watch::stream::stands_by() {
  stands_by_ = cluster_.scout != nullptr && cluster_.scout != this;
  return stands_by_;
}

bool remote_watch::stream::is_lost() {
  if (cluster_.scout != this || cluster_.attempts < attempts_until_lost) return false;
  owner_.lose(cluster_);
  return true;
}

void remote_watch::entry::tried(stream& by, bool responded) {
  if (!responded) {
    if (scout == nullptr) scout = &by;
    if (scout == &by) ++attempts;
    return;
  }
  scout = nullptr;
  attempts = 0;
  for (auto& each : watches) {
    if (each.goes_on() && tasks != nullptr) tasks->spawn(owner.begin(&each));
  }
}

bool remote_watch::stream::take(std::string_view bytes) {
  if (!decoder_) {
    decoder_ = std::make_unique<k8s::watch_decoder>(
        kind_.format, names_only(), event_bytes,
        [this](const k8s::decoded_event& event) { return handle(event); });
  }
  if (!decoder_->feed(bytes)) {
    broken_ = !expired_;
    return false;
  }
  if (decoder_->between_lines()) decoder_.reset();
  return true;
}

bool remote_watch::stream::handle(const k8s::decoded_event& event) {
  if (event.type == event_kind::error) {
    expired_ = true;
    return false;
  }
  note_progress();
  version_ = event.resource_version;
  if (event.type == event_kind::bookmark) {
    if (std::exchange(listing_, false)) note_missing();
    return true;
  }
  const bool deleted = event.type == event_kind::deleted;
  const auto seen = watched_set::version::of(watch().type, event.subject.key(),
                                             deleted ? std::string_view() : event.resource_version);
  const bool expected = watched_set::find(cluster_.expected, seen) != cluster_.expected.end();
  if (listing_ && expected && std::ranges::find(listed_, seen.object) == listed_.end()) {
    listed_.push_back(seen.object);
  }
  owner_.note(cluster_, seen);
  return true;
}

/// Records objects deleted before the watch began with all objects: it has no event of them.
void remote_watch::stream::note_missing() {
  for (const auto& expected : cluster_.expected) {
    const bool listed = std::ranges::find(listed_, expected.object) != listed_.end();
    if (expected.watch == index_ && !listed) owner_.note(cluster_, {expected.object, 0, index_});
  }
  std::vector<std::size_t>().swap(listed_);
}

void remote_watch::stream::end(boost::system::error_code error) {
  opened_.reset();
  const k8s::failure broken{.code = k8s::errc::unreachable};
  note_end(error ? &broken : nullptr);
  if (cluster_.tasks != nullptr) cluster_.tasks->spawn(owner_.begin(this));
}

void remote_watch::stream::note_progress() {
  progressed_ = true;
  health_.progressed();
  note_suspicion(false);
}

void remote_watch::stream::note_suspicion(bool suspect) {
  if (std::exchange(counted_, suspect) == suspect) return;
  owner_.suspect_.Increment(suspect ? 1 : -1);
}

/// Delays the restart if the server ends each watch at once. `error`: null if it ended in order.
void remote_watch::stream::note_end(const k8s::failure* error) {
  if (expired_) version_.clear();
  auto lasted = began_ ? std::optional(owner_.environment_.clock.now() - *began_) : std::nullopt;
  const unsigned status = error != nullptr ? error->status : 0;
  if (status / 100 == 3) lasted = core::duration::zero();
  if (!expired_ && status < 400) health_.ended({.lasted = lasted, .progressed = progressed_});
  note_suspicion(health_.is_suspect());
  if (lasted && *lasted > retry_base) failures_ = 0;
  if (!lasted || *lasted <= retry_base || error != nullptr || expired_ || broken_) ++failures_;
  began_.reset();
  if (!health_.wants_list() || cluster_.tasks == nullptr) return;
  cluster_.mark_suspect();
}

// --- remote_watch ----------------------------------------------------------------------

const remote_watch::kind& remote_watch::kind_of(const watched_set::watch& watch) {
  const auto found = std::ranges::find(kinds_, watch, &kind::watch);
  return found != kinds_.end() ? *found : kinds_.emplace_back(watch);
}

/// Returns once the watch runs without a coroutine.
asio::awaitable<void> remote_watch::begin(stream* stream) {
  // Not from within the end of the previous exchange.
  co_await asio::post(executor_, asio::use_awaitable);
  for (;;) {
    if (const auto wait = stream->wait(); wait > core::duration::zero()) {
      const auto pause = environment_.clock.make_timer(executor_);
      pause->expires_at(environment_.clock.now() + wait);
      const bool due = co_await pause->wait();
      if (!due) co_return;
      stream->waited(wait);
    }
    if (stream->stands_by()) co_return;
    const bool runs = co_await stream->open();
    if (runs || stream->is_lost()) co_return;
  }
}

/// Leaves it to the reconciles to find out when the cluster responds again: their attempts are
/// bounded over all clusters.
void remote_watch::lose(entry& cluster) {
  const auto found = entries_.find(cluster.key);
  if (found == entries_.end() || found->second.get() != &cluster) return;
  const auto key = cluster.key;
  unwatch(key);
  const auto wait = losses_.wait(key, environment_.clock.now());
  losses_.noted(key, true, environment_.clock.now());
  on_change_(key, wait);
}

/// Notifies, for all clusters with a change, each at its time.
asio::awaitable<void> remote_watch::notify() {
  const auto executor = co_await asio::this_coro::executor;
  const auto pause = environment_.clock.make_timer(executor);
  struct registration {
    core::timer*& alarm;
    ~registration() { alarm = nullptr; }
  };
  alarm_ = pause.get();
  const registration registered{alarm_};
  for (;;) {
    pause->expires_at(due_.empty() ? core::time_point::max() : due_.front().first);
    co_await pause->wait();
    while (!due_.empty() && due_.front().first <= environment_.clock.now()) {
      const auto cluster = due_.front().second.lock();
      due_.pop_front();
      if (cluster) check(*cluster);
    }
  }
}

/// Compares the observed versions with those that the last reconcile left.
void remote_watch::check(entry& cluster) {
  bool drifted = false;
  for (const auto& seen : std::exchange(cluster.pending, {})) {
    const auto expected = watched_set::find(cluster.expected, seen);
    if (expected == cluster.expected.end()) continue;
    const bool own = expected->at == seen.at;
    (own ? own_ : foreign_).Increment();
    drifted = drifted || !own;
  }
  if (!drifted) return;
  changed_.insert(cluster.key);
  const auto wait = backoff_.wait(cluster.key, environment_.clock.now());
  if (wait > core::duration::zero()) held_back_.Increment();
  on_change_(cluster.key, wait);
}

void remote_watch::note(entry& cluster, watched_set::version seen) {
  const auto expected = watched_set::find(cluster.expected, seen);
  if (expected == cluster.expected.end()) return;
  const bool is_pending = watched_set::find(cluster.pending, seen) != cluster.pending.end();
  if (!is_pending && expected->at == seen.at) return;
  if (cluster.pending.empty()) {
    due_.emplace_back(environment_.clock.now() + options_.delay, cluster.weak_from_this());
    if (due_.size() == 1 && alarm_ != nullptr) alarm_->cancel();
  }
  watched_set::put(cluster.pending, seen);
}

asio::awaitable<void> remote_watch::watch_cluster(entry_ptr cluster) {
  core::task_group tasks(executor_);
  const auto cancellation = co_await asio::this_coro::cancellation_state;
  // The tasks have to be joined from here on.
  co_await asio::this_coro::throw_if_cancelled(false);
  cluster->tasks = &tasks;
  for (auto& watch : cluster->watches) tasks.spawn(begin(&watch));
  if (cancellation.cancelled() == asio::cancellation_type::none) co_await cluster->over.wait();
  cluster->tasks = nullptr;
  tasks.cancel();
  co_await tasks.join();
  cluster->watches.clear();
}

asio::awaitable<void> remote_watch::run() {
  tasks_ = std::make_unique<core::task_group>(executor_);
  core::wake never(executor_);
  const auto cancellation = co_await asio::this_coro::cancellation_state;
  co_await asio::this_coro::throw_if_cancelled(false);
  tasks_->spawn(notify());
  if (cancellation.cancelled() == asio::cancellation_type::none) co_await never.wait();
  tasks_->cancel();
  co_await tasks_->join();
  tasks_.reset();
  entries_.clear();
  due_.clear();
  publish();
}

}  // namespace rw
