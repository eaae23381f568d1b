#pragma once

#include <boost/json/object.hpp>
#include <boost/json/string.hpp>
#include <boost/json/value.hpp>

#include <initializer_list>
#include <optional>
#include <string>
#include <string_view>

// Reading and writing fields of objects whose shape is not to be trusted.

namespace rw::k8s::devserver {

inline std::string_view view(const boost::json::string& text) noexcept {
  return {text.data(), text.size()};
}

/// The field at a path of names; null where there is none, or something on the way is no object.
const boost::json::value* find(const boost::json::value& from,
                               std::initializer_list<std::string_view> path) noexcept;
boost::json::value* find(boost::json::value& from,
                         std::initializer_list<std::string_view> path) noexcept;

/// The text at a path; empty where there is none. Valid as long as `from`.
std::string_view text_at(const boost::json::value& from,
                         std::initializer_list<std::string_view> path) noexcept;

/// The text in a field of `of`; empty where there is none.
std::string text_of(const boost::json::object& of, std::string_view field);

std::optional<std::int64_t> integer_at(const boost::json::value& from,
                                       std::initializer_list<std::string_view> path) noexcept;

bool true_at(const boost::json::value& from, std::initializer_list<std::string_view> path) noexcept;

/// The object in that field of `of`, made where it is missing or something else.
boost::json::object& object_in(boost::json::object& of, std::string_view field);

/// Sets the field unless it is there; null counts as absent.
void set_default(boost::json::object& of, std::string_view field, boost::json::value what);

/// Parses JSON as deep as an API server must take. Nothing on failure; `why` then says what is
/// wrong.
std::optional<boost::json::value> parse_json(std::string_view text, std::string& why);

}  // namespace rw::k8s::devserver
