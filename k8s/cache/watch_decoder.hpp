#pragma once

#include "rw/k8s/objects/failure.hpp"
#include "rw/k8s/objects/object.hpp"
#include "rw/k8s/objects/object_reader.hpp"
#include "rw/k8s/objects/projection.hpp"

#include <cstddef>
#include <cstdint>
#include <functional>
#include <string>
#include <string_view>

namespace rw::k8s {

/// One event of a watch (Kubernetes API concepts, "Efficient detection of changes").
struct decoded_event {
  enum class kind : std::uint8_t { added, modified, deleted, bookmark, error };

  kind type = kind::added;
  /// The object, or what it was at last, as far as the projection keeps it. Empty with bookmarks
  /// and errors.
  object subject = {};
  /// What the watch has reached; empty with an error.
  std::string_view resource_version = {};
  bool initial_events_end = false;  ///< a bookmark that ends a streaming list
  failure status = {};              ///< an error's Status
};

/// Makes events of a watch's bytes: lines of JSON. Each line is read where it lies; only of one
/// that came in pieces a copy is made. So at most one event is held at a time.
///
/// Not thread-safe.
class watch_decoder {
 public:
  /// Gets each event; what it is given is valid until it returns. False: no more of them.
  using handler = std::function<bool(const decoded_event&)>;

  /// A line may have up to `event_bytes`. All is copied or shared.
  watch_decoder(object_format expected, projection keep, std::size_t event_bytes, handler to);

  /// The next bytes. False: the watch is to be given up, because the handler said so, or because of
  /// `problem`; nothing more may be fed then.
  bool feed(std::string_view bytes);

  /// True if no line has come in part.
  bool between_lines() const noexcept { return part_.empty(); }

  /// Why decoding ended: `errc::bad_answer` or `errc::too_large`. No code if it did not.
  const failure& error() const noexcept { return error_; }

 private:
  struct envelope;

  bool line(std::string_view text);
  bool gather(std::string_view part);
  bool too_large();
  bool give_up(errc code, const std::string& message);
  bool read(core::token_walk& walk, envelope& into) const;
  bool read_members(core::token_walk& walk, bool type_is_known, envelope& into) const;
  static bool read_type(core::token_walk& walk, envelope& into);
  bool read_subject(core::token_walk& walk, envelope& into) const;

  const object_format expected_;
  const projection keep_;
  const std::size_t event_bytes_;
  const handler handler_;
  std::string part_;  ///< of a line whose end has not come yet
  failure error_;
};

}  // namespace rw::k8s
