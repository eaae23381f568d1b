#pragma once

#include "rw/core/clock.hpp"
#include "rw/k8s/objects/names.hpp"
#include "rw/reactors/shared/issuer_kind.hpp"
#include "rw/tls/issuer.hpp"

#include <boost/json/object.hpp>
#include <boost/json/value.hpp>
#include <boost/system/result.hpp>

#include <chrono>
#include <optional>
#include <string>

namespace rw::dev_issuer {

using certificates::issuer_kind;
using wall_time = std::chrono::system_clock::time_point;

/// The content of a Certificate's spec.
struct order {
  k8s::object_key secret;
  boost::json::object labels = {};  ///< of the Secret
  tls::certificate_request request = {};
  std::chrono::seconds renew_before{0};
};

/// Why a Certificate is invalid, for its author.
struct problem {
  std::string text;
};

/// Returns the issuer that a Certificate names.
std::string_view issuer_of(const boost::json::value& certificate) noexcept;

/// Reads a Certificate. By default it lasts 90 days and is renewed a third of that before its end.
/// Keys are of type `key`, or with `honour_private_key` of the Certificate's.
boost::system::result<order, problem> read_order(const boost::json::value& certificate,
                                                 issuer_kind kind, tls::key_type key,
                                                 bool honour_private_key);

/// Returns the reason to issue a certificate now, in cert-manager's word; empty: there is none.
/// `secret` is null if there is none.
std::string_view reason_to_issue(const boost::json::value& certificate,
                                 const boost::json::value& secret, const order& wanted,
                                 issuer_kind kind, wall_time now);

/// Returns when the certificate in the Secret is due for renewal.
std::optional<wall_time> renewal_of(const boost::json::value& secret, const order& wanted);

/// Returns the Secret of an issued certificate.
boost::json::value secret_for(const boost::json::value& certificate, const order& wanted,
                              const tls::key_pair& issued, std::string_view authority);

}  // namespace rw::dev_issuer
