#include "rw/k8s/cache/watch_decoder.hpp"

#include "rw/core/http/message.hpp"
#include "rw/k8s/objects/json_input.hpp"
#include "rw/k8s/objects/object_reader.hpp"
#include "rw/k8s/objects/status.hpp"
#include "rw/k8s/objects/types.hpp"

#include <boost/json/value.hpp>

#include <optional>
#include <type_traits>
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

  template <typename Walk>
  bool read(Walk& walk) {
    *this = {};
    return walk.object([&](std::string_view name, const char*) {
      return name == "metadata" ? read_metadata(walk) : walk.skip();
    });
  }

 private:
  template <typename Walk>
  bool read_metadata(Walk& walk) {
    *this = {};
    return walk.object([&](std::string_view name, const char*) {
      if (name == "resourceVersion") return string_or_null(walk, resource_version);
      if (name == "annotations" && walk.peek() == '{') return read_annotations(walk);
      return walk.skip();
    });
  }

  template <typename Walk>
  bool read_annotations(Walk& walk) {
    initial_events_end = false;
    return walk.object([&](std::string_view name, const char*) {
      if (name != k8s::initial_events_end || walk.peek() != '"') return walk.skip();
      std::string_view value;
      const bool is_string = walk.string(value);
      initial_events_end = value == "true";
      return is_string;
    });
  }
};

/// What an ERROR event's Status says.
failure read_status(const std::string& text) {
  http::response response;
  response.status = 0;
  response.body = text;
  std::string ignored;
  const auto status = parse_json(text, ignored);
  if (status) response.status = static_cast<unsigned>(find_number(*status, {"code"}));
  return failure_of(response, "the watch was ended by the server", {});
}

/// Room that a decoder keeps for the next line that comes in pieces.
constexpr std::size_t kept_part = 4096;

}  // namespace

/// What one line holds.
struct watch_decoder::envelope {
  std::optional<kind> type;
  bool has_subject = false;
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
    event.status = read_status(holds.text);
  } else if (event.type == kind::bookmark) {
    event.resource_version = holds.text;
    event.initial_events_end = holds.initial_events_end;
  } else {
    event.subject = std::move(holds.subject);
    event.resource_version = event.subject.resource_version();
  }
  return handler_(event);
}

template <typename Walk>
bool watch_decoder::read(Walk& walk, envelope& into) const {
  into = {};
  if constexpr (std::is_same_v<Walk, exact_walk>) {
    // The type may stand behind the object.
    auto ahead = walk;
    const bool whole = ahead.object([&](std::string_view name, const char*) {
      return name == "type" ? read_type(ahead, into) : ahead.skip();
    });
    if (!whole) return false;
  }
  const bool whole = walk.object([&](std::string_view name, const char*) {
    if (name == "type") return read_type(walk, into);
    if (name == "object") return read_subject(walk, into);
    return walk.skip();
  });
  if (!whole || !into.has_subject) return false;
  if (!into.type) into.wrong = "has no type that is known";
  return true;
}

/// What is there twice, or not in the order in which servers write it, is for the exact walk; then
/// the last one counts.
template <typename Walk>
bool watch_decoder::read_type(Walk& walk, envelope& into) {
  constexpr bool exact = std::is_same_v<Walk, exact_walk>;
  std::string_view text;
  if (!walk.string(text)) return false;
  const auto parsed = parse_kind(text);
  if (!exact && (!parsed || into.type)) return false;
  into.type = parsed;
  return true;
}

template <typename Walk>
bool watch_decoder::read_subject(Walk& walk, envelope& into) const {
  constexpr bool exact = std::is_same_v<Walk, exact_walk>;
  if (!exact && (!into.type || into.has_subject)) return false;
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
