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
  missing = 1,             ///< no header, or an empty one
  too_large,               ///< longer than the limit
  malformed,               ///< not elements of key=value pairs
  no_certificate,          ///< the nearest element has no Cert
  undecodable,             ///< Cert is not valid percent-encoding
  unparsable_certificate,  ///< Cert is not a certificate
};

const boost::system::error_category& xfcc_category() noexcept;
boost::system::error_code make_error_code(xfcc_error e) noexcept;

/// Longest header accepted by default, bytes.
inline constexpr std::size_t xfcc_limit = 32 * 1024;

/// One element: what one proxy asserts about its client. Values are unquoted; `cert` and `chain`
/// are percent-encoded PEM, in which a '+' for a blank is accepted.
struct xfcc_element {
  std::vector<std::string> by;  ///< URI SANs of the proxy's own certificate
  std::string hash;             ///< SHA-256 of the client certificate, hexadecimal
  std::string cert;             ///< the client certificate
  std::string chain;            ///< the client's whole chain, leaf first
  std::string subject;
  std::vector<std::string> uri;
  std::vector<std::string> dns;

  /// The certificate in `cert`. Errors: no_certificate, undecodable, unparsable_certificate.
  boost::system::result<certificate> client_certificate() const;

  /// The certificates in `chain` after the leaf; empty if there are none. Errors: undecodable,
  /// unparsable_certificate.
  boost::system::result<std::vector<certificate>> intermediates() const;
};

/// Parses X-Forwarded-Client-Cert as Envoy writes it (HTTP connection manager,
/// "x-forwarded-client-cert"): elements split by ',', pairs by ';', case-insensitive keys, values
/// plain or in double quotes with backslash escapes. `Cert=$ssl_client_escaped_cert` of nginx is
/// the plain case. The caller joins several header lines with ','. Unknown keys are skipped; Hash,
/// Cert, Chain and Subject must not repeat in an element. Errors: missing, too_large, malformed.
///
/// The header is as trustworthy as the peer that sent it: accept it from trusted proxies only.
boost::system::result<std::vector<xfcc_element>> parse_xfcc(std::string_view header,
                                                            std::size_t limit = xfcc_limit);

/// Returns the element of the nearest hop's client: proxies append, so it is the last one. The
/// whole header must be well-formed, lest a forged front part hide what the proxy appended.
boost::system::result<xfcc_element> nearest(std::string_view header,
                                            std::size_t limit = xfcc_limit);

/// Returns the certificate of the nearest hop's client: nearest(), then client_certificate().
boost::system::result<certificate> nearest_certificate(std::string_view header,
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
