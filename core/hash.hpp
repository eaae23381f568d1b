#pragma once

#include <cstddef>
#include <cstdint>
#include <cstring>
#include <string_view>

namespace rw::core {

/// A hash over several strings, each delimited by its length. Fast and well mixed; not safe against
/// an adversary with knowledge of it.
class string_hash {
 public:
  string_hash() = default;
  /// Goes on where a hash of that value ended.
  explicit string_hash(std::uint64_t value) noexcept : seed_(value) {}

  string_hash& add(std::string_view text) noexcept {
    auto seed = seed_;
    // The length first: "ab" + "c" differs from "a" + "bc".
    seed = mix(seed ^ odd_1, text.size() ^ odd_2);
    while (!text.empty()) {
      std::uint64_t word = 0;
      const auto bytes = text.size() < sizeof word ? text.size() : sizeof word;
      std::memcpy(&word, text.data(), bytes);
      // The sum keeps the previous state even if a chosen word makes the product zero.
      seed = mix(seed ^ word ^ odd_1, odd_2) + ((seed << 5) | (seed >> 59));
      text.remove_prefix(bytes);
    }
    seed_ = seed;
    return *this;
  }
  std::size_t value() const noexcept { return static_cast<std::size_t>(seed_); }

 private:
  /// Mixes two words into one: both halves of a 128-bit product (the construction of wyhash,
  /// https://github.com/wangyi-fudan/wyhash, public domain).
  static std::uint64_t mix(std::uint64_t a, std::uint64_t b) noexcept {
    __extension__ using wide = unsigned __int128;
    const wide product = static_cast<wide>(a) * b;
    return static_cast<std::uint64_t>(product) ^ static_cast<std::uint64_t>(product >> 64);
  }

  static constexpr std::uint64_t odd_1 = 0xA0761D6478BD642FULL;
  static constexpr std::uint64_t odd_2 = 0xE7037ED1A0B428DBULL;

  std::uint64_t seed_ = odd_2;
};

}  // namespace rw::core
