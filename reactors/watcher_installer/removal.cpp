// What happens before a Kyma that is being deleted loses the installer's finalizer.

#include "rw/k8s/objects/types.hpp"
#include "rw/reactors/runtime_controller/runtime_access.hpp"
#include "rw/reactors/shared/explanations.hpp"
#include "rw/reactors/shared/kyma_resources.hpp"
#include "rw/reactors/watcher_installer/watcher_installer.hpp"

#include <utility>

namespace rw::watcher_installer {

namespace asio = boost::asio;
namespace json = boost::json;

/// The other finalizers' owners may still need the events of the runtime, as lifecycle-manager does
/// until the modules are deleted.
bool watcher_installer::is_kept_by_others(const json::value& kyma) const {
  const auto* const all = k8s::find(kyma, {"metadata", "finalizers"});
  return k8s::has_finalizer(kyma, options_.finalizer) && all->as_array().size() > 1;
}

/// What is on the runtime is lifecycle-manager's to remove; without it the Kyma waits for a manager
/// that writes.
asio::awaitable<k8s::reconcile_result> watcher_installer::release(json::value kyma) {
  const auto key = k8s::key_of(kyma);
  if (finalizers_.is_dry()) {
    forget(key);
    co_return result::done();
  }
  resource_writer writer(finalizers_, kymas_type());
  const auto ended = co_await writer.set_finalizer(&kyma, options_.finalizer, false);
  forget(key);
  co_return ended.value_or(result::done());
}

/// Its runtime is not touched, so the finalizer waits for a manager in whose scope the Kyma is. It
/// must not keep the Kyma for ever: there may be none.
asio::awaitable<k8s::reconcile_result> watcher_installer::leave(json::value kyma) {
  const bool ends = k8s::is_being_deleted(kyma) && k8s::has_finalizer(kyma, options_.finalizer) &&
                    !is_kept_by_others(kyma) && !finalizers_.is_dry();
  if (!ends) co_return result::done();
  const auto left = removal_left(kyma);
  if (left > core::duration::zero()) {
    co_return result::requeue_after(left + std::chrono::milliseconds(10));
  }
  auto released = co_await release(kyma);
  if (released.type == result::kind::done) {
    note_removed(kyma, "this manager leaves it alone, by its Kyma's labels");
  }
  co_return released;
}

asio::awaitable<k8s::reconcile_result> watcher_installer::keep_removed(json::value kyma,
                                                                       contact to) {
  const auto key = to.key;
  if (!k8s::has_finalizer(kyma, options_.finalizer)) {
    forget(key);
    co_return result::done();
  }
  const auto secrets = claims_.kubeconfigs_of(key.name);
  // A runtime whose kubeconfig is deleted is not waited for.
  const auto left = [&] { return secrets.empty() ? core::duration::zero() : removal_left(kyma); };
  const auto done =
      co_await remove_runtime(&to, &kyma, to_string(key), kubeconfig_of(key.name, secrets), left,
                              [this](std::shared_ptr<k8s::client> api) {
                                return uninstall(std::move(api), &options_.install);
                              });
  if (!done.ended) {
    if (done.failed) {
      note(kyma, {.state = runtime_state::failed,
                  .reason = status_reason::removal_failed,
                  .message = to.error});
    }
    co_return result::error("the watcher can't be removed from the runtime: " + to.error,
                            "removal failed");
  }
  auto finished = co_await finish_removal(std::move(kyma), done, {});
  co_return finished;
}

/// `heir`: another Kyma, which claims the cluster, so that the watcher stays there for it. The
/// certificate of one that goes with its definition stays: runtimes have it, and Kymas come back.
asio::awaitable<k8s::reconcile_result> watcher_installer::finish_removal(json::value kyma,
                                                                         removal done,
                                                                         std::string heir) {
  const auto key = k8s::key_of(kyma);
  if (!k8s::has_finalizer(kyma, options_.finalizer)) {
    forget(key);
    co_return result::done();
  }
  bool stays = done.by_definition;
  if (!heir.empty()) {
    const auto definition =
        co_await find_definition_state(environment_.kcp, kymas_type(), times_of(kyma));
    stays = !definition || is_by_definition(*definition);
  }
  if (stays) {
    note_gone(kyma);
  } else {
    const auto removed = co_await certificates_.remove(key);
    if (!removed) co_return result::error(removed.error());
  }
  const auto ended = co_await writer_.set_finalizer(&kyma, options_.finalizer, false);
  if (ended && ended->type != result::kind::done) co_return *ended;
  forget(key);
  if (heir.empty()) {
    note_removed(kyma, done.abandoned);
  } else {
    environment_.events.normal(
        k8s::reference_to(kyma), "WatcherReleased"_reason,
        "The watcher stays on the runtime, which is also Kyma " + heir + "'s");
  }
  co_return result::done();
}

}  // namespace rw::watcher_installer
