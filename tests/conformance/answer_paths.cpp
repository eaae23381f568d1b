#include "answer_paths.hpp"

#include <algorithm>
#include <charconv>
#include <cstdint>

namespace rw::conformance {
namespace {

std::size_t number_in(std::string_view text) {
  std::size_t number = 0;
  std::from_chars(text.data(), text.data() + text.size(), number);
  return number;
}

/// Takes the text up to `end`, and `end`, off the front.
std::string_view take(std::string_view& text, std::string_view end) {
  const auto at = std::min(text.find(end), text.size());
  const auto part = text.substr(0, at);
  text.remove_prefix(std::min(at + end.size(), text.size()));
  return part;
}

/// Returns the element with `key` == `value` of `?(@.key=="value")`; null if there is none.
const json* filtered(const json& from, std::string_view filter) {
  filter.remove_prefix(std::string_view("?(@.").size());
  const auto key = take(filter, "==\"");
  const auto value = take(filter, "\")");
  return element(from, "", key, value);
}

/// Descends by one step, `.name`, `['name']`, `[0]` or a filter, which is taken off `path`.
const json* step(const json& from, std::string_view& path) {
  std::string name;
  if (path.front() == '.') {
    path.remove_prefix(1);
    const auto end = std::min(path.find_first_of(".["), path.size());
    name = path.substr(0, end);
    path.remove_prefix(end);
  } else if (path.starts_with("['")) {
    path.remove_prefix(2);
    name = take(path, "']");
  } else {
    path.remove_prefix(1);
    if (path.starts_with('?')) {
      const auto filter = path.substr(0, path.find(")]") + 1);
      path.remove_prefix(filter.size() + 1);
      return filtered(from, filter);
    }
    const auto index = number_in(take(path, "]"));
    return from.is_array() ? from.as_array().if_contains(index) : nullptr;
  }
  return from.is_object() ? from.as_object().if_contains(name) : nullptr;
}

std::optional<json> length_of(const json& value) {
  if (value.is_array()) return json(value.as_array().size());
  if (value.is_object()) return json(value.as_object().size());
  return std::nullopt;
}

std::optional<json> keys_of(const json& value) {
  if (!value.is_object()) return std::nullopt;
  std::vector<std::string> keys;
  for (const auto& [key, unused] : value.as_object()) keys.emplace_back(key);
  std::ranges::sort(keys);
  return boost::json::value_from(keys);
}

/// A varint at the front, which is taken off; nothing at the end.
std::optional<std::uint64_t> varint(std::string_view& bytes) {
  std::uint64_t value = 0;
  for (unsigned shift = 0; shift < 64 && !bytes.empty(); shift += 7) {
    const auto byte = static_cast<unsigned char>(bytes.front());
    bytes.remove_prefix(1);
    value |= std::uint64_t{byte & 0x7FU} << shift;
    if (byte < 0x80) return value;
  }
  return std::nullopt;
}

constexpr std::string_view magic("k8s\0", 4);

/// The repetition `index` of field `number`.
std::optional<json> field_of(std::string_view message, std::size_t number, std::size_t index) {
  while (!message.empty()) {
    const auto tag = varint(message);
    auto value = tag ? varint(message) : std::nullopt;
    if (!value) return std::nullopt;
    json found(*value);
    if ((*tag & 7) == 2) {
      if (*value > message.size()) return std::nullopt;
      found = boost::json::string(message.substr(0, *value));
      message.remove_prefix(*value);
    }
    if (*tag >> 3 == number && index-- == 0) return found;
  }
  return std::nullopt;
}

/// The frame of a watch: four bytes of length, then the event.
std::optional<std::string_view> frame_of(std::string_view body, std::size_t index) {
  while (body.size() >= 4) {
    std::size_t size = 0;
    for (int i = 0; i < 4; ++i) {
      size = size << 8 | static_cast<unsigned char>(body[static_cast<std::size_t>(i)]);
    }
    body.remove_prefix(4);
    if (size > body.size()) return std::nullopt;
    if (index-- == 0) return body.substr(0, size);
    body.remove_prefix(size);
  }
  return std::nullopt;
}

}  // namespace

std::optional<json> value_at(const json& answer, std::string_view path) {
  path.remove_prefix(1);  // $
  const auto* at = &answer;
  while (at != nullptr && !path.empty()) {
    if (path == ".length()") return length_of(*at);
    if (path == ".keys()") return keys_of(*at);
    at = step(*at, path);
  }
  if (at == nullptr) return std::nullopt;
  return *at;
}

std::optional<json> protobuf_at(std::string_view body, std::string_view path) {
  if (path.starts_with("frame[")) {
    const auto frame = frame_of(body, number_in(path.substr(6)));
    if (!frame) return std::nullopt;
    body = *frame;
    take(path, "]:");
  } else if (!body.starts_with(magic)) {
    return std::nullopt;
  }
  path.remove_prefix(3);  // pb:
  std::optional<json> found = boost::json::string(body);
  while (!path.empty()) {
    auto part = take(path, ".");
    const auto number = number_in(take(part, "["));
    if (!found->is_string()) return std::nullopt;
    std::string_view message = found->get_string();
    if (message.starts_with(magic)) message.remove_prefix(magic.size());
    found = field_of(message, number, number_in(part));
    if (!found) return std::nullopt;
  }
  return found;
}

}  // namespace rw::conformance
