// What the manager needs in KCP beside its own manifests.

#include "rw/k8s/objects/types.hpp"
#include "rw/reactors/certificates/rendering.hpp"
#include "rw/reactors/cli/doctor_gateway.hpp"
#include "rw/reactors/cli/doctor_pre_checks.hpp"
#include "rw/reactors/shared/fleet_verdict.hpp"
#include "rw/reactors/shared/kyma_resources.hpp"
#include "rw/reactors/shared/trust_bundle.hpp"
#include "rw/reactors/watcher_installer/lifecycle_manager_lease.hpp"
#include "rw/tls/certificate.hpp"

#include <utility>

namespace rw::cli {
namespace {

namespace asio = boost::asio;
namespace json = boost::json;
using certificates::issuer_kind;
using enum finding_state;

issuer_kind issuer_of(const manager_settings& of) {
  return of.gardener_certificates ? issuer_kind::gardener : issuer_kind::cert_manager;
}

std::string issuer_command(const manager_settings& of) {
  return pki_command(of.gardener_certificates ? "deploy/pki/gardener.yaml"
                                              : "deploy/pki/cert-manager.yaml");
}

/// A request that failed. What may not be read proves nothing.
finding failed_request(std::string check, const k8s::failure& error, std::string remedy) {
  expect_response(error);
  if (error.is(k8s::errc::not_found)) {
    return {failed, std::move(check), error.message, std::move(remedy)};
  }
  return {not_proven, std::move(check), error.message,
          "see that it exists, with a user who may read it"};
}

/// What is wrong with the root's certificate; empty: nothing.
std::string root_error(const json::value& secret, std::chrono::system_clock::time_point now) {
  const auto text = k8s::secret_data(secret, certificate_entry);
  const auto read = tls::certificate::from_pem(text.value_or(std::string()));
  if (!read)
    return "has no usable " + std::string(certificate_entry) + ": " + read.error().message();
  if (!read->is_ca()) return "has a certificate of no authority";
  if (const auto host = find_placeholder(*read)) {
    return "has a certificate for " + *host + ", a placeholder of the manifests";
  }
  if (read->valid_at(now)) return "";
  return "has a certificate that is valid from " + k8s::format_time(read->not_before()) + " to " +
         k8s::format_time(read->not_after()) + " only";
}

asio::awaitable<void> check_settings(pre_context* with) {
  if (!with->planned.exists) {
    co_await with->journal.report(
        {not_proven, "settings",
         "the manifests have no Deployment of the manager, its defaults are assumed"});
  } else if (!with->planned.error.empty()) {
    co_await with->journal.report({failed, "settings",
                                   "the manager would not start: " + with->planned.error,
                                   "correct its Deployment (deploy/settings.md)"});
  } else if (!with->planned.unknown.empty()) {
    const auto& names = with->planned.unknown;
    co_await with->journal.report(
        {not_proven, "settings",
         "the manifests do not have these values, and the defaults are assumed: " +
             first_of(names, names.size())});
  } else {
    co_await with->journal.report(
        {proven, "settings", "the manager accepts the settings of its Deployment"});
  }
}

/// Returns true if KCP serves the kind, and reports it otherwise.
asio::awaitable<bool> is_served(pre_context* with, k8s::resource_type type, std::string remedy) {
  const auto& gvk = type.gvk;
  const auto found = co_await with->kcp.find(gvk);
  if (found) co_return true;
  auto text = gvk.kind + " (" + gvk.api_version() + ") is not served";
  expect_response(found.error());
  if (!found.error().is(k8s::errc::not_found)) text += ": " + found.error().message;
  co_await with->journal.report({failed, "kinds", std::move(text), std::move(remedy)});
  co_return false;
}

/// The kind of certificates that the manifests are for; names the other kind where KCP has that.
asio::awaitable<bool> check_certificates_kind(pre_context* with) {
  const auto wanted = issuer_of(with->planned.settings);
  const bool gardener = wanted == issuer_kind::gardener;
  const auto other = gardener ? issuer_kind::cert_manager : issuer_kind::gardener;
  const auto has_other = co_await with->kcp.find(certificates::certificates_type(other).gvk);
  if (!has_other) expect_response(has_other.error());
  std::string remedy = gardener ? "install Gardener's cert-management"
                                : install_cert_manager_command(with->settings.kcp);
  if (has_other) {
    remedy = gardener ? "leave the Component deploy/manager/gardener out: KCP has cert-manager"
                      : "add the Component deploy/manager/gardener, as KCP has Gardener's "
                        "cert-management, and "
                        "check again: kubectl kustomize . | runtime-watcher doctor --pre -f -";
  }
  const bool served =
      co_await is_served(with, certificates::certificates_type(wanted), std::move(remedy));
  co_return served;
}

/// The command that applies the definition of a kind of Kyma's.
std::string definition_command(const std::string& repository, const std::string& group,
                               const std::string& plural) {
  return "kubectl apply -f https://raw.githubusercontent.com/kyma-project/" + repository +
         "/main/config/crd/bases/" + group + ".kyma-project.io_" + plural + ".yaml";
}

asio::awaitable<void> check_kinds(pre_context* with) {
  with->journal.begin("kinds");
  const auto& settings = with->planned.settings;
  std::vector<std::pair<k8s::resource_type, std::string>> needed{
      {kymas_type(), definition_command("lifecycle-manager", "operator", "kymas")},
      {gateways_type(), install_istio_command(with->settings.kcp)},
      {virtual_services_type(), install_istio_command(with->settings.kcp)}};
  if (settings.runtime_config.mode != bootstrapper_mode::off) {
    needed.emplace_back(runtimes_type(), definition_command("infrastructure-manager",
                                                            "infrastructuremanager", "runtimes"));
  }
  bool all = true;
  for (auto& [type, remedy] : needed) {
    const bool served = co_await is_served(with, type, std::move(remedy));
    all = all && served;
  }
  const bool issued = co_await check_certificates_kind(with);
  if (!all || !issued) co_return;
  co_await with->journal.report(
      {proven, "kinds", "the kinds of Kyma, Istio and the issuer are served"});
}

asio::awaitable<void> check_issuer(pre_context* with) {
  with->journal.begin("issuer");
  const auto& settings = with->planned.settings;
  const auto& type = certificates::issuers_type(issuer_of(settings));
  const auto found = co_await with->kcp.find(type.gvk);
  if (!found) co_return;  // see kinds
  const k8s::object_key key{
      settings.gardener_certificates ? settings.issuer_namespace : settings.istio_namespace,
      settings.issuer};
  const auto got = co_await with->kcp.get(type, key);
  const auto remedy = issuer_command(settings);
  if (!got) {
    co_await with->journal.report(failed_request("issuer", got.error(), remedy));
    co_return;
  }
  const auto ready = k8s::find_condition(*got, "Ready");
  const auto name = "Issuer " + k8s::to_string(key);
  if (ready && ready->status == "False") {
    co_await with->journal.report(
        {failed, "issuer", name + " is not ready: " + ready->message, remedy});
  } else {
    co_await with->journal.report({proven, "issuer", name + " exists"});
  }
}

asio::awaitable<void> check_root(pre_context* with) {
  with->journal.begin("root certificate");
  const k8s::object_key key{with->planned.settings.istio_namespace, std::string(klm_watcher_name)};
  const auto got = co_await with->kcp.get(secrets_type(), key);
  const auto remedy = issuer_command(with->planned.settings);
  if (!got) {
    co_await with->journal.report(failed_request("root", got.error(), remedy));
    co_return;
  }
  const auto error = root_error(*got, with->shared.clock.wall());
  const auto name = "Secret " + k8s::to_string(key);
  if (error.empty()) {
    co_await with->journal.report({proven, "root", name + " has the root certificate"});
  } else {
    co_await with->journal.report({failed, "root", name + " " + error, remedy});
  }
}

asio::awaitable<void> check_gateway(pre_context* with) {
  with->journal.begin("Gateway");
  const auto& settings = with->planned.settings;
  const auto found = co_await with->kcp.find(gateways_type().gvk);
  if (!found) co_return;  // see kinds
  const k8s::object_key key{settings.gateway_namespace, settings.gateway_name};
  const auto got = co_await with->kcp.get(gateways_type(), key);
  auto checked =
      got ? cli::check_gateway(*got, key.name)
          : failed_request("gateway", got.error(), pki_command("deploy/pki/gateway.yaml"));
  // What `doctor` leaves to its probes is not tried here.
  if (got && checked.state == not_proven) checked.state = failed;
  co_await with->journal.report(std::move(checked));
}

/// Whether another manager of the same objects runs: lifecycle-manager, or an earlier installation.
asio::awaitable<void> check_leases(pre_context* with) {
  with->journal.begin("Leases");
  const auto& settings = with->planned.settings;
  const lifecycle_manager_options klm;
  const auto now = with->shared.clock.wall();
  const auto got = co_await with->kcp.get(k8s::leases_type(), klm.lease);
  const auto name = "Lease " + k8s::to_string(klm.lease);
  const bool absent = !got && got.error().is(k8s::errc::not_found);
  if (!got && !absent) {
    co_await with->journal.report(failed_request("klm-lease", got.error(), ""));
  } else if (!absent && is_held(*got, now, klm.patience) && !settings.take_over) {
    co_await with->journal.report(
        {not_proven, "klm-lease",
         "lifecycle-manager runs (" + name + " is held by " + k8s::read_lease(*got).holder +
             "): the manager will write nothing",
         "switch its part for watchers off and give the manager --take-over "
         "(deploy/manager/MIGRATION.md)"});
  } else {
    co_await with->journal.report(
        {proven, "klm-lease", "lifecycle-manager does not keep the manager from writing"});
  }
  const auto own =
      co_await with->kcp.get(k8s::leases_type(), {settings.lease_namespace, settings.lease_name});
  if (!own) expect_response(own.error());
  if (!own || !is_held(*own, now, klm.patience)) co_return;
  co_await with->journal.report({proven, "lease",
                                 "a manager runs already, " + k8s::read_lease(*own).holder +
                                     ": this installation upgrades it"});
}

}  // namespace

asio::awaitable<void> check_needs(pre_context* with) {
  co_await check_settings(with);
  co_await check_kinds(with);
  co_await check_issuer(with);
  co_await check_root(with);
  co_await check_gateway(with);
  co_await check_leases(with);
}

}  // namespace rw::cli
