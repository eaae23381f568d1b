#pragma once

#include "reactors/certificates/rendering.hpp"
#include "reactors/trust_bundle.hpp"
#include "tls/certificate.hpp"

#include <boost/json/value.hpp>

#include <chrono>
#include <optional>
#include <string>

namespace rw::certificates {

using time_point = std::chrono::system_clock::time_point;

struct validity {
  time_point not_before;
  time_point not_after;

  friend bool operator==(const validity&, const validity&) = default;
};

/// What a Certificate's status says of the certificate that was issued last (Gardener:
/// issuanceDate, expirationDate; cert-manager: notBefore, notAfter); none if it does not.
std::optional<validity> validity_in_status(const boost::json::value& certificate, dialect speaks);

/// True while it is being issued, or will be because somebody has asked for it.
bool is_being_issued(const boost::json::value& certificate, dialect speaks);

/// What the issuer says about a certificate that is not there yet; may be empty.
std::string issuer_message(const boost::json::value& certificate, dialect speaks);

/// Must the certificate be issued anew because the gateway's bundle has grown since?
///
/// It must, if it is not the newest authority's and not younger than caAddedToBundleAt. Both are
/// whole seconds, so one of the same second counts as older. That the newest authority's own
/// certificates never have to be is what keeps an issuer whose clock is behind, or who lets
/// validity begin early, from issuing again and again. `told` is the status's: where it is ahead of
/// `leaf`, the Secret has just not been seen yet.
///
/// Also, if no authority in the bundle issued it, once that has been so for `patience`: somebody
/// has taken it out. Before, the bundle may just be behind the issuer.
///
/// While caAddedToBundleAt is ahead of the clock nothing is: whatever is issued now would be older.
bool must_be_reissued(const tls::certificate& leaf, const std::optional<validity>& told,
                      const trust_bundle& trust, time_point now,
                      std::chrono::seconds patience = std::chrono::minutes(10));

/// The write that asks the issuer for a new certificate.
struct reissue_request {
  std::string subresource;    ///< "status", or empty
  boost::json::value change;  ///< a merge patch, for the object's resourceVersion only
};

/// cert-manager: the condition Issuing is True with reason ManuallyTriggered, as `cmctl renew` does
/// it. Gardener: `spec.renew`, without `spec.ensureRenewedAfter`, which would restrict it.
reissue_request request_reissue(const boost::json::value& certificate, dialect speaks,
                                time_point now);

}  // namespace rw::certificates
