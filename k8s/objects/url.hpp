#pragma once

#include <boost/system/result.hpp>

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

namespace rw::k8s {

/// Where an API server is, out of kubeconfig's `server`.
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
  std::string authorization;  ///< basic credentials as the Proxy-Authorization field has them
};

/// Why a text is no URL that can be used: a sentence's end, such as "has no host".
struct url_defect {
  std::string text;
};
template <class T>
using url_result = boost::system::result<T, url_defect>;

/// "https://host[:port][/prefix]". Plain http is refused but for loopback addresses: credentials
/// would go over the wire for all to read.
url_result<server_url> parse_server_url(std::string_view text);
url_result<proxy_url> parse_proxy_url(std::string_view text);

/// True for "localhost", 127.0.0.0/8 and ::1.
bool is_loopback(std::string_view host);

/// The proxy that the environment names for a server, in the way of Go's httpproxy package
/// (golang.org/x/net/http/httpproxy), which client-go uses: HTTPS_PROXY or HTTP_PROXY by the
/// server's scheme, in upper or lower case; none for loopback, and none for what NO_PROXY lists:
/// "*", names ("example.com" with its subdomains, ".example.com" without itself), addresses and
/// CIDR blocks, each with or without a port.
std::string proxy_of_environment(const server_url& server);

/// The part of that which decides by `no_proxy`.
bool goes_past_proxy(std::string_view no_proxy, std::string_view host, std::uint16_t port);

/// Appends `text` with everything but unreserved characters (RFC 3986, section 2.3), and those of
/// `also_plain`, percent-encoded.
void append_percent_encoded(std::string& out, std::string_view text,
                            std::string_view also_plain = {});

}  // namespace rw::k8s
