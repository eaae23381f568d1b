#pragma once

#include "rw/k8s/objects/types.hpp"

#include <boost/json/array.hpp>
#include <boost/json/object.hpp>
#include <boost/json/string.hpp>
#include <boost/json/value.hpp>

#include <initializer_list>
#include <optional>
#include <string>
#include <string_view>

// Reads and writes fields of untrusted objects.

namespace rw::k8s::devserver {

inline std::string_view view(const boost::json::string& text) noexcept {
  return {text.data(), text.size()};
}

using k8s::find;
/// The same, for changes.
boost::json::value* find(boost::json::value& from,
                         std::initializer_list<std::string_view> path) noexcept;

/// Returns the text in a field of `of`; empty if there is none.
std::string text_of(const boost::json::object& of, std::string_view field);

std::optional<std::int64_t> integer_at(const boost::json::value& from,
                                       std::initializer_list<std::string_view> path) noexcept;

bool true_at(const boost::json::value& from, std::initializer_list<std::string_view> path) noexcept;

/// Returns the list at the path; an empty one if there is none.
const boost::json::array& array_at(const boost::json::value& from,
                                   std::initializer_list<std::string_view> path) noexcept;

/// Returns the object in that field of `of`; makes it if it is missing or of another type.
boost::json::object& object_in(boost::json::object& of, std::string_view field);

/// Sets the field unless it is present; null counts as absent.
void set_default(boost::json::object& of, std::string_view field, boost::json::value initial);

/// Reads numbers without a type as Go does (sigs.k8s.io/json): integers if they fit 64 bits, else
/// the nearest double, in its shortest form. Returns false for a number out of the range of
/// doubles.
bool normalize_numbers(boost::json::value& value);
inline constexpr std::string_view number_out_of_range =
    "json: cannot unmarshal number into Go value of type float64";

/// Schemas in CustomResourceDefinitions nest deeply; deeper JSON is an attack on the stack.
inline constexpr std::size_t deepest_json = 256;

/// Parses JSON as deep as an API server must accept. Returns nothing on failure, with the error in
/// `why`.
std::optional<boost::json::value> parse_json(std::string_view text, std::string& reason);

}  // namespace rw::k8s::devserver
