#include "rw/reactors/observation/digest.hpp"

#include "rw/core/hash.hpp"
#include "rw/k8s/objects/types.hpp"

#include <boost/json/serialize.hpp>

#include <algorithm>
#include <array>
#include <cstddef>

namespace rw::observation {
namespace {

namespace json = boost::json;

std::string_view bytes_of(const std::uint64_t& value) noexcept {
  return {reinterpret_cast<const char*>(&value), sizeof value};
}

/// The depth is bounded by the decoder's (k8s::max_object_depth).
std::uint64_t digest(const json::value& value) {
  core::string_hash hash;
  if (const auto* object = value.if_object()) {
    std::uint64_t sum = 0;
    for (const auto& [key, member] : *object) {
      const auto inner = digest(member);
      sum += core::string_hash().add(key).add(bytes_of(inner)).value();
    }
    return hash.add("{}").add(bytes_of(sum)).value();
  }
  if (const auto* array = value.if_array()) {
    hash.add("[]");
    for (const auto& element : *array) {
      const auto inner = digest(element);
      hash.add(bytes_of(inner));
    }
    return hash.value();
  }
  if (const auto* text = value.if_string()) return hash.add("\"").add(*text).value();
  return hash.add("").add(json::serialize(value)).value();
}

}  // namespace

state_hashes state_hashes_of(const json::value& object, std::string_view field, bool has_status) {
  const auto* spec = k8s::find(object, {"spec"});
  const auto* status = k8s::find(object, {"status"});
  const auto* part = field == "status" ? status : spec;
  const auto inner = part == nullptr ? 0 : digest(*part);
  core::string_hash hash;
  hash.add(k8s::uid_of(object)).add(k8s::is_being_deleted(object) ? "-" : "").add(bytes_of(inner));
  // As a review: an update without spec is a change.
  const bool is_whole = spec == nullptr && (status == nullptr || field != "status");
  if (is_whole) hash.add(k8s::resource_version_of(object));
  const auto without = std::max<state_hash>(hash.value(), absent_state + 1);
  const auto* generation = k8s::find(object, {"metadata", "generation"});
  if (field != "spec" || !has_status || generation == nullptr) return {without, without};
  hash.add(json::serialize(*generation));
  return {std::max<state_hash>(hash.value(), absent_state + 1), without};
}

bool has_labels(const json::value& object, const std::map<std::string, std::string>& labels) {
  return std::ranges::all_of(labels, [&](const auto& each) {
    return k8s::has_label(object, each.first) && k8s::label(object, each.first) == each.second;
  });
}

}  // namespace rw::observation
