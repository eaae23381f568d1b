#pragma once

#include "rw/tls/certificate.hpp"

#include <chrono>
#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <vector>

struct x509_store_st;

namespace rw::tls {

/// Extended key usage to check a certificate for (RFC 5280 4.2.1.12).
enum class purpose : std::uint8_t { client_auth, server_auth };

/// A bundle of CA certificates, each of which is an anchor, intermediates too: a certificate that
/// chains to any of them is trusted, also one whose subject is that of its CA. A value with cheap
/// copies; verify() is thread-safe.
class trust_store {
 public:
  /// Skips blocks that can't be read, as Go's x509.CertPool does (`damage` says which); fails, as
  /// load_pem_bundle does, where none is left.
  static result<trust_store> from_pem(std::string_view bundle);
  static result<trust_store> from(std::vector<certificate> anchors);

  /// Succeeds, or returns the reason with verify_category()'s code. `intermediates` are the peer's
  /// own and are not trusted by themselves.
  result<void> verify(const certificate& leaf, std::span<const certificate> intermediates = {},
                      purpose use = purpose::client_auth,
                      wall_time at = std::chrono::system_clock::now()) const;

  const std::vector<certificate>& anchors() const noexcept { return *anchors_; }

  /// What could not be read of the bundle; empty: nothing.
  const std::string& damage() const noexcept { return damage_; }

  /// OpenSSL's object, borrowed.
  x509_store_st* native() const noexcept { return store_.get(); }

 private:
  trust_store() = default;
  std::shared_ptr<const std::vector<certificate>> anchors_;
  std::shared_ptr<x509_store_st> store_;
  std::string damage_;
};

}  // namespace rw::tls
