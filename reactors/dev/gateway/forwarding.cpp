#include "rw/reactors/dev/gateway/forwarding.hpp"

#include <algorithm>
#include <array>
#include <string>
#include <utility>

namespace rw::dev_gateway {
namespace {

using http::iequals;

/// Those of RFC 9110, section 7.6.1, and content-length, which the next hop computes itself.
constexpr std::array<std::string_view, 10> own_of_each_hop = {"connection",
                                                              "keep-alive",
                                                              "proxy-connection",
                                                              "te",
                                                              "trailer",
                                                              "upgrade",
                                                              "transfer-encoding",
                                                              "expect",
                                                              "proxy-authenticate",
                                                              "proxy-authorization"};

bool is_any_of(std::string_view name, std::initializer_list<std::string_view> of) {
  return std::ranges::any_of(of,
                             [&](std::string_view candidate) { return iequals(candidate, name); });
}

bool lists(std::string_view names, std::string_view name) {
  while (!names.empty()) {
    const auto comma = std::min(names.find(','), names.size());
    const auto listed = core::trimmed(names.substr(0, comma));
    names.remove_prefix(std::min(comma + 1, names.size()));
    if (iequals(listed, name)) return true;
  }
  return false;
}

}  // namespace

bool is_hop_by_hop(const http::fields& in, std::string_view name) {
  if (std::ranges::any_of(own_of_each_hop,
                          [&](std::string_view listed) { return iequals(listed, name); })) {
    return true;
  }
  for (std::size_t i = 0; i < in.size(); ++i) {
    if (iequals(in[i].name, "connection") && lists(in[i].value, name)) return true;
  }
  return false;
}

void forward_request(const http::request& from, std::string_view xfcc, http::request& into) {
  into.method = from.method;
  into.target = from.target;
  into.body = from.body;
  for (std::size_t i = 0; i < from.headers.size(); ++i) {
    const auto [name, value] = from.headers[i];
    const bool is_own =
        is_any_of(name, {"host", "content-length", "x-forwarded-client-cert", "x-forwarded-for",
                         "x-forwarded-proto", "x-forwarded-host"});
    if (!is_own && !is_hop_by_hop(from.headers, name)) into.headers.add(name, value);
  }
  std::string hops(from.headers.get("x-forwarded-for"));
  if (!hops.empty()) hops += ", ";
  hops += from.peer.address.address().to_string();
  into.headers.add("x-forwarded-for", hops);
  into.headers.add("x-forwarded-proto", "https");
  into.headers.add("x-forwarded-host", from.headers.get("host"));
  into.headers.add("x-forwarded-client-cert", xfcc);
}

void forward_answer(http::response& from, http::response& into) {
  into.status = from.status;
  into.body = std::move(from.body);
  for (std::size_t i = 0; i < from.headers.size(); ++i) {
    const auto [name, value] = from.headers[i];
    const bool is_own = is_any_of(name, {"content-length", "date"});
    if (!is_own && !is_hop_by_hop(from.headers, name)) into.headers.add(name, value);
  }
}

}  // namespace rw::dev_gateway
