// What is read as a WatchEvent must be written and read again as the same; and what is written as
// ours are, and read without the parser, as the parser reads it (a space before it makes it so). So
// must the reason of a resync.

#include "rw/reactors/shared/event_json.hpp"
#include "rw/reactors/shared/resync.hpp"

#include "tests/fuzz/check.hpp"
#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

namespace {

using rw::fuzz::check;

void check_event(const rw::watch_event& event) {
  check(!event.watched.name.empty() && !event.gvk.kind.empty(), "an event names its object");
  std::string out;
  append_wire_json(out, event);
  const auto again = rw::parse_wire_event(out);
  check(again.has_value() && *again == event, "what is written is read back");
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  const std::string body(reinterpret_cast<const char*>(data), size);
  const std::string other = " " + body;
  check(rw::parse_wire_event(body) == rw::parse_wire_event(other),
        "the parser reads the same event");
  std::vector<rw::wire_result> events;
  std::vector<rw::wire_result> parsed;
  const bool is_batch = rw::parse_wire_batch(body, 16, events).has_value();
  check(rw::parse_wire_batch(other, 16, parsed).has_value() == is_batch && parsed == events,
        "the parser reads the same batch");
  if (const auto event = rw::parse_wire_event(body)) check_event(*event);
  if (const auto reason = rw::parse_resync_reason(body)) {
    check(rw::parse_resync_reason(to_string(*reason)) == reason, "a reason is read back");
  }
  for (const auto& event : events) {
    if (event) check_event(*event);
  }
  return 0;
}
