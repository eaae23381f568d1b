#pragma once

#include "rw/tls/certificate.hpp"

#include <boost/system/error_code.hpp>
#include <boost/system/result.hpp>

#include <cstddef>
#include <string>
#include <string_view>
#include <type_traits>
#include <vector>

namespace rw::tls {

/// Why an X-Forwarded-Client-Cert header identifies no client.
enum class xfcc_error {
  missing = 1,           ///< no header, or an empty one
  too_large,             ///< longer than the limit
  malformed,             ///< a quote that does not enclose a value, a control character, two chains
  no_certificate,        ///< no Cert
  several_certificates,  ///< more than one Cert outside of quotes
  undecodable,           ///< Cert is not valid percent-encoding
  unparsable_certificate,  ///< Cert is not a certificate
};

const boost::system::error_category& xfcc_category() noexcept;
boost::system::error_code make_error_code(xfcc_error e) noexcept;

/// Longest header accepted by default, bytes.
inline constexpr std::size_t xfcc_limit = 32 * 1024;

/// The client certificate that X-Forwarded-Client-Cert says, and its chain: percent-encoded PEM, in
/// which a '+' for a blank is accepted.
struct forwarded_client {
  std::string cert;
  std::string chain;  ///< the whole chain, leaf first; empty if it is not said

  /// Errors: undecodable, unparsable_certificate.
  boost::system::result<certificate> client_certificate() const;

  /// The certificates in `chain` after the leaf. Errors: undecodable, unparsable_certificate.
  boost::system::result<std::vector<certificate>> intermediates() const;
};

/// Reads X-Forwarded-Client-Cert as Envoy writes it (HTTP connection manager,
/// "x-forwarded-client-cert"): elements split by ',', pairs by ';', case-insensitive keys, values
/// plain or in double quotes with backslash escapes. `Cert=$ssl_client_escaped_cert` of nginx is
/// the plain case. The caller joins several header lines with ','.
///
/// There must be exactly one `Cert=` outside of quotes. Envoy writes By, URI and DNS without
/// quotes, whatever they hold: a client that chose such a name chooses the pairs that follow in it,
/// so a header with a second Cert identifies nobody, whichever comes first. These names themselves
/// are passed over: they may hold ';' and ','. Errors: missing, too_large, malformed,
/// no_certificate, several_certificates.
///
/// The header is as trustworthy as the peer that sent it: accept it from trusted proxies only.
boost::system::result<forwarded_client> parse_xfcc(std::string_view header,
                                                   std::size_t limit = xfcc_limit);

/// Decodes %XX (RFC 3986 2.1); '+' stays '+'. Error: undecodable.
boost::system::result<std::string> percent_decode(std::string_view text);

/// Returns the element that a proxy writes about its own client, as Envoy does when it is to set
/// By, Hash, Cert, Subject, URI and DNS (HTTP connection manager, "x-forwarded-client-cert"):
/// `Cert` is PEM with newlines, blanks, '+', '/' and '=' percent-encoded. `by` are the URI SANs of
/// the proxy's own certificate.
std::string xfcc_of(const certificate& client, const std::vector<std::string>& by = {});

}  // namespace rw::tls

template <>
struct boost::system::is_error_code_enum<rw::tls::xfcc_error> : std::true_type {};
