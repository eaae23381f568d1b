#include "rw/tls/ca_bundle.hpp"

#include "rw/core/text.hpp"
#include "rw/tls/digest.hpp"
#include "rw/tls/openssl.hpp"

#include <openssl/err.h>

#include <algorithm>

namespace rw::tls {

bool is_issued_by(const certificate& leaf, const certificate& authority) {
  const bool fits = X509_check_issued(authority.native(), leaf.native()) == X509_V_OK;
  const bool good = fits && X509_verify(leaf.native(), X509_get0_pubkey(authority.native())) == 1;
  ERR_clear_error();
  return good;
}

ca_bundle::ca_bundle(const std::vector<certificate>& authorities) {
  for (const auto& authority : authorities) append(authority);
}

result<ca_bundle> ca_bundle::parse(std::string_view pem) {
  const auto all = load_pem_bundle(pem);
  if (!all) return all.error();
  return ca_bundle(*all);
}

ca_bundle ca_bundle::salvage(std::string_view pem) {
  constexpr std::string_view begin = "-----BEGIN CERTIFICATE-----";
  constexpr std::string_view end = "-----END CERTIFICATE-----";
  constexpr std::size_t most = 512;  // `parse` rejects larger bundles
  ca_bundle left;
  for (auto at = pem.find(begin); at != std::string_view::npos && left.size() < most;) {
    const auto next = pem.find(begin, at + begin.size());
    const auto last = pem.find(end, at);
    if (last != std::string_view::npos && last < next) {
      const auto block = std::string(pem.substr(at, last - at)) + std::string(end) + "\n";
      if (const auto certificate = certificate::from_pem(block)) left.append(*certificate);
    }
    at = next;
  }
  return left;
}

bool ca_bundle::prepend(const certificate& authority) {
  if (contains(authority)) return false;
  authorities_.insert(authorities_.begin(), authority);
  return true;
}

bool ca_bundle::append(const certificate& authority) {
  if (contains(authority)) return false;
  authorities_.push_back(authority);
  return true;
}

std::vector<certificate> ca_bundle::drop_expired(
    wall_time at, const std::function<bool(const certificate&)>& keep) {
  std::vector<certificate> dropped;
  std::erase_if(authorities_, [&](const certificate& authority) {
    const bool goes = authority.not_after() < at && !(keep && keep(authority));
    if (goes) dropped.push_back(authority);
    return goes;
  });
  return dropped;
}

bool ca_bundle::contains(const certificate& authority) const noexcept {
  return std::ranges::find(authorities_, authority) != authorities_.end();
}

const certificate* ca_bundle::issuer_of(const certificate& leaf) const {
  const auto at = std::ranges::find_if(
      authorities_, [&](const certificate& authority) { return is_issued_by(leaf, authority); });
  return at == authorities_.end() ? nullptr : &*at;
}

result<void> ca_bundle::verify(const certificate& leaf, purpose use, wall_time at) const {
  const auto store = trust_store::from(authorities_);
  if (!store) return store.error();
  return store->verify(leaf, {}, use, at);
}

std::string ca_bundle::pem() const {
  std::string text;
  for (const auto& certificate : authorities_) text += certificate.pem();
  return text;
}

std::string ca_bundle::digest() const {
  // Over the fingerprints: all have the same length, so no two lists yield the same text.
  std::string all;
  for (const auto& certificate : authorities_) all += certificate.fingerprint();
  return core::hex(sha256(all));
}

}  // namespace rw::tls
