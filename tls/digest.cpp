#include "rw/tls/digest.hpp"

#include <openssl/evp.h>

#include <stdexcept>
#include <utility>

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

void sha256_stream::release::operator()(EVP_MD_CTX* context) const noexcept {
  EVP_MD_CTX_free(context);  // which wipes what it has of the last part
}

sha256_stream::sha256_stream() : context_(EVP_MD_CTX_new()) {
  if (!context_ || EVP_DigestInit_ex(context_.get(), algorithm(), nullptr) != 1) fail();
}

sha256_stream& sha256_stream::add(std::string_view part) {
  if (!context_ || EVP_DigestUpdate(context_.get(), part.data(), part.size()) != 1) fail();
  return *this;
}

sha256_digest sha256_stream::finish() {
  sha256_digest out{};
  // OpenSSL 3.0 takes more after the end, and says what is no digest.
  const auto ended = std::move(context_);
  if (!ended || EVP_DigestFinal_ex(ended.get(), out.data(), nullptr) != 1) fail();
  return out;
}

}  // namespace rw::tls
