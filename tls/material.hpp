#pragma once

#include "tls/certificate.hpp"
#include "tls/trust_store.hpp"

#include <atomic>
#include <cstdint>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

struct evp_pkey_st;

namespace rw::tls {

/// Where PEM material lies. Empty means not configured; certificate and key go together.
struct material_files {
  std::string certificate = {};  ///< leaf first, then its intermediates
  std::string key = {};
  std::string ca = {};  ///< bundle that peers are checked against
};

/// The same as PEM text. Empty means not configured.
struct material_text {
  std::string certificate = {};
  std::string key = {};
  std::string ca = {};

  /// SHA-256 over the three.
  std::string digest() const;
};

/// Reads the files as they are, without looking at their contents. The failure names the file.
result<material_text> read_text(const material_files& files);

/// A consistent set of certificate, key and CA bundle: everything was parsed, the key belongs to
/// the certificate, and OpenSSL's policy accepts both. Validity times are not judged, so that an
/// expired certificate is still served, and seen as expired by whoever asks leaf(). Immutable.
class material {
 public:
  /// Reads all files, then checks them together. The failure names the file.
  static result<material> load(const material_files& files);
  /// `names` stand for the parts in failures; by default "certificate", "key" and "CA bundle".
  static result<material> from_text(const material_text& text, const material_files& names = {});

  /// Nothing at all: for a client that trusts the system's authorities, or anybody.
  static material none();

  /// The own certificate; none where only a CA is configured.
  const std::optional<certificate>& leaf() const noexcept { return leaf_; }
  const std::vector<certificate>& chain() const noexcept { return chain_; }  ///< behind the leaf
  const std::optional<trust_store>& ca() const noexcept { return ca_; }
  evp_pkey_st* key() const noexcept { return key_.get(); }

  /// Tells one set of texts from another.
  const std::string& digest() const noexcept { return digest_; }

 private:
  material() = default;
  std::optional<certificate> leaf_;
  std::vector<certificate> chain_;
  std::shared_ptr<evp_pkey_st> key_;
  std::optional<trust_store> ca_;
  std::string digest_;
};

/// Holds the material in use, to be swapped while connections go on. Transports read it for each
/// new connection. Thread-safe. Share it: transports and the reloader keep it alive.
class credentials {
 public:
  explicit credentials(material first);

  static result<std::shared_ptr<credentials>> load(const material_files& files);
  static result<std::shared_ptr<credentials>> from_text(const material_text& text);

  std::shared_ptr<const material> current() const;
  /// 1 for the first material, one more for each replacement.
  std::uint64_t generation() const noexcept { return generation_.load(std::memory_order_acquire); }
  /// Both, taken together.
  std::pair<std::shared_ptr<const material>, std::uint64_t> snapshot() const;

  /// Later connections use `next`; present ones keep what they have.
  void replace(material next);

 private:
  mutable std::mutex mutex_;
  std::shared_ptr<const material> current_;
  std::atomic<std::uint64_t> generation_{1};
};

}  // namespace rw::tls
