#include "reactors/bootstrapper/drift_watch.hpp"

#include "core/wake.hpp"
#include "k8s/watch_attempt.hpp"
#include "reactors/bootstrapper/desired_set.hpp"

#include <boost/asio/cancellation_type.hpp>
#include <boost/asio/this_coro.hpp>

#include <algorithm>
#include <utility>

namespace rw::bootstrapper {
namespace {

namespace asio = boost::asio;
using event_kind = k8s::watch_event::kind;

constexpr std::size_t event_bytes = 1u << 20;
constexpr auto retry_base = std::chrono::seconds(1);
constexpr auto retry_limit = std::chrono::minutes(1);
/// A watch ends between this and twice this, so that those of many runtimes do not end at once.
constexpr std::uint64_t timeout_seconds = 300;

}  // namespace

std::string drift_key(const k8s::resource_type& type, const k8s::object_key& key) {
  return type.plural + "." + type.gvk.group + " " + to_string(key);
}

struct drift_watch::entry {
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

drift_watch::drift_watch(asio::any_io_executor executor, core::duration delay,
                         std::function<void(const k8s::object_key&)> on_drift, drift_environment in)
    : executor_(std::move(executor)),
      delay_(delay),
      on_drift_(std::move(on_drift)),
      in_(std::move(in)),
      watched_(core::make_gauge(in_.metrics, "rw_bootstrapper_watched_runtimes",
                                "Number of runtimes that are watched for drift")),
      own_(core::make_counter(in_.metrics, "rw_bootstrapper_heard_total",
                              "Number of changes of applied objects on runtimes",
                              {{"from", "own"}})),
      foreign_(core::make_counter(in_.metrics, "rw_bootstrapper_heard_total",
                                  "Number of changes of applied objects on runtimes",
                                  {{"from", "others"}})) {}

drift_watch::~drift_watch() = default;

void drift_watch::watch(const k8s::object_key& key, std::shared_ptr<k8s::client> api,
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
  watched_.Set(static_cast<double>(entries_.size()));
  tasks_->spawn(watch_runtime(std::move(added)));
}

void drift_watch::unwatch(const k8s::object_key& key) {
  const auto found = entries_.find(key);
  if (found == entries_.end()) return;
  found->second->over.set();
  entries_.erase(found);
  watched_.Set(static_cast<double>(entries_.size()));
}

asio::awaitable<void> drift_watch::watch_kind(entry* runtime, k8s::resource_type type) {
  const auto pause = in_.clock.make_timer(executor_);
  core::backoff backoff(retry_base, retry_limit, in_.random);
  const k8s::object_format format(type, true);
  const k8s::selection all{.labels = std::string(synced_by_label) + "=" + std::string(synced_by),
                           .metadata_only = true};
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
          runtime->note(drift_key(type, event.subject.key()),
                        deleted ? std::string() : std::string(event.subject.resource_version()));
          return true;
        });
    k8s::watch_attempt attempt(in_.clock, std::move(decoder), [] {});
    const auto seconds = timeout_seconds + in_.random() % timeout_seconds;
    k8s::watch_options options{.resource_version = version,
                               .timeout = std::chrono::seconds(seconds)};
    const auto ended = co_await runtime->api->watch(type, all, std::move(options), attempt);
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

asio::awaitable<void> drift_watch::notify(entry* runtime) {
  const auto pause = in_.clock.make_timer(executor_);
  for (;;) {
    co_await runtime->changed.wait();
    pause->expires_at(in_.clock.now() + delay_);
    const bool due = co_await pause->wait();
    if (!due) co_return;
    bool drifted = false;
    for (const auto& [object, version] : std::exchange(runtime->pending, {})) {
      const auto expected = runtime->versions.find(object);
      if (expected == runtime->versions.end()) continue;
      const bool own = expected->second == version;
      (own ? own_ : foreign_).Increment();
      drifted = drifted || !own;
    }
    if (drifted) on_drift_(runtime->key);
  }
}

asio::awaitable<void> drift_watch::watch_runtime(entry_ptr runtime) {
  core::task_group tasks(executor_);
  const auto cancellation = co_await asio::this_coro::cancellation_state;
  // From here on the tasks have to be joined.
  co_await asio::this_coro::throw_if_cancelled(false);
  for (const auto& type : runtime->types) tasks.spawn(watch_kind(runtime.get(), type));
  tasks.spawn(notify(runtime.get()));
  if (cancellation.cancelled() == asio::cancellation_type::none) co_await runtime->over.wait();
  tasks.cancel();
  co_await tasks.join();
}

asio::awaitable<void> drift_watch::run() {
  tasks_ = std::make_unique<core::task_group>(executor_);
  core::wake never(executor_);
  const auto cancellation = co_await asio::this_coro::cancellation_state;
  co_await asio::this_coro::throw_if_cancelled(false);
  if (cancellation.cancelled() == asio::cancellation_type::none) co_await never.wait();
  tasks_->cancel();
  co_await tasks_->join();
  tasks_.reset();
  entries_.clear();
  watched_.Set(0);
}

}  // namespace rw::bootstrapper
