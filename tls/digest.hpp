#pragma once

#include <openssl/sha.h>

#include <array>
#include <string_view>

namespace rw::tls {

using sha256_digest = std::array<unsigned char, SHA256_DIGEST_LENGTH>;

/// SHA-256 (FIPS 180-4) of `text`.
inline sha256_digest sha256(std::string_view text) {
  sha256_digest out{};
  SHA256(reinterpret_cast<const unsigned char*>(text.data()), text.size(), out.data());
  return out;
}

}  // namespace rw::tls
