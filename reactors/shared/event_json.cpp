#include "rw/reactors/shared/event_json.hpp"

#include "rw/core/json/json_view.hpp"
#include "rw/core/json_text.hpp"
#include "rw/core/text.hpp"

#include <algorithm>
#include <optional>
#include <utility>

namespace rw {
namespace {

using core::json_document;
using core::json_view;

constexpr std::size_t wire_depth = 32;

/// Reads a string, or null as empty; returns false for other values.
bool read_text(json_view value, std::string& into) {
  into = value.string();
  return value.is_string() || value.is_null();
}

/// Each field is read again where it is there again, so that the last one counts.
bool read_key(json_view value, object_key& key) {
  key = {};
  bool ns_fits = true;
  bool name_fits = true;
  value.members([&](std::string_view name, json_view member) {
    if (core::iequals(name, "namespace")) ns_fits = read_text(member, key.ns);
    if (core::iequals(name, "name")) name_fits = read_text(member, key.name);
  });
  return (value.is_object() || value.is_null()) && ns_fits && name_fits;
}

bool read_gvk(json_view value, group_version_kind& gvk) {
  gvk = {};
  bool group_fits = true;
  bool version_fits = true;
  bool kind_fits = true;
  value.members([&](std::string_view name, json_view member) {
    if (core::iequals(name, "group")) group_fits = read_text(member, gvk.group);
    if (core::iequals(name, "version")) version_fits = read_text(member, gvk.version);
    if (core::iequals(name, "kind")) kind_fits = read_text(member, gvk.kind);
  });
  return (value.is_object() || value.is_null()) && group_fits && version_fits && kind_fits;
}

/// What an event must have.
std::optional<wire_error> flaw_of(const watch_event& event) {
  if (event.watched.name.empty()) return wire_error::no_name;
  if (event.gvk.kind.empty()) return wire_error::no_kind;
  if (!names_fit({event.watched.name, event.watched.ns, event.gvk.kind, event.gvk.group,
                  event.gvk.version})) {
    return wire_error::name_too_long;
  }
  return {};
}

wire_result read_event(json_view value) {
  if (!value.is_object()) return wire_error::not_an_object;
  watch_event event;
  bool watched_fits = true;
  bool gvk_fits = true;
  value.members([&](std::string_view name, json_view member) {
    if (core::iequals(name, "watched")) watched_fits = read_key(member, event.watched);
    if (core::iequals(name, "watchedgvk")) gvk_fits = read_gvk(member, event.gvk);
  });
  if (!watched_fits || !gvk_fits) return wire_error::wrong_type;
  if (const auto flaw = flaw_of(event)) return *flaw;
  return event;
}

void append_member(std::string& out, std::string_view before, std::string_view text) {
  out += before;
  core::append_json_string(out, text);
}

/// The form in which events are written: calls `member` with what stands before each of the names,
/// and the name, until it says false. Returns what stands behind the last; nothing after a false.
template <class Event, class Member>
std::string_view visit_wire(Event& event, Member member) {
  const bool all = member(R"({"watched":{"Namespace":)", event.watched.ns) &&
                   member(R"(,"Name":)", event.watched.name) &&
                   member(R"(},"watchedGvk":{"group":)", event.gvk.group) &&
                   member(R"(,"version":)", event.gvk.version) &&
                   member(R"(,"kind":)", event.gvk.kind);
  return all ? "}}" : "";
}

bool skip(std::string_view& from, std::string_view expected) noexcept {
  if (!from.starts_with(expected)) return false;
  from.remove_prefix(expected.size());
  return true;
}

/// Reads a string that is its own JSON text: printable ASCII without quotes and backslashes.
bool read_plain(std::string_view& from, std::string& into) {
  if (!skip(from, "\"")) return false;
  const auto* const end = std::ranges::find_if(
      from, [](char c) { return c < ' ' || c > '~' || c == '"' || c == '\\'; });
  if (end == from.end() || *end != '"') return false;
  into.assign(from.begin(), end);
  from.remove_prefix(into.size() + 1);
  return true;
}

/// Reads an event that is written as ours are, which costs a fraction of a parser. False, with
/// `event` in any state, for every other form, and for what is not valid: those are the parser's.
bool read_as_written(std::string_view& from, watch_event& event) {
  const auto behind = visit_wire(event, [&](std::string_view before, std::string& text) {
    return skip(from, before) && read_plain(from, text);
  });
  return !behind.empty() && skip(from, behind) && !flaw_of(event);
}

/// Likewise a batch.
bool read_batch_as_written(std::string_view from, std::size_t max_events,
                           std::vector<wire_result>& into) {
  constexpr std::size_t shortest = 89;  // bytes of an event
  into.clear();
  if (!skip(from, "[")) return false;
  into.reserve(std::min(max_events, from.size() / shortest));
  do {
    if (into.size() == max_events) return false;
    if (!read_as_written(from, *into.emplace_back())) return false;
  } while (skip(from, ","));
  return from == "]";
}

}  // namespace

std::string_view reason(wire_error error) noexcept {
  switch (error) {
    case wire_error::malformed_json:
      return "the body is not valid JSON";
    case wire_error::not_an_object:
      return "an event has to be a JSON object";
    case wire_error::not_an_array:
      return "a batch has to be a JSON array of events";
    case wire_error::too_many_events:
      return "the batch has too many events";
    case wire_error::wrong_type:
      return "a field of the event has the wrong type";
    case wire_error::no_name:
      return "the event does not name the watched object";
    case wire_error::no_kind:
      return "the event does not say of which kind the watched object is";
    case wire_error::name_too_long:
      return "the event has a name of more than 253 bytes";
  }
  return "the event was refused";
}

void append_wire_json(std::string& out, const watch_event& event) {
  out += visit_wire(event, [&out](std::string_view before, const std::string& text) {
    append_member(out, before, text);
    return true;
  });
}

void append_wire_batch(std::string& out, std::span<const watch_event> events) {
  out += '[';
  bool first = true;
  for (const auto& event : events) {
    if (!std::exchange(first, false)) out += ',';
    append_wire_json(out, event);
  }
  out += ']';
}

wire_result parse_wire_event(std::string_view body) {
  wire_result written;
  auto rest = body;
  if (read_as_written(rest, *written) && rest.empty()) return written;
  const json_document document(body, wire_depth);
  if (!document.root().exists()) return wire_error::malformed_json;
  return read_event(document.root());
}

boost::system::result<void, wire_error> parse_wire_batch(std::string_view body,
                                                         std::size_t max_events,
                                                         std::vector<wire_result>& into) {
  boost::system::result<void, wire_error> out;
  if (read_batch_as_written(body, max_events, into)) return out;
  into.clear();
  const json_document document(body, wire_depth);
  const auto value = document.root();
  if (!value.exists()) return wire_error::malformed_json;
  if (!value.is_array()) return wire_error::not_an_array;
  const auto events = value.size();
  if (events > max_events) return wire_error::too_many_events;
  into.reserve(events);
  value.elements([&](json_view element) { into.push_back(read_event(element)); });
  return out;
}

void append_event_line(std::string& out, std::string_view component, std::string_view runtime_id,
                       const watch_event& event) {
  append_member(out, R"({"component":)", component);
  append_member(out, R"(,"runtimeId":)", runtime_id);
  append_member(out, R"(,"watched":{"namespace":)", event.watched.ns);
  append_member(out, R"(,"name":)", event.watched.name);
  append_member(out, R"(},"gvk":{"group":)", event.gvk.group);
  append_member(out, R"(,"version":)", event.gvk.version);
  append_member(out, R"(,"kind":)", event.gvk.kind);
  out += "}}\n";
}

void append_resync_line(std::string& out, std::string_view component, std::string_view runtime_id,
                        resync_reason reason) {
  append_member(out, R"({"component":)", component);
  append_member(out, R"(,"runtimeId":)", runtime_id);
  append_member(out, R"(,"resync":)", to_string(reason));
  out += "}\n";
}

}  // namespace rw
