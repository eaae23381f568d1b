#include "rw/reactors/bootstrapper/state.hpp"

#include "rw/k8s/objects/types.hpp"

#include <boost/json/array.hpp>
#include <boost/json/object.hpp>

#include <utility>

namespace rw::bootstrapper {

namespace json = boost::json;
using k8s::find_string;

namespace {

/// In a status, by source.
constexpr std::array<std::string_view, all_sources.size()> content_fields = {
    "configuration", "manifests", "pullSecret", "trustBundle"};

content_digests read_contents(const json::value& unit, std::string_view field) {
  content_digests out;
  for (std::size_t i = 0; i < out.size(); ++i) {
    out[i] = find_string(unit, {field, content_fields[i]});
  }
  return out;
}

}  // namespace

json::object write_contents(const content_digests& of) {
  json::object out;
  for (std::size_t i = 0; i < of.size(); ++i) {
    if (!of[i].empty()) out[content_fields[i]] = of[i];
  }
  return out;
}

sync_state read_state(const json::value& resource) {
  sync_state out;
  const auto* const units = k8s::find_array(resource, {"status", "units"});
  for (const auto& each : units == nullptr ? json::array() : *units) {
    const auto of = parse_unit(find_string(each, {"name"}));
    if (!of) continue;
    auto& unit = out.at(*of);
    unit.applied = unit.in_place = find_string(each, {"digest"});
    if (unit.in_place.empty() && find_string(each, {"phase"}) == "Applying") {
      unit.applying = find_string(each, {"desiredDigest"});
      unit.applying_contents = read_contents(each, "desiredContents");
    }
    unit.contents = read_contents(each, "contents");
  }
  const auto* const objects = k8s::find_array(resource, {"status", "inventory"});
  for (const auto& each : objects == nullptr ? json::array() : *objects) {
    inventory_entry entry;
    const auto of = parse_unit(find_string(each, {"unit"}));
    if (!of || !k8s::parse_api_version(find_string(each, {"apiVersion"}), entry.gvk)) continue;
    entry.of = *of;
    entry.gvk.kind = find_string(each, {"kind"});
    entry.key = {std::string(find_string(each, {"namespace"})),
                 std::string(find_string(each, {"name"}))};
    entry.created = k8s::find(each, {"created"}) != nullptr;
    out.objects.push_back(std::move(entry));
  }
  return out;
}

json::value write_inventory(const inventory& objects) {
  json::array out;
  for (const auto& each : objects) {
    json::object entry{{"unit", to_string(each.of)},
                       {"apiVersion", each.gvk.api_version()},
                       {"kind", each.gvk.kind},
                       {"name", each.key.name}};
    if (!each.key.ns.empty()) entry["namespace"] = each.key.ns;
    if (each.created) entry["created"] = true;
    out.push_back(std::move(entry));
  }
  return out;
}

}  // namespace rw::bootstrapper
