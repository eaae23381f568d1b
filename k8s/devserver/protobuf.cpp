#include "rw/k8s/devserver/protobuf.hpp"

#include "rw/k8s/devserver/refusals.hpp"
#include "rw/k8s/objects/base64.hpp"

#include <boost/json/parse.hpp>
#include <boost/json/serialize.hpp>

#include <algorithm>
#include <optional>
#include <utility>

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
    field one;
    const auto tag = varint();
    one.number = static_cast<unsigned>(tag >> 3);
    switch (tag & 7) {
      case 0:
        one.value = varint();
        break;
      case 2:
        one.is_bytes = true;
        one.bytes = take(varint());
        break;
      default:
        ok_ = false;
    }
    return one;
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

/// Returns a text field of a message that has no table of its own.
std::optional<std::string_view> text_field(std::string_view message, unsigned number) {
  std::string_view found;
  wire_reader reader(message);
  while (!reader.at_end()) {
    const auto one = reader.next();
    if (one.number == number && one.is_bytes) found = one.bytes;
  }
  if (!reader.ok()) return std::nullopt;
  return found;
}

class decoder {
 public:
  /// Returns nothing on an error, with the reason in `why`.
  std::optional<json::object> read(std::string_view bytes, const wire_message& as, unsigned depth);
  const std::string& why() const noexcept { return why_; }

 private:
  bool refuse(std::string why) {
    why_ = std::move(why);
    return false;
  }
  bool put(json::object& into, const wire_field& as, const wire_reader::field& one, unsigned depth);
  bool put_map(json::object& into, const wire_field& as, std::string_view entry);
  std::optional<json::value> value_of(const wire_field& as, const wire_reader::field& one,
                                      unsigned depth);
  std::optional<json::value> int_or_string(std::string_view message);

  std::string why_;
};

std::optional<json::object> decoder::read(std::string_view bytes, const wire_message& as,
                                          unsigned depth) {
  if (depth > deepest) {
    refuse("it is nested too deeply");
    return std::nullopt;
  }
  json::object into;
  wire_reader reader(bytes);
  while (!reader.at_end()) {
    const auto one = reader.next();
    if (!reader.ok()) break;
    const auto field = std::ranges::find(as.fields, one.number, &wire_field::number);
    if (field == as.fields.end()) {
      refuse("field " + std::to_string(one.number) + " of " + std::string(as.name) +
             " is not known here");
      return std::nullopt;
    }
    if (!put(into, *field, one, depth)) return std::nullopt;
  }
  if (reader.ok()) return into;
  refuse(std::string(as.name) + " is cut off or malformed");
  return std::nullopt;
}

bool decoder::put(json::object& into, const wire_field& as, const wire_reader::field& one,
                  unsigned depth) {
  if (as.what == wire_kind::ignored) return true;
  const bool number = as.what == wire_kind::boolean || as.what == wire_kind::number;
  if (number == one.is_bytes) return refuse(std::string(as.name) + " has the wrong type");
  if (as.what == wire_kind::text_map || as.what == wire_kind::bytes_map ||
      as.what == wire_kind::quantity_map) {
    return put_map(into, as, one.bytes);
  }
  auto value = value_of(as, one, depth);
  if (!value) return false;
  if (as.repeated) {
    auto& list = into[as.name];
    if (!list.is_array()) list.emplace_array();
    list.get_array().push_back(std::move(*value));
    return true;
  }
  const bool empty = one.is_bytes ? one.bytes.empty() : one.value == 0;
  const bool hollow = value->is_object() && value->get_object().empty();
  if ((empty || hollow) && !as.keep_zero) return true;
  into[as.name] = std::move(*value);
  return true;
}

std::optional<json::value> decoder::value_of(const wire_field& as, const wire_reader::field& one,
                                             unsigned depth) {
  switch (as.what) {
    case wire_kind::boolean:
      return json::value(one.value != 0);
    case wire_kind::number:
      return json::value(static_cast<std::int64_t>(one.value));
    case wire_kind::bytes:
      return json::value(base64_encode(one.bytes));
    case wire_kind::int_or_string:
      return int_or_string(one.bytes);
    case wire_kind::message: {
      auto inner = read(one.bytes, *as.message, depth + 1);
      if (!inner) return std::nullopt;
      return json::value(std::move(*inner));
    }
    default:
      return json::value(one.bytes);
  }
}

bool decoder::put_map(json::object& into, const wire_field& as, std::string_view entry) {
  const auto key = text_field(entry, 1);
  auto value = text_field(entry, 2);
  // A Quantity is a message of one string.
  if (value && as.what == wire_kind::quantity_map) value = text_field(*value, 1);
  if (!key || !value) return refuse(std::string(as.name) + " is cut off or malformed");
  auto& map = into[as.name];
  if (!map.is_object()) map.emplace_object();
  map.get_object()[*key] =
      as.what == wire_kind::bytes_map ? base64_encode(*value) : std::string(*value);
  return true;
}

/// IntOrString: field 1 is the type (0 number, 1 text), 2 the number, 3 the text.
std::optional<json::value> decoder::int_or_string(std::string_view message) {
  std::uint64_t which = 0;
  std::uint64_t number = 0;
  std::string_view text;
  wire_reader reader(message);
  while (!reader.at_end()) {
    const auto one = reader.next();
    if (one.number == 1) which = one.value;
    if (one.number == 2) number = one.value;
    if (one.number == 3) text = one.bytes;
  }
  if (!reader.ok()) {
    refuse("a number or text is cut off or malformed");
    return std::nullopt;
  }
  if (which == 1) return json::value(text);
  return json::value(static_cast<std::int64_t>(number));
}

problem refused(const std::string& why) {
  auto result = unsupported_media_type("application/json");
  result.message += " (protobuf: " + why + ")";
  return result;
}

}  // namespace

outcome<json::value> decode_protobuf(std::string_view body) {
  if (!body.starts_with(magic)) return refused("the magic number is missing");
  body.remove_prefix(magic.size());
  const auto type = text_field(body, 1);
  const auto raw = text_field(body, 2);
  if (!type || !raw) return refused("the envelope is cut off or malformed");
  const auto api_version = text_field(*type, 1);
  const auto kind = text_field(*type, 2);
  if (!api_version || !kind) return refused("the envelope is cut off or malformed");
  const auto* const message = find_wire_message(*api_version, *kind);
  if (message == nullptr) {
    return refused(std::string(*api_version) + " " + std::string(*kind) + " is not known here");
  }
  decoder reading;
  auto object = reading.read(*raw, *message, 0);
  if (!object) return refused(reading.why());
  (*object)["apiVersion"] = *api_version;
  (*object)["kind"] = *kind;
  // Boost.JSON writes texts unchecked; parsing its output finds invalid UTF-8.
  boost::system::error_code error;
  auto checked = json::parse(json::serialize(*object), error);
  if (error) return refused("a text is not UTF-8");
  return checked;
}

}  // namespace rw::k8s::devserver
