#pragma once

#include "k8s/objects/names.hpp"
#include "tls/ca_bundle.hpp"
#include "tls/certificate.hpp"
#include "tls/error.hpp"
#include "tls/issuer.hpp"

#include <boost/json/value.hpp>

#include <chrono>
#include <optional>
#include <string>
#include <vector>

namespace rw::gateway_secret {

using time_point = std::chrono::system_clock::time_point;

/// The root Secret: the CA that the issuer of client certificates uses, and that the gateway serves
/// with in the end, since it is its own server certificate, too.
struct root_secret {
  tls::key_pair pair;                         ///< as it stands there
  tls::certificate server;                    ///< the first certificate of tls.crt
  std::vector<tls::certificate> authorities;  ///< `server`, then what else ca.crt has
};

/// The failure says what is wrong with which entry.
tls::result<root_secret> read_root_secret(const boost::json::value& secret);

/// The gateway Secret, whatever state it is in.
struct gateway_content {
  tls::key_pair pair = {};                      ///< served; as it stands there
  std::optional<tls::certificate> served = {};  ///< none: the pair can't be served
  tls::ca_bundle bundle = {};                   ///< of a damaged one, what is left
  std::optional<time_point> ca_added_at = {};   ///< none: missing, or no time
  std::string pair_problem = {};                ///< why `served` is none
  std::string bundle_problem = {};              ///< why the bundle was damaged; empty: it was not
};

gateway_content read_gateway_secret(const boost::json::value& secret);

/// A new gateway Secret, or `into`, an existing one, with everything else that it has.
boost::json::value write_gateway_secret(const gateway_content& content, const k8s::object_key& key,
                                        boost::json::value into = {});

}  // namespace rw::gateway_secret
