#pragma once

#include "rw/k8s/objects/failure.hpp"
#include "rw/k8s/objects/names.hpp"
#include "rw/k8s/objects/types.hpp"

#include <boost/describe/class.hpp>
#include <boost/describe/enum.hpp>
#include <boost/describe/enumerators.hpp>
#include <boost/describe/members.hpp>
#include <boost/describe/modifiers.hpp>
#include <boost/json/array.hpp>
#include <boost/json/object.hpp>
#include <boost/json/value.hpp>
#include <boost/mp11/algorithm.hpp>

#include <chrono>
#include <concepts>
#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <type_traits>
#include <utility>
#include <vector>

/// Kubernetes objects as structs: members that Boost.Describe names are read from JSON and written
/// to it, and the schema of a CustomResourceDefinition is made of them.
///
///     struct backup_spec {
///       std::string database;
///       int keep = 3;
///       std::optional<std::string> schedule;
///     };
///     BOOST_DESCRIBE_STRUCT(backup_spec, (), (database, keep, schedule))
///
/// A member may be a bool, number, text, time (date-time), described enum or struct, an optional, a
/// vector, a map of texts to any of them, or boost::json::value (anything). Its name is the
/// field's; one underscore at its end is left out (`namespace_`, `template_`).
///
/// Required are members that are none of these: an optional, vector or map; a bool, number, text or
/// enum whose default differs from 0, false and "" (it is the schema's default too); a struct
/// without required members; a boost::json::value. What is empty of the first is not written.
namespace rw::k8s {

/// metadata of an object. Written are name, namespace, labels, annotations, finalizers and owners;
/// the rest is the server's.
struct object_meta {
  std::string ns = {};
  std::string name = {};
  std::string uid = {};
  std::string resource_version = {};
  std::int64_t generation = 0;
  bool being_deleted = false;
  std::map<std::string, std::string> labels = {};
  std::map<std::string, std::string> annotations = {};
  std::vector<std::string> finalizers = {};
  std::vector<owner_reference> owners = {};

  object_key key() const { return {ns, name}; }
};

/// A struct of a resource: it has `metadata`, and `static const resource_type type`.
template <class T>
concept resource_struct = requires(const T& object) {
  { T::type } -> std::convertible_to<const resource_type&>;
  { object.metadata } -> std::convertible_to<const object_meta&>;
};

namespace described_detail {

using value = boost::json::value;

template <class T>
concept described_struct = std::is_class_v<T> && boost::describe::has_describe_members<T>::value;
template <class T>
concept described_enum = std::is_enum_v<T> && boost::describe::has_describe_enumerators<T>::value;
template <class T>
concept number = std::is_arithmetic_v<T> && !std::same_as<T, bool>;
template <class T>
concept plain =
    number<T> || described_enum<T> || std::same_as<T, bool> || std::same_as<T, std::string>;
using time = std::chrono::system_clock::time_point;

template <class T>
struct shape {
  static constexpr bool is_optional = false, is_list = false, is_map = false;
};
template <class T>
struct shape<std::optional<T>> {
  static constexpr bool is_optional = true, is_list = false, is_map = false;
};
template <class T>
struct shape<std::vector<T>> {
  static constexpr bool is_optional = false, is_list = true, is_map = false;
};
template <class T>
struct shape<std::map<std::string, T>> {
  static constexpr bool is_optional = false, is_list = false, is_map = true;
};

template <class T>
using members = boost::describe::describe_members<T, boost::describe::mod_public |
                                                         boost::describe::mod_inherited>;

constexpr std::string_view field_name(std::string_view member) {
  if (member.ends_with('_')) member.remove_suffix(1);
  return member;
}

// An error is a path and what is wrong there (".spec.keep: not a number"), made from its end.
bool fail(std::string& error, std::string_view text);
void prepend_field(std::string& error, std::string_view name);
void prepend_index(std::string& error, std::size_t at);
std::string path_text(std::string error);

bool read(const value& from, bool& into, std::string& error);
bool read(const value& from, std::string& into, std::string& error);
bool read(const value& from, time& into, std::string& error);
bool read(const value& from, object_meta& into, std::string& error);
value write(const object_meta& from);
value schema_of_time();
value definition(const resource_type& type, boost::json::object schema, bool has_status);

/// True if a member of this type must be there, where its default is `initial`.
template <class T>
bool is_required(const T& initial) {
  if constexpr (plain<T>) {
    return initial == T();
  } else if constexpr (described_struct<T>) {
    bool found = false;
    const T empty{};
    boost::mp11::mp_for_each<members<T>>(
        [&](auto descriptor) { found = found || is_required(empty.*descriptor.pointer); });
    return found;
  } else {
    return std::same_as<T, time>;
  }
}

template <class T>
bool read(const value& from, T& into, std::string& error) {
  if constexpr (std::same_as<T, value>) {
    into = from;
    return true;
  } else if constexpr (number<T>) {
    boost::system::error_code failed = boost::json::error::not_number;
    if (from.is_number()) into = from.to_number<T>(failed);
    if (!failed) return true;
    return fail(error, std::integral<T> ? "not an integer, or out of range" : "not a number");
  } else if constexpr (described_enum<T>) {
    bool found = false;
    boost::mp11::mp_for_each<boost::describe::describe_enumerators<T>>([&](auto descriptor) {
      if (!from.is_string() || from.get_string() != field_name(descriptor.name)) return;
      into = descriptor.value;
      found = true;
    });
    return found || fail(error, "not a value of this field");
  } else if constexpr (shape<T>::is_optional) {
    return from.is_null() || read(from, into.emplace(), error);
  } else if constexpr (shape<T>::is_list) {
    if (from.is_null()) return true;
    if (!from.is_array()) return fail(error, "not an array");
    for (const auto& element : from.get_array()) {
      if (read(element, into.emplace_back(), error)) continue;
      prepend_index(error, into.size() - 1);
      return false;
    }
    return true;
  } else if constexpr (shape<T>::is_map) {
    if (from.is_null()) return true;
    if (!from.is_object()) return fail(error, "not an object");
    for (const auto& [name, element] : from.get_object()) {
      if (read(element, into[std::string(name)], error)) continue;
      prepend_field(error, name);
      return false;
    }
    return true;
  } else {
    static_assert(described_struct<T>,
                  "describe the type with BOOST_DESCRIBE_STRUCT or BOOST_DESCRIBE_ENUM");
    if (!from.is_object()) return fail(error, "not an object");
    const auto& fields = from.get_object();
    const T initial{};
    bool good = true;
    boost::mp11::mp_for_each<members<T>>([&](auto descriptor) {
      if (!good) return;
      const auto name = field_name(descriptor.name);
      const auto* const found = fields.if_contains(name);
      auto& member = into.*descriptor.pointer;
      using member_type = std::remove_cvref_t<decltype(member)>;
      if (found != nullptr) {
        good = read(*found, member, error);
      } else if constexpr (described_struct<member_type>) {
        good = read(value(boost::json::object()), member, error);
      } else {
        good = !is_required(initial.*descriptor.pointer) || fail(error, "missing");
      }
      if (!good) prepend_field(error, name);
    });
    return good;
  }
}

template <class T>
value write(const T& from) {
  if constexpr (described_enum<T>) {
    value out;
    boost::mp11::mp_for_each<boost::describe::describe_enumerators<T>>([&](auto descriptor) {
      if (from == descriptor.value) out = field_name(descriptor.name);
    });
    return out;
  } else if constexpr (std::same_as<T, time>) {
    return value(format_time(from));
  } else if constexpr (shape<T>::is_optional) {
    return from ? write(*from) : value();
  } else if constexpr (shape<T>::is_list) {
    boost::json::array out;
    for (const auto& element : from) out.push_back(write(element));
    return out;
  } else if constexpr (shape<T>::is_map) {
    boost::json::object out;
    for (const auto& [name, element] : from) out.emplace(name, write(element));
    return out;
  } else if constexpr (described_struct<T>) {
    boost::json::object out;
    boost::mp11::mp_for_each<members<T>>([&](auto descriptor) {
      const auto& member = from.*descriptor.pointer;
      using kind = shape<std::remove_cvref_t<decltype(member)>>;
      if constexpr (kind::is_optional) {
        if (!member) return;
      } else if constexpr (kind::is_list || kind::is_map) {
        if (member.empty()) return;
      }
      out.emplace(field_name(descriptor.name), write(member));
    });
    return out;
  } else {
    return value(from);
  }
}

template <class T>
boost::json::object schema() {
  using boost::json::object;
  if constexpr (std::same_as<T, bool>) {
    return {{"type", "boolean"}};
  } else if constexpr (std::integral<T>) {
    object out{{"type", "integer"}, {"format", sizeof(T) > 4 ? "int64" : "int32"}};
    if constexpr (std::unsigned_integral<T>) out.emplace("minimum", 0);
    return out;
  } else if constexpr (number<T>) {
    return {{"type", "number"}};
  } else if constexpr (std::same_as<T, std::string>) {
    return {{"type", "string"}};
  } else if constexpr (std::same_as<T, time>) {
    return {{"type", "string"}, {"format", "date-time"}};
  } else if constexpr (described_enum<T>) {
    boost::json::array names;
    boost::mp11::mp_for_each<boost::describe::describe_enumerators<T>>(
        [&](auto descriptor) { names.emplace_back(field_name(descriptor.name)); });
    return {{"type", "string"}, {"enum", std::move(names)}};
  } else if constexpr (shape<T>::is_optional) {
    return schema<typename T::value_type>();
  } else if constexpr (shape<T>::is_list) {
    return {{"type", "array"}, {"items", schema<typename T::value_type>()}};
  } else if constexpr (shape<T>::is_map) {
    return {{"type", "object"}, {"additionalProperties", schema<typename T::mapped_type>()}};
  } else if constexpr (std::same_as<T, value>) {
    return {{"x-kubernetes-preserve-unknown-fields", true}};
  } else {
    static_assert(described_struct<T>,
                  "describe the type with BOOST_DESCRIBE_STRUCT or BOOST_DESCRIBE_ENUM");
    object properties;
    boost::json::array required;
    const T initial{};
    boost::mp11::mp_for_each<members<T>>([&](auto descriptor) {
      using member = std::remove_cvref_t<decltype(initial.*descriptor.pointer)>;
      if constexpr (!std::same_as<member, object_meta>) {
        const auto name = field_name(descriptor.name);
        auto made = schema<member>();
        if (is_required(initial.*descriptor.pointer)) {
          required.emplace_back(name);
        } else if constexpr (plain<member>) {
          made.emplace("default", write(initial.*descriptor.pointer));
        }
        properties.emplace(name, std::move(made));
      }
    });
    object out{{"type", "object"}, {"properties", std::move(properties)}};
    if (!required.empty()) out.emplace("required", std::move(required));
    return out;
  }
}

template <class T>
constexpr bool has_status = requires(const T& object) { object.status; };

}  // namespace described_detail

/// Reads a value. An unknown field is ignored; one that is missing, of another type or out of range
/// is an error (`errc::bad_answer`) that names its path: "spec.keep: not a number".
template <class T>
result<T> from_json(const boost::json::value& from) {
  T out{};
  std::string error;
  if (described_detail::read(from, out, error)) return out;
  return failure{.code = errc::bad_response,
                 .message = described_detail::path_text(std::move(error))};
}

/// Writes a value; an object of a resource with apiVersion and kind.
template <class T>
boost::json::value to_json(const T& from) {
  auto out = described_detail::write(from);
  if constexpr (resource_struct<T>) {
    out.get_object()["apiVersion"] = T::type.gvk.api_version();
    out.get_object()["kind"] = T::type.gvk.kind;
  }
  return out;
}

/// Returns the structural schema (OpenAPI v3) of a struct, without metadata.
template <class T>
boost::json::object schema_of() {
  return described_detail::schema<T>();
}

/// Returns the CustomResourceDefinition of a resource, with the status subresource if it has a
/// `status`.
template <resource_struct T>
boost::json::value definition_of() {
  return described_detail::definition(T::type, schema_of<T>(), described_detail::has_status<T>);
}

}  // namespace rw::k8s
