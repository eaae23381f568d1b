#pragma once

#include "rw/reactors/shared/events.hpp"
#include "rw/reactors/shared/resync.hpp"

#include <boost/system/result.hpp>

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace rw {

/// What all paths of events begin with: the contract between sender and receiver.
inline constexpr std::string_view contract_path = "/v2/";

/// The response header by which a receiver offers to accept batches; the value is the maximum
/// number of events in one.
inline constexpr std::string_view batch_offer_header = "watch-event-batch";

/// Why a WatchEvent on the wire is rejected. `reason` has the sentence.
enum class wire_error : std::uint8_t {
  malformed_json = 1,  ///< not one JSON value, or deeper than 32 levels
  not_an_object,       ///< a JSON value of another type where an event was expected
  not_an_array,        ///< a batch that is not an array
  too_many_events,     ///< a batch with more elements than the receiver accepts
  wrong_type,          ///< a known field has a value of the wrong type
  no_name,             ///< `watched` or its name is missing or empty
  no_kind,             ///< `watchedGvk` or its kind is missing or empty
  name_too_long,       ///< one of the names is longer than `max_name`
};

/// Returns a line for the response to the sender, without a newline. Static storage.
std::string_view reason(wire_error error) noexcept;

/// Appends the event in the wire format. The manager is not part of it: it is in the URL. The names
/// inside `watched` begin with capitals because existing receivers expect them.
void append_wire_json(std::string& out, const watch_event& event);

void append_wire_batch(std::string& out, std::span<const watch_event> events);

/// Reads one event. Names of fields match case-insensitively (as in Go's encoding/json, which
/// existing senders and receivers use), unknown fields are ignored, null counts as missing, of
/// duplicates the last wins. `manager` stays empty: it is in the URL.
/// The byte after `body` has to be readable, and zero or white space.
using wire_result = boost::system::result<watch_event, wire_error>;
wire_result parse_wire_event(std::string_view body);

/// Reads an array of events into `into`, in place of what that held; its memory is used again. An
/// invalid element is an error in its place, and does not affect the others. The whole is an error
/// if the body is not JSON, not an array, or longer than `max_events`.
boost::system::result<void, wire_error> parse_wire_batch(std::string_view body,
                                                         std::size_t max_events,
                                                         std::vector<wire_result>& into);

/// Appends the line (with its newline) that `runtime-watcher listen` prints for an event:
/// `{"component":..,"runtimeId":..,"watched":{"namespace":..,"name":..},
/// "gvk":{"group":..,"version":..,"kind":..}}`.
void append_event_line(std::string& out, std::string_view component, std::string_view runtime_id,
                       const watch_event& event);

/// The same of a resync: `{"component":..,"runtimeId":..,"resync":"dropped"}`.
void append_resync_line(std::string& out, std::string_view component, std::string_view runtime_id,
                        resync_reason reason);

}  // namespace rw
