#pragma once

#include <cstddef>
#include <cstdint>
#include <string_view>

namespace rw::core {

/// A hash over several strings, each delimited by its length. Fast and well mixed; not safe against
/// an adversary with knowledge of it.
class string_hash {
 public:
  string_hash& add(std::string_view text) noexcept;
  std::size_t value() const noexcept { return static_cast<std::size_t>(seed_); }

 private:
  std::uint64_t seed_ = 0xE7037ED1A0B428DBULL;
};

}  // namespace rw::core
