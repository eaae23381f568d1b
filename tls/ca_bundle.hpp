#pragma once

#include "tls/certificate.hpp"
#include "tls/trust_store.hpp"

#include <cstddef>
#include <functional>
#include <string>
#include <string_view>
#include <vector>

namespace rw::tls {

/// True if `authority` signed `leaf`: names and key identifiers fit, it may sign certificates, and
/// the signature is good. Validity times are not looked at. A self-signed CA issued itself.
bool is_issued_by(const certificate& leaf, const certificate& authority);

/// A bundle of CA certificates, such as the `caBundle` of a webhook configuration or the `ca.crt`
/// of a Secret, while it is being changed: a list without duplicates (two are the same if their DER
/// is), in the order in which it is written. A rotation puts the newest in front.
///
/// A value; it may be empty.
class ca_bundle {
 public:
  ca_bundle() = default;
  explicit ca_bundle(const std::vector<certificate>& authorities);

  /// All certificates of a PEM text, as load_pem_bundle reads it; later duplicates are dropped. Its
  /// errors, which say which block is wrong.
  static result<ca_bundle> parse(std::string_view pem);

  /// What can still be read of a text that `parse` refuses: every block that is a certificate by
  /// itself. For repair, where throwing away trust would do more harm than keeping what is left.
  static ca_bundle salvage(std::string_view pem);

  /// In front, or at the end. False if it is there already; then its place does not change.
  bool prepend(const certificate& authority);
  bool append(const certificate& authority);

  /// Takes out, and gives back, those that have expired by `at` and that `keep` does not hold on
  /// to; without `keep`, all that have.
  std::vector<certificate> drop_expired(time_point at,
                                        const std::function<bool(const certificate&)>& keep = {});

  bool contains(const certificate& authority) const noexcept;
  /// The first that signed `leaf`; null if none did.
  const certificate* issuer_of(const certificate& leaf) const;
  /// Success if `leaf` chains to one of them at that time, or why not.
  result<void> verify(const certificate& leaf, purpose use, time_point at) const;

  const std::vector<certificate>& authorities() const noexcept { return authorities_; }
  std::size_t size() const noexcept { return authorities_.size(); }
  bool empty() const noexcept { return authorities_.empty(); }

  /// One PEM block after the other.
  std::string pem() const;
  /// SHA-256 over the certificates in their order, hexadecimal: tells one bundle from another
  /// whatever stood between the blocks.
  std::string digest() const;

  friend bool operator==(const ca_bundle&, const ca_bundle&) = default;

 private:
  std::vector<certificate> authorities_;
};

}  // namespace rw::tls
