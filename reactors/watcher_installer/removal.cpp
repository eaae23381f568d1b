// The finalizer that the installer puts on a Kyma, and what happens before it goes.

#include "core/within.hpp"
#include "k8s/rfc3339.hpp"
#include "k8s/types.hpp"
#include "reactors/kyma_resources.hpp"
#include "reactors/runtime_access.hpp"
#include "reactors/watcher_installer/watcher_installer.hpp"

#include <boost/json/array.hpp>
#include <boost/json/object.hpp>

#include <utility>

namespace rw::watcher_installer {

namespace asio = boost::asio;
namespace json = boost::json;
using k8s::object;
using k8s::object_key;

asio::awaitable<std::optional<k8s::reconcile_result>> watcher_installer::add_finalizer(
    object kyma) {
  auto value = kyma.parse();
  if (!k8s::add_finalizer(value, with_.finalizer)) co_return std::nullopt;
  // With the version, since a merge patch replaces the whole list.
  json::value change = {{"metadata",
                         {{"resourceVersion", kyma.resource_version()},
                          {"finalizers", value.at("metadata").at("finalizers")}}}};
  const auto done =
      co_await in_.kcp.patch(kymas_type(), kyma.key(), k8s::patch_type::merge, std::move(change));
  if (done) co_return std::nullopt;
  if (done.error().is(k8s::errc::conflict) || done.error().is(k8s::errc::not_found)) {
    // The informer does not know the newest state yet.
    co_return result::requeue_after(std::chrono::milliseconds(100));
  }
  co_return result::error(done.error());
}

/// Removes the watcher from the runtime; none on success, else why not.
asio::awaitable<std::optional<std::string>> watcher_installer::clean(object_key key,
                                                                     std::string kubeconfig,
                                                                     places::place* kept) {
  auto api = in_.runtimes.get(to_string(key), kubeconfig);
  if (!api) co_return api.error().message;
  const bool sick = runtimes_.sick(key);
  if (sick && !*kept) *kept = places_.take(key);
  if (sick && !*kept) co_return runtimes_.complaint(key);
  const auto limit = sick ? patience(key) : with_.first_answer;
  auto silent = co_await sign_of_life(key, kubeconfig, limit);
  *kept = {};
  if (silent) {
    in_.runtimes.evict(to_string(key));
    runtimes_.set_sick(key, *silent);
    co_return silent;
  }
  auto work = uninstall(*api, &with_.how);
  const auto until = in_.clock.now() + with_.runtime_limit;
  const auto done = co_await core::within(in_.clock, until, std::move(work));
  if (done && *done) co_return std::nullopt;
  auto why = done ? done->error().message : std::string("it did not answer in time");
  if (!done || k8s::is_sick(done->error())) {
    in_.runtimes.evict(to_string(key));
    runtimes_.set_sick(key, why);
  }
  co_return why;
}

asio::awaitable<k8s::reconcile_result> watcher_installer::keep_removed(object kyma,
                                                                       places::place* kept) {
  const auto key = kyma.key();
  const auto value = kyma.parse();
  if (!k8s::has_finalizer(value, with_.finalizer)) {
    forget(key);
    co_return result::done();
  }
  std::optional<std::string> why;
  const auto secrets = kubeconfigs_for(kyma);
  const auto kubeconfig = kubeconfig_of(kyma.name(), secrets);
  if (kubeconfig) {
    why = co_await clean(key, *kubeconfig, kept);
  } else {
    why = kubeconfig.error().message;
  }
  const auto since = k8s::parse_rfc3339(k8s::find_string(value, {"metadata", "deletionTimestamp"}));
  const core::duration passed = since ? in_.clock.wall() - *since : with_.removal_limit;
  if (why && !secrets.empty() && passed < with_.removal_limit) {
    // The backoff must not outlast the limit.
    controller_.add_after(key, with_.removal_limit - passed + std::chrono::milliseconds(10));
    co_return result::error("the watcher can't be removed from the runtime: " + *why,
                            "removal failed");
  }
  const auto removed = co_await in_.certificates.remove(key);
  if (!removed) co_return result::error(removed.error());
  auto dropped = co_await drop_finalizer(std::move(kyma));
  if (dropped.what != result::kind::done) co_return dropped;
  const auto about = k8s::reference_to(value);
  if (why) {
    in_.log.warning("runtime is left as it is, its Kyma is gone",
                    {{"namespace", key.ns}, {"name", key.name}, {"reason", *why}});
    in_.events.warning(about, "WatcherRemovalGivenUp",
                       "The watcher may still be on the runtime: " + *why);
  } else {
    in_.events.normal(about, "WatcherRemoved", "The watcher is removed from the runtime");
  }
  co_return dropped;
}

asio::awaitable<k8s::reconcile_result> watcher_installer::drop_finalizer(object kyma) {
  auto value = kyma.parse();
  k8s::remove_finalizer(value, with_.finalizer);
  const auto* left = k8s::find(value, {"metadata", "finalizers"});
  json::value change = {{"metadata",
                         {{"resourceVersion", kyma.resource_version()},
                          {"finalizers", left == nullptr ? json::value(json::array()) : *left}}}};
  const auto done =
      co_await in_.kcp.patch(kymas_type(), kyma.key(), k8s::patch_type::merge, std::move(change));
  if (!done && done.error().is(k8s::errc::conflict)) {
    co_return result::requeue_after(std::chrono::milliseconds(100));
  }
  if (!done && !done.error().is(k8s::errc::not_found)) co_return result::error(done.error());
  forget(kyma.key());
  co_return result::done();
}

}  // namespace rw::watcher_installer
