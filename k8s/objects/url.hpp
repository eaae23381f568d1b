#pragma once

#include "rw/core/text_error.hpp"

#include <boost/system/result.hpp>

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

namespace rw::k8s {

/// Address of an API server, from kubeconfig's `server`.
struct server_url {
  bool tls = true;
  std::string host;  ///< name or address; an IPv6 address without its brackets
  std::uint16_t port = 443;
  std::string prefix;  ///< of every path, such as "/clusters/x"; without a slash at its end
};

/// A proxy's URL, "http://[user:password@]host:port".
struct proxy_url {
  std::string host;
  std::uint16_t port = 80;
  std::string authorization;  ///< basic credentials, the value of the Proxy-Authorization field
};

/// The error is the end of a sentence, such as "has no host".
template <class T>
using url_result = boost::system::result<T, core::text_error>;

/// Parses "https://host[:port][/prefix]". Rejects plain http except for loopback addresses: it
/// would send credentials unencrypted.
url_result<server_url> parse_server_url(std::string_view text);
url_result<proxy_url> parse_proxy_url(std::string_view text);

/// Returns true for "localhost", 127.0.0.0/8 and ::1.
bool is_loopback(std::string_view host);

/// Returns the proxy that the environment names for a server, by the rules of Go's httpproxy
/// package (golang.org/x/net/http/httpproxy), which client-go uses: HTTPS_PROXY or HTTP_PROXY by
/// the server's scheme, in upper or lower case; none for loopback, and none for the items of
/// NO_PROXY: "*", names ("example.com" with its subdomains, ".example.com" without itself),
/// addresses and CIDR blocks, each with or without a port.
std::string proxy_of_environment(const server_url& server);

/// Returns true if `no_proxy` lists the host and port.
bool goes_past_proxy(std::string_view no_proxy, std::string_view host, std::uint16_t port);

/// Appends `text`; percent-encodes everything but unreserved characters (RFC 3986, section 2.3) and
/// those of `also_plain`.
void append_percent_encoded(std::string& out, std::string_view text,
                            std::string_view also_plain = {});

}  // namespace rw::k8s
