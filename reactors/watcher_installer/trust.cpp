#include "reactors/watcher_installer/trust.hpp"

#include "k8s/base64.hpp"
#include "k8s/rfc3339.hpp"
#include "k8s/types.hpp"
#include "reactors/watcher_installer/render.hpp"
#include "tls/certificate.hpp"

#include <boost/json/array.hpp>
#include <boost/json/object.hpp>

#include <algorithm>
#include <optional>
#include <utility>
#include <vector>

namespace rw::watcher_installer {
namespace {

namespace json = boost::json;
using std::chrono::system_clock;

std::string entry(const json::value* secret, std::string_view name) {
  if (secret == nullptr) return {};
  return k8s::secret_data(*secret, name).value_or(std::string());
}

tls::ca_bundle read(const std::string& pem, const present_objects& from) {
  return from.known != nullptr ? from.known->read(pem) : tls::ca_bundle::salvage(pem);
}

std::vector<tls::ca_bundle> webhook_bundles(const present_objects& from) {
  std::vector<tls::ca_bundle> out;
  const auto* webhooks =
      from.configuration == nullptr ? nullptr : k8s::find(*from.configuration, {"webhooks"});
  if (webhooks == nullptr || !webhooks->is_array()) return out;
  for (const auto& one : webhooks->get_array()) {
    const auto text = k8s::find_string(one, {"clientConfig", "caBundle"});
    out.push_back(read(k8s::base64_decode(text).value_or(std::string()), from));
  }
  return out;
}

/// True if who believes the bundle believes the certificate that a text begins with.
bool trusts(const tls::ca_bundle& bundle, const std::string& certificate,
            system_clock::time_point now) {
  const auto own = tls::certificate::from_pem(certificate);
  return own && bundle.verify(*own, tls::purpose::server_auth, now).has_value();
}

std::optional<system_clock::time_point> time_of(const json::value* object,
                                                std::string_view annotation) {
  if (object == nullptr) return {};
  const auto text = k8s::annotation(*object, annotation);
  return text ? k8s::parse_rfc3339(*text) : std::nullopt;
}

bool is_retiring(const std::optional<system_clock::time_point>& certificate_since,
                 const trust_delays& delays, system_clock::time_point now) {
  return certificate_since && now < *certificate_since + delays.retirement;
}

/// What a runtime has, read once.
struct trust_state {
  explicit trust_state(const present_objects& from)
      : bundle(read(entry(from.secret, "ca.crt"), from)),
        certificate(entry(from.secret, "tls.crt")),
        key(entry(from.secret, "tls.key")),
        webhooks(webhook_bundles(from)),
        bundle_since(time_of(from.configuration, bundle_since_annotation)),
        certificate_since(time_of(from.secret, certificate_since_annotation)) {
    if (from.deployment == nullptr) return;
    const auto* labels = k8s::find(*from.deployment, {"spec", "template", "metadata", "labels"});
    if (labels != nullptr) restart_trigger = k8s::find_string(*labels, {restart_label});
  }

  bool serves() const { return !certificate.empty() && !key.empty(); }
  bool everywhere(const tls::ca_bundle& wanted) const {
    return std::ranges::all_of(webhooks, [&](const auto& one) { return one == wanted; });
  }

  tls::ca_bundle bundle;
  std::string certificate;
  std::string key;
  std::vector<tls::ca_bundle> webhooks;
  std::optional<system_clock::time_point> bundle_since;
  std::optional<system_clock::time_point> certificate_since;
  std::string restart_trigger;
};

/// True if what is there may still be needed by a certificate that is not the wanted one.
bool in_transition(const wanted_trust& wanted, const trust_state& has, const trust_delays& delays,
                   system_clock::time_point now) {
  if (!has.serves()) return false;
  if (has.certificate != wanted.certificate) return true;
  if (is_retiring(has.certificate_since, delays, now)) return true;
  return !trusts(wanted.bundle, has.certificate, now);
}

/// The wanted bundle and, for as long as they are needed, the CAs that only the present one has.
tls::ca_bundle grown(const wanted_trust& wanted, const trust_state& has, bool keep,
                     system_clock::time_point now) {
  auto out = wanted.bundle;
  if (!keep) return out;
  const auto add = [&](const tls::ca_bundle& from) {
    for (const auto& one : from.authorities()) {
      if (one.not_after() >= now) out.append(one);
    }
  };
  std::ranges::for_each(has.webhooks, add);
  add(has.bundle);
  return out;
}

void keep_certificate(trust_step& step, const trust_state& has) {
  step.certificate = has.serves() ? has.certificate : std::string();
  step.key = has.serves() ? has.key : std::string();
  step.restart_trigger = has.restart_trigger;
  if (has.certificate_since)
    step.certificate_since = k8s::format_micro_time(*has.certificate_since);
}

/// How long the new certificate still has to wait for the bundle; 0: not at all. None: for the
/// next look, since the bundle only comes now.
std::optional<core::duration> wait_for_bundle(const wanted_trust& wanted, const trust_state& has,
                                              const trust_delays& delays,
                                              system_clock::time_point now) {
  // Nobody calls, and nothing serves.
  if (has.webhooks.empty() && !has.serves()) return core::duration::zero();
  for (const auto& one : has.webhooks) {
    if (!trusts(one, wanted.certificate, now)) return std::nullopt;
  }
  if (has.serves() && !trusts(has.bundle, wanted.certificate, now)) return std::nullopt;
  if (!has.bundle_since || *has.bundle_since > now) return std::nullopt;
  const core::duration passed = now - *has.bundle_since;
  return std::max(delays.propagation - passed, core::duration::zero());
}

}  // namespace

bool in_retirement(const present_objects& present, const trust_delays& delays,
                   system_clock::time_point now) {
  return is_retiring(time_of(present.secret, certificate_since_annotation), delays, now);
}

trust_step next_step(const wanted_trust& wanted, const present_objects& present,
                     const trust_delays& delays, system_clock::time_point now) {
  const trust_state has(present);
  trust_step step;
  const bool keep = in_transition(wanted, has, delays, now);
  step.bundle = grown(wanted, has, keep, now);

  const bool in_secret = has.bundle == step.bundle || !has.serves();
  const bool in_place =
      in_secret && has.everywhere(step.bundle) && has.bundle_since && *has.bundle_since <= now;
  step.bundle_since = k8s::format_micro_time(in_place ? *has.bundle_since : now);

  if (has.certificate == wanted.certificate && has.key == wanted.key) {
    keep_certificate(step, has);
    step.restart_trigger = wanted.version;
    if (step.certificate_since.empty()) step.certificate_since = k8s::format_micro_time(now);
    if (step.bundle != wanted.bundle && has.certificate_since) {
      step.again = std::max<core::duration>(*has.certificate_since + delays.retirement - now,
                                            std::chrono::seconds(1));
    }
    return step;
  }
  if (!trusts(wanted.bundle, wanted.certificate, now)) {
    keep_certificate(step, has);
    step.pending = "the certificate is not issued, or not yet, by a CA of the bundle";
    return step;
  }
  const auto wait = wait_for_bundle(wanted, has, delays, now);
  if (!wait || *wait > core::duration::zero()) {
    keep_certificate(step, has);
    step.pending = "the new certificate waits until the runtime trusts it";
    step.again = wait.value_or(delays.propagation);
    return step;
  }
  step.certificate = wanted.certificate;
  step.key = wanted.key;
  step.certificate_since = k8s::format_micro_time(now);
  step.restart_trigger = wanted.version;
  return step;
}

tls::ca_bundle webhook_bundle_of(const present_objects& present) {
  const trust_state has(present);
  if (has.webhooks.empty()) return has.bundle;  // nobody calls, so nobody distrusts
  tls::ca_bundle out;
  for (const auto& one : has.webhooks.front().authorities()) {
    const bool everywhere = std::ranges::all_of(
        has.webhooks, [&](const tls::ca_bundle& other) { return other.contains(one); });
    if (everywhere) out.append(one);
  }
  return out;
}

tls::ca_bundle secret_bundle_of(const present_objects& present) {
  return trust_state(present).bundle;
}

}  // namespace rw::watcher_installer
