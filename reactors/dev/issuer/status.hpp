#pragma once

#include "reactors/dev/issuer/order.hpp"
#include "tls/certificate.hpp"

#include <boost/json/value.hpp>

#include <optional>
#include <string>
#include <string_view>

namespace rw::dev_issuer {

/// One write to a Certificate: a merge patch, for the version that it was made of only.
struct change {
  std::string subresource;  ///< "status", or empty
  boost::json::value patch;
};

/// Says that it is being issued; none if that is said already. cert-manager: condition Issuing;
/// Gardener: state Pending.
std::optional<change> say_issuing(const boost::json::value& certificate, dialect speaks,
                                  std::string_view reason, time_point now);

/// Gardener: replaces the request `spec.renew` by `spec.ensureRenewedAfter`, with the state as it
/// was; none if there is no request. (cert-management, updateForRenewalAndRepeat.)
std::optional<change> take_request(const boost::json::value& certificate, dialect speaks,
                                   time_point now);

/// Says what was issued, and that nothing is being issued any more.
change say_issued(const boost::json::value& certificate, dialect speaks,
                  const tls::certificate& leaf, const order& wanted, time_point now);

/// Says why nothing can be issued; none if that is said already.
std::optional<change> say_failed(const boost::json::value& certificate, dialect speaks,
                                 const std::string& why, time_point now);

}  // namespace rw::dev_issuer
