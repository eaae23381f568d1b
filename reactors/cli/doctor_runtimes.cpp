// The checks of runtimes, and of what a manager knows of them.

#include "rw/core/text.hpp"
#include "rw/core/within.hpp"
#include "rw/k8s/objects/label_selector.hpp"
#include "rw/k8s/objects/manifests.hpp"
#include "rw/k8s/objects/types.hpp"
#include "rw/reactors/certificates/rendering.hpp"
#include "rw/reactors/cli/doctor_app.hpp"
#include "rw/reactors/cli/doctor_kubeconfig.hpp"
#include "rw/reactors/heartbeat/prober.hpp"
#include "rw/reactors/runtime_controller/runtime_access.hpp"
#include "rw/reactors/runtime_controller/workload.hpp"
#include "rw/reactors/shared/cluster_state.hpp"
#include "rw/reactors/shared/fleet_verdict.hpp"
#include "rw/reactors/shared/kyma_resources.hpp"
#include "rw/reactors/shared/probe.hpp"
#include "rw/reactors/shared/status_reason.hpp"
#include "rw/reactors/shared/trust_bundle.hpp"
#include "rw/reactors/watcher_installer/templates.hpp"
#include "rw/tls/certificate.hpp"

#include <boost/json/array.hpp>

#include <algorithm>
#include <array>
#include <utility>

namespace rw::cli {
namespace {

namespace asio = boost::asio;
using enum finding_state;

finding failed_finding(const std::string& kyma, status_reason reason, const std::string& message,
                       std::string remedy) {
  const std::string word(to_string(reason));
  return {failed, "runtime", kyma + ": " + (word.empty() ? "" : word + ": ") + message,
          std::move(remedy), word};
}

/// The reason that the manager has for a request that failed. What is absent it writes.
status_reason reason_of_request(const k8s::failure& error) {
  if (error.is(k8s::errc::not_found)) return status_reason::none;
  if (k8s::is_access_rejected(error)) return status_reason::access_rejected;
  return k8s::is_unhealthy(error) ? status_reason::runtime_unreachable : reason_of_failure(error);
}

/// Since when a Deployment has had no ready pod, by its condition Available, or else its creation.
std::chrono::system_clock::time_point unavailable_since(const boost::json::value& deployment) {
  const auto* const conditions = k8s::find_array(deployment, {"status", "conditions"});
  std::string text(k8s::find_string(deployment, {"metadata", "creationTimestamp"}));
  const boost::json::array none;
  for (const auto& each : conditions == nullptr ? none : *conditions) {
    if (k8s::find_string(each, {"type"}) == "Available") {
      text = k8s::find_string(each, {"lastTransitionTime"});
    }
  }
  return k8s::parse_rfc3339(text).value_or(std::chrono::system_clock::time_point());
}

}  // namespace

/// Checks the watcher on a runtime. Nothing: it is in order.
asio::awaitable<std::optional<finding>> doctor_app::check_installation(k8s::client* runtime,
                                                                       std::string kyma) {
  const std::string skr(skr_namespace);
  const auto configurations =
      *k8s::well_known_type("admissionregistration.k8s.io/v1", "ValidatingWebhookConfiguration");
  const auto deployments = *k8s::well_known_type("apps/v1", "Deployment");
  const auto not_read = [&](const k8s::failure& error, std::string remedy) {
    const auto state = unwritten(error);
    if (state == failed) {
      return failed_finding(kyma, reason_of_request(error), error.message, std::move(remedy));
    }
    auto out = failed_finding(kyma, status_reason::would_write, error.message,
                              std::string(shadow_writes_nothing));
    out.state = state;
    return out;
  };
  const auto remedy =
      "see why the manager did not write it: runtime-watcher status --name " + kyma + " -o wide";
  const auto configuration =
      co_await runtime->get(configurations, {{}, std::string(skr_webhook_name)}, true);
  if (!configuration) {
    const auto& error = configuration.error();
    const bool absent = error.is(k8s::errc::not_found);
    const bool unusable =
        error.is(k8s::errc::not_configured) || error.is(k8s::errc::address_refused);
    std::string own;
    if (unusable) own = co_await name_kubeconfig_secret(kcp_.get(), kyma);
    auto out =
        not_read(error, absent     ? remedy
                        : unusable ? kubeconfig_remedy(own, error)
                                   : "see the runtime's API server and the kubeconfig's rights");
    if (absent && !leader_.known) out.state = not_proven;  // it may be out of --only
    co_return out;
  }
  const auto secret =
      co_await runtime->get(secrets_type(), {skr, std::string(watcher_installer::secret_name)});
  if (!secret) {
    co_return not_read(secret.error(), remedy);
  }
  const auto text = k8s::secret_data(*secret, certificate_entry);
  const auto own = tls::certificate::from_pem(text.value_or(std::string()));
  const auto renewal = "see Certificate " + leader_.istio_namespace + "/" +
                       certificates::certificate_name(kyma) + " in KCP, and its issuer";
  if (!own || !own->valid_at(now())) {
    co_return failed_finding(
        kyma, own ? status_reason::certificate_expired : status_reason::none,
        own ? "the watcher's certificate ended at " + k8s::format_time(own->not_after())
            : "the watcher's certificate is unusable",
        renewal);
  }
  const auto deployment = co_await runtime->get(deployments, {skr, std::string(skr_webhook_name)});
  if (!deployment) {
    co_return not_read(deployment.error(), remedy);
  }
  if (k8s::find_number(*deployment, {"status", "readyReplicas"}) < 1) {
    const auto pods = co_await inspect_pods(runtime, *deployment);
    const auto reason = pods ? reason_of_pod(pods->reason) : status_reason::pod_not_ready;
    const bool both = pods && !pods->container.empty() && !pods->message.empty();
    auto message = pods ? pods->container + (both ? ": " : "") + pods->message
                        : "no pod is ready, and why can't be read: " + pods.error().message;
    if (pods && reason != pods->reason) message = pods->reason + ": " + message;
    auto out = failed_finding(kyma, reason, message, std::string(next_step(reason)));
    const runtime_observation observed{.installation = runtime_state::not_ready,
                                       .reason = reason,
                                       .since = unavailable_since(*deployment)};
    const auto judged = judge(kyma, observed, now());
    if (judged.condition != runtime_condition::ill) out.state = not_proven;
    co_return out;
  }
  auto found = co_await check_writes(runtime, kyma);
  if (!found) found = co_await check_events(runtime, std::move(kyma));
  co_return found;
}

/// Whether the runtime takes what the manager would write, by dry runs that change nothing.
asio::awaitable<std::optional<finding>> doctor_app::check_writes(k8s::client* runtime,
                                                                 std::string kyma) {
  const std::string skr(skr_namespace);
  const auto type = [](const char* version, const char* kind) {
    return *k8s::well_known_type(version, kind);
  };
  const std::array<std::pair<k8s::resource_type, k8s::object_key>, 3> written{
      {{type("admissionregistration.k8s.io/v1", "ValidatingWebhookConfiguration"),
        {{}, std::string(skr_webhook_name)}},
       {secrets_type(), {skr, std::string(watcher_installer::secret_name)}},
       {type("apps/v1", "Deployment"), {skr, std::string(skr_webhook_name)}}}};
  for (const auto& [kind, key] : written) {
    k8s::write_options by{.field_manager = leader_.field_manager, .dry_run = true};
    const auto tried = co_await runtime->patch(kind, key, k8s::patch_type::merge,
                                               boost::json::object(), std::move(by));
    if (tried) continue;
    co_return failed_finding(
        kyma, reason_of_request(tried.error()), tried.error().message,
        "see the rights of the kubeconfig, and what admits objects on the runtime: the manager "
        "can't repair or rotate there");
  }
  co_return std::nullopt;
}

/// Whether the runtime's API server calls the watcher, and that reaches KCP.
asio::awaitable<std::optional<finding>> doctor_app::check_events(k8s::client* runtime,
                                                                 std::string kyma) {
  if (leader_.known && !leader_.has_probes()) co_return std::nullopt;  // check_runtimes says so
  const auto random = services_.random()();
  const auto nonce = core::hex({reinterpret_cast<const unsigned char*>(&random), sizeof random});
  const auto probed = co_await heartbeats::send_probe(*runtime, nonce, settings_.runtime_timeout);
  if (probed.reason == status_reason::none) {
    if (probed.stage != heartbeats::probe_stage::runtime) co_return std::nullopt;
    co_return finding{not_proven, "runtime",
                      kyma +
                          ": another admission rejects the probe, so the way of events is not "
                          "proven",
                      "admit dry runs of ConfigMaps with the label " + std::string(probe_label)};
  }
  const auto see = probed.message.find(": see ");
  const auto cut = std::min(see, probed.message.size());
  auto out = failed_finding(kyma, probed.reason, probed.message.substr(0, cut),
                            see == std::string::npos ? "" : probed.message.substr(see + 2));
  // A manager without probes makes no webhook for them.
  if (!leader_.known && probed.reason == status_reason::webhook_not_called) out.state = not_proven;
  co_return out;
}

/// Checks a runtime. Nothing: it is in order.
asio::awaitable<std::optional<finding>> doctor_app::check_runtime(std::string kyma) {
  if (const auto found = duplicates_.find(kyma); found != duplicates_.end()) {
    co_return failed_finding(kyma, status_reason::duplicate_runtime, "also Kyma " + found->second,
                             "correct the runtime id or the kubeconfig of one of the two Kymas, or "
                             "delete it");
  }
  if (const auto found = invalid_.find(kyma); found != invalid_.end()) {
    co_return failed_finding(kyma, status_reason::certificate_invalid, found->second,
                             "correct the Kyma's label or annotation that it names");
  }
  const auto kubeconfig = co_await read_kubeconfig(*kcp_, kyma);
  if (!kubeconfig) {
    const auto& error = kubeconfig.error();
    const bool missing = error.is(k8s::errc::not_found) || error.is(k8s::errc::not_configured);
    co_return failed_finding(kyma, missing ? status_reason::access_missing : status_reason::none,
                             error.message,
                             "its owner, such as infrastructure-manager, writes that Secret");
  }
  const auto api = runtimes_->get(kyma, *kubeconfig);
  if (!api) {
    const auto& error = api.error();
    const auto secret = co_await name_kubeconfig_secret(kcp_.get(), kyma);
    co_return failed_finding(kyma, status_reason::access_missing,
                             unusable_kubeconfig(secret, kyma, error),
                             kubeconfig_remedy(secret, error));
  }
  auto checking = check_installation(api->get(), kyma);
  const auto until = services_.clock.now() + settings_.runtime_timeout;
  auto found = co_await core::within(services_.clock, until, std::move(checking));
  if (found) co_return std::move(*found);
  co_return failed_finding(kyma, status_reason::runtime_unreachable,
                           "the runtime did not respond in time",
                           "see whether the runtime is up, or raise --runtime-timeout");
}

asio::awaitable<void> doctor_app::check_some(const std::vector<std::string>* kymas,
                                             runtime_counts* counts) {
  while (counts->begun < kymas->size()) {
    const auto& kyma = (*kymas)[counts->begun++];
    auto found = co_await check_runtime(kyma);
    const auto condition = !found                   ? runtime_condition::well
                           : found->state == failed ? runtime_condition::ill
                                                    : runtime_condition::unknown;
    const auto reason = parse_status_reason(found ? found->reason : std::string());
    const judged_runtime judged{kyma, condition, reason.value_or(status_reason::none)};
    judged_.push_back(judged);
    if (!found) {
      ++counts->well;
      continue;
    }
    found->runtime = kyma;
    if (found->state == failed) {
      ++counts->failed;
      note_failed(judged);
    }
    if (++counts->told <= most_lines) co_await report(std::move(*found));
  }
}

/// The Kymas to check. Those that the manager leaves alone, and those that are being deleted, may
/// lack anything: they are left out, as the leader leaves them out.
asio::awaitable<k8s::result<std::vector<std::string>>> doctor_app::select_kymas() {
  const auto got =
      co_await kcp_->list(kymas_type(), {.ns = std::string(kcp_namespace), .metadata_only = true});
  if (!got) co_return got.error();
  co_await find_duplicates(&got->at("items").as_array());
  for (const auto& entry : got->at("items").as_array()) {
    const auto wanted = certificates::certificate_for(entry, {});
    if (!wanted) invalid_.emplace(k8s::key_of(entry).name, wanted.error().message);
  }
  if (!settings_.runtimes.empty()) co_return settings_.runtimes;
  const auto parsed = k8s::label_selector::parse(leader_.only);
  const auto only = parsed ? *parsed : k8s::label_selector();
  std::vector<std::string> out;
  for (const auto& entry : got->at("items").as_array()) {
    auto name = k8s::key_of(entry).name;
    if (scope_of(entry, only) != cluster_scope::managed || k8s::is_being_deleted(entry)) {
      judged_.push_back({std::move(name), runtime_condition::left_out});
    } else {
      out.push_back(std::move(name));
    }
  }
  co_return out;
}

asio::awaitable<void> doctor_app::check_runtimes() {
  const auto kymas = co_await select_kymas();
  if (!kymas) {
    const bool absent = kymas.error().is(k8s::errc::not_found);
    co_await report(absent ? not_proven : failed, "runtimes", kymas.error().message, "see kinds");
    co_return;
  }
  const auto left_out = judged_.size();
  runtime_counts counts;
  core::task_group workers(services_.executor, fail_on_exception());
  for (std::size_t i = 0; i < settings_.concurrent; ++i) {
    workers.spawn(check_some(&*kymas, &counts));
  }
  co_await workers.join();
  auto text = text_of_order(counts.well, kymas->size()) + ", up to ";
  const bool probed = !leader_.known || leader_.has_probes();
  text += probed
              ? "a probe of the way of their events"
              : "dry runs of writes; the manager runs without probes, so the way of their events "
                "is not proven";
  if (left_out > 0) {
    text += "; " + std::to_string(left_out) + (left_out == 1 ? " is" : " are") +
            " left out (being deleted, or left alone)";
  }
  const bool all = counts.well == kymas->size();
  co_await report({.state = counts.failed > 0 ? failed
                            : all && probed   ? proven
                                              : not_proven,
                   .check = "runtimes",
                   .message = std::move(text),
                   .checks = all ? 1 : counts.told - std::min(counts.told, most_lines)});
}

}  // namespace rw::cli
