#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <string_view>

namespace rw::k8s::devserver {

/// The type of a field's values. Types that write their JSON themselves have names of their own.
enum class go_type : std::uint8_t {
  text,
  boolean,
  integer32,
  integer,
  number,
  bytes,  ///< base64 in JSON
  time,
  micro_time,
  duration,
  quantity,
  int_or_string,
  raw,    ///< any JSON
  texts,  ///< a named list of texts, which is a message in protobuf
  object,
};

enum class holder : std::uint8_t { single, list, map };

struct trait {
  enum bits : unsigned {
    pointer = 1,
    omitempty = 2,
    atomic = 4,          ///< one value for server-side apply; lists are unless they say otherwise
    list_map = 8,        ///< items are identified by `keys`
    list_set = 16,       ///< items are identified by their value
    patch_merges = 32,   ///< a strategic merge patch merges the list, by `merge_key`
    resource = 64,       ///< of a type: with apiVersion and kind
    retains_keys = 128,  ///< a strategic merge patch names the fields that stay
    replaces = 256,      ///< a strategic merge patch replaces the object
  };
};

/// A field of a Go type.
struct builtin_field {
  std::string_view name;  ///< in JSON; empty: its fields are those of the type that contains it
  std::uint16_t number;   ///< in protobuf; 0: none
  go_type type;
  holder in;
  unsigned traits;
  std::uint16_t of;  ///< index of the type of an object
  std::string_view keys = {};
  std::string_view merge_key = {};
  std::string_view by_default = {};  ///< JSON; as in the OpenAPI document
};

struct builtin_type {
  std::string_view group;  ///< folder of the Go package: "core/v1"
  std::string_view name;
  std::uint16_t first;  ///< index of its first field
  std::uint16_t fields;
  unsigned traits;
};

/// The Go types of the built-in kinds, sorted by group and name: builtin_table.cpp, which
/// types/generate.py makes.
std::span<const builtin_field> builtin_fields() noexcept;
std::span<const builtin_type> builtin_types() noexcept;

inline std::span<const builtin_field> fields_of(const builtin_type& type) noexcept {
  return builtin_fields().subspan(type.first, type.fields);
}

/// Returns true for types that are sent and stored in protobuf: those written by hand have no
/// numbers.
inline bool has_protobuf(const builtin_type& type) noexcept {
  const auto fields = fields_of(type);
  return !fields.empty() && fields.front().number > 0;
}

/// Returns the Go type of a kind, such as "apps/v1", "Deployment"; null if it is not built in. Each
/// group has DeleteOptions.
const builtin_type* find_builtin_type(std::string_view api_version, std::string_view kind) noexcept;

}  // namespace rw::k8s::devserver
