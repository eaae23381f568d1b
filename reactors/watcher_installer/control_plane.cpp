// What the installer reads of the control plane: what changes, whom that concerns, and what a
// runtime is to have.

#include "rw/k8s/objects/types.hpp"
#include "rw/reactors/runtime_controller/runtime_access.hpp"
#include "rw/reactors/shared/explanations.hpp"
#include "rw/reactors/shared/kyma_resources.hpp"
#include "rw/reactors/watcher_installer/watcher_installer.hpp"

#include <boost/asio/this_coro.hpp>
#include <boost/json/serialize.hpp>

#include <algorithm>
#include <iterator>
#include <map>
#include <utility>

namespace rw::watcher_installer {
namespace {

namespace asio = boost::asio;
namespace json = boost::json;
using k8s::delta;
using k8s::object;

std::string kyma_of_secret(const object& secret) {
  const auto value = secret.parse();
  return std::string(k8s::label(value, kyma_name_label));
}

/// What the installer reads of an object, out of all that may change in it.
std::string part_of(const object& from, std::initializer_list<std::string_view> path) {
  if (!from) return {};
  const auto value = from.parse();
  const auto* part = k8s::find(value, path);
  return part == nullptr ? std::string() : json::serialize(*part);
}

bool kyma_changed(const delta& change) {
  if (change.type != delta::kind::updated) return true;
  for (const auto* field : {"labels", "annotations", "finalizers", "deletionTimestamp"}) {
    if (part_of(change.before, {"metadata", field}) != part_of(change.now, {"metadata", field})) {
      return true;
    }
  }
  return false;
}

}  // namespace

std::string kyma_of_certificate(const object& of) {
  const auto name = of.name();
  if (!name.ends_with(certificate_suffix)) return {};
  return std::string(name.substr(0, name.size() - certificate_suffix.size()));
}

k8s::selection kubeconfig_secrets() {
  return {.ns = std::string(kcp_namespace), .labels = std::string(kyma_name_label)};
}

void watcher_installer::watch_all() {
  controller_.watch(sources_.kymas, [this](const delta& change, keys& keys) {
    const auto* const known = clusters_.find(change.latest().key());
    const bool is_concerned = known != nullptr && known->is_concerned();
    if (change.type == delta::kind::deleted && is_concerned) note_gone(change.before.parse());
    if (!kyma_changed(change)) return;
    keys.push_back(change.latest().key());
    // Another Kyma may be the owner of the cluster now, or no longer.
    for (const auto& object : {change.before, change.now}) {
      if (object) std::ranges::copy(claims_.sharing_id(object), std::back_inserter(keys));
    }
  });
  controller_.watch(sources_.kubeconfigs, [this](const delta& change, keys& keys) {
    for (const auto& object : {change.before, change.now}) {
      if (object) std::ranges::copy(claims_.sharing_address(object), std::back_inserter(keys));
    }
    // It may have been given to another Kyma.
    const auto before = change.before ? kyma_of_secret(change.before) : std::string();
    const auto now = change.now ? kyma_of_secret(change.now) : std::string();
    if (!now.empty()) keys.push_back({std::string(kcp_namespace), now});
    if (!before.empty() && before != now) keys.push_back({std::string(kcp_namespace), before});
  });
  // What is the same for all runtimes concerns them only where another value is in force.
  for (auto* const informer : {&sources_.watchers, &sources_.virtual_services, &sources_.gateways,
                               &sources_.gateway_secrets}) {
    controller_.watch(*informer, [this](const delta&, keys& keys) {
      const auto version = refresh_inputs();
      if (std::exchange(inputs_version_, version) != version) fan_out(keys);
    });
  }
  for (auto* const informer : sources_.certificates) {
    controller_.watch(*informer, [](const delta& change, keys& keys) {
      auto kyma = kyma_of_certificate(change.latest());
      if (!kyma.empty()) keys.push_back({std::string(kcp_namespace), std::move(kyma)});
    });
  }
}

/// Reconciles all runtimes where another value of an input is in force.
void watcher_installer::apply_inputs() {
  const auto version = refresh_inputs();
  if (std::exchange(inputs_version_, version) == version) return;
  keys rest;
  fan_out(rest);
  for (const auto& key : rest) requeue(key, random_below(options_.spread_limit));
}

void watcher_installer::fan_out(keys& keys) {
  std::vector<k8s::object_key> all;
  sources_.kymas.objects().for_each([&](const object& object) { all.push_back(object.key()); });
  spread(std::move(all), keys);
}

/// Nobody has to wait for a runtime that never got a certificate: no gateway will see one of it.
bool watcher_installer::may_have_certificate(std::string_view kyma) const {
  const auto name = std::string(kyma) + std::string(certificate_suffix);
  const auto has = [&](const k8s::informer* from) {
    return static_cast<bool>(from->objects().get(options_.istio_namespace, name));
  };
  return sources_.certificates.empty() || std::ranges::any_of(sources_.certificates, has);
}

/// A Certificate of that name, or its Secret, with the label that they are made with.
k8s::object watcher_installer::own_certificate(std::string_view kyma) const {
  const auto name = std::string(kyma) + std::string(certificate_suffix);
  for (const auto* const from : sources_.certificates) {
    auto certificate = from->objects().get(options_.istio_namespace, name);
    if (certificate && k8s::has_label(certificate.parse(), managed_by_label)) return certificate;
  }
  return {};
}

k8s::result<std::string> watcher_installer::kubeconfig(std::string_view kyma) const {
  return kubeconfig_of(kyma, claims_.kubeconfigs_of(kyma));
}

std::uint64_t watcher_installer::refresh_inputs() {
  const auto version = inputs_.refresh();
  invalid_inputs_.Set(static_cast<double>(inputs_.errors().size()));
  if (!inputs_.gone().empty()) watchers_gone_.set();
  return version;
}

/// Writes an event for an error that lasts: the gateway's Secret may be about to be made.
asio::awaitable<void> watcher_installer::report_inputs() {
  const auto executor = co_await asio::this_coro::executor;
  const auto pause = environment_.clock.make_timer(executor);
  std::map<status_reason, std::chrono::system_clock::time_point> reported;
  for (auto* const informer : {&sources_.gateways, &sources_.gateway_secrets}) {
    const bool synced = co_await informer->wait_synced();
    if (!synced) co_return;
  }
  for (;;) {
    apply_inputs();
    const auto errors = inputs_.errors();
    for (const auto& error : errors) {
      if (environment_.clock.wall() - error.since < options_.input_patience) continue;
      if (std::exchange(reported[error.reason], error.since) == error.since) continue;
      environment_.log.warning("input of all runtimes is invalid",
                               {{"reason", to_string(error.reason)}, {"error", error.message}});
      if (lease_.is_null()) continue;
      environment_.events.warning(k8s::reference_to(lease_), "InputInvalid"_reason,
                                  std::string(to_string(error.reason)) + ": " + error.message);
    }
    pause->expires_at(environment_.clock.now() + options_.input_patience);
    const bool due = co_await pause->wait();
    if (!due) co_return;
  }
}

order watcher_installer::order_for(const certificate_state& own) {
  order out{.trust = {.bundle = *inputs_.trust()},
            .address = *inputs_.address(),
            .watchers = inputs_.watchers(),
            .certificate_pending = own.reason,
            .certificate_again = own.again,
            .keeps_webhook = inputs_.unknown_webhooks()};
  if (own.state == certificate_state::kind::ready) {
    out.trust.certificate = own.current.certificate;
    out.trust.key = own.current.key;
  }
  return out;
}

}  // namespace rw::watcher_installer
