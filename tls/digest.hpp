#pragma once

#include <openssl/sha.h>
#include <openssl/types.h>

#include <array>
#include <memory>
#include <string_view>

namespace rw::tls {

using sha256_digest = std::array<unsigned char, SHA256_DIGEST_LENGTH>;

/// SHA-256 (FIPS 180-4) of `text`. For all threads. Throws std::runtime_error if OpenSSL has none
/// to offer, or no memory: what stands for a text, such as a sender's certificate, is never a
/// constant.
sha256_digest sha256(std::string_view text);

/// SHA-256 of what is added, one part after another, without a copy of them: no place keeps a part
/// that is secret. Not thread-safe. Throws like sha256.
class sha256_stream {
 public:
  sha256_stream();
  sha256_stream(const sha256_stream&) = delete;
  sha256_stream& operator=(const sha256_stream&) = delete;

  sha256_stream& add(std::string_view part);

  /// To be called once, as the last. What is called after it throws.
  sha256_digest finish();

 private:
  struct release {
    void operator()(EVP_MD_CTX* context) const noexcept;
  };

  std::unique_ptr<EVP_MD_CTX, release> context_;
};

}  // namespace rw::tls
