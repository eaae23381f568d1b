#pragma once

#include "rw/reactors/certificates/rendering.hpp"
#include "rw/reactors/shared/trust_bundle.hpp"
#include "rw/tls/certificate.hpp"

#include <boost/json/value.hpp>

#include <chrono>
#include <optional>
#include <string>
#include <string_view>

namespace rw::certificates {

using wall_time = std::chrono::system_clock::time_point;

struct validity {
  wall_time not_before;
  wall_time not_after;

  friend bool operator==(const validity&, const validity&) = default;
};

/// Returns the validity of the last issued certificate by the Certificate's status (Gardener:
/// issuanceDate, expirationDate; cert-manager: notBefore, notAfter); nothing if that has none.
std::optional<validity> validity_in_status(const boost::json::value& certificate, issuer_kind kind);

/// The times that require a new certificate.
struct reissue_cause {
  wall_time issued;  ///< of the current certificate (notBefore)
  wall_time since;   ///< growth of the gateway's bundle (caAddedToBundleAt)
};

/// Returns true while the issuer issues the certificate for this cause, or has a pending request
/// to.
///
/// Gardener's controller first replaces `spec.renew` by `spec.ensureRenewedAfter` with the state
/// still Ready, and begins a second later (cert-management, pkg/controller/issuer/certificate,
/// updateForRenewalAndRepeat). A second request in between would restart it; after a failure (state
/// Error) it retries by itself. A time before the cause is that of an earlier renewal, and may
/// remain indefinitely.
bool is_being_issued(const boost::json::value& certificate, issuer_kind kind, reissue_cause cause);

/// Backoff of requests to the issuer. cert-manager does not retry a manual request by itself, and
/// setting the condition bypasses its own backoff (1 to 32 h), so this is the only one.
struct reissue_backoff {
  std::chrono::seconds first = std::chrono::minutes(10);  ///< after the first request, then doubled
  std::chrono::seconds limit = std::chrono::hours(6);
};

/// The annotation of a Certificate with the time of the last request to the issuer, and the number
/// of requests for the same cause: "<RFC 3339 time> <count>". Neither status has a field for that.
inline constexpr std::string_view reissue_annotation = "operator.kyma-project.io/reissue-requested";

/// The time of the next request to the issuer, and its number for this cause. A certificate issued
/// since the last request, or a bundle that grew since, resets the number.
struct reissue_turn {
  wall_time at;
  unsigned attempt = 1;

  friend bool operator==(const reissue_turn&, const reissue_turn&) = default;
};
reissue_turn next_reissue(const boost::json::value& certificate, reissue_cause cause,
                          const reissue_backoff& backoff, wall_time now);

/// Returns the issuer's message about a certificate that is not issued yet; may be empty.
std::string issuer_message(const boost::json::value& certificate, issuer_kind kind);

/// Returns whether the certificate must be issued again because the gateway's bundle has grown
/// since.
///
/// It must, if the newest authority did not issue it and it is not younger than caAddedToBundleAt.
/// Both are whole seconds, so a certificate of the same second counts as older. The exception for
/// the newest authority keeps an issuer with a slow clock, or with an early begin of validity, from
/// issuing again and again. `told` is the status's: if it is ahead of `leaf`, the informer has not
/// observed the Secret yet.
///
/// It also must, if no authority in the bundle issued it for longer than `patience`: a client has
/// removed that authority. Before, the bundle may only be older than the certificate. And it must,
/// once a day, if an authority other than the newest issued it, which expires within a week.
///
/// While caAddedToBundleAt is ahead of the clock it never must: a new certificate would be older.
bool must_be_reissued(const tls::certificate& leaf, const std::optional<validity>& told,
                      const trust_bundle& trust, wall_time now,
                      std::chrono::seconds patience = std::chrono::minutes(10));

/// Returns a merge patch of the Certificate, for its resourceVersion only: records the request, and
/// sends it to Gardener's issuer (`spec.renew`, without `spec.ensureRenewedAfter`, which would
/// restrict it).
boost::json::value request_reissue(const boost::json::value& certificate, issuer_kind kind,
                                   unsigned attempt, wall_time now);

/// Returns a merge patch of the status, for its resourceVersion only, that sends the request to
/// cert-manager: the condition Issuing is True with reason ManuallyTriggered, as `cmctl renew` sets
/// it.
boost::json::value trigger_cert_manager(const boost::json::value& certificate, wall_time now);

}  // namespace rw::certificates
