// The managers' file, which a client on the runtime may have written: what is taken means the same
// once it is written again.

#include "rw/reactors/shared/managers_file.hpp"

#include "tests/fuzz/check.hpp"
#include <cstddef>
#include <cstdint>
#include <string_view>

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  using rw::fuzz::check;
  const std::string_view text(reinterpret_cast<const char*>(data), size);
  const auto read = rw::parse_managers(text);
  if (!read) {
    check(!read.error().message.empty(), "a refusal says why");
    return 0;
  }
  if (!rw::fits_managers_file(*read)) return 0;
  const auto written = rw::render_managers(*read);
  const auto again = rw::parse_managers(written);
  check(again && *again == *read, "what is written is read again");
  check(rw::render_managers(*again) == written, "the same managers give the same bytes");
  return 0;
}
