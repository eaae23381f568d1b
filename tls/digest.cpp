#include "rw/tls/digest.hpp"

#include <openssl/evp.h>

#include <stdexcept>

namespace rw::tls {
namespace {

[[noreturn]] void fail() {
  throw std::runtime_error("SHA-256 is not available");
}

/// It is looked up once, since that takes longer than the digest of a short text (OpenSSL,
/// crypto(7), "Performance"), and stays until the process ends.
const EVP_MD* algorithm() {
  static const EVP_MD* const found = [] {
    const auto* const fetched = EVP_MD_fetch(nullptr, "SHA256", nullptr);
    if (fetched == nullptr) fail();
    return fetched;
  }();
  return found;
}

}  // namespace

sha256_digest sha256(std::string_view text) {
  sha256_digest out{};
  if (EVP_Digest(text.data(), text.size(), out.data(), nullptr, algorithm(), nullptr) != 1) fail();
  return out;
}

}  // namespace rw::tls
