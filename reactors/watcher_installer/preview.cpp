// What the next reconcile would write, by the decisions and the pass of a reconcile.

#include "rw/k8s/objects/types.hpp"
#include "rw/reactors/shared/kyma_resources.hpp"
#include "rw/reactors/watcher_installer/watcher_installer.hpp"

#include <boost/json/array.hpp>

#include <memory>
#include <utility>

namespace rw::watcher_installer {

namespace asio = boost::asio;
namespace json = boost::json;

asio::awaitable<pass_preview> watcher_installer::preview(k8s::object_key kyma) {
  pass_preview out{.component = "watcher"};
  const auto stored = sources_.kymas.objects().get(kyma);
  if (!stored) co_return out;
  // Who owns a cluster is among what a former leader recorded.
  if (!has_records_) {
    out.error = "this leader has not begun to reconcile runtimes: try again";
    co_return out;
  }
  // The informer may be behind, such as of a manager that was stopped for a while.
  k8s::selection selection{.ns = kyma.ns, .fields = "metadata.name=" + kyma.name};
  const auto live = co_await environment_.kcp.list(kymas_type(), std::move(selection));
  if (!live) {
    out.error = live.error().message;
    co_return out;
  }
  const auto* const items = k8s::find_array(*live, {"items"});
  if (items == nullptr || items->empty()) {
    out.waits.emplace_back("the Kyma is gone");
    co_return out;
  }
  auto value = items->front();
  const auto next = decide(stored, value, true);
  const bool goes = k8s::is_being_deleted(value);
  const auto writes = std::make_shared<k8s::write_preview>();
  switch (next.next) {
    case action::leave:
      out.waits.push_back(scope_of(value, options_.only) == cluster_scope::left_alone
                              ? "the Kyma has the label " + std::string(skip_label) +
                                    ": nothing is written until it is removed"
                              : "--only does not select the Kyma: nothing is written");
      break;
    case action::release:
      out.waits.emplace_back("the Kyma is being deleted: the watcher is lifecycle-manager's");
      break;
    case action::stand_back:
      out.waits.push_back("the cluster belongs to Kyma " + next.owner + ": nothing is written");
      break;
    case action::hand_over:
      out.waits.push_back("the Kyma is being deleted: the watcher stays for Kyma " + next.owner);
      break;
    case action::remove:
      out.waits.emplace_back("the Kyma is being deleted");
      co_await preview_removal(std::move(value), writes, &out);
      break;
    case action::install:
      if (goes) {
        out.waits.emplace_back(
            "the Kyma is being deleted: the watcher stays until its other finalizers are gone");
      }
      co_await preview_installation(std::move(value), writes, &out);
      break;
  }
  out.writes = writes->take();
  co_return out;
}

asio::awaitable<void> watcher_installer::preview_removal(json::value kyma,
                                                         std::shared_ptr<k8s::write_preview> into,
                                                         pass_preview* out) {
  const auto key = k8s::key_of(kyma);
  if (!k8s::has_finalizer(kyma, options_.finalizer)) co_return;
  const auto api = co_await contact_for_preview(to_string(key), kubeconfig(key.name), into);
  if (!api) {
    out->error = api.error().message;
    co_return;
  }
  const auto removed = co_await uninstall(*api, &options_.install);
  if (!removed) out->error = removed.error().message;
}

asio::awaitable<void> watcher_installer::preview_installation(
    json::value kyma, std::shared_ptr<k8s::write_preview> into, pass_preview* out) {
  const auto key = k8s::key_of(kyma);
  const auto own = certificates_.current(kyma);
  if (own.state == certificate_state::kind::refused) {
    out->waits.push_back("there can't be a certificate: " + own.reason);
    co_return;
  }
  refresh_inputs();
  if (!inputs_.address() || !inputs_.trust()) {
    out->waits.push_back(inputs_.errors().front().message);
    co_return;
  }
  auto order = order_for(own);
  order.may_update = [this, key](std::string in_place) { return content_.admits(key, in_place); };
  const auto completed = co_await complete_order(&key, &order);
  if (!completed) {
    out->error = completed.error().message;
    co_return;
  }
  const auto api = co_await contact_for_preview(to_string(key), kubeconfig(key.name), into);
  if (!api) {
    out->error = api.error().message;
    co_return;
  }
  const auto seen =
      co_await install(*api, &options_.install, &bundles_, std::move(order), &environment_.clock);
  if (!seen) {
    out->error = seen.error().message;
    co_return;
  }
  if (!seen->contested.empty()) {
    out->waits.push_back(options_.install.former_manager + " writes " + seen->contested +
                         " too: the runtime is left to it");
  }
  if (!seen->pending.empty()) out->waits.push_back(seen->pending);
  if (!seen->unobserved.empty()) out->waits.push_back(seen->unobserved);
  out->awaits_turn = seen->awaits_turn;
  if (seen->awaits_turn) out->waits.push_back(awaits_turn("the watcher's Deployment", "watcher"));
}

}  // namespace rw::watcher_installer
