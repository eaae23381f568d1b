#pragma once

#include <boost/json.hpp>

#include <string>
#include <string_view>
#include <type_traits>
#include <utility>
#include <vector>

namespace rw::conformance {

using json = boost::json::value;

inline json parse(std::string_view text) {
  return boost::json::parse(text);
}

/// What lies at a JSON pointer (RFC 6901); null if there is nothing.
const json* find(const json& from, std::string_view pointer);

inline bool has(const json& from, std::string_view pointer) {
  return find(from, pointer) != nullptr;
}

/// A string, or what else lies there as JSON text; empty if there is nothing.
std::string text(const json& from, std::string_view pointer);

/// A copy with `what` at a pointer; objects on the way are made where they are missing.
json with(json object, std::string_view pointer, json what);
template <class Text>
  requires std::is_convertible_v<const Text&, std::string_view>
json with(json object, std::string_view pointer, const Text& what) {
  return with(std::move(object), pointer, json(boost::json::string(std::string_view(what))));
}
/// A copy without the member at a pointer.
json without(json object, std::string_view pointer);

/// The element of an array whose `key` is `value`; null if there is none.
const json* element(const json& from, std::string_view pointer, std::string_view key,
                    std::string_view value);

/// metadata.name of all items of a list, in their order.
std::vector<std::string> names(const json& list);
/// The same, sorted.
std::vector<std::string> sorted_names(const json& list);

/// As a number, for what clients must treat as opaque and this suite looks into.
unsigned long long version(const json& object);

/// The entry of metadata.managedFields of that manager and operation ("Apply", "Update"); null if
/// there is none.
const json* managed_by(const json& object, std::string_view manager, std::string_view operation);

}  // namespace rw::conformance
