#pragma once

#include <openssl/sha.h>

#include <array>
#include <string_view>

namespace rw::tls {

using sha256_digest = std::array<unsigned char, SHA256_DIGEST_LENGTH>;

/// SHA-256 (FIPS 180-4) of `text`. For all threads. Throws std::runtime_error if OpenSSL has none
/// to offer, or no memory: what stands for a text, such as a sender's certificate, is never a
/// constant.
sha256_digest sha256(std::string_view text);

}  // namespace rw::tls
