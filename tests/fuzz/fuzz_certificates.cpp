// DER and PEM of certificates, which runtimes and clients send: what is taken can be written and
// read again, and a bundle is rejected or has each of its blocks.

#include "rw/tls/ca_bundle.hpp"
#include "rw/tls/certificate.hpp"
#include "rw/tls/material.hpp"
#include "rw/tls/trust_store.hpp"

#include "tests/fuzz/check.hpp"
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>

namespace {

using namespace rw::tls;
using rw::fuzz::check;

void check_certificate(const certificate& read) {
  const auto again = certificate::from_pem(read.pem());
  check(again.has_value() && *again == read, "a certificate is read as it is written");
  check(read.fingerprint().size() == 64, "a fingerprint has 64 digits");
  check(read.subject().find('\0') == std::string::npos, "a name has no NUL");
  check(read.common_name().find('\0') == std::string::npos, "a common name has no NUL");
  is_issued_by(read, read);
}

void check_bundle(std::string_view text) {
  const auto all = load_pem_bundle(text);
  const auto bundle = ca_bundle::parse(text);
  check(all.has_value() == bundle.has_value(), "both readers of bundles agree");
  if (!all) {
    const auto left = ca_bundle::salvage(text);
    for (const auto& each : left.authorities()) check_certificate(each);
    return;
  }
  check(!all->empty() && bundle->size() <= all->size(), "a bundle has no more than its blocks");
  for (const auto& each : *all) {
    check(bundle->contains(each), "each block is in the bundle");
    check_certificate(each);
  }
  const auto again = ca_bundle::parse(bundle->pem());
  check(again.has_value() && *again == *bundle, "a bundle is read as it is written");
  (void)bundle->verify(all->front(), purpose::client_auth, std::chrono::system_clock::now());
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  const std::string text(reinterpret_cast<const char*>(data), size);
  if (const auto der = certificate::from_der(text)) {
    check(der->der() == text, "no byte behind a certificate is passed over");
    check_certificate(*der);
  }
  check_bundle(text);
  (void)trust_store::from_pem(text);
  (void)material::from_text({.certificate = text, .key = text, .ca = text});
  return 0;
}
