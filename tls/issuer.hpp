#pragma once

#include "rw/tls/certificate.hpp"
#include "rw/tls/files.hpp"
#include "rw/tls/material.hpp"

#include <chrono>
#include <cstdint>
#include <filesystem>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace rw::tls {

enum class key_type : std::uint8_t { ecdsa_p256, rsa_2048, rsa_3072, rsa_4096 };

/// Parses "ecdsa-p256", "rsa-2048", "rsa-3072" and "rsa-4096".
std::optional<key_type> parse_key_type(std::string_view text) noexcept;

struct certificate_request {
  std::string common_name = {};  ///< at most 64 characters (RFC 5280, ub-common-name)
  std::vector<std::string> dns_names = {};
  std::vector<std::string> uris = {};
  std::vector<std::string> ips = {};            ///< text form
  std::vector<std::string> organizations = {};  ///< of the subject, each at most 64 characters
  key_type key = key_type::ecdsa_p256;

  /// Roles, as extended key usage; a certificate may have both. A CA has none.
  bool server_auth = false;
  bool client_auth = false;

  /// Begin of validity; by default a minute ago, for peers with a slow clock.
  std::optional<wall_time> not_before = {};
  std::chrono::seconds validity = std::chrono::hours(24 * 60);
};

/// A certificate with its private key, PEM. RSA keys are PKCS#1, ECDSA keys PKCS#8.
struct key_pair {
  std::string certificate;
  std::string key;
};

/// A small certificate authority for development and tests. A value with cheap copies; issue() may
/// be called from several threads.
class issuer {
 public:
  /// Makes a new self-signed CA. Keeps its SANs, so that it can serve with its own certificate.
  static result<issuer> create(const certificate_request& ca);
  /// Loads an existing CA; the key must belong to the certificate.
  static result<issuer> load(const key_pair& ca);

  /// Issues a leaf with a random 128-bit serial number, key identifiers, key usage and the
  /// requested roles. Failures: bad_request (no common name and no SAN, an invalid name),
  /// openssl_category().
  result<key_pair> issue(const certificate_request& leaf) const;
  /// Issues a CA below this one.
  result<issuer> intermediate(const certificate_request& ca) const;

  const key_pair& own() const noexcept { return *own_; }
  const std::string& certificate_pem() const noexcept { return own_->certificate; }

 private:
  issuer() = default;
  std::shared_ptr<const key_pair> own_;
  std::shared_ptr<const material> material_;
};

/// Writes `<name>.crt` (0644) and `<name>.key` (0600).
result<void> write_files(const std::filesystem::path& dir, std::string_view name,
                         const key_pair& pair);

}  // namespace rw::tls
