#include "reactors/bootstrapper/record.hpp"

#include "k8s/rfc3339.hpp"
#include "k8s/types.hpp"
#include "reactors/bootstrapper/problem.hpp"

#include <boost/json/array.hpp>
#include <boost/json/object.hpp>
#include <boost/json/serialize.hpp>

#include <algorithm>
#include <utility>

namespace rw::bootstrapper {
namespace {

namespace json = boost::json;
using k8s::find_string;

constexpr std::array phases = {sync_record::phase::settled, sync_record::phase::applying,
                               sync_record::phase::rolling_back, sync_record::phase::removing};

json::value write_type(const k8s::resource_type& type) {
  return {{"apiVersion", type.gvk.api_version()},
          {"kind", type.gvk.kind},
          {"resource", type.plural},
          {"namespaced", type.namespaced}};
}

bool is_letter_or_digit(char one) noexcept {
  return (one >= 'a' && one <= 'z') || (one >= '0' && one <= '9');
}

/// As RFC 1123 has it, in lower case: what comes into the path of a request as it is.
bool is_label(std::string_view text) noexcept {
  if (text.empty() || text.size() > 63) return false;
  if (!is_letter_or_digit(text.front()) || !is_letter_or_digit(text.back())) return false;
  return std::ranges::all_of(text, [](char one) { return is_letter_or_digit(one) || one == '-'; });
}

/// Labels with dots between them.
bool is_dns_name(std::string_view text) noexcept {
  if (text.size() > 253) return false;
  for (;;) {
    const auto end = std::min(text.find('.'), text.size());
    if (!is_label(text.substr(0, end))) return false;
    if (end == text.size()) return true;
    text.remove_prefix(end + 1);
  }
}

std::optional<k8s::resource_type> read_type(const json::value& from) {
  k8s::resource_type out;
  if (!k8s::parse_api_version(find_string(from, {"apiVersion"}), out.gvk)) return {};
  out.gvk.kind = find_string(from, {"kind"});
  out.plural = find_string(from, {"resource"});
  const auto* const scope = k8s::find(from, {"namespaced"});
  if (out.gvk.kind.empty() || scope == nullptr || !scope->is_bool()) return {};
  if (!out.gvk.group.empty() && !is_dns_name(out.gvk.group)) return {};
  if (!is_label(out.gvk.version) || !is_label(out.plural)) return {};
  out.namespaced = scope->get_bool();
  return out;
}

std::string text_at(const json::value& in, std::string_view name) {
  return std::string(find_string(in, {name}));
}

std::size_t count_at(const json::value& in, std::string_view name) {
  const auto* const value = k8s::find(in, {name});
  boost::system::error_code error;
  const auto number =
      value != nullptr && value->is_number() ? value->to_number<std::size_t>(error) : 0;
  return !error && number < 1000 ? number : 0;
}

std::chrono::system_clock::time_point time_at(const json::value& in, std::string_view name) {
  return k8s::parse_rfc3339(find_string(in, {name}))
      .value_or(std::chrono::system_clock::time_point());
}

bool is_true(const json::value& in, std::string_view name) {
  const auto* const value = k8s::find(in, {name});
  return value != nullptr && value->is_bool() && value->get_bool();
}

const json::array* list_at(const json::value& in, std::string_view name) {
  const auto* const value = k8s::find(in, {name});
  return value == nullptr ? nullptr : value->if_array();
}

}  // namespace

std::string describe(const k8s::resource_type& type, const k8s::object_key& key) {
  return type.gvk.kind + " " + to_string(key);
}

// --- sets ------------------------------------------------------------------------------

k8s::object_key set_item::key(const std::string& ns) const {
  auto out = k8s::key_of(object);
  if (!type.namespaced) out.ns.clear();
  if (type.namespaced && out.ns.empty()) out.ns = ns;
  return out;
}

json::value set_item::written(const std::string& ns) const {
  auto out = object;
  const auto at = key(ns);
  out.as_object()["apiVersion"] = type.gvk.api_version();
  auto& metadata = out.as_object()["metadata"].as_object();
  metadata.erase("namespace");
  if (!at.ns.empty()) metadata["namespace"] = at.ns;
  return out;
}

const set_item* known_set::find(const k8s::resource_type& type, const k8s::object_key& key,
                                const std::string& ns) const {
  const auto found = std::ranges::find_if(items, [&](const set_item& one) {
    return inventory_item{.type = one.type, .key = one.key(ns)}.same_object(type, key);
  });
  return found == items.end() ? nullptr : &*found;
}

std::string digest_of(const std::vector<set_item>& items) {
  return digest_of(objects_of({.items = items}));
}

std::vector<desired_object> objects_of(const known_set& set) {
  std::vector<desired_object> out;
  out.reserve(set.items.size());
  for (const auto& one : set.items) out.push_back({one.from, one.object});
  return out;
}

std::string write_set(const known_set& from) {
  json::array items;
  for (const auto& one : from.items) {
    items.push_back(
        {{"part", to_string(one.from)}, {"type", write_type(one.type)}, {"object", one.object}});
  }
  return json::serialize(json::value{{"version", from.version}, {"items", std::move(items)}});
}

std::optional<known_set> read_set(const std::string& text, std::string_view digest) {
  problems unused;
  const auto value = parse_json(text, {unused, {}});
  if (!value) return {};
  const auto* const items = list_at(*value, "items");
  if (items == nullptr) return {};
  known_set out{.digest = std::string(digest), .version = text_at(*value, "version")};
  for (const auto& one : *items) {
    const auto from = parse_part(find_string(one, {"part"}));
    const auto* const type = k8s::find(one, {"type"});
    const auto* const object = k8s::find(one, {"object"});
    auto resource = type == nullptr ? std::nullopt : read_type(*type);
    if (!from || !resource || object == nullptr) return {};
    out.items.push_back({*from, *object, std::move(*resource)});
  }
  if (digest_of(out.items) != digest) return {};
  return out;
}

// --- record ----------------------------------------------------------------------------

std::string_view to_string(sync_record::phase of) noexcept {
  switch (of) {
    case sync_record::phase::settled:
      return "settled";
    case sync_record::phase::applying:
      return "applying";
    case sync_record::phase::rolling_back:
      return "rolling-back";
    case sync_record::phase::removing:
      return "removing";
  }
  return "";
}

inventory_item* sync_record::find(const k8s::resource_type& type, const k8s::object_key& key) {
  const auto found = std::ranges::find_if(
      inventory, [&](const inventory_item& one) { return one.same_object(type, key); });
  return found == inventory.end() ? nullptr : &*found;
}

json::value write_record(const sync_record& from) {
  json::array inventory;
  for (const auto& one : from.inventory) {
    auto item = write_type(one.type);
    auto& fields = item.as_object();
    if (!one.key.ns.empty()) fields["namespace"] = one.key.ns;
    fields["name"] = one.key.name;
    if (!one.digest.empty()) fields["digest"] = one.digest;
    if (one.was_there) fields["wasThere"] = true;
    inventory.push_back(std::move(item));
  }
  json::object out{{"phase", to_string(from.now)},     {"good", from.good},
                   {"goodParts", from.good_parts},     {"target", from.target},
                   {"targetParts", from.target_parts}, {"since", k8s::format_time(from.since)},
                   {"inventory", std::move(inventory)}};
  if (from.leftovers) out["leftovers"] = true;
  if (from.refused) {
    out["refused"] = {{"digest", from.refused->digest},
                      {"why", from.refused->why},
                      {"at", k8s::format_time(from.refused->at)}};
  }
  return out;
}

std::optional<sync_record> read_record(const json::value& from) {
  const auto phase = find_string(from, {"phase"});
  const auto* const found =
      std::ranges::find_if(phases, [&](sync_record::phase one) { return to_string(one) == phase; });
  const auto* const inventory = list_at(from, "inventory");
  if (found == phases.end() || inventory == nullptr) return {};
  sync_record out{.now = *found,
                  .good = text_at(from, "good"),
                  .good_parts = count_at(from, "goodParts"),
                  .target = text_at(from, "target"),
                  .target_parts = count_at(from, "targetParts"),
                  .since = time_at(from, "since"),
                  .leftovers = is_true(from, "leftovers")};
  for (const auto& one : *inventory) {
    auto type = read_type(one);
    k8s::object_key key{text_at(one, "namespace"), text_at(one, "name")};
    if (!type || key.name.empty()) return {};
    out.inventory.push_back(
        {std::move(*type), std::move(key), text_at(one, "digest"), is_true(one, "wasThere")});
  }
  if (const auto* const refused = k8s::find(from, {"refused"})) {
    out.refused = {text_at(*refused, "digest"), text_at(*refused, "why"), time_at(*refused, "at")};
  }
  return out;
}

}  // namespace rw::bootstrapper
