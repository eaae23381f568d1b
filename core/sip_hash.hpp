#pragma once

#include <array>
#include <bit>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <string_view>
#include <utility>

namespace rw::core {

static_assert(std::endian::native == std::endian::little, "words are read as they lie in memory");

/// Key of a SipHash: 128 bits that nobody outside of the process knows.
struct sip_key {
  std::uint64_t k0 = 0;
  std::uint64_t k1 = 0;

  /// Returns the key of this process, which is random and stays the same until its end.
  /// Thread-safe. Throws std::system_error if the system has no randomness.
  static const sip_key& of_process();
};

/// SipHash (Aumasson and Bernstein, "SipHash: a fast short-input PRF", 2012) of a sequence of
/// 64-bit words: without the key no two can be made whose hashes are equal. `Rounds` and
/// `FinalRounds` are the paper's c and d.
template <unsigned Rounds, unsigned FinalRounds>
class sip_state {
 public:
  explicit sip_state(const sip_key& key) noexcept
      : v0_(key.k0 ^ 0x736F6D6570736575ULL),
        v1_(key.k1 ^ 0x646F72616E646F6DULL),
        v2_(key.k0 ^ 0x6C7967656E657261ULL),
        v3_(key.k1 ^ 0x7465646279746573ULL) {}

  void add(std::uint64_t word) noexcept {
    v3_ ^= word;
    rounds<Rounds>();
    v0_ ^= word;
  }

  /// Adds a text's whole words, and returns what is left of it as one, without its length.
  std::uint64_t add_words(std::string_view text) noexcept {
    std::uint64_t word = 0;
    for (; text.size() >= sizeof word; text.remove_prefix(sizeof word)) {
      std::memcpy(&word, text.data(), sizeof word);
      add(word);
    }
    return part_of_word(text);
  }

  std::uint64_t finish() noexcept {
    v2_ ^= 0xFF;
    rounds<FinalRounds>();
    return v0_ ^ v1_ ^ v2_ ^ v3_;
  }

 private:
  /// Returns up to seven bytes as a word, by loads that overlap.
  static std::uint64_t part_of_word(std::string_view text) noexcept {
    const auto size = text.size();
    if (size >= 4) {
      std::uint32_t first = 0;
      std::uint32_t last = 0;
      std::memcpy(&first, text.data(), sizeof first);
      std::memcpy(&last, text.data() + size - sizeof last, sizeof last);
      return first | std::uint64_t{last} << (8 * (size - sizeof last));
    }
    if (size == 0) return 0;
    const auto byte = [&](std::size_t at) {
      return std::uint64_t{static_cast<unsigned char>(text[at])} << (8 * at);
    };
    return byte(0) | byte(size / 2) | byte(size - 1);
  }

  template <unsigned Count>
  void rounds() noexcept {
    for (unsigned i = 0; i < Count; ++i) {
      v0_ += v1_;
      v1_ = std::rotl(v1_, 13) ^ v0_;
      v0_ = std::rotl(v0_, 32);
      v2_ += v3_;
      v3_ = std::rotl(v3_, 16) ^ v2_;
      v0_ += v3_;
      v3_ = std::rotl(v3_, 21) ^ v0_;
      v2_ += v1_;
      v1_ = std::rotl(v1_, 17) ^ v2_;
      v2_ = std::rotl(v2_, 32);
    }
  }

  std::uint64_t v0_;
  std::uint64_t v1_;
  std::uint64_t v2_;
  std::uint64_t v3_;
};

/// SipHash of a text, as in the paper.
template <unsigned Rounds = 2, unsigned FinalRounds = 4>
std::uint64_t sip_hash(const sip_key& key, std::string_view text) noexcept {
  sip_state<Rounds, FinalRounds> made(key);
  const auto last = made.add_words(text);
  made.add(last | (std::uint64_t{text.size()} << 56));
  return made.finish();
}

/// Hash of one to eight texts, always as many, that a foreigner chooses, for an unordered
/// container: SipHash-1-3, as Rust's and Python's tables have it, with the key of the process. It
/// differs from process to process, so nothing that outlives one may hold it.
template <typename... Texts>
std::size_t foreign_hash(const Texts&... texts) {
  static_assert(sizeof...(texts) >= 1 && sizeof...(texts) <= 8);
  sip_state<1, 3> made(sip_key::of_process());
  // Where each ends comes first, since "ab" and "c" are not "a" and "bc": in 16 bits, or whole.
  constexpr std::size_t of_a_word = 4;
  const std::array<std::size_t, sizeof...(texts)> sizes{std::string_view(texts).size()...};
  std::uint64_t packed = 0;
  std::size_t all = 0;
  for (std::size_t i = 0; i < sizes.size(); ++i) {
    packed = packed << 16 | sizes[i];
    all |= sizes[i];
    if (i % of_a_word == of_a_word - 1 || i + 1 == sizes.size()) made.add(std::exchange(packed, 0));
  }
  if (all > 0xFFFF) [[unlikely]] {
    made.add(~std::uint64_t{0});
    for (const auto size : sizes) made.add(size);
  }
  const auto add = [&made](std::string_view text) {
    const auto last = made.add_words(text);
    if (text.size() % sizeof last != 0) made.add(last);
  };
  (add(texts), ...);
  return static_cast<std::size_t>(made.finish());
}

/// The same as the hash of a container of strings.
struct foreign_text_hash {
  using is_transparent = void;

  std::size_t operator()(std::string_view text) const { return foreign_hash(text); }
};

}  // namespace rw::core
