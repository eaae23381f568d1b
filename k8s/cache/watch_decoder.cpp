#include "rw/k8s/cache/watch_decoder.hpp"

#include "rw/core/http/message.hpp"
#include "rw/core/json/json_view.hpp"
#include "rw/k8s/objects/json_input.hpp"
#include "rw/k8s/objects/object_reader.hpp"
#include "rw/k8s/objects/status.hpp"

#include <algorithm>
#include <optional>
#include <utility>

namespace rw::k8s {
namespace {

using kind = decoded_event::kind;

constexpr std::string_view initial_events_end = "k8s.io/initial-events-end";

std::optional<kind> parse_kind(std::string_view text) noexcept {
  if (text == "MODIFIED") return kind::modified;
  if (text == "ADDED") return kind::added;
  if (text == "DELETED") return kind::deleted;
  if (text == "BOOKMARK") return kind::bookmark;
  if (text == "ERROR") return kind::error;
  return std::nullopt;
}

/// What counts of a bookmark.
struct bookmark {
  std::string_view resource_version;
  bool initial_events_end = false;

  bool read(core::token_walk& walk) {
    *this = {};
    return walk.object([&](std::string_view name) {
      return name == "metadata" ? read_metadata(walk) : walk.skip();
    });
  }

 private:
  bool read_metadata(core::token_walk& walk) {
    *this = {};
    return walk.object([&](std::string_view name) {
      if (name == "resourceVersion") return string_or_null(walk, resource_version);
      if (name == "annotations" && walk.peek() == '{') return read_annotations(walk);
      return walk.skip();
    });
  }

  bool read_annotations(core::token_walk& walk) {
    initial_events_end = false;
    return walk.object([&](std::string_view name) {
      if (name != k8s::initial_events_end || walk.peek() != '"') return walk.skip();
      std::string_view value;
      const bool is_string = walk.string(value);
      initial_events_end = value == "true";
      return is_string;
    });
  }
};

/// What an ERROR event's Status says.
failure read_status(std::string text) {
  http::response response;
  {
    const core::json_document status(text);
    const auto code = status.root().find("code").unsigned_integer();
    response.status = static_cast<unsigned>(std::min<std::uint64_t>(code.value_or(0), 999));
  }
  response.body = std::move(text);
  return failure_of(response, "the watch was ended by the server", {});
}

/// Room that a decoder keeps for the next line that comes in pieces.
constexpr std::size_t kept_part = 4096;

}  // namespace

/// What one line holds.
struct watch_decoder::envelope {
  bool has_type = false;
  std::optional<kind> type;  ///< nothing: it is not known
  bool has_subject = false;
  bool is_unusual = false;
  bool initial_events_end = false;
  object subject;
  std::string text;   ///< a bookmark's resourceVersion, or an error's Status as JSON
  std::string wrong;  ///< with what is JSON, but no event of this watch
};

watch_decoder::watch_decoder(object_format expected, projection keep, std::size_t event_bytes,
                             handler to)
    : expected_(std::move(expected)),
      keep_(std::move(keep)),
      event_bytes_(event_bytes),
      handler_(std::move(to)) {}

bool watch_decoder::feed(std::string_view bytes) {
  for (;;) {
    const auto end = bytes.find('\n');
    if (end == std::string_view::npos) return gather(bytes);
    const auto text = bytes.substr(0, end);
    bytes.remove_prefix(end + 1);
    if (part_.empty()) {
      if (!line(text)) return false;
      continue;
    }
    if (!gather(text)) return false;
    const bool go_on = line(part_);
    part_.clear();
    if (part_.capacity() > kept_part) std::string().swap(part_);
    if (!go_on) return false;
  }
}

bool watch_decoder::gather(std::string_view text) {
  if (text.size() > event_bytes_ - part_.size()) return too_large();
  part_ += text;
  return true;
}

bool watch_decoder::too_large() {
  std::string().swap(part_);
  return give_up(errc::too_large, "is larger than " + std::to_string(event_bytes_) + " bytes");
}

bool watch_decoder::give_up(errc code, const std::string& message) {
  error_.code = code;
  error_.message = "an event of the watch " + message;
  return false;
}

bool watch_decoder::line(std::string_view text) {
  if (text.size() > event_bytes_) return too_large();
  if (text.empty() || text == "\r") return true;
  envelope holds;
  const auto error = json_input::of_thread().read(text, "is no object with type and object",
                                                  [&](auto& walk) { return read(walk, holds); });
  if (!error.empty()) return give_up(errc::bad_response, error);
  if (!holds.wrong.empty()) return give_up(errc::bad_response, holds.wrong);

  decoded_event event;
  event.type = *holds.type;
  if (event.type == kind::error) {
    event.status = read_status(std::move(holds.text));
  } else if (event.type == kind::bookmark) {
    event.resource_version = holds.text;
    event.initial_events_end = holds.initial_events_end;
  } else {
    event.subject = std::move(holds.subject);
    event.resource_version = event.subject.resource_version();
  }
  return handler_(event);
}

bool watch_decoder::read(core::token_walk& walk, envelope& into) const {
  into = {};
  bool whole = read_members(walk, false, into);
  if (!whole && into.is_unusual) {
    into = {};
    walk.restart();
    whole = walk.object([&](std::string_view name) {
      return name == "type" ? read_type(walk, into) : walk.skip();
    });
    walk.restart();
    whole = whole && read_members(walk, true, into);
  }
  if (!whole || !into.has_subject) return false;
  if (!into.type) into.wrong = "has no type that is known";
  return true;
}

/// Without its type being known: as servers write it, each once and the type first; everything else
/// is unusual. With it, of what is there twice the last one counts.
bool watch_decoder::read_members(core::token_walk& walk, bool type_is_known, envelope& into) const {
  return walk.object([&](std::string_view name) {
    if (name != "type" && name != "object") return walk.skip();
    const bool is_type = name == "type";
    into.is_unusual = !type_is_known && (is_type ? into.has_type : !into.type || into.has_subject);
    if (into.is_unusual) return false;
    if (!is_type) return read_subject(walk, into);
    return type_is_known ? walk.skip() : read_type(walk, into);
  });
}

bool watch_decoder::read_type(core::token_walk& walk, envelope& into) {
  std::string_view text;
  if (!walk.string(text)) return false;
  into.has_type = true;
  into.type = parse_kind(text);
  return true;
}

bool watch_decoder::read_subject(core::token_walk& walk, envelope& into) const {
  into.has_subject = true;
  into.wrong.clear();
  if (!into.type) return walk.skip();
  switch (*into.type) {
    case kind::error: {
      const char* const begin = walk.here();
      if (!walk.skip()) return false;
      into.text.assign(begin, walk.here());
      return true;
    }
    case kind::bookmark: {
      bookmark state;
      if (!state.read(walk)) return false;
      into.text = state.resource_version;
      into.initial_events_end = state.initial_events_end;
      if (into.text.empty()) into.wrong = "is a bookmark without resourceVersion";
      return true;
    }
    default: {
      object_reader reader(walk, json_input::of_thread().builder());
      if (!reader.read(keep_.root())) return false;
      into.subject = reader.finish(expected_, into.wrong);
      return true;
    }
  }
}

}  // namespace rw::k8s
