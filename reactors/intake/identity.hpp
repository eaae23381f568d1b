#pragma once

#include "rw/core/clock.hpp"
#include "rw/core/http/message.hpp"
#include "rw/core/lru_map.hpp"
#include "rw/tls/certificate.hpp"
#include "rw/tls/material.hpp"

#include <boost/asio/ip/network_v6.hpp>
#include <boost/system/result.hpp>

#include <array>
#include <atomic>
#include <cstdint>
#include <memory>
#include <mutex>
#include <string>
#include <string_view>
#include <vector>

namespace rw::listener {

/// Networks of peers, such as 10.0.0.0/8 or fd00::/8; a single address is a network too.
class network_list {
 public:
  /// Parses networks separated by commas, and perhaps blanks. Throws `std::invalid_argument` that
  /// names the invalid one.
  static network_list parse(std::string_view text);

  bool empty() const noexcept { return networks_.empty(); }
  bool contains(const boost::asio::ip::address& address) const;

 private:
  std::vector<boost::asio::ip::network_v6> networks_;  ///< IPv4 ones mapped (RFC 4291, 2.5.5.2)
};

/// Why a request has no sender, and the status of the response.
enum class identity_error {
  untrusted_peer = 1,    ///< X-Forwarded-Client-Cert from a peer outside the trusted proxies: 401
  no_header,             ///< no X-Forwarded-Client-Cert: 401
  malformed_header,      ///< it cannot be read, or is too large: 401
  no_certificate,        ///< it has no Cert; with TLS the client sent no certificate: 401
  several_certificates,  ///< it has more than one Cert, and may be forged: 401
  unreadable,            ///< the certificate cannot be read: 401
  untrusted,             ///< the certificate does not chain to the CA, or is not valid now: 401
  nameless,              ///< no common name, which is the runtime's id: 400
  outdated,  ///< TLS: the certificate was verified before the CA changed, and can't be verified
             ///< again without its intermediates: the client must reconnect
};

/// All of them.
inline constexpr std::array identity_errors{identity_error::untrusted_peer,
                                            identity_error::no_header,
                                            identity_error::malformed_header,
                                            identity_error::no_certificate,
                                            identity_error::several_certificates,
                                            identity_error::unreadable,
                                            identity_error::untrusted,
                                            identity_error::nameless,
                                            identity_error::outdated};

/// Returns a line for the response, without a newline. Static storage.
std::string_view reason(identity_error error) noexcept;

/// Returns a metric's label, such as "several_certificates". Static storage.
std::string_view label(identity_error error) noexcept;

/// The sender of a request. A cheap value.
struct event_sender {
  std::string runtime_id;        ///< common name of the certificate
  tls::certificate certificate;  ///< for the verify function
};

using sender_result = boost::system::result<std::shared_ptr<const event_sender>, identity_error>;

struct identity_options {
  /// The server terminates mutual TLS itself: the peer's certificate is the identity, and any
  /// X-Forwarded-Client-Cert is ignored.
  bool terminates_tls = false;
  /// Else: the peers whose X-Forwarded-Client-Cert is trusted.
  network_list trusted_proxies;
  /// Certificates must chain to its CA. If the server terminates TLS: its credentials, so that a
  /// withdrawal of trust also applies to open connections. Else optional.
  std::shared_ptr<tls::credentials> client_ca;
};

/// Identifies the sender of a request. Caches identities while their certificates, and the
/// authorities above them, are valid and the CA is the same: the certificate that comes with every
/// event of a runtime is parsed and verified once. It remembers `most_runtimes` certificates, of
/// some KiB each, and forgets first what was used longest ago. Thread-safe.
class identifier {
 public:
  identifier(identity_options options, core::clock& time);

  sender_result identify(const http::request& from);

  /// Of the CA, and with TLS also of the server's certificate.
  std::uint64_t generation() const {
    return options_.client_ca ? options_.client_ca->generation() : 0;
  }

  /// The caller calls it after `outdated`, once every connection made before `generation` is
  /// closed: handshakes have verified the others.
  void connected_since(std::uint64_t generation) noexcept { connected_since_ = generation; }

 private:
  struct entry {
    std::shared_ptr<const event_sender> peer;
    tls::wall_time until;
    std::uint64_t generation = 0;
  };

  boost::system::result<entry, identity_error> examine(const std::string& evidence) const;
  tls::result<void> chains(const tls::certificate& leaf,
                           const std::vector<tls::certificate>& intermediates,
                           const tls::material& trust) const;

  const identity_options options_;
  core::clock& clock_;
  std::mutex guard_;
  core::lru_map<std::string, entry> known_;  ///< by digest of certificate or header, under `guard_`
  std::atomic<std::uint64_t> connected_since_;
};

}  // namespace rw::listener
