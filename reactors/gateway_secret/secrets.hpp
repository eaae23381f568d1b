#pragma once

#include "rw/k8s/objects/names.hpp"
#include "rw/tls/ca_bundle.hpp"
#include "rw/tls/certificate.hpp"
#include "rw/tls/error.hpp"
#include "rw/tls/issuer.hpp"

#include <boost/json/value.hpp>

#include <chrono>
#include <optional>
#include <string>
#include <vector>

namespace rw::gateway_secret {

using wall_time = std::chrono::system_clock::time_point;

/// The root Secret: the CA of the client certificates' issuer. The gateway finally serves with it,
/// as it is its own server certificate, too.
struct root_secret {
  tls::key_pair pair;                         ///< unchanged
  tls::certificate server;                    ///< the first certificate of tls.crt
  std::vector<tls::certificate> authorities;  ///< `server`, then the other certificates of ca.crt
  std::vector<std::string> warnings = {};     ///< of what is taken and may not do, for people
};

/// The failure names the invalid entry and the error.
tls::result<root_secret> read_root_secret(const boost::json::value& secret);

/// The content of the gateway Secret, valid or not.
struct gateway_content {
  tls::key_pair pair = {};                      ///< served; unchanged
  std::optional<tls::certificate> served = {};  ///< nothing: the pair is unusable
  tls::ca_bundle bundle = {};                   ///< of a damaged one, the valid blocks
  std::optional<wall_time> ca_added_at = {};    ///< nothing: missing, or invalid
  std::string pair_error = {};                  ///< why `served` is empty
  std::string bundle_error = {};                ///< why the bundle was damaged; empty: it was not
};

gateway_content read_gateway_secret(const boost::json::value& secret);

/// Returns a new gateway Secret, or `into`, an existing one, with its other content unchanged.
boost::json::value write_gateway_secret(const gateway_content& content, const k8s::object_key& key,
                                        boost::json::value into = {});

}  // namespace rw::gateway_secret
