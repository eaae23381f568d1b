#include "rw/k8s/devserver/builtin_decoding.hpp"

#include "rw/k8s/devserver/builtin_defaults.hpp"
#include "rw/k8s/devserver/go_text.hpp"
#include "rw/k8s/devserver/json_access.hpp"
#include "rw/k8s/devserver/quantity.hpp"
#include "rw/k8s/objects/base64.hpp"
#include "rw/k8s/objects/types.hpp"

#include <boost/json/array.hpp>
#include <boost/json/object.hpp>
#include <boost/json/serialize.hpp>

#include <cmath>
#include <cstdint>
#include <limits>
#include <string_view>

namespace rw::k8s::devserver {
namespace {

namespace json = boost::json;

const builtin_type& type_of(const builtin_field& field) {
  return builtin_types()[field.of];
}

/// Returns the field of that name, also of an embedded type; null if there is none.
const builtin_field* find_field(const builtin_type& type, std::string_view name) {
  for (const auto& field : fields_of(type)) {
    if (field.name == name && !name.empty()) return &field;
    if (!field.name.empty()) continue;
    if (const auto* const found = find_field(type_of(field), name)) return found;
  }
  return nullptr;
}

/// Returns the name of a JSON value's type in Go's decoder.
std::string json_type(const json::value& value) {
  if (value.is_object()) return "object";
  if (value.is_array()) return "array";
  if (value.is_string()) return "string";
  if (value.is_bool()) return "bool";
  return value.is_double() ? "number " + json::serialize(value) : "number";
}

std::string type_text(const builtin_field& field) {
  const std::string prefix = field.in == holder::list  ? "[]"
                             : field.in == holder::map ? "map[string]"
                                                       : "";
  switch (field.type) {
    case go_type::boolean:
      return prefix + "bool";
    case go_type::integer32:
      return prefix + "int32";
    case go_type::integer:
      return prefix + "int64";
    case go_type::number:
      return prefix + "float64";
    case go_type::bytes:
      return prefix + "[]uint8";
    case go_type::texts:
      return prefix + "[]string";
    case go_type::object:
      return prefix + std::string(type_of(field).group.substr(type_of(field).group.find('/') + 1)) +
             "." + std::string(type_of(field).name);
    default:
      return prefix + "string";
  }
}

bool is_zero(const json::value& value) {
  if (value.is_string()) return value.get_string().empty();
  if (value.is_array()) return value.get_array().empty();
  if (value.is_object()) return value.get_object().empty();
  if (value.is_bool()) return !value.get_bool();
  if (value.is_int64()) return value.get_int64() == 0;
  return value.is_uint64() && value.get_uint64() == 0;
}

class decoder {
 public:
  decoder(std::string_view kind, std::vector<std::string>& unknown, number_reading numbers)
      : kind_(kind), unknown_(unknown), converts_(numbers == number_reading::converted) {}

  void decode(const builtin_type& type, json::object& object, const std::string& path) {
    const bool resource = (type.traits & trait::resource) != 0;
    for (auto at = object.begin(); at != object.end() && error.empty();) {
      const std::string_view name = at->key();
      if (resource && (name == "apiVersion" || name == "kind")) {
        ++at;
        continue;
      }
      const auto here = path.empty() ? std::string(name) : path + "." + std::string(name);
      const auto* const field = find_field(type, name);
      if (field == nullptr) unknown_.push_back(here);
      if (field != nullptr && !at->value().is_null()) decode(*field, at->value(), here);
      const bool gone = !converts_ && (field == nullptr || at->value().is_null() ||
                                       is_omitted(*field, at->value()));
      at = gone ? object.stable_erase(at) : at + 1;
    }
  }

  std::string error;

 private:
  static bool is_omitted(const builtin_field& field, const json::value& value) {
    const bool whole =
        field.in == holder::single && (field.type == go_type::object || field.type == go_type::raw);
    const unsigned kept = field.traits & (trait::pointer | trait::omitempty);
    return kept == trait::omitempty && !whole && is_zero(value);
  }

  void decode(const builtin_field& field, json::value& value, const std::string& path) {
    if (field.in == holder::single) return decode_value(field, value, path);
    if (field.in == holder::list ? !value.is_array() : !value.is_object()) {
      return mismatch(field, value, path, type_text(field));
    }
    if (field.in == holder::list) {
      std::size_t index = 0;
      for (auto& entry : value.get_array()) {
        decode_item(field, entry, path + "[" + std::to_string(index++) + "]");
      }
      return;
    }
    for (auto& [key, member] : value.get_object()) {
      decode_item(field, member, path + "[" + std::string(key) + "]");
    }
  }

  /// Null in a list or map is the zero value.
  void decode_item(const builtin_field& field, json::value& value, const std::string& path) {
    if (value.is_null() && field.type == go_type::text) value = "";
    if (value.is_null() && field.type == go_type::quantity) value = "0";
    if (value.is_null() && field.type == go_type::object) value.emplace_object();
    if (!value.is_null()) decode_value(field, value, path);
  }

  void decode_value(const builtin_field& field, json::value& value, const std::string& path) {
    auto single = field;
    single.in = holder::single;
    const auto expect = [&](bool fits) {
      if (!fits) mismatch(field, value, path, type_text(single));
      return fits;
    };
    switch (field.type) {
      case go_type::object:
        if (expect(value.is_object())) decode(type_of(field), value.get_object(), path);
        return;
      case go_type::boolean:
        expect(value.is_bool());
        return;
      case go_type::integer32:
      case go_type::integer:
        if (converts_) convert(value, field.type == go_type::integer32);
        expect(is_integer(value, field.type == go_type::integer32));
        return;
      case go_type::number:
      case go_type::raw:
        if (!expect(field.type == go_type::raw || value.is_number())) return;
        if (!normalize_numbers(value)) fail(std::string(number_out_of_range));
        return;
      case go_type::int_or_string:
        expect(value.is_string() || is_integer(value, true));
        return;
      case go_type::texts:
        expect(value.is_array());
        return;
      case go_type::quantity:
        return decode_quantity(field, value, path);
      case go_type::bytes:
        encode_numbers(value);
        if (!expect(value.is_string())) return;
        return canonize(value, path);
      case go_type::time:
      case go_type::micro_time:
        if (expect(value.is_string()) && !parse_rfc3339(view(value.get_string()))) {
          fail("parsing time " + json::serialize(value) + " as \"2006-01-02T15:04:05Z07:00\"");
        }
        return;
      case go_type::text:
      case go_type::duration:
        expect(value.is_string());
        return;
    }
  }

  /// Go skips line breaks in base64, and no other white space.
  void canonize(json::value& value, const std::string& path) {
    const auto text = view(value.get_string());
    const auto bytes = base64_decode(text);
    if (!bytes || text.find_first_of(" \t") != std::string_view::npos) {
      return fail("illegal base64 data in " + std::string(kind_) + "." + path);
    }
    value = base64_encode(*bytes);
  }

  /// Go reads bytes from a list of numbers, too.
  static void encode_numbers(json::value& value) {
    if (!value.is_array()) return;
    std::string bytes;
    for (const auto& entry : value.get_array()) {
      if (!entry.is_null() && !entry.is_int64()) return;
      const auto number = entry.is_null() ? 0 : entry.get_int64();
      if (number < 0 || number > 255) return;
      bytes += static_cast<char>(number);
    }
    value = base64_encode(bytes);
  }

  /// As Go converts numbers: modulo the type's range, and a float without a fraction is an integer.
  static void convert(json::value& value, bool short_one) {
    if (value.is_double()) {
      const auto number = value.get_double();
      if (number != std::trunc(number) || std::abs(number) >= 9.2e18) return;
      value = static_cast<std::int64_t>(number);
    }
    if (short_one && value.is_int64()) value = static_cast<std::int32_t>(value.get_int64());
  }

  static bool is_integer(const json::value& value, bool short_one) {
    if (!value.is_int64()) return false;
    const auto number = value.get_int64();
    return !short_one || (number >= std::numeric_limits<std::int32_t>::min() &&
                          number <= std::numeric_limits<std::int32_t>::max());
  }

  void decode_quantity(const builtin_field& field, json::value& value, const std::string& path) {
    if (!value.is_string() && !value.is_number()) {
      return mismatch(field, value, path, "resource.Quantity");
    }
    const auto text = value.is_string()   ? std::string(value.get_string())
                      : value.is_double() ? go_number(value.get_double())
                                          : json::serialize(value);
    auto canonical = canonical_quantity(text, field.in == holder::map);
    if (!canonical) {
      return fail(
          "quantities must match the regular expression '^([+-]?[0-9.]+)"
          "([eEinumkKMGTP]*[-+]?[0-9]*)$'");
    }
    value = std::move(*canonical);
  }

  void mismatch(const builtin_field&, const json::value& value, const std::string& path,
                const std::string& type) {
    fail("json: cannot unmarshal " + json_type(value) + " into Go struct field " +
         std::string(kind_) + "." + path.substr(0, path.find('[')) + " of type " + type);
  }

  void fail(std::string reason) {
    if (error.empty()) error = std::move(reason);
  }

  std::string_view kind_;
  std::vector<std::string>& unknown_;
  const bool converts_;
};

void fill(const builtin_type& type, json::object& object);

void fill_value(const builtin_field& field, json::value& value) {
  if (value.is_object() && field.in == holder::single) {
    fill(type_of(field), value.get_object());
  } else if (value.is_object()) {
    for (auto& [key, member] : value.get_object()) {
      if (member.is_object()) fill(type_of(field), member.get_object());
    }
  } else if (value.is_array()) {
    for (auto& entry : value.get_array()) {
      if (entry.is_object()) fill(type_of(field), entry.get_object());
    }
  }
}

/// Adds what Go writes for a field that is not set.
void add_empty(const builtin_field& field, json::object& object) {
  if (field.in != holder::single || (field.traits & trait::pointer) != 0) {
    if ((field.traits & trait::omitempty) == 0) object.emplace(field.name, nullptr);
    return;
  }
  if (field.type == go_type::time || field.type == go_type::micro_time) {
    object.emplace(field.name, nullptr);
    return;
  }
  if (field.type == go_type::object) object.emplace(field.name, json::object());
  if ((field.traits & trait::omitempty) != 0) return;
  if (field.type == go_type::text) object.emplace(field.name, "");
  if (field.type == go_type::integer || field.type == go_type::integer32) {
    object.emplace(field.name, 0);
  }
  if (field.type == go_type::boolean) object.emplace(field.name, false);
}

void fill(const builtin_type& type, json::object& object) {
  apply_defaults(type, object);
  // Metadata leaves out what is not set.
  if (type.name == "ObjectMeta") return;
  for (const auto& field : fields_of(type)) {
    if (field.name.empty()) {
      fill(type_of(field), object);
      continue;
    }
    add_empty(field, object);
    if (field.type != go_type::object) continue;
    if (auto* const value = object.if_contains(field.name)) fill_value(field, *value);
  }
}

}  // namespace

void store_empty_as_null(const builtin_type& type, json::value& object) {
  if (!object.is_object()) return;
  for (const auto& field : fields_of(type)) {
    if (field.name.empty()) {
      store_empty_as_null(type_of(field), object);
      continue;
    }
    auto* const value = object.get_object().if_contains(field.name);
    if (value == nullptr) continue;
    if (field.in != holder::single && is_zero(*value)) value->emplace_null();
    if (field.type != go_type::object) continue;
    if (field.in == holder::single) store_empty_as_null(type_of(field), *value);
    if (field.in == holder::list && value->is_array()) {
      for (auto& item : value->get_array()) store_empty_as_null(type_of(field), item);
    }
  }
}

std::string decode_builtin(const builtin_type& type, json::value& object,
                           std::vector<std::string>& unknown, number_reading numbers) {
  if (!object.is_object()) return {};
  decoder reading(type.name, unknown, numbers);
  reading.decode(type, object.get_object(), "");
  return reading.error;
}

void fill_typed_defaults(const builtin_type& type, json::value& object) {
  if (object.is_object()) fill(type, object.get_object());
}

}  // namespace rw::k8s::devserver
