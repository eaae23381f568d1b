// Queries of the manager's pages: a query is rejected with a sentence, or what it asks for is
// within its bounds.

#include "rw/core/text.hpp"
#include "rw/reactors/cli/runtimes_view.hpp"

#include "tests/fuzz/check.hpp"
#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  using rw::fuzz::check;
  const std::string_view text(reinterpret_cast<const char*>(data), size);
  std::string error;
  const auto read = rw::cli::runtimes_query::parse(text, error);
  if (!error.empty()) return 0;
  check(read.limit >= 1 && read.limit <= 5'000, "a page has a bound");
  return 0;
}
