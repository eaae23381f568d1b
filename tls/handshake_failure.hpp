#pragma once

#include <boost/system/error_code.hpp>

#include <cstdint>
#include <string_view>

namespace rw::tls {

/// Coarse reason of a failed handshake: for metrics, and to name the side that must change.
enum class handshake_failure : std::uint8_t {
  peer_untrusted,   ///< the peer's certificate does not chain to our CAs, or is not valid now
  peer_anonymous,   ///< the peer sent no certificate
  refused_by_peer,  ///< the peer rejected our certificate with an alert
  closed,           ///< the peer closed the connection during the handshake
  protocol,         ///< anything else: not TLS, no common version or cipher
};

/// Classifies the error of a tls::stream's handshake.
handshake_failure classify_handshake(boost::system::error_code error) noexcept;

}  // namespace rw::tls
