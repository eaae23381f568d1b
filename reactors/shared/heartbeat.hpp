#pragma once

#include "rw/core/text_error.hpp"

#include <boost/system/result.hpp>

#include <array>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace rw {

/// The component that takes heartbeats in KCP: the manager's own, in paths and of its
/// VirtualService.
inline constexpr std::string_view heartbeat_component = "runtime-watcher";

/// The media type of a heartbeat, which distinguishes it from an event on the same path.
inline constexpr std::string_view heartbeat_media_type =
    "application/vnd.runtime-watcher.heartbeat+json";

/// The response header by which the listener of another component offers to accept heartbeats. Its
/// value is the version of their format, 1.
inline constexpr std::string_view heartbeat_offer_header = "watch-heartbeat";

/// The request header with the age of the oldest event of a request: milliseconds from its
/// acceptance until it was sent, by the sender's steady clock.
inline constexpr std::string_view event_age_header = "watch-event-age";

/// Returns the age; nothing for other text, and for more than ten days.
std::optional<std::chrono::milliseconds> parse_event_age(std::string_view text) noexcept;

/// Whether a watcher observes one resource of its managers' file.
enum class watch_state : std::uint8_t {
  live,         ///< its watch shows changes
  catching_up,  ///< it is to be watched, and is being listed or not reachable
  unobserved,   ///< events come from reviews alone
};

std::string_view to_string(watch_state state) noexcept;

/// The state of one resource of the managers' file.
struct watch_report {
  std::string manager = {};
  std::string group = {};
  std::string resource = {};  ///< plural
  std::string field = {};
  watch_state state = watch_state::unobserved;
  /// Of another state than live, or why there are no objects. May be empty; rendered in ASCII.
  std::string reason = {};
  /// When it became live, likewise by `heartbeat::sent`; nothing: it is not.
  std::optional<std::chrono::system_clock::time_point> live_since = {};

  friend bool operator==(const watch_report&, const watch_report&) = default;
};

/// Numbers of events since the watcher started. They never decrease within one boot id.
struct event_counts {
  std::uint64_t accepted = 0;  ///< of reviews; those that overflowed included
  std::uint64_t delivered = 0;
  std::uint64_t overflowed = 0;
  std::uint64_t rejected = 0;
  std::uint64_t not_persisted = 0;
  std::uint64_t resyncs = 0;
  std::uint64_t abandoned = 0;  ///< left undelivered at the end of the process; until then 0

  /// Adds how much `now` exceeds `before`, another count of the same process.
  void add_increase(const event_counts& before, const event_counts& now) noexcept;

  friend bool operator==(const event_counts&, const event_counts&) = default;
};

/// How many times since the watcher started something was dropped that one operator had to be told.
/// Each time it is told to resync. The count never decreases within one boot id.
struct operator_losses {
  std::string manager = {};  ///< empty: all operators that are not named
  std::uint64_t count = 0;

  friend bool operator==(const operator_losses&, const operator_losses&) = default;
};

/// An event that its receiver does not accept, while it accepts others. It is sent again.
struct refused_event {
  std::string manager = {};
  unsigned status = 0;  ///< of HTTP, at most 999
  // Of the object. All texts are rendered in ASCII.
  std::string group = {};
  std::string kind = {};
  std::string ns = {};
  std::string name = {};
  /// As `heartbeat::oldest_undelivered`, of the managers that accept every event or none.
  std::chrono::milliseconds oldest_other{0};

  friend bool operator==(const refused_event&, const refused_event&) = default;
};

/// What a watcher reports of itself to KCP. Its sender is known by the certificate, not by the
/// content. Everything in it is the claim of a process on the runtime.
struct heartbeat {
  std::string boot_id = {};  ///< of the process; a restart has another
  std::string pod = {};      ///< its name; empty: unknown
  std::uint64_t sequence = 0;
  /// The start of the process, and when this was sent, by a calendar that is never set
  /// (`core::steady_calendar`): only differences are to be relied on. Nothing: of a version that
  /// does not say so.
  std::optional<std::chrono::system_clock::time_point> started = {};
  std::optional<std::chrono::system_clock::time_point> sent = {};
  std::string version = {};           ///< of the program
  std::chrono::seconds interval{60};  ///< until the next one, at the latest
  std::string source = {};            ///< effective: webhook, watch or both
  event_counts events = {};
  std::vector<operator_losses> losses = {};         ///< by manager; at most `max_heartbeat_losses`
  std::chrono::milliseconds oldest_undelivered{0};  ///< an event, or a failing resync; 0: none
  /// The manager of what waits longest, of those that accept every event or none. Empty: nothing
  /// waits, or the version does not say so.
  std::string oldest_manager = {};
  std::optional<refused_event> refused = {};
  /// Mean time from acceptance to delivery since the last heartbeat; nothing was delivered: none.
  std::optional<std::chrono::milliseconds> delivery = {};
  std::optional<std::chrono::system_clock::time_point> certificate_not_after = {};
  // What the process has loaded: SHA-256, 64 lower-case hexadecimal digits; empty: unknown.
  std::string managers_digest = {};        ///< `managers_digest` of its managers' file
  std::string ca_digest = {};              ///< `tls::ca_bundle::digest`
  std::string certificate_digest = {};     ///< `tls::certificate::fingerprint`
  std::vector<std::string> probes = {};    ///< nonces of the latest; at most `max_heartbeat_probes`
  std::vector<watch_report> watches = {};  ///< at most `max_heartbeat_watches`
  std::size_t more_watches = 0;            ///< that did not fit

  friend bool operator==(const heartbeat&, const heartbeat&) = default;
};

/// A heartbeat as a listener received it.
struct received_heartbeat {
  std::string runtime_id = {};  ///< common name of the sender's certificate
  heartbeat content = {};
};

/// What a pod has loaded, as its latest heartbeat says.
struct pod_report {
  std::string pod = {};  ///< its name
  std::string managers_digest = {};
  std::string ca_digest = {};
  std::string certificate_digest = {};
  std::chrono::system_clock::time_point heard = {};  ///< by KCP's clock

  /// Whether it has loaded the same.
  bool same_files(const heartbeat& other) const noexcept {
    return managers_digest == other.managers_digest && ca_digest == other.ca_digest &&
           certificate_digest == other.certificate_digest;
  }
};

inline constexpr std::size_t max_heartbeat_watches = 64;
inline constexpr std::size_t max_heartbeat_probes = 4;
inline constexpr std::size_t max_heartbeat_losses = 64;  ///< operators, the empty name included
inline constexpr std::size_t max_heartbeat_bytes = 16 * 1024;  ///< as of one event

/// Returns the body, JSON of at most `max_heartbeat_bytes`. Losses of operators beyond the first
/// 63, or a quarter of the body, are added up under the empty name, as are those of names that are
/// no `is_path_segment`. Watches that do not fit are counted in `moreWatches`.
std::string render_heartbeat(const heartbeat& from);

/// Reads a heartbeat; an error is a sentence that names the field. Ignores unknown fields, so that
/// later versions can add some; missing numbers are 0, missing texts empty. Rejects a missing boot
/// id, values of other types, numbers below 0, an interval of 0 or more than an hour, texts of more
/// than 253 bytes or with control characters, digests of another length, losses of a name that is
/// no `is_path_segment`, and more than `max_heartbeat_watches` watches, `max_heartbeat_probes`
/// probes or `max_heartbeat_losses` losses.
boost::system::result<heartbeat, core::text_error> parse_heartbeat(std::string_view body);

}  // namespace rw
