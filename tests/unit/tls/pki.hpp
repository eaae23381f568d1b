#pragma once

#include "rw/tls/issuer.hpp"
#include "rw/tls/material.hpp"

#include <boost/test/unit_test.hpp>

#include <memory>
#include <string>
#include <utility>

namespace rw::tls::test {

/// A result that must be good.
template <class T>
T good(result<T> from) {
  BOOST_REQUIRE_MESSAGE(from.has_value(), from.error().message());
  return std::move(*from);
}

/// A CA with what it has issued, made once for all tests.
struct pki {
  issuer ca = good(issuer::create({.common_name = "test CA"}));
  issuer stranger = good(issuer::create({.common_name = "foreign CA"}));
  key_pair server = good(ca.issue({.common_name = "server",
                                   .dns_names = {"kcp.example.com", "localhost"},
                                   .ips = {"127.0.0.1"},
                                   .server_auth = true}));
  key_pair client = good(ca.issue({.common_name = "runtime-1", .client_auth = true}));
  key_pair foreign = good(stranger.issue({.common_name = "runtime-1", .client_auth = true}));
};

inline const pki& the_pki() {
  static const pki made;
  return made;
}

inline std::shared_ptr<credentials> holding(const key_pair& own, const std::string& ca = {}) {
  return good(credentials::from_text({.certificate = own.certificate, .key = own.key, .ca = ca}));
}

inline std::shared_ptr<credentials> trusting(const std::string& ca) {
  return good(credentials::from_text({.certificate = {}, .key = {}, .ca = ca}));
}

}  // namespace rw::tls::test
