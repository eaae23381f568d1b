#pragma once

#include "core/clock.hpp"
#include "k8s/objects/names.hpp"
#include "reactors/shared/certificate_dialect.hpp"
#include "tls/issuer.hpp"

#include <boost/json/object.hpp>
#include <boost/json/value.hpp>
#include <boost/system/result.hpp>

#include <chrono>
#include <optional>
#include <string>

namespace rw::dev_issuer {

using certificates::dialect;
using time_point = std::chrono::system_clock::time_point;

/// What a Certificate asks for.
struct order {
  k8s::object_key secret;
  boost::json::object labels = {};  ///< of the Secret
  tls::certificate_request what = {};
  std::chrono::seconds renew_before{0};
};

/// Why a Certificate cannot be honoured: what a user has to change.
struct problem {
  std::string text;
};

/// The issuer that a Certificate names.
std::string_view issuer_of(const boost::json::value& certificate) noexcept;

/// Reads a Certificate. By default it lasts 90 days and is renewed a third of that before its end.
/// Keys are `key`, or with `honour_private_key` what the Certificate says.
boost::system::result<order, problem> read_order(const boost::json::value& certificate,
                                                 dialect speaks, tls::key_type key,
                                                 bool honour_private_key);

/// Why a certificate is to be issued now, in a word as cert-manager has it; empty: there is no
/// reason. `secret` is null if there is none.
std::string_view reason_to_issue(const boost::json::value& certificate,
                                 const boost::json::value& secret, const order& wanted,
                                 dialect speaks, time_point now);

/// When the certificate in the Secret is due for renewal.
std::optional<time_point> renewal_of(const boost::json::value& secret, const order& wanted);

/// The Secret with what was issued.
boost::json::value secret_for(const boost::json::value& certificate, const order& wanted,
                              const tls::key_pair& issued, std::string_view authority);

}  // namespace rw::dev_issuer
