#include "rw/reactors/cli/doctor_app.hpp"

#include "rw/k8s/objects/types.hpp"
#include "rw/reactors/bootstrapper/resource.hpp"
#include "rw/reactors/certificates/rendering.hpp"
#include "rw/reactors/cli/doctor_gateway.hpp"
#include "rw/reactors/cli/kcp_commands.hpp"
#include "rw/reactors/cli/manager_manifests.hpp"
#include "rw/reactors/gateway_secret/rotation.hpp"
#include "rw/reactors/runtime_rollout/resource.hpp"
#include "rw/reactors/shared/kyma_resources.hpp"
#include "rw/reactors/shared/status_reason.hpp"
#include "rw/reactors/shared/trust_bundle.hpp"
#include "rw/reactors/watcher_installer/watcher_installer.hpp"

#include <boost/json/array.hpp>
#include <boost/json/object.hpp>
#include <boost/json/serialize.hpp>

#include <algorithm>
#include <unistd.h>
#include <utility>

namespace rw::cli {

namespace {

namespace asio = boost::asio;
namespace json = boost::json;
using enum finding_state;

constexpr auto soon = std::chrono::hours(72);

/// The identity of --service-account ("namespace:name").
k8s::config impersonating(const doctor_settings& settings) {
  auto access = settings.kcp;
  if (!settings.service_account.empty()) {
    const auto ns = settings.service_account.substr(0, settings.service_account.find(':'));
    access.as = "system:serviceaccount:" + settings.service_account;
    access.as_groups = {"system:serviceaccounts", "system:serviceaccounts:" + ns,
                        "system:authenticated"};
  }
  return load_kcp_config(access);
}

k8s::client_options client_options(const char* name) {
  return {.name = name,
          .user_agent = "runtime-watcher-doctor",
          .field_manager = std::string(default_field_manager),
          .connect = std::chrono::seconds(5),
          .request = std::chrono::seconds(10),
          .deadline = std::chrono::seconds(20),
          .retries = 1};
}

/// The rights that the manager needs with these settings.
std::vector<access_right> needed_rights(const leader_settings& settings) {
  std::string text = manager_manifests::rbac;
  const auto add = [&text](const char* roles) { text.append("---\n").append(roles); };
  add(settings.gardener_certificates ? manager_manifests::gardener_certificates
                                     : manager_manifests::certificates);
  if (settings.bootstrapper != bootstrapper_mode::off) {
    add(manager_manifests::bootstrapper_rbac_signal);
    add(manager_manifests::bootstrapper_rbac_direct);
  }
  return rights_of(text);
}

/// What the manager says of a Watcher that it does not route; nothing: it does.
std::optional<k8s::condition> error_of(const json::value& watcher) {
  auto out = k8s::find_condition(watcher, "VirtualService");
  return out && out->status == "False" ? out : std::nullopt;
}

}  // namespace

doctor_app::doctor_app(services& with, doctor_settings settings)
    : app(with),
      settings_(std::move(settings)),
      kcp_(std::make_unique<k8s::client>(with.executor, load_kcp_config(settings_.kcp),
                                         client_options("kcp"), with.for_client())),
      as_manager_(std::make_unique<k8s::client>(with.executor, impersonating(settings_),
                                                client_options("manager"), with.for_client())),
      runtimes_(std::make_unique<k8s::client_pool>(
          with.executor,
          k8s::client_pool_options{.name = "skr",
                                   .client = watcher_installer::runtime_client_options()},
          with.for_client())),
      output_(with.executor, STDOUT_FILENO),
      errors_(with.executor, STDERR_FILENO) {
  if (settings_.manager) {
    manager_.emplace(with, *settings_.manager, settings_.token_file);
  } else {
    manager_.emplace(*kcp_, k8s::object_key{settings_.lease_namespace, settings_.lease_name});
  }
}

doctor_app::~doctor_app() = default;

asio::awaitable<void> doctor_app::report(finding finding) {
  findings_.push_back(std::move(finding));
  if (settings_.format != "text") co_return;
  co_await output_.write(text_of(with_kcp_flags(findings_.back(), settings_.kcp)));
}

asio::awaitable<void> doctor_app::report(finding_state state, std::string_view check,
                                         std::string message, std::string remedy) {
  co_await report({state, std::string(check), std::move(message), std::move(remedy)});
}

asio::awaitable<void> doctor_app::report_by_settings(finding_state state, std::string_view check,
                                                     std::string message, std::string remedy,
                                                     std::string reason, std::string subject) {
  if (!leader_.known) {
    state = not_proven;
    message += ", if the manager has the default settings";
  }
  if (!reason.empty()) message.insert(0, reason + ": ");
  co_await report({state,
                   std::string(check),
                   std::move(message),
                   std::move(remedy),
                   std::move(reason),
                   {},
                   std::move(subject)});
}

asio::awaitable<void> doctor_app::read_settings() {
  leader_ =
      co_await read_leader_settings(kcp_.get(), settings_.lease_namespace, settings_.lease_name);
  runtimes_->set_local(leader_.local_runtimes_or(settings_.local_runtimes));
  const auto lease = "Lease " + settings_.lease_namespace + "/" + settings_.lease_name;
  if (leader_.known) {
    co_await report(proven, "settings", lease + " has the manager's settings");
  } else {
    co_await report(not_proven, "settings",
                    "the manager's settings are not known, its defaults are assumed: " +
                        leader_.unknown_because,
                    "run a manager of this version, which writes them to its Lease when it leads, "
                    "or name the Lease: --lease-namespace, --lease-name");
  }
}

asio::awaitable<void> doctor_app::check_kinds() {
  using certificates::issuer_kind;
  const auto issuer =
      leader_.gardener_certificates ? issuer_kind::gardener : issuer_kind::cert_manager;
  struct needed {
    k8s::resource_type type;
    std::string_view remedy;
    bool by_settings = false;
  };
  std::vector<needed> all{
      {watchers_type(), "kubectl apply -f deploy/crds"},
      {runtime_rollout::runtime_rollouts_type(), "kubectl apply -f deploy/crds"},
      {kymas_type(), "install lifecycle-manager's CustomResourceDefinitions"},
      {gateways_type(), "install Istio"},
      {virtual_services_type(), "install Istio"},
      {certificates::certificates_type(issuer),
       "install cert-manager, or Gardener's cert-management with --certificates gardener", true}};
  if (leader_.bootstrapper != bootstrapper_mode::off) {
    all.push_back({runtimes_type(), "install infrastructure-manager's CustomResourceDefinitions"});
    all.push_back({bootstrapper::runtime_bootstrappers_type(), "kubectl apply -f deploy/crds"});
  }
  std::size_t missing = 0;
  for (const auto& each : all) {
    const auto& gvk = each.type.gvk;
    const auto found = co_await kcp_->find(gvk);
    if (found) continue;
    ++missing;
    auto message = gvk.kind + " (" + gvk.group + "/" + gvk.version + ") is not served";
    if (!found.error().is(k8s::errc::not_found)) message += ": " + found.error().message;
    const std::string reason(kind_not_served);
    auto subject = to_string(each.type);
    if (each.by_settings) {
      co_await report_by_settings(failed, "kinds", std::move(message), std::string(each.remedy),
                                  reason, std::move(subject));
    } else {
      message.insert(0, reason + ": ");
      co_await report({failed,
                       "kinds",
                       std::move(message),
                       std::string(each.remedy),
                       reason,
                       {},
                       std::move(subject)});
    }
  }
  if (missing == 0) {
    co_await report(proven, "kinds", std::to_string(all.size()) + " kinds are served");
  }
}

asio::awaitable<void> doctor_app::check_rights() {
  const auto rights = needed_rights(leader_);
  const auto subject = settings_.service_account.empty()
                           ? std::string("the kubeconfig's user")
                           : "ServiceAccount " + settings_.service_account;
  std::vector<access_right> missing;
  for (const auto& right : rights) {
    const auto got = co_await has_right(*as_manager_, right);
    if (!got) {
      co_await report_by_settings(
          not_proven, "rights", "of " + subject + ": " + got.error().message,
          "run it with a kubeconfig that may impersonate the ServiceAccount, or in the "
          "manager's pod with --service-account \"\"");
      co_return;
    }
    if (!*got) missing.push_back(right);
  }
  for (const auto& right : missing) {
    auto lacking = right.resource + (right.group.empty() ? "" : "." + right.group);
    co_await report_by_settings(
        failed, "rights", subject + " may not " + text_of(right), std::string(apply_manager),
        std::string(to_string(status_reason::rights_missing)), std::move(lacking));
  }
  if (missing.empty()) {
    co_await report_by_settings(
        proven, "rights",
        subject + " has the " + std::to_string(rights.size()) + " rights that the manager needs");
  }
}

/// Of an object that the manager writes, and that was not read: with --shadow it need not be there.
finding_state doctor_app::unwritten(const k8s::failure& error) const {
  return leader_.shadow && error.is(k8s::errc::not_found) ? not_proven : failed;
}

/// A Secret in istio-system with a certificate for servers.
asio::awaitable<void> doctor_app::check_certificate(std::string name, std::string owner) {
  const bool bundles = name == gateway_secret_name;
  const std::string reason(
      bundles ? to_string(status_reason::ca_bundle_invalid)
              : gateway_secret::reason_of(gateway_secret::rotation_phase::no_root));
  const auto place = "Secret " + leader_.istio_namespace + "/" + name;
  const auto got = co_await kcp_->get(secrets_type(), {leader_.istio_namespace, name});
  if (!got) {
    const auto state = bundles ? unwritten(got.error()) : failed;
    if (state == not_proven) owner = shadow_writes_nothing;
    co_await report_by_settings(state, "certificates", got.error().message, std::move(owner),
                                reason);
    co_return;
  }
  const auto text = k8s::secret_data(*got, certificate_entry);
  const auto read = tls::certificate::from_pem(text.value_or(std::string()));
  if (!read) {
    co_await report_by_settings(
        failed, "certificates",
        place + " has no usable " + std::string(certificate_entry) + ": " + read.error().message(),
        std::move(owner), bundles ? std::string() : reason);
    co_return;
  }
  const auto now = this->now();
  const auto problem = read_trust_bundle(*got).problem;
  if (const auto placeholder = find_placeholder(*read)) {
    co_await report_by_settings(
        failed, "certificates",
        place + ": its certificate is for " + *placeholder + ", a placeholder of the manifests",
        pki_command(leader_.gardener_certificates ? "deploy/pki/gardener.yaml"
                                                  : "deploy/pki/cert-manager.yaml"));
  } else if (!read->valid_at(now)) {
    co_await report_by_settings(failed, "certificates",
                                place + ": its certificate is valid from " +
                                    k8s::format_time(read->not_before()) + " to " +
                                    k8s::format_time(read->not_after()) + " only",
                                std::move(owner));
  } else if (bundles && !problem.empty()) {
    co_await report_by_settings(failed, "certificates", place + ": " + problem, std::move(owner),
                                reason);
  } else if (!read->valid_at(now + soon)) {
    co_await report_by_settings(
        failed, "certificates",
        place + ": its certificate ends at " + k8s::format_time(read->not_after()),
        std::move(owner));
  } else {
    co_await report_by_settings(proven, "certificates",
                                place + " is valid until " + k8s::format_time(read->not_after()));
  }
}

asio::awaitable<void> doctor_app::check_gateway() {
  const k8s::object_key key{leader_.gateway_namespace, leader_.gateway_name};
  const auto got = co_await kcp_->get(gateways_type(), key);
  auto found = got ? cli::check_gateway(*got, key.name)
                   : finding{.state = failed,
                             .message = got.error().message,
                             .remedy = pki_command("deploy/pki/gateway.yaml"),
                             .reason = std::string(to_string(status_reason::gateway_invalid))};
  gateway_is_valid_ = found.state == proven;
  co_await report_by_settings(found.state, "gateway", std::move(found.message),
                              std::move(found.remedy), std::move(found.reason));
}

asio::awaitable<void> doctor_app::check_watchers() {
  auto got = co_await kcp_->list(watchers_type(), {});
  if (!got) {
    const bool absent = got.error().is(k8s::errc::not_found);
    co_await report(absent ? not_proven : failed, "watchers", got.error().message, "see kinds");
    co_return;
  }
  const auto& all = got->at("items").as_array();
  const auto deleting = static_cast<std::size_t>(std::ranges::count_if(all, k8s::is_being_deleted));
  auto in_deletion = deleting == 0   ? std::string()
                     : deleting == 1 ? std::string("; 1 is being deleted")
                                     : "; " + std::to_string(deleting) + " are being deleted";
  const auto kept = all.size() - deleting;
  if (kept == 0) {
    co_await report(not_proven, "watchers",
                    "there is no Watcher, so nothing is watched" + in_deletion,
                    "for instance: kubectl apply -f deploy/samples/watcher.yaml");
  }
  std::size_t well = 0;
  std::size_t refused_count = 0;
  const k8s::object_key heartbeats{std::string(kcp_namespace), heartbeat_routes_name};
  std::vector<k8s::object_key> routed;
  for (const auto& certificate : all) {
    const auto key = k8s::key_of(certificate);
    const auto read = read_watcher(certificate);
    const auto refused = error_of(certificate);
    const bool goes = k8s::is_being_deleted(certificate);
    if (goes ? !refused : read && (!refused || !gateway_is_valid_)) {
      if (!goes) routed.push_back(key);
      continue;
    }
    ++refused_count;
    const auto reason = read ? refused->reason : std::string(watcher_invalid);
    co_await report({failed,
                     "watchers",
                     "Watcher " + k8s::to_string(key) + ": " + reason + ": " +
                         (read ? refused->message : read.error().message),
                     "correct the Watcher; until then its last valid content is in force",
                     reason,
                     {},
                     "Watcher " + k8s::to_string(key)});
  }
  if (leader_.has_heartbeats()) routed.push_back(heartbeats);
  for (const auto& key : routed) {
    const auto route = co_await kcp_->get(virtual_services_type(), key, true);
    if (route) {
      ++well;
      continue;
    }
    auto message =
        "no VirtualService routes to " + k8s::to_string(key) + ": " + route.error().message;
    const auto state = unwritten(route.error());
    const std::string remedy(
        state == not_proven ? shadow_writes_nothing
                            : "see the Watcher's conditions and the manager's log: it writes the "
                              "VirtualService while it leads");
    if (key == heartbeats) {
      co_await report_by_settings(state, "watchers", std::move(message), remedy);
    } else {
      co_await report(state, "watchers", std::move(message), remedy);
    }
  }
  if (well == routed.size() && refused_count == 0 && kept > 0) {
    auto text = kept == 1 ? std::string("1 Watcher is valid, and is routed")
                          : std::to_string(kept) + " Watchers are valid, and are routed";
    co_await report(proven, "watchers", std::move(text) + in_deletion);
  }
}

asio::awaitable<int> doctor_app::check_all() {
  const bool accessible = co_await check_access();
  if (accessible) {
    co_await check_names();
    co_await read_settings();
    co_await check_kinds();
    co_await check_rights();
    co_await check_leader();
    co_await check_certificate(std::string(klm_watcher_name),
                               "the root CA: see its Certificate and Issuer, deploy/pki");
    co_await check_certificate(std::string(gateway_secret_name),
                               "the manager writes it from the root CA while it leads: see leader");
    co_await check_gateway();
    co_await check_watchers();
    co_await check_orphans();
    co_await check_rollouts();
    co_await check_runtimes();
    co_await check_manager();
    co_await check_heartbeats();
    co_await compare_verdicts();
  }
  if (settings_.format == "json") {
    json::array all;
    for (const auto& each : findings_) all.push_back(json_of(with_kcp_flags(each, settings_.kcp)));
    json::object out{{"checks", std::move(all)}, {"verdict", json_of(verdict_, {})}};
    co_await output_.write(json::serialize(out) + "\n");
  } else {
    co_await output_.write(summary_of(findings_) +
                           with_kcp_flags(text_of(verdict_), settings_.kcp));
  }
  const bool ill = std::ranges::any_of(
      findings_, [this](const finding& f) { return f.state == failed && !is_tolerated(f); });
  co_return ill ? 3 : 0;
}

asio::awaitable<void> doctor_app::close() {
  co_await runtimes_->close();
  co_await kcp_->close();
  co_await as_manager_->close();
  co_await manager_->close();
}

asio::awaitable<int> doctor_app::run() {
  auto code = co_await run_to_end(check_all(), close(), runtimes_->run());
  co_return code;
}

}  // namespace rw::cli
