#include "rw/reactors/heartbeat/prober.hpp"

#include "rw/core/backoff.hpp"
#include "rw/core/text.hpp"
#include "rw/reactors/shared/kyma_resources.hpp"
#include "rw/reactors/shared/probe.hpp"

#include <boost/json/object.hpp>
#include <boost/json/value.hpp>

#include <algorithm>
#include <array>
#include <span>
#include <utility>

namespace rw::heartbeats {
namespace {

namespace asio = boost::asio;
namespace json = boost::json;
using k8s::reconcile_result;
using enum status_reason;

constexpr std::size_t longest_cause = 300;
constexpr core::duration first_within = std::chrono::minutes(1);
constexpr double probe_jitter = 0.1;  // of the interval
constexpr std::string_view untrusted =
    "the runtime's API server rejects the watcher's certificate: see whether caBundle of the "
    "webhook configuration is the CA of Secret skr-webhook-tls";
constexpr std::string_view timed_out =
    "the watcher did not respond in 3 s: see its pod, and the NetworkPolicies";

constexpr std::string_view no_route =
    "the runtime's API server has no route to the watcher's pod: see the runtime's network between "
    "its control plane and its pods, such as the tunnel (vpn-shoot)";

/// What a text says, and what that means.
struct known_failure {
  std::string_view part;  ///< of the text
  status_reason reason;
  std::string_view message;
};
/// When a kube-apiserver can't call a webhook; the first that matches. Wording of Go's crypto/x509
/// (verify.go) and of k8s.io/apiserver (pkg/util/proxy).
constexpr std::array<known_failure, 12> call_failures{
    {{"certificate has expired or is not yet valid", certificate_expired,
      "the watcher's certificate is not valid now: see its Certificate in KCP, and its issuer"},
     {"x509: certificate is ", certificate_name_wrong,
      "the watcher's certificate is for other names: see dnsNames of its Certificate in KCP"},
     {"x509", ca_bundle_wrong, untrusted},
     {"tls: ", ca_bundle_wrong, untrusted},
     {"no endpoints available", no_endpoints,
      "the Service skr-webhook has no endpoints: see why the watcher's pod is not ready"},
     {"not found", service_missing,
      "the Service skr-webhook, or its pod, is missing: see the Deployment skr-webhook"},
     {"connection refused", webhook_refused,
      "the watcher's port is closed: see whether its pod runs"},
     {"network is unreachable", webhook_call_failed, no_route},
     {"no route to host", webhook_call_failed, no_route},
     {"deadline exceeded", webhook_timeout, timed_out},
     {"i/o timeout", webhook_timeout, timed_out},
     {"Timeout exceeded", webhook_timeout, timed_out}}};

/// When KCP does not accept a heartbeat.
constexpr std::array<known_failure, 3> upstream_failures{
    {{"status 404", route_missing,
      "the gateway does not route heartbeats: see the VirtualService "
      "kcp-system/runtime-watcher-heartbeats, and its gateway"},
     {"status 50", listener_unavailable,
      "the gateway does not reach the manager's listener: see the EndpointSlice of the manager's "
      "Service for events, and whether a replica of the manager leads"},
     {"", gateway_unreachable,
      "the watcher does not reach KCP: see the gateway, its CA and the watcher's certificate"}}};

const known_failure* find_failure(std::span<const known_failure> among, std::string_view text) {
  const auto at = std::ranges::find_if(
      among, [&](const known_failure& each) { return text.find(each.part) != text.npos; });
  return at == among.end() ? nullptr : &*at;
}

/// Text from a runtime, which is printable (k8s::failure, k8s::call_options::warnings).
std::string as_cause(std::string_view text) {
  return " (" + core::middle_cut(text, longest_cause) + ")";
}

probe_result failed(probe_stage stage, status_reason reason, std::string message) {
  probe_result out;
  out.stage = stage;
  out.reason = reason;
  out.message = std::move(message);
  return out;
}

probe_result assess_failure(const k8s::failure& error) {
  const auto cause = as_cause(error.message);
  const auto says = [&](std::string_view part) {
    return error.message.find(part) != std::string::npos;
  };
  const bool calling = says("failed calling webhook");
  const bool called_ours = says(probe_webhook);
  // Others reject it before the watcher is called, or afterwards: that says nothing of the watcher.
  if ((calling && !called_ours) || says("denied the request") || says("exceeded quota") ||
      says("is being terminated")) {
    return {};
  }
  if (calling) {
    const auto* const known = find_failure(call_failures, error.message);
    if (known == nullptr) {
      return failed(probe_stage::webhook, webhook_call_failed,
                    "the runtime's API server cannot call the watcher: see its log" + cause);
    }
    return failed(probe_stage::webhook, known->reason, std::string(known->message) + cause);
  }
  if (k8s::is_access_rejected(error) || error.is(k8s::errc::forbidden)) {
    return failed(
        probe_stage::runtime, access_rejected,
        "KCP's kubeconfig for the runtime is not accepted: see its Secret, which must be renewed" +
            cause);
  }
  if (error.status == 0) {
    return failed(
        probe_stage::runtime, runtime_unreachable,
        "the runtime's API server does not respond: see whether the runtime is up" + cause);
  }
  return failed(
      probe_stage::runtime, probe_rejected,
      "the runtime's API server rejects the probe: see what else admits its objects" + cause);
}

json::value probe_object(const std::string& nonce) {
  json::object labels{{probe_label, "true"}};
  json::object metadata{{"name", std::string(probe_prefix) + nonce},
                        {"namespace", skr_namespace},
                        {"labels", std::move(labels)}};
  return json::object{
      {"apiVersion", "v1"}, {"kind", "ConfigMap"}, {"metadata", std::move(metadata)}};
}

}  // namespace

probe_result assess_probe(const std::optional<k8s::failure>& error,
                          const std::vector<std::string>& warnings, std::string_view nonce) {
  if (error) return assess_failure(*error);
  for (const auto& warning : warnings) {
    const auto report = parse_probe_report(warning);
    if (!report || report->nonce != nonce) continue;
    if (!report->upstream.empty()) {
      const auto& known = *find_failure(upstream_failures, report->upstream);
      return failed(probe_stage::gateway, known.reason,
                    std::string(known.message) + as_cause(report->upstream) + "; " +
                        std::to_string(report->undelivered) + " events wait");
    }
    probe_result out;
    out.stage = probe_stage::heartbeat;
    return out;
  }
  return failed(probe_stage::webhook, webhook_not_called,
                "the runtime's API server does not call the watcher: see the webhook "
                "configuration skr-webhook, and the labels of the namespace kyma-system");
}

asio::awaitable<probe_result> send_probe(k8s::client& runtime, std::string nonce,
                                         std::chrono::milliseconds limit) {
  std::vector<std::string> warnings;
  const k8s::call_options bounds{.deadline = limit, .retry = false, .warnings = &warnings};
  auto object = probe_object(nonce);
  const auto done =
      co_await runtime.create(config_maps_type(), std::move(object), {.dry_run = true}, bounds);
  co_return assess_probe(done ? std::nullopt : std::optional(done.error()), warnings, nonce);
}

core::duration retry_pause(const prober_options& options, unsigned failures, std::size_t failing) {
  const auto longest = std::min(options.interval, options.retry_limit);
  const auto own = core::doubled(options.retry, longest, failures);
  const std::chrono::duration<double> turn(static_cast<double>(failing) / options.failing_rate);
  return std::max(own,
                  std::min(options.interval, std::chrono::duration_cast<core::duration>(turn)));
}

prober::prober(asio::any_io_executor executor, prober_options options,
               prober_environment environment)
    : options_(options),
      environment_(std::move(environment)),
      controller_(std::move(executor), {.name = "probe", .concurrent = options_.concurrent}, *this,
                  {environment_.clock, environment_.watchdog, environment_.log,
                   environment_.metrics, environment_.random}) {}

void prober::probe_later(const k8s::object_key& kyma) {
  controller_.add_after(
      kyma, core::shortened(std::min(first_within, options_.interval), 1, environment_.random()));
}

asio::awaitable<reconcile_result> prober::reconcile(k8s::object_key kyma) {
  const bool exists = static_cast<bool>(environment_.kymas.objects().get(kyma));
  if (!exists || !environment_.installed(kyma)) {
    failures_.erase(kyma);
    co_return exists ? reconcile_result::requeue_after(options_.retry) : reconcile_result::done();
  }
  auto result = co_await send(kyma);
  auto base = options_.interval;
  if (result.reason == none) {
    failures_.erase(kyma);
  } else {
    const auto failures = failures_.use(kyma, 0U)++;
    base = retry_pause(options_, failures, failures_.size());
  }
  environment_.on_result(kyma, std::move(result));
  co_return reconcile_result::requeue_after(
      core::shortened(base, probe_jitter, environment_.random()));
}

asio::awaitable<probe_result> prober::send(k8s::object_key kyma) {
  const auto random = environment_.random();
  const auto nonce = core::hex({reinterpret_cast<const unsigned char*>(&random), sizeof random});
  const auto begun = environment_.clock.now();
  const auto kubeconfig = environment_.kubeconfig(kyma);
  auto api = kubeconfig ? environment_.runtimes.get(k8s::to_string(kyma), *kubeconfig)
                        : k8s::result<std::shared_ptr<k8s::client>>(kubeconfig.error());
  probe_result out;
  if (api.has_error()) {
    out = failed(probe_stage::runtime, access_rejected,
                 "KCP has no usable kubeconfig for the runtime: see its Secret" +
                     as_cause(api.error().message));
  } else {
    out = co_await send_probe(**api, nonce, options_.limit);
  }
  out.nonce = nonce;
  out.begun = begun;
  co_return out;
}

}  // namespace rw::heartbeats
