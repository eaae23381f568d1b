// The decoders of watches and lists must say what Boost.JSON says, however the bytes are cut. The
// first byte chooses the projection, the second how they are cut.

#include "rw/k8s/cache/list_decoder.hpp"
#include "rw/k8s/cache/watch_decoder.hpp"
#include "rw/k8s/objects/projection.hpp"

#include <boost/json/basic_parser_impl.hpp>
#include <boost/json/parse.hpp>
#include <boost/json/serialize.hpp>
#include <boost/json/value.hpp>

#include "tests/fuzz/check.hpp"
#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace {

using namespace rw::k8s;
using rw::fuzz::check;
namespace json = boost::json;
using kind = decoded_event::kind;

resource_type configmaps() {
  return {{"", "v1", "ConfigMap"}, "configmaps", true};
}

projection chosen(unsigned number) {
  switch (number % 4) {
    case 0:
      return projection::whole();
    case 1:
      return projection::without_managed_fields();
    case 2:
      return projection::metadata();
    default:
      return projection::fields({"spec.a", "metadata.labels.x", "data"});
  }
}

/// What an event says, from either side.
struct told {
  kind what = kind::added;
  std::string name = {}, ns = {}, uid = {}, version = {};
  json::value left = {};
  bool end = false;

  friend bool operator==(const told&, const told&) = default;
};

// --- the reference -------------------------------------------------------------------------------

json::value parse(std::string_view text, boost::system::error_code& error) {
  json::parse_options options;
  options.max_depth = max_object_depth;
  return json::parse({text.data(), text.size()}, error, {}, options);
}

std::size_t members(const json::value& value) {
  std::size_t sum = 0;
  if (const auto* object = value.if_object()) {
    for (const auto& each : *object) sum += 1 + members(each.value());
  } else if (const auto* array = value.if_array()) {
    for (const auto& each : *array) sum += members(each);
  }
  return sum;
}

struct key_counter {
  using error_code = boost::system::error_code;
  using string_view = json::string_view;
  static constexpr std::size_t max_object_size = ~std::size_t{0};
  static constexpr std::size_t max_array_size = ~std::size_t{0};
  static constexpr std::size_t max_key_size = ~std::size_t{0};
  static constexpr std::size_t max_string_size = ~std::size_t{0};
  bool on_document_begin(error_code&) { return true; }
  bool on_document_end(error_code&) { return true; }
  bool on_object_begin(error_code&) { return true; }
  bool on_object_end(std::size_t, error_code&) { return true; }
  bool on_array_begin(error_code&) { return true; }
  bool on_array_end(std::size_t, error_code&) { return true; }
  bool on_key_part(string_view, std::size_t, error_code&) { return true; }
  bool on_key(string_view, std::size_t, error_code&) { return ++keys > 0; }
  bool on_string_part(string_view, std::size_t, error_code&) { return true; }
  bool on_string(string_view, std::size_t, error_code&) { return true; }
  bool on_number_part(string_view, error_code&) { return true; }
  bool on_int64(std::int64_t, string_view, error_code&) { return true; }
  bool on_uint64(std::uint64_t, string_view, error_code&) { return true; }
  bool on_double(double, string_view, error_code&) { return true; }
  bool on_bool(bool, error_code&) { return true; }
  bool on_null(error_code&) { return true; }
  bool on_comment_part(string_view, error_code&) { return true; }
  bool on_comment(string_view, error_code&) { return true; }

  std::size_t keys = 0;
};

/// True if a member stands twice: then the two sides may differ in what they refuse.
bool is_ambiguous(std::string_view text, const json::value& parsed) {
  json::parse_options options;
  options.max_depth = max_object_depth;
  json::basic_parser<key_counter> parser(options);
  boost::system::error_code error;
  parser.write_some(false, text.data(), text.size(), error);
  return parser.handler().keys != members(parsed);
}

std::optional<json::value> project(const json::value& from, const projection::rule& keep) {
  using fate = projection::rule::fate;
  if (keep.treatment == fate::drop) return std::nullopt;
  if (keep.treatment == fate::keep) return from;
  if (const auto* object = from.if_object()) {
    json::object left;
    for (const auto& each : *object) {
      auto value = project(each.value(), keep.find(each.key()));
      if (value) left[each.key()] = std::move(*value);
    }
    return left;
  }
  if (const auto* array = from.if_array()) {
    json::array left;
    for (const auto& each : *array) {
      auto value = project(each, keep);
      if (value) left.push_back(std::move(*value));
    }
    return left;
  }
  if (keep.unnamed == fate::drop) return std::nullopt;
  return from;
}

/// A member that is a string, or absent, or null. False for anything else.
bool text_of(const json::object& object, std::string_view name, std::string& into) {
  const auto* member = object.if_contains(name);
  into.clear();
  if (member == nullptr || member->is_null()) return true;
  if (!member->is_string()) return false;
  into = member->get_string();
  return true;
}

const json::object* object_at(const json::object& object, std::string_view name) {
  const auto* member = object.if_contains(name);
  return member == nullptr ? nullptr : member->if_object();
}

std::optional<told> subject(const json::object& object, kind what, const projection& keep) {
  told out{.what = what};
  std::string api_version, a_kind;
  if (!text_of(object, "apiVersion", api_version) || !text_of(object, "kind", a_kind)) return {};
  if (api_version != "v1" || a_kind != "ConfigMap") return {};
  const auto* metadata = object_at(object, "metadata");
  if (metadata == nullptr) return {};
  if (!text_of(*metadata, "name", out.name) || !text_of(*metadata, "namespace", out.ns) ||
      !text_of(*metadata, "uid", out.uid) || !text_of(*metadata, "resourceVersion", out.version)) {
    return {};
  }
  if (out.name.empty() || out.version.empty()) return {};
  out.left = *project(object, keep.root());
  return out;
}

std::optional<told> bookmark(const json::object& object) {
  told out{.what = kind::bookmark};
  const auto* metadata = object_at(object, "metadata");
  if (metadata == nullptr || !text_of(*metadata, "resourceVersion", out.version)) return {};
  if (out.version.empty()) return {};
  const auto* annotations = object_at(*metadata, "annotations");
  if (annotations != nullptr) {
    const auto* end = annotations->if_contains("k8s.io/initial-events-end");
    out.end = end != nullptr && end->is_string() && end->get_string() == "true";
  }
  return out;
}

std::optional<told> reference(const json::value& line, const projection& keep) {
  const auto* event = line.if_object();
  if (event == nullptr) return {};
  std::string type;
  const auto* object = event->if_contains("object");
  if (object == nullptr || !event->contains("type") || !event->at("type").is_string()) return {};
  type = event->at("type").get_string();
  if (type == "ERROR") return told{.what = kind::error};
  if (!object->is_object()) return {};
  if (type == "BOOKMARK") return bookmark(object->get_object());
  if (type == "ADDED") return subject(object->get_object(), kind::added, keep);
  if (type == "MODIFIED") return subject(object->get_object(), kind::modified, keep);
  if (type == "DELETED") return subject(object->get_object(), kind::deleted, keep);
  return {};
}

// --- under test ----------------------------------------------------------------------------------

json::value parse_again(const object& from) {
  boost::system::error_code error;
  auto value = parse(from.text(), error);
  check(!error, "what is kept is valid JSON");
  check(from.text().find_first_of("\n\r\t") == std::string_view::npos, "and compact");
  return value;
}

struct outcome {
  std::vector<told> events;
  bool refused = false;

  friend bool operator==(const outcome&, const outcome&) = default;
};

outcome decode(std::string_view stream, std::size_t portion, const projection& keep) {
  outcome out;
  watch_decoder decoder({configmaps(), false}, keep, 1 << 20, [&](const decoded_event& event) {
    told next{.what = event.type};
    if (event.type != kind::error) next.version = event.resource_version;
    if (event.subject) {
      next.name = event.subject.name();
      next.ns = event.subject.ns();
      next.uid = event.subject.uid();
      next.left = parse_again(event.subject);
    }
    next.end = event.initial_events_end;
    out.events.push_back(std::move(next));
    return true;
  });
  while (!stream.empty() && !out.refused) {
    const auto bytes = std::min(portion, stream.size());
    const std::vector<char> copy(stream.begin(),
                                 stream.begin() + static_cast<std::ptrdiff_t>(bytes));
    out.refused = !decoder.feed({copy.data(), copy.size()});
    stream.remove_prefix(bytes);
  }
  check(out.refused == decoder.error().code.failed(), "what is refused has a reason");
  return out;
}

void check_stream(std::string_view stream, std::size_t portion, const projection& keep) {
  const auto whole = decode(stream, ~std::size_t{0}, keep);
  check(whole == decode(stream, portion, keep), "events are the same however the bytes are cut");
  std::size_t next = 0;
  for (;;) {
    const auto end = stream.find('\n');
    if (end == std::string_view::npos) break;
    const auto line = stream.substr(0, end);
    stream.remove_prefix(end + 1);
    if (line.empty() || line == "\r") continue;
    boost::system::error_code error;
    const auto parsed = parse(line, error);
    const auto expected = error ? std::nullopt : reference(parsed, keep);
    const bool refused = next == whole.events.size();
    if (refused) {
      check(whole.refused, "each line is an event, or refused");
      check(!expected || is_ambiguous(line, parsed), "nothing good is refused");
      return;
    }
    check(!error, "what is not JSON is refused");
    check(expected.has_value(), "what is no event is refused");
    check(whole.events[next] == *expected, "an event says what the reference says");
    ++next;
  }
  check(next == whole.events.size() && !whole.refused, "there are no events but those of lines");
}

/// The same text as a page of a list. Here only what is kept is checked.
void check_list(const std::string& body, const projection& keep) {
  const auto page = decode_list(body, {configmaps(), false}, keep);
  boost::system::error_code error;
  const auto parsed = parse(body, error);
  if (error) {
    check(page.has_error(), "what is not JSON is no list");
    return;
  }
  if (!page) return;
  const auto* items = parsed.as_object().if_contains("items");
  check(items != nullptr, "a list has items");
  check(page->items.size() == (items->is_array() ? items->get_array().size() : 0),
        "all items are there");
  for (const auto& each : page->items) {
    const auto value = parse_again(each);
    const auto& metadata = value.as_object().at("metadata").as_object();
    check(metadata.at("name").as_string() == json::string_view(each.name()),
          "an item has its name");
    check(value.as_object().at("kind").as_string() == "ConfigMap", "an item says what it is");
  }
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  if (size < 2) return 0;
  const auto keep = chosen(data[0]);
  const std::size_t portion = 1 + data[1] % 64;
  const std::string text(reinterpret_cast<const char*>(data) + 2, size - 2);
  check_stream(text, portion, keep);
  check_list(text, keep);
  return 0;
}
