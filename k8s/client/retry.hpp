#pragma once

#include "rw/k8s/objects/failure.hpp"

namespace rw::k8s {

/// What is known of a failed attempt, beside the failure itself.
struct attempt_facts {
  bool repeatable = true;     ///< sent twice it does no harm
  bool nothing_sent = false;  ///< there was no connection to send it on
  bool not_taken = false;     ///< http::client_error::not_processed
  bool told_when = false;     ///< the answer has a Retry-After field
};

/// True if the same request may be sent again without harm, and may fare better.
///
/// 429 and 503 with Retry-After say that nothing was done (RFC 9110, section 10.2.3, and RFC 6585,
/// section 4; client-go takes them so, too). What changes nothing may be sent again after any
/// passing failure. A write whose connection ended once a byte of it was written may have been
/// carried out, and is its caller's to repeat (RFC 9110, section 9.2.2).
inline bool worth_another_try(const failure& last, const attempt_facts& known) {
  if (known.told_when && (last.status == 429 || last.status == 503)) return true;
  const bool passing = last.is(errc::unreachable) || last.is(errc::timed_out) ||
                       last.is(errc::unavailable) || last.is(errc::server_error) ||
                       last.is(errc::too_many_requests);
  return passing && (known.nothing_sent || known.not_taken || known.repeatable);
}

}  // namespace rw::k8s
