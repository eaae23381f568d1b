// What the installer reads of the control plane: what changes, whom that concerns, and what a
// runtime is to have.

#include "rw/k8s/objects/types.hpp"
#include "rw/reactors/runtime_controller/runtime_access.hpp"
#include "rw/reactors/shared/kyma_resources.hpp"
#include "rw/reactors/shared/trust_bundle.hpp"
#include "rw/reactors/watcher_installer/watcher_installer.hpp"
#include "rw/tls/certificate.hpp"

#include <boost/json/serialize.hpp>

#include <algorithm>
#include <iterator>
#include <utility>

namespace rw::watcher_installer {
namespace {

namespace json = boost::json;
using k8s::delta;
using k8s::object;

constexpr std::string_view certificate_suffix = "-webhook-tls";

std::string kyma_of_secret(const object& secret) {
  const auto value = secret.parse();
  const auto name = k8s::label(value, kyma_name_label);
  return name ? std::string(*name) : std::string();
}

/// What the installer reads of an object, out of all that may change in it.
std::string part_of(const object& from, std::initializer_list<std::string_view> path) {
  if (!from) return {};
  const auto value = from.parse();
  const auto* part = k8s::find(value, path);
  return part == nullptr ? std::string() : json::serialize(*part);
}

bool kyma_changed(const delta& change) {
  if (change.what != delta::kind::updated) return true;
  for (const auto* field : {"labels", "annotations", "finalizers", "deletionTimestamp"}) {
    if (part_of(change.before, {"metadata", field}) != part_of(change.now, {"metadata", field})) {
      return true;
    }
  }
  return false;
}

/// None: it has no webhook. (An invalid edit takes none away.)
std::optional<watcher> watcher_of(const object& from, const object& virtual_service) {
  if (!from) return {};
  const auto value = from.parse();
  if (k8s::is_being_deleted(value)) return {};
  return effective_watcher(value, virtual_service.parse());
}

bool differ(const std::optional<watcher>& before, const std::optional<watcher>& now) {
  if (!before || !now) return before.has_value() != now.has_value();
  return !same_webhook(*before, *now);
}

}  // namespace

k8s::selection kubeconfig_secrets() {
  return {.ns = std::string(kcp_namespace), .labels = std::string(kyma_name_label)};
}

object watcher_installer::virtual_service_of(const k8s::object_key& watcher) const {
  return from_.virtual_services.objects().get(watcher);
}

void watcher_installer::watch_all() {
  controller_.watch(from_.kymas, [this](const delta& change, keys& some) {
    if (!kyma_changed(change)) return;
    some.push_back(change.any().key());
    // Another Kyma may be the owner of the cluster now, or no longer.
    for (const auto& one : {change.before, change.now}) {
      if (one) std::ranges::copy(claims_.sharing_id(one), std::back_inserter(some));
    }
  });
  controller_.watch(from_.watchers, [this](const delta& change, keys& some) {
    const auto kept = virtual_service_of(change.any().key());
    if (differ(watcher_of(change.before, kept), watcher_of(change.now, kept))) fan_out(some);
  });
  controller_.watch(from_.virtual_services, [this](const delta& change, keys& some) {
    const auto of = from_.watchers.objects().get(change.any().key());
    if (differ(watcher_of(of, change.before), watcher_of(of, change.now))) fan_out(some);
  });
  controller_.watch(from_.kubeconfigs, [this](const delta& change, keys& some) {
    for (const auto& one : {change.before, change.now}) {
      if (one) std::ranges::copy(claims_.sharing_address(one), std::back_inserter(some));
    }
    // It may have been given to another Kyma.
    const auto before = change.before ? kyma_of_secret(change.before) : std::string();
    const auto now = change.now ? kyma_of_secret(change.now) : std::string();
    if (!now.empty()) some.push_back({std::string(kcp_namespace), now});
    if (!before.empty() && before != now) some.push_back({std::string(kcp_namespace), before});
  });
  controller_.watch(from_.gateways, [this](const delta& change, keys& some) {
    if (change.any().name() != with_.gateway) return;
    if (part_of(change.before, {"spec"}) != part_of(change.now, {"spec"})) fan_out(some);
  });
  controller_.watch(from_.gateway_secrets, [this](const delta& change, keys& some) {
    if (change.any().name() != gateway_secret_name) return;
    // gateway_trust checks both before the bundle is written to a runtime.
    const auto differ = [&](const char* entry) {
      return part_of(change.before, {"data", entry}) != part_of(change.now, {"data", entry});
    };
    if (differ("ca.crt") || differ("tls.crt")) fan_out(some);
  });
  for (auto* const one : from_.certificates) {
    controller_.watch(*one, [](const delta& change, keys& some) {
      auto name = change.any().name();
      if (!name.ends_with(certificate_suffix)) return;
      name.remove_suffix(certificate_suffix.size());
      some.push_back({std::string(kcp_namespace), std::string(name)});
    });
  }
}

void watcher_installer::fan_out(keys& some) {
  std::vector<k8s::object_key> all;
  from_.kymas.objects().for_each([&](const object& one) { all.push_back(one.key()); });
  spread(std::move(all), some);
}

/// Nobody has to wait for a runtime that never got a certificate: no gateway will see one of it.
bool watcher_installer::may_have_certificate(std::string_view kyma) const {
  const auto name = std::string(kyma) + std::string(certificate_suffix);
  const auto has = [&](const k8s::informer* from) {
    return static_cast<bool>(from->objects().get(with_.istio_namespace, name));
  };
  return from_.certificates.empty() || std::ranges::any_of(from_.certificates, has);
}

/// True if a Certificate of that name, or its Secret, carries the label that they are made with.
bool watcher_installer::has_own_certificate(std::string_view kyma) const {
  const auto name = std::string(kyma) + std::string(certificate_suffix);
  return std::ranges::any_of(from_.certificates, [&](const k8s::informer* from) {
    const auto one = from->objects().get(with_.istio_namespace, name);
    return one && k8s::label(one.parse(), managed_by_label).has_value();
  });
}

k8s::result<std::string> watcher_installer::kubeconfig(std::string_view kyma) const {
  return kubeconfig_of(kyma, claims_.kubeconfigs_of(kyma));
}

/// The CAs that the gateway believes, or why they must not go to the runtimes. Read once for each
/// state of its Secret.
const in_words<tls::ca_bundle>& watcher_installer::gateway_trust() {
  const auto secret =
      from_.gateway_secrets.objects().get(with_.istio_namespace, gateway_secret_name);
  if (trust_from_ && k8s::same_state(trust_from_, secret)) return trust_;
  trust_from_ = secret;
  const std::string name(gateway_secret_name);
  const auto value = secret.parse();
  const auto trust = read_trust_bundle(value);
  const auto served = tls::certificate::from_pem(
      k8s::secret_data(value, certificate_entry).value_or(std::string()));
  if (trust.authorities.empty()) {
    trust_ = defect("Secret " + name + " has no CA bundle yet");
  } else if (!trust.problem.empty()) {
    // A bundle that was damaged, or cut short, stays away from the runtimes, which have a good one,
    // until the rotation has repaired it.
    trust_ = defect("Secret " + name + ": " + trust.problem);
  } else if (!served || trust.authorities.issuer_of(*served) == nullptr) {
    trust_ = defect("Secret " + name + ": ca.crt lacks the authority of tls.crt");
  } else {
    trust_ = trust.authorities;
  }
  return trust_;
}

in_words<order> watcher_installer::order_for(const certificate_state& own) {
  const auto gateway = from_.gateways.objects().get(kcp_namespace, with_.gateway);
  auto address = address_of(gateway, with_.gateway, with_.kcp_port);
  if (!address) return address.error();
  const auto& trust = gateway_trust();
  if (!trust) return trust.error();
  order out{.trust = {.bundle = *trust},
            .address = std::move(*address),
            .certificate_pending = own.why,
            .certificate_again = own.again};
  if (own.what == certificate_state::kind::ready) {
    out.trust.certificate = own.current.certificate;
    out.trust.key = own.current.key;
  }
  from_.watchers.objects().for_each([&](const object& one) {
    auto valid = watcher_of(one, virtual_service_of(one.key()));
    if (valid) out.watchers.push_back(std::move(*valid));
  });
  return out;
}

}  // namespace rw::watcher_installer
