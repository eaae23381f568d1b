// The journal of observation, which a full disk may have damaged: what is read means the same once
// it is written again. With a "+" in front the rest is cut into records, each of which gets a valid
// head and sum: a byte with the length of the content, then the content.

#include "rw/core/hash.hpp"
#include "rw/reactors/observation/journal_format.hpp"

#include "tests/fuzz/check.hpp"
#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>

namespace {

using namespace rw::observation;

template <typename Integer>
void append(std::string& to, Integer value) {
  to.append(reinterpret_cast<const char*>(&value), sizeof value);
}

std::string journal_of(std::string_view input) {
  std::string bytes;
  record_writer(bytes).header("boot", "series");
  while (!input.empty()) {
    const auto content = input.substr(1, static_cast<std::uint8_t>(input.front()));
    input.remove_prefix(1 + content.size());
    const auto length = static_cast<std::uint32_t>(content.size());
    append(bytes, length);
    append(bytes, (length ^ 0x52575731U) * 0x9E3779B1U);
    bytes += content;
    append(bytes, std::uint64_t{rw::core::string_hash().add(content).value()});
  }
  return bytes;
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  using rw::fuzz::check;
  std::string bytes(reinterpret_cast<const char*>(data), size);
  if (bytes.starts_with("+")) bytes = journal_of(std::string_view(bytes).substr(1));
  const auto read = decode_journal(bytes, "boot");
  check(read.complete == read.reason.empty(), "an incomplete journal has a reason");
  const auto again = decode_journal(encode_journal(read, "boot"), "boot");
  check(again.complete, "what is written is read again");
  check(again.series == read.series && again.gaps.size() == read.gaps.size(), "with its gaps");
  if (read.old_format) return 0;  // its watches have no numbers
  check(again.watches.size() == read.watches.size(), "with its watches");
  for (const auto& [watch, objects] : read.watches) {
    const auto at = again.watches.find(watch);
    check(at != again.watches.end() && at->second.states == objects.states, "with their objects");
    check(at->second.type == objects.type, "and types");
  }
  return 0;
}
