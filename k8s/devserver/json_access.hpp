#pragma once

#include "rw/k8s/objects/types.hpp"

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

/// Returns the object in that field of `of`; makes it if it is missing or of another type.
boost::json::object& object_in(boost::json::object& of, std::string_view field);

/// Sets the field unless it is present; null counts as absent.
void set_default(boost::json::object& of, std::string_view field, boost::json::value initial);

/// Parses JSON as deep as an API server must accept. Returns nothing on failure, with the error in
/// `why`.
std::optional<boost::json::value> parse_json(std::string_view text, std::string& reason);

}  // namespace rw::k8s::devserver
