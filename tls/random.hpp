#pragma once

#include <openssl/rand.h>

#include <array>
#include <stdexcept>
#include <string>
#include <string_view>

namespace rw::tls {

/// Returns 32 random bytes of OpenSSL's generator as hexadecimal digits: nobody can guess them.
/// Throws std::runtime_error where there are none.
inline std::string random_token() {
  std::array<unsigned char, 32> random{};
  if (RAND_bytes(random.data(), random.size()) != 1) {
    throw std::runtime_error("OpenSSL has no random bytes");
  }
  constexpr std::string_view digits = "0123456789abcdef";
  std::string out;
  for (const auto byte : random) {
    out += digits[byte >> 4];
    out += digits[byte & 15];
  }
  return out;
}

}  // namespace rw::tls
