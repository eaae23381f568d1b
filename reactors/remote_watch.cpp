#include "reactors/remote_watch.hpp"

#include "core/backoff.hpp"
#include "core/wake.hpp"
#include "k8s/watch_attempt.hpp"

#include <boost/asio/cancellation_type.hpp>
#include <boost/asio/this_coro.hpp>

#include <algorithm>
#include <utility>

namespace rw {
namespace {

namespace asio = boost::asio;
using event_kind = k8s::watch_event::kind;

constexpr std::size_t event_bytes = 1u << 20;
constexpr auto retry_base = std::chrono::seconds(1);
constexpr auto retry_limit = std::chrono::minutes(1);
/// A watch ends between this and twice this, so that those of many clusters do not end at once.
constexpr std::uint64_t timeout_seconds = 300;

}  // namespace

// --- drift_backoff ---------------------------------------------------------------------

core::duration drift_backoff::wait_of(const row& of) const {
  const auto doubled = [this](unsigned times, core::duration limit) {
    auto out = with_.base;
    for (unsigned i = 1; i < times && out < limit; ++i) out *= 2;
    return times == 0 ? core::duration::zero() : std::min(out, limit);
  };
  return std::max(doubled(of.repairs, with_.limit),
                  doubled(of.idle, std::min(with_.idle_limit, with_.limit)));
}

bool drift_backoff::is_over(const row& of, time_point now) const {
  return now - of.last > std::max(2 * wait_of(of), with_.quiet);
}

core::duration drift_backoff::wait(const k8s::object_key& key, time_point now) const {
  const auto found = rows_.find(key);
  if (found == rows_.end() || is_over(found->second, now)) return {};
  return wait_of(found->second);
}

unsigned drift_backoff::noted(const k8s::object_key& key, bool repaired, time_point now) {
  auto& known = rows_[key];
  if (is_over(known, now)) known = {};
  known.last = now;
  known.idle = repaired ? 0 : known.idle + 1;
  if (repaired) ++known.repairs;
  return known.repairs;
}

// --- remote_watch ----------------------------------------------------------------------

std::string watch_key(const k8s::resource_type& type, const k8s::object_key& key) {
  return type.plural + "." + type.gvk.group + " " + to_string(key);
}

struct remote_watch::entry {
  entry(const asio::any_io_executor& executor, k8s::object_key of,
        std::shared_ptr<k8s::client> through, watched_set set)
      : key(std::move(of)),
        api(std::move(through)),
        types(std::move(set.types)),
        versions(std::move(set.versions)),
        over(executor),
        changed(executor) {}

  void note(const std::string& object, std::string version) {
    if (!versions.contains(object)) return;
    if (!pending.contains(object) && versions[object] == version) return;
    pending[object] = std::move(version);
    changed.set();
  }

  const k8s::object_key key;
  const std::shared_ptr<k8s::client> api;
  const std::vector<k8s::resource_type> types;
  std::map<std::string, std::string> versions;
  std::map<std::string, std::string> pending;  ///< newest version; empty: deleted
  core::wake over;
  core::wake changed;
};

remote_watch::remote_watch(asio::any_io_executor executor, remote_watch_options options,
                           callback on_change, remote_watch_environment in)
    : executor_(std::move(executor)),
      options_(std::move(options)),
      on_change_(std::move(on_change)),
      in_(std::move(in)),
      watched_(core::make_gauge(in_.metrics, options_.metrics + "_watched_runtimes",
                                "Number of runtimes that are watched for drift")),
      own_(core::make_counter(in_.metrics, options_.metrics + "_observed_changes_total",
                              "Number of changes of applied objects on runtimes",
                              {{"from", "own"}})),
      foreign_(core::make_counter(in_.metrics, options_.metrics + "_observed_changes_total",
                                  "Number of changes of applied objects on runtimes",
                                  {{"from", "others"}})),
      held_back_(core::make_counter(in_.metrics, options_.metrics + "_held_back_total",
                                    "Number of reconciles delayed by the backoff of drift")),
      backoff_(options_.backoff) {}

remote_watch::~remote_watch() = default;

void remote_watch::watch(const k8s::object_key& key, std::shared_ptr<k8s::client> api,
                         watched_set set) {
  if (!tasks_) return;
  const auto found = entries_.find(key);
  if (found != entries_.end()) {
    if (found->second->api == api && std::ranges::is_permutation(found->second->types, set.types)) {
      found->second->versions = std::move(set.versions);
      return;
    }
    unwatch(key);
  }
  auto added = std::make_shared<entry>(executor_, key, std::move(api), std::move(set));
  entries_.emplace(key, added);
  publish();
  tasks_->spawn(watch_cluster(std::move(added)));
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
  changed_.erase(key);
}

unsigned remote_watch::reconciled(const k8s::object_key& key, bool repaired) {
  const bool caused = changed_.erase(key) > 0;
  return caused || repaired ? backoff_.noted(key, repaired, in_.clock.now()) : 0;
}

asio::awaitable<void> remote_watch::watch_kind(entry* cluster, k8s::resource_type type) {
  const auto pause = in_.clock.make_timer(executor_);
  core::backoff backoff(retry_base, retry_limit, in_.random);
  const k8s::object_format format(type, true);
  const k8s::selection all{.labels = options_.labels, .metadata_only = true};
  std::string version;  // empty: the watch begins with all objects
  for (;;) {
    bool expired = false;
    k8s::watch_decoder decoder(
        format, k8s::projection::fields({"metadata.generation"}), event_bytes,
        [&](const k8s::watch_event& event) {
          if (event.what == event_kind::error) {
            expired = true;
            return false;
          }
          version = event.resource_version;
          if (event.what == event_kind::bookmark) return true;
          const bool deleted = event.what == event_kind::deleted;
          cluster->note(watch_key(type, event.subject.key()),
                        deleted ? std::string() : std::string(event.subject.resource_version()));
          return true;
        });
    k8s::watch_attempt attempt(in_.clock, std::move(decoder), [] {});
    const auto seconds = timeout_seconds + in_.random() % timeout_seconds;
    k8s::watch_options options{.resource_version = version,
                               .timeout = std::chrono::seconds(seconds)};
    const auto ended = co_await cluster->api->watch(type, all, std::move(options), attempt);
    // A server that ends each watch at once is not asked again at once.
    if (ended && !expired && attempt.lasted() > retry_base) {
      backoff.reset();
      continue;
    }
    if (expired || (!ended && ended.error().is(k8s::errc::gone))) version.clear();
    pause->expires_at(in_.clock.now() + backoff.next());
    const bool due = co_await pause->wait();
    if (!due) co_return;
  }
}

asio::awaitable<void> remote_watch::notify(entry* cluster) {
  const auto pause = in_.clock.make_timer(executor_);
  for (;;) {
    co_await cluster->changed.wait();
    pause->expires_at(in_.clock.now() + options_.delay);
    const bool due = co_await pause->wait();
    if (!due) co_return;
    bool drifted = false;
    for (const auto& [object, version] : std::exchange(cluster->pending, {})) {
      const auto expected = cluster->versions.find(object);
      if (expected == cluster->versions.end()) continue;
      const bool own = expected->second == version;
      (own ? own_ : foreign_).Increment();
      drifted = drifted || !own;
    }
    if (!drifted) continue;
    changed_.insert(cluster->key);
    const auto wait = backoff_.wait(cluster->key, in_.clock.now());
    if (wait > core::duration::zero()) held_back_.Increment();
    on_change_(cluster->key, wait);
  }
}

asio::awaitable<void> remote_watch::watch_cluster(entry_ptr cluster) {
  core::task_group tasks(executor_);
  const auto cancellation = co_await asio::this_coro::cancellation_state;
  // From here on the tasks have to be joined.
  co_await asio::this_coro::throw_if_cancelled(false);
  for (const auto& type : cluster->types) tasks.spawn(watch_kind(cluster.get(), type));
  tasks.spawn(notify(cluster.get()));
  if (cancellation.cancelled() == asio::cancellation_type::none) co_await cluster->over.wait();
  tasks.cancel();
  co_await tasks.join();
}

asio::awaitable<void> remote_watch::run() {
  tasks_ = std::make_unique<core::task_group>(executor_);
  core::wake never(executor_);
  const auto cancellation = co_await asio::this_coro::cancellation_state;
  co_await asio::this_coro::throw_if_cancelled(false);
  if (cancellation.cancelled() == asio::cancellation_type::none) co_await never.wait();
  tasks_->cancel();
  co_await tasks_->join();
  tasks_.reset();
  entries_.clear();
  publish();
}

}  // namespace rw
