#include "rw/k8s/objects/url.hpp"

#include "rw/core/config.hpp"
#include "rw/core/http/message.hpp"
#include "rw/core/text.hpp"
#include "rw/k8s/objects/base64.hpp"
#include "rw/tls/xfcc.hpp"

#include <boost/asio/ip/address.hpp>
#include <boost/asio/ip/network_v4.hpp>
#include <boost/asio/ip/network_v6.hpp>

#include <algorithm>
#include <cstdlib>

namespace rw::k8s {
namespace {

namespace ip = boost::asio::ip;

struct parts {
  std::string_view scheme;
  std::string_view user_info;
  std::string_view authority;
  std::string_view path;
};

/// Splits "scheme://[user@]authority[/path]" (RFC 3986, section 3).
url_result<parts> split(std::string_view text) {
  parts out;
  const auto colon = text.find("://");
  if (colon == std::string_view::npos || colon == 0) {
    return core::text_error{"is no URL with a scheme, such as https://host:port"};
  }
  if (std::ranges::any_of(text, [](unsigned char c) { return c <= ' ' || c == 0x7F; })) {
    return core::text_error{"has white space or control characters in it"};
  }
  out.scheme = text.substr(0, colon);
  text.remove_prefix(colon + 3);
  const auto end = text.find_first_of("/?#");
  if (end != std::string_view::npos && text.find_first_of("?#", end) != std::string_view::npos) {
    return core::text_error{"has a query or fragment"};
  }
  out.authority = text.substr(0, end);
  if (end != std::string_view::npos) out.path = text.substr(end);
  if (const auto at = out.authority.rfind('@'); at != std::string_view::npos) {
    out.user_info = out.authority.substr(0, at);
    out.authority.remove_prefix(at + 1);
  }
  return out;
}

/// Returns the authority's host and port; port `otherwise` if it names none.
url_result<core::host_port> host_and_port(std::string_view authority, std::uint16_t otherwise) {
  const auto bracket = authority.rfind(']');
  const auto colon = authority.rfind(':');
  const bool has_port =
      colon != std::string_view::npos && (bracket == std::string_view::npos || colon > bracket);
  auto text = std::string(authority);
  if (has_port && colon + 1 == authority.size())
    return core::text_error{"has no port after its colon"};
  if (!has_port) text += ":" + std::to_string(otherwise);
  auto parsed = core::parse_host_port(text);
  if (!parsed || parsed->host.empty() || parsed->port == 0) {
    return core::text_error{"has no proper host and port"};
  }
  return std::move(*parsed);
}

std::string variable(const char* upper, const char* lower) {
  for (const auto* name : {upper, lower}) {
    // Called while a client is made; a program must not change its environment then.
    const auto* value = std::getenv(name);  // NOLINT(concurrency-mt-unsafe)
    if (value != nullptr && *value != '\0') return value;
  }
  return {};
}

bool block_contains(std::string_view block, const ip::address& address) {
  boost::system::error_code error;
  if (address.is_v4()) {
    const auto network = ip::make_network_v4(std::string(block), error);
    if (error) return false;
    const auto mask = network.netmask().to_uint();
    return (network.address().to_uint() & mask) == (address.to_v4().to_uint() & mask);
  }
  const auto network = ip::make_network_v6(std::string(block), error);
  return !error && ip::network_v6(address.to_v6(), network.prefix_length()).canonical() ==
                       network.canonical();
}

bool ends_with_name(std::string_view host, std::string_view suffix) {
  return host.size() >= suffix.size() &&
         http::iequals(host.substr(host.size() - suffix.size()), suffix);
}

/// One item of NO_PROXY, without its port.
bool names(std::string_view item, std::string_view host, const ip::address* address) {
  if (item == "*") return true;
  if (address != nullptr) {
    if (item.find('/') != std::string_view::npos) return block_contains(item, *address);
    if (item.starts_with('[') && item.ends_with(']')) item = item.substr(1, item.size() - 2);
    boost::system::error_code error;
    const auto listed = ip::make_address(std::string(item), error);
    return !error && listed == *address;
  }
  if (item.starts_with("*.")) item.remove_prefix(1);
  if (item.starts_with('.')) return ends_with_name(host, item);
  return http::iequals(host, item) || ends_with_name(host, "." + std::string(item));
}

}  // namespace

url_result<server_url> parse_server_url(std::string_view text) {
  auto split_text = split(text);
  if (!split_text) return split_text.error();
  const auto& url = *split_text;
  server_url out;
  if (http::iequals(url.scheme, "http")) {
    out.tls = false;
  } else if (!http::iequals(url.scheme, "https")) {
    return core::text_error{"has the scheme \"" + std::string(url.scheme) +
                            "\", which is not https"};
  }
  if (!url.user_info.empty()) return core::text_error{"has a user name in it"};
  auto address = host_and_port(url.authority, out.tls ? 443 : 80);
  if (!address) return address.error();
  out.host = std::move(address->host);
  out.port = address->port;
  if (!out.tls && !is_loopback(out.host)) {
    return core::text_error{"is plain http, which is accepted for loopback addresses only"};
  }
  out.prefix = url.path;
  // As kubectl joins paths.
  const auto twice =
      std::ranges::unique(out.prefix, [](char a, char b) { return a == '/' && b == '/'; });
  out.prefix.erase(twice.begin(), twice.end());
  while (out.prefix.ends_with('/')) out.prefix.pop_back();
  return out;
}

url_result<proxy_url> parse_proxy_url(std::string_view text) {
  auto split_text = split(text);
  if (!split_text) return split_text.error();
  const auto& url = *split_text;
  if (!http::iequals(url.scheme, "http")) {
    return core::text_error{"has the scheme \"" + std::string(url.scheme) +
                            "\"; only http proxies are supported"};
  }
  auto address = host_and_port(url.authority, 80);
  if (!address) return address.error();
  proxy_url out{std::move(address->host), address->port, {}};
  if (!url.user_info.empty()) {
    auto credentials = tls::percent_decode(url.user_info);
    if (!credentials) return core::text_error{"has a user name that is not percent-encoded"};
    if (credentials->find(':') == std::string::npos) *credentials += ':';
    out.authorization = "Basic " + base64_encode(*credentials);
  }
  return out;
}

bool is_loopback(std::string_view host) {
  if (http::iequals(host, "localhost")) return true;
  boost::system::error_code error;
  const auto address = ip::make_address(std::string(host), error);
  return !error && address.is_loopback();
}

bool goes_past_proxy(std::string_view no_proxy, std::string_view host, std::uint16_t port) {
  boost::system::error_code error;
  const auto address = ip::make_address(std::string(host), error);
  while (!no_proxy.empty()) {
    const auto comma = no_proxy.find(',');
    auto item = core::trimmed(no_proxy.substr(0, comma));
    no_proxy.remove_prefix(comma == std::string_view::npos ? no_proxy.size() : comma + 1);
    // The port follows the only colon, or an IPv6 address in brackets.
    const auto colon = item.rfind(':');
    if (colon != std::string_view::npos && (item.find(':') == colon || item[colon - 1] == ']')) {
      const auto listed = core::parse_port(item.substr(colon + 1));
      if (!listed || *listed != port) continue;
      item = item.substr(0, colon);
    }
    if (!item.empty() && names(item, host, error ? nullptr : &address)) return true;
  }
  return false;
}

std::string proxy_of_environment(const server_url& server) {
  if (is_loopback(server.host)) return {};
  auto proxy =
      server.tls ? variable("HTTPS_PROXY", "https_proxy") : variable("HTTP_PROXY", "http_proxy");
  if (proxy.empty()) return {};
  if (goes_past_proxy(variable("NO_PROXY", "no_proxy"), server.host, server.port)) return {};
  // As in Go's package, a bare host:port is an http proxy.
  if (proxy.find("://") == std::string::npos) proxy.insert(0, "http://");
  return proxy;
}

void append_percent_encoded(std::string& out, std::string_view text, std::string_view also_plain) {
  constexpr std::string_view digits = "0123456789ABCDEF";
  for (const char c : text) {
    const bool plain = (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') ||
                       c == '-' || c == '.' || c == '_' || c == '~' ||
                       also_plain.find(c) != std::string_view::npos;
    if (plain) {
      out += c;
    } else {
      const auto byte = static_cast<unsigned char>(c);
      out += '%';
      out += digits[byte >> 4];
      out += digits[byte & 15];
    }
  }
}

}  // namespace rw::k8s
