#pragma once

#include "reactors/certificates/rendering.hpp"
#include "reactors/shared/trust_bundle.hpp"
#include "tls/certificate.hpp"

#include <boost/json/value.hpp>

#include <chrono>
#include <optional>
#include <string>
#include <string_view>

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

/// Why a certificate has to be issued anew, as times.
struct reissue_cause {
  time_point issued;  ///< the present certificate (notBefore)
  time_point since;   ///< the gateway's bundle has grown (caAddedToBundleAt)
};

/// True while the certificate is being issued for this cause, or will be because the issuer was
/// asked.
///
/// Gardener's controller first replaces `spec.renew` by `spec.ensureRenewedAfter` with the state
/// still Ready, and begins a second later (cert-management, pkg/controller/issuer/certificate,
/// updateForRenewalAndRepeat). Asking again in between would restart it; after a failure (state
/// Error) it tries again by itself. A time before the cause is an earlier renewal's, which may
/// stand there for good.
bool is_being_issued(const boost::json::value& certificate, dialect speaks, reissue_cause cause);

/// How often the issuer is asked. cert-manager does not try again by itself what was asked for by
/// hand, and setting the condition goes past its own backoff (1 to 32 h), so this is the only one.
struct reissue_pace {
  std::chrono::seconds first = std::chrono::minutes(10);  ///< after the first time, then doubled
  std::chrono::seconds limit = std::chrono::hours(6);
};

/// The annotation of a Certificate that remembers when the issuer was asked, and how often for the
/// same cause: "<RFC 3339 time> <count>". Neither status has a field for that.
inline constexpr std::string_view reissue_annotation = "operator.kyma-project.io/reissue-requested";

/// When the issuer is to be asked, and how many times it will have been for this cause then. A
/// certificate issued since it was last asked, or a bundle that grew since, begins a new row.
struct reissue_turn {
  time_point at;
  unsigned attempt = 1;

  friend bool operator==(const reissue_turn&, const reissue_turn&) = default;
};
reissue_turn next_reissue(const boost::json::value& certificate, reissue_cause cause,
                          const reissue_pace& pace, time_point now);

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
/// has taken it out. Before, the bundle may just be behind the issuer. And once a day, if the
/// issuer was behind the bundle, so that it comes from an earlier authority, which ends within a
/// week.
///
/// While caAddedToBundleAt is ahead of the clock nothing is: whatever is issued now would be older.
bool must_be_reissued(const tls::certificate& leaf, const std::optional<validity>& told,
                      const trust_bundle& trust, time_point now,
                      std::chrono::seconds patience = std::chrono::minutes(10));

/// A merge patch of the Certificate, for its resourceVersion only: remembers that the issuer is
/// asked, and asks Gardener's (`spec.renew`, without `spec.ensureRenewedAfter`, which would
/// restrict it).
boost::json::value request_reissue(const boost::json::value& certificate, dialect speaks,
                                   unsigned attempt, time_point now);

/// A merge patch of the status, for its resourceVersion only, that asks cert-manager: the condition
/// Issuing is True with reason ManuallyTriggered, as `cmctl renew` sets it.
boost::json::value trigger_cert_manager(const boost::json::value& certificate, time_point now);

}  // namespace rw::certificates
