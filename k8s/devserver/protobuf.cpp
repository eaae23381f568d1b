#include "rw/k8s/devserver/protobuf.hpp"

#include "rw/k8s/devserver/builtin_table.hpp"
#include "rw/k8s/devserver/json_access.hpp"
#include "rw/k8s/devserver/refusals.hpp"
#include "rw/k8s/objects/base64.hpp"
#include "rw/k8s/objects/types.hpp"

#include <boost/json/parse.hpp>
#include <boost/json/serialize.hpp>

#include <algorithm>
#include <chrono>
#include <numeric>
#include <optional>
#include <utility>
#include <vector>

namespace rw::k8s::devserver {
namespace {

namespace json = boost::json;

constexpr std::string_view magic("k8s\0", 4);
constexpr unsigned deepest = 32;

/// Reads the wire format (https://protobuf.dev/programming-guides/encoding/). `ok` is false after
/// the first error.
class wire_reader {
 public:
  explicit wire_reader(std::string_view bytes) : rest_(bytes) {}

  bool at_end() const noexcept { return rest_.empty() || !ok_; }
  bool ok() const noexcept { return ok_; }

  struct field {
    unsigned number = 0;
    std::uint64_t value = 0;   ///< of a varint
    std::string_view bytes{};  ///< of a string or message
    bool is_bytes = false;
  };

  field next() {
    field field;
    const auto tag = varint();
    field.number = static_cast<unsigned>(tag >> 3);
    switch (tag & 7) {
      case 0:
        field.value = varint();
        break;
      case 1:
        take(8);
        break;
      case 2:
        field.is_bytes = true;
        field.bytes = take(varint());
        break;
      case 5:
        take(4);
        break;
      default:
        ok_ = false;
    }
    return field;
  }

 private:
  std::uint64_t varint() {
    std::uint64_t value = 0;
    for (unsigned shift = 0; shift < 64 && !rest_.empty(); shift += 7) {
      const auto byte = static_cast<unsigned char>(rest_.front());
      rest_.remove_prefix(1);
      value |= std::uint64_t{byte & 0x7FU} << shift;
      if (byte < 0x80) return value;
    }
    ok_ = false;
    return 0;
  }

  std::string_view take(std::uint64_t size) {
    if (size > rest_.size()) ok_ = false;
    if (!ok_) return {};
    const auto taken = rest_.substr(0, size);
    rest_.remove_prefix(size);
    return taken;
  }

  std::string_view rest_;
  bool ok_ = true;
};

/// Returns a text field of a message that has no type of its own.
std::optional<std::string_view> text_field(std::string_view message, unsigned number) {
  std::string_view found;
  wire_reader reader(message);
  while (!reader.at_end()) {
    const auto field = reader.next();
    if (field.number == number && field.is_bytes) found = field.bytes;
  }
  if (!reader.ok()) return std::nullopt;
  return found;
}

std::optional<std::int64_t> number_field(std::string_view message, unsigned number) {
  std::uint64_t found = 0;
  wire_reader reader(message);
  while (!reader.at_end()) {
    const auto field = reader.next();
    if (field.number == number) found = field.value;
  }
  if (!reader.ok()) return std::nullopt;
  return static_cast<std::int64_t>(found);
}

/// Formats with six digits of the second, as metav1.MicroTime.
std::string micro_time(std::int64_t seconds, std::int64_t nanos) {
  auto text = format_time(std::chrono::system_clock::time_point(std::chrono::seconds(seconds)));
  auto digits = std::to_string(std::clamp<std::int64_t>(nanos / 1000, 0, 999'999));
  digits.insert(0, 6 - digits.size(), '0');
  if (text.ends_with('Z')) text.pop_back();
  return text + "." + digits + "Z";
}

using maybe_value = std::optional<json::value>;

std::optional<json::object> read_message(std::string_view bytes, const builtin_type& as,
                                         unsigned depth);

/// A message of a type that writes its JSON itself.
maybe_value read_special(std::string_view bytes, go_type as) {
  if (as == go_type::quantity) {
    const auto text = text_field(bytes, 1);
    return text ? maybe_value(*text) : std::nullopt;
  }
  if (as == go_type::raw) {
    const auto text = text_field(bytes, 1);
    std::string reason;
    return text ? text->empty() ? maybe_value(json::value()) : parse_json(*text, reason)
                : std::nullopt;
  }
  if (as == go_type::int_or_string) {
    const auto kind = number_field(bytes, 1);
    if (kind == 1) return maybe_value(*text_field(bytes, 3));
    const auto number = number_field(bytes, 2);
    return number ? maybe_value(static_cast<std::int32_t>(*number)) : std::nullopt;
  }
  const auto seconds = number_field(bytes, 1);
  const auto nanos = number_field(bytes, 2);
  if (!seconds || !nanos) return std::nullopt;
  constexpr std::int64_t last = 253'402'300'799;  // the end of the year 9999
  if (*seconds < -last || *seconds > last) return std::nullopt;
  // An empty message is a time that is not set.
  if (bytes.empty()) return json::value();
  if (as == go_type::micro_time) return json::value(micro_time(*seconds, *nanos));
  return json::value(
      format_time(std::chrono::system_clock::time_point(std::chrono::seconds(*seconds))));
}

maybe_value read_texts(std::string_view bytes) {
  json::array all;
  wire_reader reader(bytes);
  while (!reader.at_end()) {
    const auto field = reader.next();
    if (field.number == 1) all.emplace_back(field.bytes);
  }
  if (!reader.ok()) return std::nullopt;
  return all;
}

maybe_value read_value(const builtin_field& as, const wire_reader::field& field, unsigned depth) {
  const auto number = static_cast<std::int64_t>(field.value);
  switch (as.type) {
    case go_type::boolean:
      return json::value(number != 0);
    case go_type::integer32:
      return json::value(static_cast<std::int32_t>(number));
    case go_type::integer:
      return json::value(number);
    case go_type::bytes:
      return json::value(base64_encode(field.bytes));
    case go_type::text:
      return json::value(field.bytes);
    case go_type::texts:
      return read_texts(field.bytes);
    case go_type::object: {
      auto inner = read_message(field.bytes, builtin_types()[as.of], depth + 1);
      if (!inner) return std::nullopt;
      return json::value(std::move(*inner));
    }
    case go_type::number:
    case go_type::duration:
      return std::nullopt;
    default:
      return read_special(field.bytes, as.type);
  }
}

bool is_number(go_type type) {
  return type == go_type::boolean || type == go_type::integer || type == go_type::integer32;
}

bool read_entry(json::value& into, const builtin_field& as, std::string_view entry,
                unsigned depth) {
  std::string_view key;
  wire_reader::field value{2, 0, {}, !is_number(as.type)};
  wire_reader reader(entry);
  while (!reader.at_end()) {
    const auto field = reader.next();
    if (field.number == 1) key = field.bytes;
    if (field.number == 2) value = field;
  }
  auto read = reader.ok() ? read_value(as, value, depth) : std::nullopt;
  if (!read) return false;
  if (!into.is_object()) into.emplace_object();
  into.get_object()[key] = std::move(*read);
  return true;
}

bool read_field(json::object& into, const builtin_field& as, const wire_reader::field& field,
                unsigned depth) {
  if (as.in == holder::map)
    return field.is_bytes && read_entry(into[as.name], as, field.bytes, depth);
  if (field.is_bytes == is_number(as.type)) return false;
  auto value = read_value(as, field, depth);
  if (!value) return false;
  if (as.in == holder::list) {
    auto& list = into[as.name];
    if (!list.is_array()) list.emplace_array();
    list.get_array().push_back(std::move(*value));
  } else if (as.name.empty()) {
    for (auto& [name, inner] : value->as_object()) into[name] = std::move(inner);
  } else if (!value->is_null()) {
    into[as.name] = std::move(*value);
  }
  return true;
}

std::optional<json::object> read_message(std::string_view bytes, const builtin_type& as,
                                         unsigned depth) {
  if (depth > deepest) return std::nullopt;
  json::object into;
  const auto fields = fields_of(as);
  wire_reader reader(bytes);
  while (!reader.at_end()) {
    const auto read = reader.next();
    if (!reader.ok()) break;
    const auto field = std::ranges::find(fields, read.number, &builtin_field::number);
    if (field != fields.end() && !read_field(into, *field, read, depth)) return std::nullopt;
  }
  if (!reader.ok()) return std::nullopt;
  return into;
}

// --- writing

void append_varint(std::string& out, std::uint64_t value) {
  for (; value >= 0x80; value >>= 7) out += static_cast<char>(value | 0x80);
  out += static_cast<char>(value);
}

void append_number(std::string& out, unsigned number, std::int64_t value) {
  append_varint(out, std::uint64_t{number} << 3);
  append_varint(out, static_cast<std::uint64_t>(value));
}

void append_bytes(std::string& out, unsigned number, std::string_view bytes) {
  append_varint(out, (std::uint64_t{number} << 3) | 2);
  append_varint(out, bytes.size());
  out += bytes;
}

std::string message_of(const builtin_type& type, const json::object& object);

std::string time_message(std::string_view text) {
  std::string made;
  const auto at = parse_rfc3339(text);
  if (!at) return made;
  const auto since = at->time_since_epoch();
  const auto seconds = std::chrono::floor<std::chrono::seconds>(since);
  append_number(made, 1, seconds.count());
  append_number(made, 2, std::chrono::nanoseconds(since - seconds).count());
  return made;
}

std::string special_message(const json::value& value, go_type as) {
  std::string made;
  const auto text = value.is_string() ? view(value.get_string()) : std::string_view();
  if (as == go_type::time || as == go_type::micro_time) return time_message(text);
  if (as == go_type::int_or_string) {
    append_number(made, 1, value.is_string() ? 1 : 0);
    append_number(made, 2, value.is_int64() ? value.get_int64() : 0);
    append_bytes(made, 3, text);
  } else if (as == go_type::texts) {
    if (!value.is_array()) return made;
    for (const auto& entry : value.get_array()) {
      if (entry.is_string()) append_bytes(made, 1, view(entry.get_string()));
    }
  } else {
    append_bytes(made, 1, as == go_type::raw ? json::serialize(value) : std::string(text));
  }
  return made;
}

void append_value(std::string& out, const builtin_field& as, unsigned number,
                  const json::value& value) {
  if (is_number(as.type)) {
    const auto flag = value.is_bool() && value.get_bool() ? 1 : 0;
    append_number(out, number, value.is_int64() ? value.get_int64() : flag);
  } else if (as.type == go_type::object) {
    append_bytes(
        out, number,
        value.is_object() ? message_of(builtin_types()[as.of], value.get_object()) : std::string());
  } else if (as.type == go_type::text) {
    append_bytes(out, number, value.is_string() ? view(value.get_string()) : std::string_view());
  } else if (as.type == go_type::bytes) {
    const auto bytes = value.is_string() ? base64_decode(view(value.get_string())) : std::nullopt;
    append_bytes(out, number, bytes ? *bytes : std::string());
  } else if (as.type != go_type::number && as.type != go_type::duration) {
    append_bytes(out, number, special_message(value, as.type));
  }
}

void append_field(std::string& out, const builtin_field& as, const json::value& value) {
  if (as.in == holder::single) return append_value(out, as, as.number, value);
  if (value.is_array()) {
    for (const auto& entry : value.get_array()) append_value(out, as, as.number, entry);
  } else if (value.is_object()) {
    for (const auto& [key, member] : value.get_object()) {
      std::string entry;
      append_bytes(entry, 1, key);
      append_value(entry, as, 2, member);
      append_bytes(out, as.number, entry);
    }
  }
}

/// Returns indices of all fields, those of each type in the order of their numbers, in which Go
/// writes them.
const std::vector<std::uint16_t>& fields_by_number() {
  static const auto sorted = [] {
    const auto fields = builtin_fields();
    std::vector<std::uint16_t> made(fields.size());
    std::iota(made.begin(), made.end(), std::uint16_t{0});
    for (const auto& type : builtin_types()) {
      const auto first = made.begin() + type.first;
      std::sort(first, first + type.fields,
                [&](auto a, auto b) { return fields[a].number < fields[b].number; });
    }
    return made;
  }();
  return sorted;
}

std::string message_of(const builtin_type& type, const json::object& object) {
  std::string made;
  const auto& order = fields_by_number();
  for (std::size_t i = type.first; i < std::size_t{type.first} + type.fields; ++i) {
    const auto& field = builtin_fields()[order[i]];
    if (field.number == 0) continue;
    if (field.name.empty()) {
      append_bytes(made, field.number, message_of(builtin_types()[field.of], object));
    } else if (const auto* const value = object.if_contains(field.name)) {
      append_field(made, field, *value);
    }
  }
  return made;
}

void append_envelope(std::string& out, std::string_view api_version, std::string_view kind,
                     std::string_view message) {
  std::string type;
  append_bytes(type, 1, api_version);
  append_bytes(type, 2, kind);
  out += magic;
  append_bytes(out, 1, type);
  append_bytes(out, 2, message);
  append_bytes(out, 3, {});
  append_bytes(out, 4, {});
}

/// Lists of all kinds have metadata as field 1 and the items as field 2.
std::string list_message(const builtin_type& item, const json::value& list) {
  std::string made;
  const auto* const meta = find_builtin_type("meta.k8s.io/v1", "ListMeta");
  const auto* const metadata = find(list, {"metadata"});
  if (meta != nullptr && metadata != nullptr && metadata->is_object()) {
    append_bytes(made, 1, message_of(*meta, metadata->get_object()));
  }
  for (const auto& entry : array_at(list, {"items"})) {
    if (entry.is_object()) append_bytes(made, 2, message_of(item, entry.get_object()));
  }
  return made;
}

problem unsupported(const std::string& reason) {
  auto result = unsupported_media_type("application/json");
  result.message += " (protobuf: " + reason + ")";
  return result;
}

}  // namespace

bool has_protobuf(std::string_view api_version, std::string_view kind) noexcept {
  const auto* const type = find_builtin_type(api_version, kind);
  return type != nullptr && has_protobuf(*type);
}

outcome<json::value> decode_protobuf(std::string_view body) {
  if (!body.starts_with(magic)) {
    return bad_request(
        "provided data does not appear to be a protobuf message, expected prefix "
        "[107 56 115 0]");
  }
  body.remove_prefix(magic.size());
  const auto type = text_field(body, 1);
  const auto raw = text_field(body, 2);
  const auto api_version = type ? text_field(*type, 1) : std::nullopt;
  const auto kind = type ? text_field(*type, 2) : std::nullopt;
  if (!raw || !api_version || !kind) return bad_request("unexpected EOF");
  const auto* const message = find_builtin_type(*api_version, *kind);
  if (message == nullptr || !has_protobuf(*message)) {
    return unsupported(std::string(*api_version) + " " + std::string(*kind) + " is not known here");
  }
  auto object = read_message(*raw, *message, 0);
  if (!object) return bad_request("proto: " + std::string(*kind) + " is cut off or malformed");
  (*object)["apiVersion"] = *api_version;
  (*object)["kind"] = *kind;
  // Boost.JSON writes texts unchecked; parsing its output finds invalid UTF-8.
  boost::system::error_code error;
  auto checked = json::parse(json::serialize(*object), error);
  if (error) return bad_request("proto: a text is not UTF-8");
  return checked;
}

bool append_protobuf(std::string& out, const json::value& object) {
  const auto api_version = find_string(object, {"apiVersion"});
  const auto kind = find_string(object, {"kind"});
  if (has_protobuf(api_version, kind)) {
    const auto& type = *find_builtin_type(api_version, kind);
    append_envelope(out, api_version, kind, message_of(type, object.as_object()));
    return true;
  }
  if (!kind.ends_with("List")) return false;
  const auto* const item = find_builtin_type(api_version, kind.substr(0, kind.size() - 4));
  if (item == nullptr || !has_protobuf(*item)) return false;
  append_envelope(out, api_version, kind, list_message(*item, object));
  return true;
}

bool append_protobuf_event(std::string& out, const json::value& event) {
  std::string object;
  const auto* const found = find(event, {"object"});
  if (found == nullptr || !append_protobuf(object, *found)) return false;
  std::string raw;
  append_bytes(raw, 1, object);
  std::string frame;
  append_bytes(frame, 1, find_string(event, {"type"}));
  append_bytes(frame, 2, raw);
  for (int shift = 24; shift >= 0; shift -= 8) {
    out += static_cast<char>((frame.size() >> shift) & 0xFF);
  }
  out += frame;
  return true;
}

}  // namespace rw::k8s::devserver
