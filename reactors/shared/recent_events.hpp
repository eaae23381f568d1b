#pragma once

#include "rw/core/clock.hpp"
#include "rw/core/sip_hash.hpp"
#include "rw/k8s/controller/event_sink.hpp"
#include "rw/k8s/objects/names.hpp"

#include <boost/json/array.hpp>

#include <cstddef>
#include <cstdint>
#include <list>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

namespace rw {

/// An Event as this process recorded it.
struct recent_event {
  std::uint32_t at = 0;     ///< the last time, in seconds since 1970
  std::uint32_t count = 1;  ///< since it was first recorded
  k8s::event_type type = k8s::event_type::normal;
  std::string kind = {};  ///< of the object that it is about
  std::string reason = {};
  std::string message = {};
};

/// Remembers the events that reactors record, and passes them on: the page shows those of a
/// runtime without a right to read Events, and without a watch of them. Unlike in Kubernetes, where
/// event_recorder drops what floods, each one is here, until newer ones need its place.
///
/// Memory: `max_bytes`, and at most `max_of_object` events of an object. Single executor.
class recent_events final : public k8s::event_sink {
 public:
  static constexpr std::size_t max_of_object = 8;
  static constexpr std::size_t max_message = 300;  ///< bytes; longer ones are cut in the middle

  /// `to` and `clock` must outlive it.
  recent_events(k8s::event_sink& to, core::clock& clock, std::size_t max_bytes = 4u << 20)
      : sink_(to), clock_(clock), max_bytes_(max_bytes) {}
  recent_events(const recent_events&) = delete;
  recent_events& operator=(const recent_events&) = delete;

  void record(k8s::event_note note) noexcept override;

  /// The newest first; empty if there are none.
  std::vector<recent_event> of(std::string_view kind, const k8s::object_key& object) const;
  /// What it takes, about.
  std::size_t bytes() const noexcept { return bytes_; }

 private:
  struct entry {
    std::string object;
    recent_event event;
  };
  using position = std::list<entry>::iterator;

  static std::size_t size_of(const entry& of) noexcept;
  void keep(const k8s::event_note& note);
  void forget(position at);

  k8s::event_sink& sink_;
  core::clock& clock_;
  const std::size_t max_bytes_;
  std::list<entry> entries_;  ///< the oldest first
  std::unordered_map<std::string, std::vector<position>, core::foreign_text_hash>
      by_object_;  ///< likewise
  std::size_t bytes_ = 0;
};

/// JSON of `/runtimes` for events: `at`, `type`, `reason`, `message`, `about` (the object's kind),
/// and `count` if it is more than 1.
boost::json::array json_of(const std::vector<recent_event>& of);

}  // namespace rw
