#include "rw/reactors/certificates/state.hpp"

#include "rw/k8s/objects/types.hpp"
#include "rw/tls/issuer.hpp"
#include "rw/tls/material.hpp"

#include <algorithm>
#include <utility>

namespace rw::certificates {
namespace {

judged_certificate waiting(std::string reason, core::duration again = {}) {
  judged_certificate out;
  out.reason = std::move(reason);
  out.again = again;
  return out;
}

/// Returns the state without an issued certificate.
judged_certificate not_issued(const evidence& of, issuer_kind kind) {
  const auto said = issuer_message(of.certificate, kind);
  return waiting("the certificate has not been issued yet" + (said.empty() ? "" : ": " + said));
}

/// Returns the time until the gateway certainly trusts the authority of `leaf`.
core::duration until_settled(const tls::certificate& leaf, const trust_bundle& trust,
                             std::chrono::seconds settles, wall_time now) {
  const auto& all = trust.authorities.authorities();
  if (all.size() < 2 || !trust.added_at || !tls::is_issued_by(leaf, all.front())) return {};
  // A clock set back must not make the wait longer.
  const auto left = std::min<wall_time::duration>(*trust.added_at + settles - now, settles);
  return std::max(left, wall_time::duration{});
}

judged_certificate deliver(const tls::key_pair& pair, const tls::certificate& leaf,
                           const evidence& of, const judge_options& options, wall_time now) {
  const auto& trust = *of.trust;
  if (leaf.not_before() > now) {
    return waiting("the certificate is not valid yet", leaf.not_before() - now);
  }
  const auto trusted = trust.authorities.verify(leaf, tls::purpose::client_auth, now);
  if (!trusted) {
    // The bundle will change, or after a while the certificate must be issued again.
    return waiting("the gateway does not trust the certificate: " + trusted.error().message(),
                   std::chrono::minutes(1));
  }
  const auto settling = until_settled(leaf, trust, options.gateway_settles, now);
  if (settling > core::duration{}) {
    return waiting("the gateway is learning of the authority that issued it", settling);
  }
  judged_certificate out;
  out.state = certificate_state::kind::ready;
  out.current = pair;
  return out;
}

}  // namespace

judged_certificate judge(const evidence& of, usable_pairs& pairs, issuer_kind kind,
                         const judge_options& options, wall_time now) {
  if (of.trust == nullptr || of.trust->authorities.empty()) {
    return waiting("the gateway Secret has no CA bundle yet");
  }
  if (!of.secret.is_object()) return not_issued(of, kind);
  const tls::key_pair pair{k8s::secret_data(of.secret, certificate_entry).value_or(""),
                           k8s::secret_data(of.secret, key_entry).value_or("")};
  // An issuer may create the Secret first and fill it later.
  if (pair.certificate.empty() || pair.key.empty()) return not_issued(of, kind);
  const auto read = pairs.read(pair);
  if (!read) return waiting("the certificate's Secret cannot be used: " + read.error().message());
  const auto& leaf = *read;
  if (leaf.common_name() != of.runtime_id) {
    return waiting("the certificate is still that of runtime " + leaf.common_name());
  }
  auto out = deliver(pair, leaf, of, options, now);
  const auto told = validity_in_status(of.certificate, kind);
  out.issued = {leaf.not_before(), leaf.not_after()};
  out.must_be_reissued = must_be_reissued(leaf, told, *of.trust, now);
  out.cause.issued = told ? std::max(leaf.not_before(), told->not_before) : leaf.not_before();
  out.cause.since = of.trust->added_at.value_or(wall_time{});
  if (of.trust->added_at && *of.trust->added_at > now && out.again == core::duration{}) {
    out.again = *of.trust->added_at - now;
  }
  return out;
}

}  // namespace rw::certificates
