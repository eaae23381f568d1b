#pragma once

#include "rw/tls/certificate.hpp"
#include "rw/tls/key_memory.hpp"
#include "rw/tls/trust_store.hpp"

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

/// Paths of PEM material. Empty means not configured; certificate and key come together.
struct material_files {
  std::string certificate = {};  ///< leaf first, then its intermediates
  std::string key = {};
  std::string ca = {};  ///< bundle to verify peers with
};

/// PEM text of the material. Empty means not configured.
struct material_text {
  std::string certificate = {};
  key_text key = {};
  std::string ca = {};

  /// SHA-256 over the three texts.
  std::string digest() const;
};

/// Reads the files without checking their contents. The failure names the file.
result<material_text> read_text(const material_files& files);

/// A consistent set of certificate, key and CA bundle: everything is parsed, the key belongs to the
/// certificate, and OpenSSL's policy accepts both. Validity times are not checked: an expired
/// certificate is still served, and callers of leaf() can see that it has expired. Immutable.
class material {
 public:
  /// Reads all files, then checks them together. The failure names the file.
  static result<material> load(const material_files& files);
  /// Checks the texts together. `names` name the parts in failures; by default "certificate", "key"
  /// and "CA bundle".
  static result<material> from_text(const material_text& text, const material_files& names = {});

  /// Returns empty material: for a client that trusts the system's authorities, or any server.
  static material none();

  /// The own certificate; nothing if only a CA is configured.
  const std::optional<certificate>& leaf() const noexcept { return leaf_; }
  const std::vector<certificate>& chain() const noexcept { return chain_; }  ///< without the leaf
  const std::optional<trust_store>& ca() const noexcept { return ca_; }
  /// What could not be read of the CA bundle, beside what was; empty: nothing.
  std::string_view damage() const noexcept { return ca_ ? ca_->damage() : std::string_view(); }
  evp_pkey_st* key() const noexcept { return key_.get(); }

  const std::string& digest() const noexcept { return digest_; }

 private:
  material() = default;
  std::optional<certificate> leaf_;
  std::vector<certificate> chain_;
  std::shared_ptr<evp_pkey_st> key_;
  std::optional<trust_store> ca_;
  std::string digest_;
};

/// Holds the material in use; it can be replaced while connections are open. Transports read it for
/// each new connection. Thread-safe. Shared: transports and the reloader keep it alive.
class credentials {
 public:
  explicit credentials(material first);

  static result<std::shared_ptr<credentials>> load(const material_files& files);
  static result<std::shared_ptr<credentials>> from_text(const material_text& text);

  std::shared_ptr<const material> current() const;
  /// 1 for the first material; each replacement adds 1.
  std::uint64_t generation() const noexcept { return generation_.load(std::memory_order_acquire); }
  /// Returns material and generation, read atomically.
  std::pair<std::shared_ptr<const material>, std::uint64_t> snapshot() const;

  /// Replaces the material for later connections; open connections keep theirs.
  void replace(material next);

 private:
  mutable std::mutex mutex_;
  std::shared_ptr<const material> current_;
  std::atomic<std::uint64_t> generation_{1};
};

}  // namespace rw::tls
