#include "rw/reactors/dev/gateway/routes.hpp"

#include "rw/core/http/message.hpp"
#include "rw/k8s/objects/types.hpp"

#include <boost/json/array.hpp>
#include <boost/json/object.hpp>

#include <algorithm>

namespace rw::dev_gateway {
namespace {

namespace json = boost::json;

constexpr std::int64_t last_port = 65535;

const json::array& list_at(const json::value& in, std::initializer_list<std::string_view> path) {
  static const json::array none;
  const auto* const found = k8s::find(in, path);
  return found != nullptr && found->is_array() ? found->get_array() : none;
}

/// Parses "name.namespace.svc" or "name.namespace.svc.cluster.local".
bool parse_host(std::string_view host, service_port& into) {
  const auto first = host.find('.');
  if (first == 0 || first == std::string_view::npos) return false;
  const auto second = host.find('.', first + 1);
  if (second == std::string_view::npos || second == first + 1) return false;
  const auto rest = host.substr(second);
  if (rest != ".svc" && !rest.starts_with(".svc.")) return false;
  into.name = host.substr(0, first);
  into.ns = host.substr(first + 1, second - first - 1);
  return true;
}

std::optional<service_port> destination_of(const json::value& http) {
  const auto& routes = list_at(http, {"route"});
  if (routes.empty()) return std::nullopt;
  const auto& to = routes.front();
  service_port out;
  if (!parse_host(k8s::find_string(to, {"destination", "host"}), out)) return std::nullopt;
  const auto* const number = k8s::find(to, {"destination", "port", "number"});
  const auto port = number != nullptr && number->is_int64() ? number->get_int64() : 0;
  if (port < 1 || port > last_port) return std::nullopt;
  out.port = static_cast<std::uint16_t>(port);
  return out;
}

std::string_view without_port(std::string_view host) {
  const bool v6 = host.starts_with('[');
  const auto from = v6 ? host.find(']') : 0;
  if (from == std::string_view::npos) return host;
  host = host.substr(0, host.find(':', from));
  if (v6) host = host.substr(1, from - 1);
  return host;
}

bool serves(const route& route, std::string_view host) {
  return route.hosts.empty() || std::ranges::any_of(route.hosts, [&](std::string_view name) {
           if (name == "*") return true;
           if (!name.starts_with("*.")) return http::iequals(name, host);
           const auto suffix = name.substr(1);
           return host.size() > suffix.size() &&
                  http::iequals(host.substr(host.size() - suffix.size()), suffix);
         });
}

}  // namespace

std::vector<route> routes_of(const json::value& virtual_service) {
  std::vector<std::string> hosts;
  for (const auto& entry : list_at(virtual_service, {"spec", "hosts"})) {
    if (entry.is_string()) hosts.emplace_back(entry.get_string());
  }
  std::vector<route> out;
  for (const auto& http : list_at(virtual_service, {"spec", "http"})) {
    const auto to = destination_of(http);
    if (!to) continue;
    for (const auto& match : list_at(http, {"match"})) {
      const auto prefix = k8s::find_string(match, {"uri", "prefix"});
      if (!prefix.empty()) out.push_back({std::string(prefix), hosts, *to});
    }
  }
  return out;
}

void route_table::put(const k8s::object_key& key, const json::value& virtual_service) {
  erase(key);
  auto routes = routes_of(virtual_service);
  size_ += routes.size();
  routes_[key] = std::move(routes);
}

void route_table::erase(const k8s::object_key& key) {
  const auto at = routes_.find(key);
  if (at == routes_.end()) return;
  size_ -= at->second.size();
  routes_.erase(at);
}

const service_port* route_table::find(std::string_view host, std::string_view path) const {
  path = path.substr(0, path.find('?'));
  host = without_port(host);
  const route* best = nullptr;
  for (const auto& [key, routes] : routes_) {
    for (const auto& route : routes) {
      const bool better = best == nullptr || route.prefix.size() > best->prefix.size();
      if (better && path.starts_with(route.prefix) && serves(route, host)) best = &route;
    }
  }
  return best == nullptr ? nullptr : &best->to;
}

}  // namespace rw::dev_gateway
