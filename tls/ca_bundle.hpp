#pragma once

#include "rw/tls/certificate.hpp"
#include "rw/tls/trust_store.hpp"

#include <cstddef>
#include <functional>
#include <string>
#include <string_view>
#include <vector>

namespace rw::tls {

/// Returns true if `authority` signed `leaf`: names and key identifiers match, the authority may
/// sign certificates, and the signature is valid. Ignores validity times. A self-signed CA issued
/// itself.
bool is_issued_by(const certificate& leaf, const certificate& authority);

/// A mutable bundle of CA certificates, such as the `caBundle` of a webhook configuration or the
/// `ca.crt` of a Secret: a list without duplicates (equal DER), in the order of the PEM text. A
/// rotation prepends the newest certificate.
///
/// A value; it may be empty.
class ca_bundle {
 public:
  ca_bundle() = default;
  explicit ca_bundle(const std::vector<certificate>& authorities);

  /// Returns all certificates of a PEM text, as load_pem_bundle reads it, without later duplicates.
  /// The errors of load_pem_bundle name the invalid block.
  static result<ca_bundle> parse(std::string_view pem);

  /// Returns every block that is a valid certificate, for a text that `parse` rejects. For repair:
  /// losing trust does more harm than keeping the valid blocks.
  static ca_bundle salvage(std::string_view pem);

  /// Inserts in front, or at the end. Returns false if the certificate is present already; its
  /// place does not change.
  bool prepend(const certificate& authority);
  bool append(const certificate& authority);

  /// Removes and returns the certificates that have expired by `at` and for which `keep` returns
  /// false; without `keep`, all that have expired.
  std::vector<certificate> drop_expired(wall_time at,
                                        const std::function<bool(const certificate&)>& keep = {});

  bool contains(const certificate& authority) const noexcept;
  /// Returns the first certificate that signed `leaf`; null if none did.
  const certificate* issuer_of(const certificate& leaf) const;
  /// Succeeds if `leaf` chains to a certificate of the bundle at that time; otherwise says why not.
  result<void> verify(const certificate& leaf, purpose use, wall_time at) const;

  const std::vector<certificate>& authorities() const noexcept { return authorities_; }
  std::size_t size() const noexcept { return authorities_.size(); }
  bool empty() const noexcept { return authorities_.empty(); }

  std::string pem() const;
  /// SHA-256 over the certificates in their order, hexadecimal. Identifies a bundle whatever text
  /// is between the blocks.
  std::string digest() const;

  friend bool operator==(const ca_bundle&, const ca_bundle&) = default;

 private:
  std::vector<certificate> authorities_;
};

}  // namespace rw::tls
