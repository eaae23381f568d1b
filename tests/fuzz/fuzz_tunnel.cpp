// A proxy's answers to CONNECT: what comes of one does not depend on how its bytes are cut, and a
// tunnel is open only where nothing follows the answer.

#include "rw/core/http/tunnel.hpp"

#include "tests/fuzz/check.hpp"
#include <cstddef>
#include <cstdint>
#include <string_view>

namespace {

using rw::fuzz::check;
using rw::http::tunnel_reader;
using rw::http::tunnel_result;

constexpr std::size_t limit = 1024;

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  const std::string_view text(reinterpret_cast<const char*>(data), size);
  tunnel_result whole;
  tunnel_reader at_once(limit);
  const bool ended = at_once.take(text, whole);
  check(!whole.open || whole.cause.empty(), "an open tunnel has no defect");
  check(!ended || whole.open || !whole.cause.empty(), "a refusal has a cause");
  check(ended || size <= limit, "an answer without end is left");

  tunnel_result cut;
  tunnel_reader by_bytes(limit);
  std::size_t read = 0;
  bool over = false;
  while (read < size && !over) over = by_bytes.take(text.substr(read++, 1), cut);
  if (read < size) return 0;  // what follows is the upstream's
  check(over == ended, "an answer that has ended in pieces has ended");
  check(cut.open == whole.open, "an answer means the same however it is cut");
  return 0;
}
