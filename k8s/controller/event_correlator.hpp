#pragma once

#include "rw/core/clock.hpp"
#include "rw/core/lru_map.hpp"
#include "rw/core/token_bucket.hpp"
#include "rw/k8s/objects/types.hpp"

#include <boost/json/value.hpp>

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <set>
#include <string>

namespace rw::k8s {

enum class event_type : std::uint8_t { normal, warning };

/// An occurrence on an object that its owner should know.
struct event_note {
  object_reference about = {};
  event_type type = event_type::normal;
  std::string reason = {};   ///< a word in CamelCase, for programs: "WatcherGatewayNotFound"
  std::string message = {};  ///< a sentence, for people; truncated to 1 KiB
};

/// client-go's defaults.
struct event_limits {
  /// Events of one object: `burst` at once, then one each `every`.
  unsigned burst = 25;
  std::chrono::seconds every = std::chrono::minutes(5);
  /// This many different messages of one object with the same reason become events of their own.
  /// Further ones, as long as they come at least each `similar_for`, are joined into one event.
  std::size_t similar = 10;
  std::chrono::seconds similar_for = std::chrono::minutes(10);
  /// Objects and events that are remembered.
  std::size_t remembered = 4096;
};

/// Decides what is written as events, so that neither the API server nor a reader is flooded: the
/// rules of k8s.io/client-go/tools/record (events_cache.go). A repeated event only increments its
/// count, many similar ones become one "(combined from similar events)", and events beyond the
/// object's rate limit are dropped.
///
/// Events are of the core group, v1: every API server since 1.0 accepts them, and `kubectl
/// describe` and `kubectl get events` show them. (events.k8s.io/v1 came with 1.19, has the same
/// storage, and its repeated events need a series of another form.)
class event_correlator {
 public:
  struct write {
    boost::json::value object;
    bool repeated = false;  ///< it was written before: only count, lastTimestamp, message differ

    boost::json::value change() const;
  };

  /// `component` and `instance` name the reporter: "lifecycle-manager", and the pod's name.
  event_correlator(std::string component, std::string instance, event_limits limits);

  /// Returns nothing if the object has exceeded its rate of events.
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
  core::lru_map<std::string, written_event> written_;       ///< by object, type, reason and message
  std::int64_t last_stamp_ = 0;
};

}  // namespace rw::k8s
