#pragma once

#include "core/clock.hpp"
#include "core/lru_map.hpp"
#include "core/token_bucket.hpp"
#include "k8s/objects/types.hpp"

#include <boost/json/value.hpp>

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <set>
#include <string>

namespace rw::k8s {

enum class event_type : std::uint8_t { normal, warning };

/// Something that happened to an object and that its owner should know.
struct event_note {
  object_reference about = {};
  event_type type = event_type::normal;
  std::string reason = {};   ///< a word in CamelCase, for programs: "WatcherGatewayNotFound"
  std::string message = {};  ///< a sentence, for people; cut off after 1 KiB
};

/// client-go's defaults.
struct event_limits {
  /// Events of one object: `burst` at once, then one each `every`.
  unsigned burst = 25;
  std::chrono::seconds every = std::chrono::minutes(5);
  /// So many different messages of one object with the same reason are written apart; further ones,
  /// as long as they come at least each `similar_for`, are joined into one event.
  std::size_t similar = 10;
  std::chrono::seconds similar_for = std::chrono::minutes(10);
  /// Objects and events that are remembered.
  std::size_t remembered = 4096;
};

/// Decides what is written of what happened, so that neither the API server nor a reader is
/// flooded: the rules of k8s.io/client-go/tools/record (events_cache.go). The same event again only
/// has its count raised, many similar ones become one "(combined from similar events)", and what
/// comes too often for one object is left out.
///
/// Events are of the core group, v1: each API server since 1.0 takes them, and `kubectl describe`
/// and `kubectl get events` show them (events.k8s.io/v1 came with 1.19, has the same storage, and
/// its repeated events need a series of another form).
class event_correlator {
 public:
  /// An event as it is to be in the API server.
  struct write {
    boost::json::value object;
    bool repeated = false;  ///< it was written before: only count, lastTimestamp, message differ

    /// What is to be merged into a repeated one.
    boost::json::value change() const;
  };

  /// `component` and `instance` say who tells: "lifecycle-manager", and the pod's name.
  event_correlator(std::string component, std::string instance, event_limits limits);

  /// None: the object has too many events.
  std::optional<write> next(const event_note& note, core::time_point now,
                            std::chrono::system_clock::time_point wall);

 private:
  struct similar_events {
    std::set<std::string> messages;
    core::time_point last{};
  };
  struct written_event {
    std::string name;
    std::string first_time;
    std::int64_t count = 0;
  };

  std::string unique_name(const std::string& object, std::chrono::system_clock::time_point wall);
  boost::json::value object_of(const event_note& note, const written_event& known,
                               std::string_view message, const std::string& time) const;

  const std::string component_;
  const std::string instance_;
  const event_limits limits_;
  core::lru_map<std::string, core::token_bucket> buckets_;  ///< by object
  core::lru_map<std::string, similar_events> similar_;      ///< by object, type and reason
  core::lru_map<std::string, written_event> written_;       ///< and by message
  std::int64_t last_stamp_ = 0;
};

}  // namespace rw::k8s
