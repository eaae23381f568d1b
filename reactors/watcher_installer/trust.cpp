#include "rw/reactors/watcher_installer/trust.hpp"

#include "rw/k8s/objects/base64.hpp"
#include "rw/k8s/objects/types.hpp"
#include "rw/reactors/shared/content_digest.hpp"
#include "rw/reactors/shared/heartbeat.hpp"
#include "rw/reactors/watcher_installer/render.hpp"
#include "rw/tls/certificate.hpp"

#include <boost/json/array.hpp>
#include <boost/json/object.hpp>

#include <algorithm>
#include <utility>

namespace rw::watcher_installer {
namespace {

namespace json = boost::json;
using std::chrono::system_clock;
using time_point = system_clock::time_point;

std::string entry(const json::value& secret, std::string_view name) {
  return k8s::secret_data(secret, name).value_or(std::string());
}

tls::ca_bundle read(const std::string& pem, const present_objects& from) {
  return from.known != nullptr ? from.known->read(pem) : tls::ca_bundle::salvage(pem);
}

std::optional<time_point> time_of(const json::value& object, std::string_view annotation) {
  return k8s::parse_rfc3339(k8s::annotation(object, annotation));
}

/// What a webhook is called for: its path names the manager, its rules may name a subresource.
managed_watch watch_of_webhook(const json::value& webhook) {
  managed_watch out;
  const auto path = k8s::find_string(webhook, {"clientConfig", "service", "path"});
  out.manager = path.substr(std::min(path.rfind('/') + 1, path.size()));
  const auto* const rules = k8s::find(webhook, {"rules"});
  if (rules == nullptr || !rules->is_array() || rules->get_array().empty()) return out;
  const auto* const resources = k8s::find(rules->get_array().front(), {"resources"});
  if (resources == nullptr || !resources->is_array() || resources->get_array().empty()) return out;
  const std::string name(k8s::find_string(resources->get_array().front(), {}));
  const auto slash = name.find('/');
  if (slash != name.npos) out.field = name.substr(slash + 1);
  return out;
}

void observe_webhooks(const json::value& configuration, const present_objects& from,
                      observed_trust& out) {
  const auto* const webhooks = k8s::find(configuration, {"webhooks"});
  if (webhooks == nullptr || !webhooks->is_array()) return;
  std::vector<managed_watch> called;
  for (const auto& webhook : webhooks->get_array()) {
    // Those that others have added are theirs: what they trust is no part of ours.
    if (!k8s::find_string(webhook, {"name"}).ends_with(webhook_suffix)) continue;
    const auto text = k8s::find_string(webhook, {"clientConfig", "caBundle"});
    out.webhooks.push_back(read(k8s::base64_decode(text).value_or(std::string()), from));
    auto watch = watch_of_webhook(webhook);
    if (watch.manager != heartbeat_component) called.push_back(std::move(watch));
  }
  out.called = known_managers(std::move(called));
}

/// True if who believes the bundle believes the certificate that a text begins with.
bool trusts(const tls::ca_bundle& bundle, const std::string& certificate, time_point now) {
  const auto own = tls::certificate::from_pem(certificate);
  return own && bundle.verify(*own, tls::purpose::server_auth, now).has_value();
}

/// True if what is there may still be needed by a certificate that is not the wanted one.
bool in_transition(const wanted_trust& wanted, const observed_trust& has,
                   const trust_delays& delays, time_point now) {
  if (!has.serves()) return false;
  if (has.certificate != wanted.certificate) return true;
  if (has.certificate_since && now < *has.certificate_since + delays.retirement) return true;
  return !trusts(wanted.bundle, has.certificate, now);
}

/// The wanted bundle and, for as long as they are needed, the CAs that only the present one has.
tls::ca_bundle grown(const wanted_trust& wanted, const observed_trust& has, bool keep,
                     time_point now) {
  auto out = wanted.bundle;
  if (!keep) return out;
  const auto add = [&](const tls::ca_bundle& from) {
    for (const auto& authority : from.authorities()) {
      if (authority.not_after() >= now) out.append(authority);
    }
  };
  std::ranges::for_each(has.webhooks, add);
  add(has.bundle);
  return out;
}

/// How long what is there since then still has to wait to be in effect. A time in the future is not
/// believed: a clock that was ahead, or the runtime's owner, wrote it.
core::duration until_in_effect(std::optional<time_point> since, core::duration delay,
                               time_point now) {
  if (!since || *since > now) return delay;
  return std::max<core::duration>(*since + delay - now, core::duration::zero());
}

/// How long the new certificate still has to wait for the bundle; 0: not at all.
core::duration wait_for_bundle(const wanted_trust& wanted, const observed_trust& has,
                               const trust_delays& delays, time_point now) {
  // No webhook calls, or none trusts the served certificate (it may have expired): nothing is lost.
  const auto distrusts = [&](const auto& pod) { return !trusts(pod, has.certificate, now); };
  if (has.webhooks.empty() || (has.serves() && std::ranges::all_of(has.webhooks, distrusts))) {
    return core::duration::zero();
  }
  const auto believes = [&](const auto& pod) { return trusts(pod, wanted.certificate, now); };
  const bool everywhere =
      std::ranges::all_of(has.webhooks, believes) && (!has.serves() || believes(has.bundle));
  if (!everywhere) return delays.propagation;
  const auto delay =
      has.loaded.bundle ? std::min(delays.api_server, delays.propagation) : delays.propagation;
  return until_in_effect(has.bundle_since, delay, now);
}

void order_certificate(trust_step& step, const wanted_trust& wanted, const observed_trust& has,
                       const trust_delays& delays, time_point now) {
  const bool same = has.serves() && has.certificate == wanted.certificate && has.key == wanted.key;
  step.restart_trigger = has.restart_trigger;
  if (has.serves()) {
    step.certificate = has.certificate;
    step.key = has.key;
  }
  if (has.certificate_since)
    step.certificate_since = k8s::format_micro_time(*has.certificate_since);
  if (same) {
    if (step.bundle != wanted.bundle && has.certificate_since) {
      step.again = std::max<core::duration>(*has.certificate_since + delays.retirement - now,
                                            std::chrono::seconds(1));
    }
  } else if (!trusts(wanted.bundle, wanted.certificate, now)) {
    step.pending = "the certificate is not issued, or not yet, by a CA of the bundle";
    return;
  } else if (const auto wait = wait_for_bundle(wanted, has, delays, now);
             wait > core::duration::zero()) {
    step.pending = "the new certificate waits until the runtime trusts it";
    step.again = wait;
    return;
  }
  step.certificate = wanted.certificate;
  step.key = wanted.key;
  if (!same || step.certificate_since.empty()) step.certificate_since = k8s::format_micro_time(now);
  if (wanted.restart_on_renewal) {
    step.restart_trigger = content_digest().add(wanted.certificate).add(wanted.key).hex();
  }
}

void order_managers(trust_step& step, const wanted_trust& wanted, const observed_trust& has,
                    const trust_delays& delays, time_point now) {
  step.managers = wanted.managers;
  if (!has.managers) return;
  step.managers = merge(wanted.managers, *has.managers);
  if (!fits_managers_file(step.managers)) step.managers = wanted.managers;
  const auto lacking = [&](const known_managers& of) {
    return !std::ranges::all_of(wanted.managers.watches(),
                                [&](const auto& watch) { return of.knows(watch); });
  };
  const bool grows = lacking(*has.managers);
  // One in the future was written by a clock that was ahead, or by the runtime's owner.
  const bool anew = grows || (has.managers_since && *has.managers_since > now);
  const auto since = anew ? std::optional(now) : has.managers_since;
  if (since) step.managers_since = k8s::format_micro_time(*since);
  const bool loaded = has.loaded.managers && !anew;
  const auto wait =
      since && !loaded ? until_in_effect(since, delays.propagation, now) : core::duration::zero();
  step.in_effect = has.called;
  if (wait == core::duration::zero()) step.in_effect = merge(has.called, *has.managers);
  if (!lacking(*step.in_effect)) return;
  if (step.pending.empty()) step.pending = "webhooks of new managers wait until the pods know them";
  step.again = step.again == core::duration::zero() ? wait : std::min(step.again, wait);
}

}  // namespace

observed_trust observe(const present_objects& from) {
  observed_trust out;
  if (from.secret != nullptr) {
    out.bundle = read(entry(*from.secret, "ca.crt"), from);
    out.certificate = entry(*from.secret, "tls.crt");
    out.key = entry(*from.secret, "tls.key");
    out.certificate_since = time_of(*from.secret, certificate_since_annotation);
    out.managers_since = time_of(*from.secret, managers_since_annotation);
    const auto file = entry(*from.secret, managers_entry);
    if (!file.empty()) {
      auto parsed = parse_managers(file);
      out.managers = parsed ? std::move(*parsed) : known_managers();
      out.managers_digest = managers_digest(file);
    }
  }
  if (from.configuration != nullptr) {
    observe_webhooks(*from.configuration, from, out);
    out.bundle_since = time_of(*from.configuration, bundle_since_annotation);
  }
  if (from.deployment != nullptr) {
    const auto* const labels =
        k8s::find(*from.deployment, {"spec", "template", "metadata", "labels"});
    if (labels != nullptr) out.restart_trigger = k8s::find_string(*labels, {restart_label});
  }
  return out;
}

pods_word word_of(const std::vector<std::string>& names, const std::vector<pod_report>& reports,
                  const observed_trust& has) {
  const auto all_say = [&](std::string pod_report::* digest, const std::string& loaded,
                           std::optional<time_point> since) {
    if (names.empty() || loaded.empty() || !since) return false;
    return std::ranges::all_of(names, [&](const std::string& name) {
      const auto found = std::ranges::find(reports, name, &pod_report::pod);
      return found != reports.end() && (*found).*digest == loaded && found->heard >= *since;
    });
  };
  const auto own = tls::certificate::from_pem(has.certificate);
  return {
      .bundle = all_say(&pod_report::ca_digest, has.bundle.digest(), has.bundle_since),
      .certificate = all_say(&pod_report::certificate_digest,
                             own ? own->fingerprint() : std::string(), has.certificate_since),
      .managers = all_say(&pod_report::managers_digest, has.managers_digest, has.managers_since)};
}

bool awaits_word(const observed_trust& has, const trust_delays& delays, time_point now) {
  const auto waits = [&](const std::optional<time_point>& since, bool loaded) {
    return !loaded && since && *since <= now && now < *since + delays.propagation;
  };
  return waits(has.bundle_since, has.loaded.bundle) ||
         waits(has.certificate_since, has.loaded.certificate) ||
         waits(has.managers_since, has.loaded.managers);
}

std::optional<runtime_trust> summary_of(const observed_trust& has) {
  const auto own = tls::certificate::from_pem(has.certificate);
  if (!own) return std::nullopt;
  runtime_trust out{.client_not_before = own->not_before()};
  for (const auto& authority : has.bundle.authorities()) {
    // Without a webhook there is no call that could fail.
    const bool everywhere = std::ranges::all_of(
        has.webhooks, [&](const tls::ca_bundle& other) { return other.contains(authority); });
    if (everywhere) out.authorities.push_back(authority.fingerprint());
  }
  if (const auto* issuer = has.bundle.issuer_of(*own)) out.client_issuer = issuer->fingerprint();
  return out;
}

trust_step next_step(const wanted_trust& wanted, const observed_trust& has,
                     const trust_delays& delays, time_point now) {
  trust_step step;
  step.bundle = grown(wanted, has, in_transition(wanted, has, delays, now), now);
  const auto has_it = [&](const tls::ca_bundle& ca_bundle) { return ca_bundle == step.bundle; };
  const bool in_place = std::ranges::all_of(has.webhooks, has_it) &&
                        (!has.serves() || has_it(has.bundle)) && has.bundle_since &&
                        *has.bundle_since <= now;
  step.bundle_since = k8s::format_micro_time(in_place ? *has.bundle_since : now);
  order_certificate(step, wanted, has, delays, now);
  order_managers(step, wanted, has, delays, now);
  return step;
}

}  // namespace rw::watcher_installer
