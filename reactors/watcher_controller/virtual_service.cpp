#include "rw/reactors/watcher_controller/virtual_service.hpp"

#include "rw/k8s/objects/types.hpp"
#include "rw/reactors/shared/explanations.hpp"
#include "rw/reactors/shared/kyma_resources.hpp"

#include <boost/json/array.hpp>
#include <boost/json/object.hpp>

#include <algorithm>
#include <utility>

namespace rw::watcher_controller {
namespace {

namespace json = boost::json;

bool contains(const json::array& list, std::string_view text) {
  return std::ranges::any_of(list, [&](const json::value& entry) {
    return entry.is_string() && entry.get_string() == text;
  });
}

/// Appends the hosts of a Gateway's servers, without duplicates. Returns false if there are none.
bool append_hosts(const json::value& gateway, json::array& hosts) {
  const auto* const servers = k8s::find(gateway, {"spec", "servers"});
  bool any = false;
  if (servers == nullptr || !servers->is_array()) return any;
  for (const auto& server : servers->get_array()) {
    const auto* const list = k8s::find(server, {"hosts"});
    if (list == nullptr || !list->is_array()) continue;
    for (const auto& entry : list->get_array()) {
      if (!entry.is_string()) continue;
      std::string_view host = entry.get_string();
      host.remove_prefix(host.find('/') + 1);  // npos + 1 is 0
      if (host.empty()) continue;
      any = true;
      if (!contains(hosts, host)) hosts.emplace_back(host);
    }
  }
  return any;
}

json::value route_of(const watcher& of) {
  const auto host = of.receiver.name + "." + of.receiver.ns + ".svc.cluster.local";
  const auto prefix = "/v2/" + of.manager + "/event";
  json::object match{{"uri", json::object{{"prefix", prefix}}}};
  json::object destination{{"host", host}, {"port", json::object{{"number", of.receiver.port}}}};
  json::array matches;
  matches.emplace_back(std::move(match));
  json::array routes;
  routes.emplace_back(json::object{{"destination", std::move(destination)}});
  return json::object{
      {"name", to_string(of.key)}, {"match", std::move(matches)}, {"route", std::move(routes)}};
}

json::value virtual_service(const watcher& of, json::array gateways, json::array hosts) {
  const auto& type = virtual_services_type().gvk;
  const auto& owner = watchers_type().gvk;
  json::value made{{"apiVersion", type.api_version()},
                   {"kind", type.kind},
                   {"metadata", json::object{{"name", of.key.name}, {"namespace", of.key.ns}}}};
  if (!of.uid.empty()) {
    k8s::set_owner(made, {owner.api_version(), owner.kind, of.key.name, of.uid});
  }
  json::array http;
  http.emplace_back(route_of(of));
  made.as_object()["spec"] = json::object{
      {"gateways", std::move(gateways)}, {"hosts", std::move(hosts)}, {"http", std::move(http)}};
  return made;
}

/// Returns true if `live` has each member of `desired` with its value; values other than objects
/// must be equal.
bool covers(const json::value& live, const json::value& desired) {
  const auto* const wanted = desired.if_object();
  if (wanted == nullptr) return live == desired;
  const auto* const there = live.if_object();
  return there != nullptr && std::ranges::all_of(*wanted, [&](const auto& member) {
           const auto* const found = there->if_contains(member.key());
           return found != nullptr && covers(*found, member.value());
         });
}

bool has_owners(const json::value& live, const json::value& desired) {
  const auto there = k8s::owners_of(live);
  return std::ranges::all_of(k8s::owners_of(desired), [&](const k8s::owner_reference& owner) {
    return std::ranges::any_of(there, [&](const k8s::owner_reference& other) {
      return other.uid == owner.uid && other.name == owner.name && other.kind == owner.kind &&
             other.api_version == owner.api_version;
    });
  });
}

boost::system::result<json::value, watcher_error> through(
    const watcher& of, const std::vector<json::value>& gateways) {
  json::array names;
  json::array hosts;
  for (const auto& gateway : gateways) {
    const auto name = to_string(k8s::key_of(gateway));
    if (!append_hosts(gateway, hosts)) {
      return watcher_error{"GatewayWithoutHosts"_reason,
                           "the Gateway " + name + " has no hosts in spec.servers"};
    }
    names.emplace_back(name);
  }
  return virtual_service(of, std::move(names), std::move(hosts));
}

}  // namespace

boost::system::result<json::value, watcher_error> virtual_service_through(
    const watcher& of, const json::value& gateway) {
  return through(of, {gateway});
}

boost::system::result<json::value, watcher_error> virtual_service_for(
    const watcher& of, std::vector<json::value> gateways, std::string_view location) {
  std::erase_if(gateways, [&](const json::value& gateway) {
    return !of.gateways.matches(k8s::find(gateway, {"metadata", "labels"}));
  });
  if (gateways.empty()) {
    return watcher_error{
        "GatewayNotFound"_reason,
        "spec.gateway.selector selects no Gateway in the namespace " + std::string(location)};
  }
  std::ranges::sort(gateways, {},
                    [](const json::value& gateway) { return to_string(k8s::key_of(gateway)); });
  return through(of, gateways);
}

bool is_as_desired(const json::value& live, const json::value& desired) {
  const auto* const spec = k8s::find(live, {"spec"});
  const auto remembers = [](const json::value& of) {
    return k8s::annotation(of, last_valid_annotation);
  };
  return spec != nullptr && covers(*spec, desired.at("spec")) && has_owners(live, desired) &&
         remembers(live) == remembers(desired);
}

bool is_owned_by(const json::value& object, std::string_view uid) {
  return std::ranges::any_of(k8s::owners_of(object),
                             [&](const k8s::owner_reference& owner) { return owner.uid == uid; });
}

}  // namespace rw::watcher_controller
