#pragma once

#include "rw/reactors/dev/issuer/order.hpp"
#include "rw/tls/certificate.hpp"

#include <boost/json/value.hpp>

#include <optional>
#include <string>
#include <string_view>

namespace rw::dev_issuer {

/// One write to a Certificate: a merge patch, for the version that it was computed from only.
struct change {
  std::string subresource;  ///< "status", or empty
  boost::json::value patch;
};

/// Sets the state "being issued"; returns nothing if it is set already. cert-manager: condition
/// Issuing; Gardener: state Pending.
std::optional<change> say_issuing(const boost::json::value& certificate, issuer_kind kind,
                                  std::string_view reason, wall_time now);

/// Gardener: replaces the request `spec.renew` by `spec.ensureRenewedAfter`, and keeps the state;
/// returns nothing if there is no request. (cert-management, updateForRenewalAndRepeat.)
std::optional<change> take_request(const boost::json::value& certificate, issuer_kind kind,
                                   wall_time now);

/// Sets the state "issued", with the certificate's data.
change say_issued(const boost::json::value& certificate, issuer_kind kind,
                  const tls::certificate& leaf, const order& wanted, wall_time now);

/// Sets the state "failed", with the reason; returns nothing if it is set already.
std::optional<change> say_failed(const boost::json::value& certificate, issuer_kind kind,
                                 const std::string& reason, wall_time now);

}  // namespace rw::dev_issuer
