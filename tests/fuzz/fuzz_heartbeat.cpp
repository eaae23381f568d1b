// A heartbeat, which any process with a runtime's certificate can send: what is read means the same
// once it is written again, and is bounded.

#include "rw/reactors/heartbeat/losses.hpp"
#include "rw/reactors/shared/heartbeat.hpp"

#include "tests/fuzz/check.hpp"
#include <cstddef>
#include <cstdint>
#include <string>

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  using namespace rw;
  using rw::fuzz::check;
  const std::string body(reinterpret_cast<const char*>(data), size);
  const auto read = parse_heartbeat(body);
  if (!read) {
    check(!read.error().message.empty(), "a refusal says why");
    return 0;
  }
  const auto written = render_heartbeat(*read);
  check(written.size() <= max_heartbeat_bytes, "a heartbeat is bounded");
  const auto again = parse_heartbeat(written);
  check(again.has_value(), "what is written is read again");
  check(again->watches.size() + again->more_watches == read->watches.size() + read->more_watches,
        "each watch is counted");
  const auto repeated = parse_heartbeat(render_heartbeat(*again));  // reasons are printable by now
  check(repeated && *repeated == *again, "it means the same");
  heartbeats::loss_counter losses;
  losses.receive(*read, {}, {});
  check(!losses.receive(*read, {}, {}), "equals report no loss");
  return 0;
}
