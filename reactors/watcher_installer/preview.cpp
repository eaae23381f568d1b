// What the next reconcile would write, by the decisions and the pass of a reconcile.

#include "rw/core/within.hpp"
#include "rw/k8s/objects/types.hpp"
#include "rw/reactors/runtime_controller/runtime_access.hpp"
#include "rw/reactors/shared/definition.hpp"
#include "rw/reactors/shared/kyma_resources.hpp"
#include "rw/reactors/shared/resource_writer.hpp"
#include "rw/reactors/watcher_installer/watcher_installer.hpp"

#include <boost/json/array.hpp>

#include <memory>
#include <utility>

namespace rw::watcher_installer {

namespace asio = boost::asio;
namespace json = boost::json;

asio::awaitable<pass_preview> watcher_installer::preview(k8s::object_key kyma,
                                                         core::duration time_limit) {
  pass_preview out{.component = "watcher"};
  const preview_writes writes;
  auto pass = preview_pass(std::move(kyma), writes, &out);
  const auto until = environment_.clock.now() + time_limit;
  const auto ended = co_await core::within(environment_.clock, until, std::move(pass));
  co_return complete(std::move(out), writes, ended);
}

asio::awaitable<k8s::result<void>> watcher_installer::preview_pass(k8s::object_key kyma,
                                                                   preview_writes writes,
                                                                   pass_preview* out) {
  const auto stored = sources_.kymas.objects().get(kyma);
  if (!stored) co_return k8s::result<void>();
  // Who owns a cluster is among what a former leader recorded.
  if (!has_records_) {
    out->error = "this leader has not begun to reconcile runtimes: try again";
    co_return k8s::result<void>();
  }
  // The informer may be behind, such as of a manager that was stopped for a while.
  k8s::selection selection{.ns = kyma.ns, .fields = "metadata.name=" + kyma.name};
  const auto live = co_await environment_.kcp.list(kymas_type(), std::move(selection));
  if (!live) co_return live.error();
  const auto* const items = k8s::find_array(*live, {"items"});
  if (items == nullptr || items->empty()) {
    out->waits.emplace_back("the Kyma is gone");
    co_return k8s::result<void>();
  }
  auto value = items->front();
  const auto next = decide(stored, value, true);
  const bool goes = k8s::is_being_deleted(value);
  k8s::result<void> done;
  switch (next.next) {
    case action::leave:
      out->waits.push_back(scope_of(value, options_.only) == cluster_scope::left_alone
                               ? "the Kyma has the label " + std::string(skip_label) +
                                     ": nothing is written until it is removed"
                               : "--only does not select the Kyma: nothing is written");
      break;
    case action::release:
      out->waits.emplace_back("the Kyma is being deleted: the watcher is lifecycle-manager's");
      done = co_await preview_release(std::move(value), true, writes);
      break;
    case action::stand_back:
      out->waits.push_back("the cluster belongs to Kyma " + next.owner + ": nothing is written");
      break;
    case action::hand_over:
      out->waits.push_back("the Kyma is being deleted: the watcher stays for Kyma " + next.owner);
      done = co_await preview_hand_over(std::move(value), writes);
      break;
    case action::remove:
      out->waits.emplace_back("the Kyma is being deleted");
      done = co_await preview_removal(std::move(value), writes, out);
      break;
    case action::install:
      if (goes) {
        out->waits.emplace_back(
            "the Kyma is being deleted: the watcher stays until its other finalizers are gone");
      }
      done = co_await preview_installation(std::move(value), writes.runtime, out);
      break;
  }
  co_return done;
}

asio::awaitable<k8s::result<void>> watcher_installer::preview_removal(json::value kyma,
                                                                      preview_writes writes,
                                                                      pass_preview* out) {
  const auto key = k8s::key_of(kyma);
  if (!k8s::has_finalizer(kyma, options_.finalizer)) co_return k8s::result<void>();
  const auto definition =
      co_await find_definition_state(environment_.kcp, kymas_type(), times_of(kyma));
  if (!definition) co_return definition.error();
  const bool stays = is_by_definition(*definition);
  if (stays) {
    out->waits.emplace_back("the definition of kymas is deleted: the runtime keeps the watcher");
  } else {
    const auto secrets = claims_.kubeconfigs_of(key.name);
    const auto api = co_await contact_for_preview(to_string(key), kubeconfig_of(key.name, secrets),
                                                  writes.runtime);
    auto removed = api ? k8s::result<void>() : k8s::result<void>(api.error());
    if (api) removed = co_await uninstall(*api, &options_.install);
    const bool is_awaited = !secrets.empty() && removal_left(kyma) > core::duration::zero();
    if (!removed && is_awaited) co_return removed;
    if (!removed) out->error = removed.error().message;
  }
  const auto released = co_await preview_release(std::move(kyma), stays, writes);
  co_return released;
}

asio::awaitable<k8s::result<void>> watcher_installer::preview_hand_over(json::value kyma,
                                                                        preview_writes writes) {
  const auto definition =
      co_await find_definition_state(environment_.kcp, kymas_type(), times_of(kyma));
  const bool stays = !definition || is_by_definition(*definition);
  const auto released = co_await preview_release(std::move(kyma), stays, writes);
  co_return released;
}

/// What ends a removal, in KCP.
asio::awaitable<k8s::result<void>> watcher_installer::preview_release(json::value kyma,
                                                                      bool keeps_certificate,
                                                                      preview_writes writes) {
  if (!k8s::has_finalizer(kyma, options_.finalizer)) co_return k8s::result<void>();
  if (!keeps_certificate) {
    const auto removed = co_await certificates_.try_removal(k8s::key_of(kyma), writes.kcp);
    if (!removed) co_return removed;
  }
  // A client of KCP that is dry for lifecycle-manager's sake still releases Kymas.
  resource_writer writer(finalizers_, kymas_type());
  const auto released =
      co_await writer.try_release(std::move(kyma), options_.finalizer, writes.kcp);
  co_return released;
}

asio::awaitable<k8s::result<void>> watcher_installer::preview_installation(
    json::value kyma, std::shared_ptr<k8s::write_preview> into, pass_preview* out) {
  const auto key = k8s::key_of(kyma);
  const auto own = certificates_.current(kyma);
  if (own.state == certificate_state::kind::refused) {
    out->error = "there can't be a certificate: " + own.reason;
    co_return k8s::result<void>();
  }
  refresh_inputs();
  if (!inputs_.address() || !inputs_.trust()) {
    out->error = inputs_.errors().front().message;
    co_return k8s::result<void>();
  }
  auto order = order_for(own);
  order.may_update = [this, key](std::string in_place) { return content_.admits(key, in_place); };
  const auto completed = co_await complete_order(&key, &order);
  if (!completed) co_return completed;
  const auto api = co_await contact_for_preview(to_string(key), kubeconfig(key.name), into);
  if (!api) co_return api.error();
  const auto seen =
      co_await install(*api, &options_.install, &bundles_, std::move(order), &environment_.clock);
  if (!seen) co_return seen.error();
  if (!seen->contested.empty()) {
    out->waits.push_back(options_.install.former_manager + " writes " + seen->contested +
                         " too: the runtime is left to it");
  }
  if (!seen->pending.empty()) out->waits.push_back(seen->pending);
  if (own.state != certificate_state::kind::ready && !seen->trust) {
    out->waits.emplace_back(
        "the Secret, the Deployment and the webhooks come with the certificate");
  }
  if (!seen->unobserved.empty()) out->waits.push_back(seen->unobserved);
  out->awaits_turn = seen->awaits_turn;
  if (seen->awaits_turn) out->waits.push_back(awaits_turn("the watcher's Deployment", "watcher"));
  co_return k8s::result<void>();
}

}  // namespace rw::watcher_installer
