#pragma once

#include <boost/system/error_code.hpp>

#include <cstdint>
#include <string_view>

namespace rw::tls {

/// Why a handshake came to nothing, coarsely: for counting, and for saying who is to change what.
enum class handshake_failure : std::uint8_t {
  peer_untrusted,   ///< the peer's certificate does not chain to our CAs, or is not valid now
  peer_anonymous,   ///< the peer showed no certificate
  refused_by_peer,  ///< the peer refused our certificate, as it said in an alert
  closed,           ///< the peer went away in the middle
  protocol,         ///< anything else: no TLS, no version or cipher in common
};

/// Of what a tls::stream's handshake failed with.
handshake_failure classify_handshake(boost::system::error_code error) noexcept;

}  // namespace rw::tls
