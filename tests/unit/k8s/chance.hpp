#pragma once

#include "rw/core/backoff.hpp"
#include "rw/core/clock.hpp"

#include <cstdint>
#include <cstdlib>
#include <memory>
#include <random>
#include <string>
#include <utility>

namespace rw::k8s::test {

#if defined(__has_feature)
#if __has_feature(address_sanitizer) || __has_feature(thread_sanitizer)
inline constexpr bool sanitized = true;
#else
inline constexpr bool sanitized = false;
#endif
#else
inline constexpr bool sanitized = false;
#endif

inline std::uint64_t from_environment(const char* name, std::uint64_t otherwise) {
  const char* text = std::getenv(name);  // NOLINT(concurrency-mt-unsafe): one thread
  return text == nullptr ? otherwise : std::stoull(text);
}

/// Numbers by chance, the same for the same seed.
class chance {
 public:
  explicit chance(std::uint64_t seed) : engine_(seed) {}

  std::uint64_t draw(std::uint64_t below) { return engine_() % below; }
  bool likely(double probability) {
    return std::uniform_real_distribution<double>(0, 1)(engine_) < probability;
  }
  core::duration up_to(core::duration most) {
    return core::duration(
        static_cast<core::duration::rep>(draw(static_cast<std::uint64_t>(most.count()) + 1)));
  }
  core::random_source source() {
    auto engine = std::make_shared<std::mt19937_64>(engine_());
    return [engine = std::move(engine)] { return (*engine)(); };
  }

 private:
  std::mt19937_64 engine_;
};

}  // namespace rw::k8s::test
