#include "rw/k8s/devserver/services.hpp"

#include "rw/k8s/devserver/builtin_content.hpp"
#include "rw/k8s/devserver/json_access.hpp"
#include "rw/k8s/devserver/network_checks.hpp"
#include "rw/k8s/devserver/refusals.hpp"
#include "rw/k8s/objects/qualified_name.hpp"

#include <boost/json/array.hpp>
#include <boost/json/serialize.hpp>

#include <algorithm>
#include <cstdint>
#include <set>
#include <string>
#include <string_view>
#include <tuple>

namespace rw::k8s::devserver {
namespace {

namespace json = boost::json;

constexpr std::int64_t first_node_port = 30000;
constexpr std::int64_t last_node_port = 32767;
constexpr std::int64_t dynamic_node_port = 30086;  ///< below, ports are left to be chosen
constexpr unsigned dynamic_address = 17;           ///< the same of addresses

std::string_view service_type(const json::value& service) {
  return find_string(service, {"spec", "type"});
}
bool has_address(const json::value& service) {
  return !service.is_null() && service_type(service) != "ExternalName";
}
bool has_node_ports(const json::value& service) {
  return service_type(service) == "NodePort" || service_type(service) == "LoadBalancer";
}

json::array* ports_of(json::value& service) {
  auto* const ports = find(service, {"spec", "ports"});
  return ports != nullptr ? ports->if_array() : nullptr;
}

/// Returns the address as a number in 10.0.0.0/16; 0 if it is not there.
unsigned offset_of(std::string_view address) {
  unsigned parts[4] = {};
  std::size_t at = 0;
  for (const char c : address) {
    if (c == '.') {
      if (++at > 3) return 0;
    } else if (c >= '0' && c <= '9' && parts[at] < 256) {
      parts[at] = parts[at] * 10 + static_cast<unsigned>(c - '0');
    } else {
      return 0;
    }
  }
  const bool inside =
      at == 3 && parts[0] == 10 && parts[1] == 0 && parts[2] < 256 && parts[3] < 256;
  return inside ? parts[2] * 256 + parts[3] : 0;
}

struct allocated {
  std::set<std::string, std::less<>> addresses;
  std::set<std::int64_t> ports;
};

/// What the other Services of the cluster have.
allocated allocated_in(const cluster& in, const json::value& except) {
  allocated made;
  const auto services = in.objects.find("services");
  if (!services) return made;
  const auto uid = find_string(except, {"metadata", "uid"});
  services->visit({}, [&](const record_ptr& record) {
    auto service = record->parse();
    if (find_string(service, {"metadata", "uid"}) == uid) return true;
    made.addresses.emplace(find_string(service, {"spec", "clusterIP"}));
    if (const auto* const ports = ports_of(service)) {
      for (const auto& port : *ports) {
        if (const auto number = integer_at(port, {"nodePort"})) made.ports.insert(*number);
      }
    }
    return true;
  });
  return made;
}

std::string free_address(const allocated& taken) {
  for (unsigned i = dynamic_address; i < 65535; ++i) {
    auto address = "10.0." + std::to_string(i >> 8) + "." + std::to_string(i & 255);
    if (!taken.addresses.contains(address)) return address;
  }
  return {};
}

void add_invalid(std::vector<cause>& found, std::string field, const std::string& value,
                 const std::string& reason) {
  found.push_back(
      {std::move(field), "FieldValueInvalid", "Invalid value: " + value + ": " + reason});
}

/// The list repeats the single address; whichever is given counts.
void align_addresses(const json::value& before, json::object& spec) {
  const auto* const address = spec.if_contains("clusterIP");
  const auto* const all = spec.if_contains("clusterIPs");
  const auto had = find_string(before, {"spec", "clusterIP"});
  const bool changed =
      address != nullptr && address->is_string() && view(address->get_string()) != had;
  if (address != nullptr && (all == nullptr || changed)) {
    spec["clusterIPs"] = json::array{json::value(*address)};
  } else if (address == nullptr && all != nullptr && all->is_array() && !all->get_array().empty()) {
    spec["clusterIP"] = json::value(all->get_array().front());
  }
}

void allocate_address(const allocated& taken, const json::value& before, json::value& object,
                      std::vector<cause>& found) {
  auto& spec = object_in(object.as_object(), "spec");
  align_addresses(before, spec);
  const std::string address(find_string(object, {"spec", "clusterIP"}));
  if (address.empty()) {
    spec["clusterIP"] = free_address(taken);
    spec["clusterIPs"] = json::array{spec.at("clusterIP")};
  } else if (address != "None" && address != find_string(before, {"spec", "clusterIP"})) {
    const auto shown = "[\"" + address + "\"]";
    if (offset_of(address) == 0) {
      add_invalid(found, "spec.clusterIPs", shown,
                  "failed to allocate IP " + address +
                      ": the provided IP is not in the valid range. The range of valid IPs is "
                      "10.0.0.0/16");
    } else if (taken.addresses.contains(address)) {
      add_invalid(found, "spec.clusterIPs", shown,
                  "failed to allocate IP " + address + ": provided IP is already allocated");
    }
  }
  const auto* const selector = spec.if_contains("selector");
  const bool is_headless = address == "None" && selector == nullptr;
  set_default(spec, "ipFamilies", is_headless ? json::array{"IPv4", "IPv6"} : json::array{"IPv4"});
  set_default(spec, "ipFamilyPolicy", is_headless ? "RequireDualStack" : "SingleStack");
}

void allocate_node_ports(allocated& taken, const json::value& before, json::value& object,
                         std::vector<cause>& found) {
  auto* const ports = ports_of(object);
  if (ports == nullptr || !has_node_ports(object)) return;
  if (find(object, {"spec", "allocateLoadBalancerNodePorts"}) != nullptr &&
      !true_at(object, {"spec", "allocateLoadBalancerNodePorts"})) {
    return;
  }
  std::set<std::int64_t> own;
  if (auto old = before; const auto* const had = ports_of(old)) {
    for (const auto& port : *had) own.insert(integer_at(port, {"nodePort"}).value_or(0));
  }
  for (std::size_t i = 0; i < ports->size(); ++i) {
    auto& port = (*ports)[i];
    const auto chosen = integer_at(port, {"nodePort"}).value_or(0);
    const auto field = "spec.ports[" + std::to_string(i) + "].nodePort";
    if (chosen == 0) {
      auto next = dynamic_node_port;
      while (taken.ports.contains(next) && next < last_node_port) ++next;
      taken.ports.insert(next);
      port.as_object()["nodePort"] = next;
    } else if (chosen < first_node_port || chosen > last_node_port) {
      add_invalid(found, field, std::to_string(chosen),
                  "provided port is not in the valid range. The range of valid ports is "
                  "30000-32767");
    } else if (!own.contains(chosen) && taken.ports.contains(chosen)) {
      add_invalid(found, field, std::to_string(chosen), "provided port is already allocated");
    }
  }
}

/// Copies a field that the object leaves out.
void carry(const json::value& before, json::object& spec, std::string_view field) {
  const auto* const had = find(before, {"spec", field});
  if (had != nullptr && !spec.contains(field)) spec[field] = *had;
}

/// Removes a field that is as it was: a client that knows it has to say so.
void drop_if_same(const json::value& before, json::object& spec, std::string_view field) {
  const auto* const had = find(before, {"spec", field});
  const auto* const has = spec.if_contains(field);
  if (had != nullptr && has != nullptr && *had == *has) spec.erase(field);
}

/// Node ports belong to a port's number and protocol.
void carry_node_ports(const json::value& before, json::value& object) {
  auto old = before;
  const auto* const had = ports_of(old);
  auto* const has = ports_of(object);
  if (had == nullptr || has == nullptr) return;
  for (auto& port : *has) {
    const auto same = [&](const json::value& other) {
      return integer_at(other, {"port"}) == integer_at(port, {"port"}) &&
             find_string(other, {"protocol"}) == find_string(port, {"protocol"});
    };
    const auto* const match = std::ranges::find_if(*had, same);
    if (match == had->end() || !port.is_object()) continue;
    const auto* const number = find(*match, {"nodePort"});
    if (number == nullptr) continue;
    if (has_node_ports(object)) {
      port.get_object().emplace("nodePort", *number);
    } else if (has_node_ports(before) &&
               integer_at(port, {"nodePort"}) == integer_at(*match, {"nodePort"})) {
      port.get_object().erase("nodePort");
    }
  }
}

}  // namespace

void carry_service(const json::value& before, json::value& object) {
  auto& spec = object_in(object.as_object(), "spec");
  constexpr std::string_view addresses[] = {"clusterIP", "clusterIPs", "ipFamilies",
                                            "ipFamilyPolicy"};
  if (has_address(before) && has_address(object)) {
    // A client that gives one of the two means both.
    if (!spec.contains("clusterIP") && !spec.contains("clusterIPs")) {
      carry(before, spec, "clusterIP");
      carry(before, spec, "clusterIPs");
    }
    carry(before, spec, "ipFamilies");
    carry(before, spec, "ipFamilyPolicy");
    align_addresses(before, spec);
  } else if (has_address(before)) {
    for (const auto field : addresses) drop_if_same(before, spec, field);
    drop_if_same(before, spec, "internalTrafficPolicy");
  }
  carry_node_ports(before, object);
  if (has_node_ports(before) && !has_node_ports(object)) {
    drop_if_same(before, spec, "externalTrafficPolicy");
    drop_if_same(before, spec, "allocateLoadBalancerNodePorts");
  }
}

outcome<void> allocate_service(const cluster& in, const json::value& before, json::value& object) {
  if (!has_address(object)) return {};
  auto taken = allocated_in(in, object);
  std::vector<cause> found;
  allocate_address(taken, before, object, found);
  allocate_node_ports(taken, before, object, found);
  if (found.empty()) return {};
  return invalid({"", "Service", std::string(find_string(object, {"metadata", "name"}))},
                 std::move(found));
}

bool has_free_address(const cluster& in, const json::value& object) {
  const auto address = find_string(object, {"spec", "clusterIP"});
  return address.empty() || address == "None" ||
         !allocated_in(in, object).addresses.contains(address);
}

void check_service(const json::value& before, const json::value& object,
                   std::vector<cause>& found) {
  auto copy = object;
  const auto* const ports = ports_of(copy);
  const auto address = find_string(object, {"spec", "clusterIP"});
  const std::size_t count = ports != nullptr ? ports->size() : 0;
  if (count == 0 && has_address(object) && address != "None") require(found, "spec.ports");
  if (find_string(object, {"spec", "type"}) == "ExternalName" &&
      find_string(object, {"spec", "externalName"}).empty()) {
    require(found, "spec.externalName");
  }
  const auto type = find_string(object, {"spec", "type"});
  if (type == "ExternalName") {
    auto name = find_string(object, {"spec", "externalName"});
    if (name.ends_with('.')) name.remove_suffix(1);
    if (!name.empty()) {
      for (const auto& error : dns_subdomain_errors(name)) {
        add_invalid(found, "spec.externalName", json::serialize(json::value(name)), error);
      }
    }
  } else {
    check_choice(found, "spec.type", type,
                 {"ClusterIP", "ExternalName", "LoadBalancer", "NodePort"});
  }
  check_choice(found, "spec.sessionAffinity", find_string(object, {"spec", "sessionAffinity"}),
               {"ClientIP", "None"});
  for (const auto* const policy : {"externalTrafficPolicy", "internalTrafficPolicy"}) {
    if (find(object, {"spec", policy}) == nullptr) continue;
    check_choice(found, std::string("spec.") + policy, find_string(object, {"spec", policy}),
                 {"Cluster", "Local"});
  }
  std::set<std::string> names;
  std::set<std::string> pairs;
  for (std::size_t i = 0; i < count; ++i) {
    const auto& port = (*ports)[i];
    const auto at = "spec.ports[" + std::to_string(i) + "]";
    const std::string name(find_string(port, {"name"}));
    if (count > 1 && name.empty()) require(found, at + ".name");
    const auto pair = std::to_string(integer_at(port, {"port"}).value_or(0)) + "/" +
                      std::string(find_string(port, {"protocol"}));
    for (const auto& [field, text, taken] :
         {std::tuple(at + ".name", name, &names), std::tuple(at, pair, &pairs)}) {
      if (text.empty() || taken->insert(text).second) continue;
      found.push_back({field, "FieldValueDuplicate", "Duplicate value: \"" + text + "\""});
    }
    if (!name.empty()) {
      for (const auto& error : dns_label_errors(name)) {
        add_invalid(found, at + ".name", json::serialize(json::value(name)), error);
      }
    }
    check_choice(found, at + ".protocol", find_string(port, {"protocol"}), {"SCTP", "TCP", "UDP"});
    for (const auto* field : {"port", "targetPort"}) {
      const auto* const value = find(port, {field});
      if (value != nullptr) check_port_value(*value, at + "." + field, found);
    }
  }
  const auto had = find_string(before, {"spec", "clusterIP"});
  if (!had.empty() && has_address(before) && has_address(object) && address != had) {
    add_invalid(found, "spec.clusterIPs[0]", json::serialize(json::value(address)),
                "may not change once set");
  }
}

}  // namespace rw::k8s::devserver
