#pragma once

#include "rw/tls/error.hpp"

#include <boost/system/result.hpp>

#include <chrono>
#include <cstddef>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

struct x509_st;

namespace rw::tls {

using wall_time = std::chrono::system_clock::time_point;

/// One X.509 certificate (RFC 5280), parsed once. A value: copies are cheap and share the parsed
/// certificate; thread-safe. Only the functions below make it, so it is never empty.
///
/// Safe for hostile input: size is bounded, names with NUL bytes or invalid text are rejected,
/// times outside the clock's range are clamped to it.
class certificate {
 public:
  /// Largest DER accepted.
  static constexpr std::size_t max_der = 64 * 1024;

  /// Errors: malformed_certificate (also for trailing bytes), malformed_name, too_large. One that
  /// the calling thread has parsed lately is not parsed again.
  static boost::system::result<certificate> from_der(std::string_view der);

  /// Parses the first PEM block of `text`, which must be a CERTIFICATE; ignores what follows.
  /// Errors: as from_der, and not_pem, truncated_pem.
  static boost::system::result<certificate> from_pem(std::string_view text);

  /// The last (most specific) common name of the subject, UTF-8; empty if there is none.
  const std::string& common_name() const noexcept;
  /// The subject, and the issuer, in the form of RFC 2253.
  std::string subject() const;
  std::string issuer() const;

  /// Subject alternative names as written (DNS, URI), addresses in text form ("10.0.0.1",
  /// "2001:db8::1").
  const std::vector<std::string>& dns_names() const noexcept;
  const std::vector<std::string>& uris() const noexcept;
  const std::vector<std::string>& ips() const noexcept;

  wall_time not_before() const noexcept;
  wall_time not_after() const noexcept;
  bool valid_at(wall_time time) const noexcept {
    return not_before() <= time && time <= not_after();
  }

  /// Returns true if the basic constraints allow it to issue certificates.
  bool is_ca() const noexcept;
  /// Type of the public key as OpenSSL names it ("RSA", "EC", "ED25519"); empty: not known.
  std::string_view key_algorithm() const noexcept;

  /// SHA-256 over the DER, 64 lower-case hexadecimal digits (Envoy's `Hash`).
  const std::string& fingerprint() const noexcept;

  /// Valid as long as a copy of this certificate lives.
  std::string_view der() const noexcept;
  std::string pem() const;

  /// OpenSSL's object, borrowed.
  x509_st* native() const noexcept;

  friend bool operator==(const certificate& a, const certificate& b) noexcept {
    return a.der() == b.der();
  }

 private:
  struct fields;
  explicit certificate(std::shared_ptr<const fields> parsed) noexcept
      : parsed_(std::move(parsed)) {}
  std::shared_ptr<const fields> parsed_;
};

/// Returns all CERTIFICATE blocks of a PEM text, in order. Skips text between blocks, and blocks of
/// another kind (a private key in the same file). Requires at least one certificate. The failure
/// names the block, counted from 1. At most 1 MiB and 512 certificates.
result<std::vector<certificate>> load_pem_bundle(std::string_view text);

}  // namespace rw::tls
