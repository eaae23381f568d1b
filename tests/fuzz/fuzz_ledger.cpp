// The ledger of observation, which a full disk or a client on the runtime may have damaged: what is
// read means the same once it is written again. With a byte in front the rest gets a valid header
// and checksum, so that the fuzzer reaches what is behind them.

#include "core/hash.hpp"
#include "reactors/observation/ledger.hpp"

#include "tests/fuzz/check.hpp"
#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  using namespace rw::observation;
  using rw::fuzz::check;
  std::string bytes(reinterpret_cast<const char*>(data), size);
  if (bytes.starts_with("+")) {
    bytes = std::string(ledger_header) + bytes.substr(1);
    const std::uint64_t sum = rw::core::string_hash().add(bytes).value();
    bytes.append(reinterpret_cast<const char*>(&sum), sizeof sum);
  }
  const auto read = decode_ledger(bytes);
  if (!read) {
    check(!read.error().message.empty(), "a refusal says why");
    return 0;
  }
  observed_objects objects;
  std::size_t entries = 0;
  for (const auto& [watch, known] : *read) {
    auto& table = objects.add(watch);
    for (const auto& [key, delivered] : known) objects.remember(table, key, delivered);
    entries += known.size();
  }
  check(objects.size() <= entries, "each entry is an object at most");
  const auto again = decode_ledger(encode_ledger(objects));
  check(again && again->size() == read->size(), "what is written is read again");
  return 0;
}
