#include "reactors/bootstrapper/drift_watch.hpp"

#include "core/wake.hpp"
#include "k8s/manifests.hpp"
#include "reactors/bootstrapper/desired_set.hpp"

#include <boost/asio/cancellation_type.hpp>
#include <boost/asio/this_coro.hpp>

#include <algorithm>
#include <deque>
#include <string_view>
#include <utility>
#include <vector>

namespace rw::bootstrapper {
namespace {

namespace asio = boost::asio;

constexpr std::size_t deltas_at_once = 64;
constexpr std::size_t most_versions = 64;

/// Metadata without annotations and managedFields: that something changed is all that counts.
k8s::informer_options options_for(const k8s::resource_type& type, const std::string& ns) {
  k8s::informer_options out;
  out.what.ns = type.namespaced ? ns : std::string();
  out.what.labels = std::string(synced_by_label) + "=" + std::string(synced_by);
  out.what.metadata_only = true;
  out.keep = k8s::projection::fields({"metadata.generation"});
  return out;
}

/// ClusterTrustBundles in the version that the cluster prefers; none where it serves none.
asio::awaitable<std::vector<k8s::resource_type>> types_of(k8s::client* api) {
  std::vector<k8s::resource_type> out;
  for (const auto* kind : {"ConfigMap", "Secret"}) out.push_back(*k8s::well_known_type("v1", kind));
  out.push_back(*k8s::well_known_type("apps/v1", "Deployment"));
  const auto versions = co_await api->versions("certificates.k8s.io");
  for (const auto& one : versions.has_value() ? *versions : std::vector<std::string>()) {
    const auto found = co_await api->find({"certificates.k8s.io", one, "ClusterTrustBundle"});
    if (!found) continue;
    out.push_back(*found);
    break;
  }
  co_return out;
}

}  // namespace

struct drift_watch::followed {
  followed(const asio::any_io_executor& executor, k8s::object_key of,
           std::shared_ptr<k8s::client> through, std::string where)
      : key(std::move(of)),
        api(std::move(through)),
        ns(std::move(where)),
        over(executor),
        news(executor) {}

  bool is_own(const std::string& version) const {
    return std::ranges::find(own, version) != own.end();
  }

  const k8s::object_key key;
  const std::shared_ptr<k8s::client> api;
  const std::string ns;
  core::wake over;
  core::wake news;
  std::vector<std::string> changed;  ///< versions, since it was told last
  std::deque<std::string> own;       ///< the latest ones
};

drift_watch::drift_watch(asio::any_io_executor executor, core::duration delay,
                         std::function<void(const k8s::object_key&)> heard, drift_environment in)
    : executor_(std::move(executor)),
      delay_(delay),
      heard_(std::move(heard)),
      in_(std::move(in)),
      watched_(core::make_gauge(in_.metrics, "rw_bootstrapper_watched_runtimes",
                                "Runtimes where changes of what was applied are heard of at once")),
      own_(core::make_counter(in_.metrics, "rw_bootstrapper_heard_total",
                              "Changes that were heard of on runtimes", {{"from", "own"}})),
      others_(core::make_counter(in_.metrics, "rw_bootstrapper_heard_total",
                                 "Changes that were heard of on runtimes", {{"from", "others"}})) {}

drift_watch::~drift_watch() = default;

void drift_watch::follow(const k8s::object_key& key, std::shared_ptr<k8s::client> api,
                         const std::string& ns) {
  if (!tasks_) return;
  const auto found = followed_.find(key);
  if (found != followed_.end()) {
    if (found->second->api == api && found->second->ns == ns) return;
    leave(key);
  }
  auto one = std::make_shared<followed>(executor_, key, std::move(api), ns);
  followed_.emplace(key, one);
  watched_.Set(static_cast<double>(followed_.size()));
  tasks_->spawn(watch(std::move(one)));
}

void drift_watch::leave(const k8s::object_key& key) {
  const auto found = followed_.find(key);
  if (found == followed_.end()) return;
  found->second->over.set();
  followed_.erase(found);
  watched_.Set(static_cast<double>(followed_.size()));
}

void drift_watch::expect(const k8s::object_key& key, const std::vector<std::string>& versions) {
  const auto found = followed_.find(key);
  if (found == followed_.end()) return;
  auto& own = found->second->own;
  own.insert(own.end(), versions.begin(), versions.end());
  while (own.size() > most_versions) own.pop_front();
}

/// What is there at first is no change.
asio::awaitable<void> drift_watch::take_changes(k8s::informer* from, followed* into) {
  const auto changes = from->subscribe(deltas_at_once);
  std::vector<k8s::delta> some;
  for (;;) {
    some.clear();
    const bool known = from->synced();
    const auto got = co_await changes->receive_some(some, deltas_at_once);
    if (got.has_error()) co_return;
    if (!known) continue;
    for (const auto& one : some) {
      // One that is gone has no version of ours; beyond so many, one more makes no difference.
      const auto version = one.now ? one.now.resource_version() : std::string_view();
      if (into->changed.size() < most_versions) into->changed.emplace_back(version);
    }
    into->news.set();
  }
}

asio::awaitable<void> drift_watch::tell_changes(followed* of) {
  const auto pause = in_.clock.make_timer(executor_);
  for (;;) {
    co_await of->news.wait();
    pause->expires_at(in_.clock.now() + delay_);
    const bool due = co_await pause->wait();
    if (!due) co_return;
    bool foreign = false;
    for (const auto& version : std::exchange(of->changed, {})) {
      const bool own = of->is_own(version);
      (own ? own_ : others_).Increment();
      foreign = foreign || !own;
    }
    if (foreign) heard_(of->key);
  }
}

asio::awaitable<void> drift_watch::watch(std::shared_ptr<followed> one) {
  core::task_group tasks(executor_);
  const auto types = co_await types_of(one->api.get());
  const auto cancellation = co_await asio::this_coro::cancellation_state;
  std::vector<std::unique_ptr<k8s::informer>> informers;
  // From here on the tasks have to be joined.
  co_await asio::this_coro::throw_if_cancelled(false);
  for (const auto& type : types) {
    informers.push_back(std::make_unique<k8s::informer>(
        *one->api, type, options_for(type, one->ns),
        k8s::informer_environment{in_.clock, in_.log, in_.metrics, in_.random}));
    tasks.spawn(take_changes(informers.back().get(), one.get()));
    tasks.spawn(informers.back()->run());
  }
  tasks.spawn(tell_changes(one.get()));
  if (cancellation.cancelled() == asio::cancellation_type::none) co_await one->over.wait();
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
  followed_.clear();
  watched_.Set(0);
}

}  // namespace rw::bootstrapper
