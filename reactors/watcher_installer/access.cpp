#include "rw/reactors/watcher_installer/access.hpp"

#include "rw/core/config.hpp"
#include "rw/k8s/objects/types.hpp"

#include <boost/json/array.hpp>

namespace rw::watcher_installer {
namespace {

namespace json = boost::json;

const json::array* list(const json::value& in, std::initializer_list<std::string_view> path) {
  const auto* value = k8s::find(in, path);
  return value == nullptr ? nullptr : value->if_array();
}

}  // namespace

in_words<kcp_address> address_of(const k8s::object& gateway, std::string_view name,
                                 std::optional<std::uint16_t> port) {
  const auto user = "Gateway " + std::string(name);
  if (!gateway) return defect(user + " is not there, so the address for events is not known");
  const auto object = gateway.parse();
  const auto* servers = list(object, {"spec", "servers"});
  const auto count = servers == nullptr ? 0 : servers->size();
  if (count != 1) return defect(user + " has " + std::to_string(count) + " servers, not one");
  const auto& server = servers->front();
  const auto* hosts = list(server, {"hosts"});
  const auto host_count = hosts == nullptr ? 0 : hosts->size();
  if (host_count != 1)
    return defect(user + " has " + std::to_string(host_count) + " hosts, not one");
  if (!hosts->front().is_string()) return defect(user + " has a host that is no string");
  std::string host(hosts->front().get_string());
  // "namespace/host" limits who may use the server.
  host.erase(0, host.find('/') == std::string::npos ? 0 : host.find('/') + 1);
  if (host.empty() || host.find('*') != std::string::npos) {
    return defect(user + " has the host \"" + host + "\", which is no address");
  }
  const auto* number = k8s::find(server, {"port", "number"});
  const auto served = number != nullptr && number->is_int64() ? number->get_int64() : 0;
  if (!port && (served < 1 || served > 65535)) return defect(user + " has a server without a port");
  return kcp_address{core::normal_host(host), port.value_or(static_cast<std::uint16_t>(served))};
}

}  // namespace rw::watcher_installer
