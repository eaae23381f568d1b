#pragma once

#include "rw/tls/openssl.hpp"

#include <openssl/pem.h>

#include "tests/unit/tls/pki.hpp"
#include <string>

namespace rw::tls::test {

/// What a certificate that carries its CA's subject as its own differs in.
struct namesake_request {
  bool signs_itself = false;  ///< signed with its own key rather than the CA's
  const EVP_MD* digest = EVP_sha256();
  const char* extended_usage = "clientAuth,serverAuth";
  long seconds_valid = 3600;
};

/// Issues a certificate whose subject is its CA's. It has no key identifiers: Go's crypto/x509
/// leaves them out where subject and issuer are equal.
inline key_pair namesake(const issuer& ca, const namesake_request& wanted = {}) {
  const auto ca_bio = read_bio(ca.own().certificate);
  const auto ca_key_bio = read_bio(ca.own().key);
  const x509_ptr authority(PEM_read_bio_X509(ca_bio.get(), nullptr, nullptr, nullptr));
  const pkey_ptr ca_key(PEM_read_bio_PrivateKey(ca_key_bio.get(), nullptr, nullptr, nullptr));
  const pkey_ptr key(EVP_PKEY_Q_keygen(nullptr, nullptr, "EC", "P-256"));
  const x509_ptr made(X509_new());
  BOOST_REQUIRE((authority && ca_key && key && made));
  X509_set_version(made.get(), X509_VERSION_3);
  ASN1_INTEGER_set(X509_get_serialNumber(made.get()), 7);
  X509_set_subject_name(made.get(), X509_get_subject_name(authority.get()));
  X509_set_issuer_name(made.get(), X509_get_subject_name(authority.get()));
  X509_gmtime_adj(X509_getm_notBefore(made.get()), -60);
  X509_gmtime_adj(X509_getm_notAfter(made.get()), wanted.seconds_valid);
  X509_set_pubkey(made.get(), key.get());
  const auto add = [&](int kind, const char* value) {
    X509_EXTENSION* const added = X509V3_EXT_conf_nid(nullptr, nullptr, kind, value);
    BOOST_REQUIRE(added != nullptr);
    X509_add_ext(made.get(), added, -1);
    X509_EXTENSION_free(added);
  };
  add(NID_basic_constraints, "critical,CA:FALSE");
  add(NID_key_usage, "critical,digitalSignature,keyEncipherment");
  add(NID_ext_key_usage, wanted.extended_usage);
  add(NID_subject_alt_name, "DNS:localhost");
  BOOST_REQUIRE(
      X509_sign(made.get(), wanted.signs_itself ? key.get() : ca_key.get(), wanted.digest) != 0);
  const bio_ptr certificate(BIO_new(BIO_s_mem()));
  const bio_ptr key_text(BIO_new(BIO_s_mem()));
  PEM_write_bio_X509(certificate.get(), made.get());
  PEM_write_bio_PKCS8PrivateKey(key_text.get(), key.get(), nullptr, nullptr, 0, nullptr, nullptr);
  return {text_of(certificate.get()), text_of(key_text.get())};
}

/// Returns a CA's certificate once more, with an extension.
inline std::string restricted(const issuer& ca, int kind, const char* value) {
  const auto ca_bio = read_bio(ca.own().certificate);
  const auto key_bio = read_bio(ca.own().key);
  const x509_ptr made(PEM_read_bio_X509(ca_bio.get(), nullptr, nullptr, nullptr));
  const pkey_ptr key(PEM_read_bio_PrivateKey(key_bio.get(), nullptr, nullptr, nullptr));
  X509_EXTENSION* const added = X509V3_EXT_conf_nid(nullptr, nullptr, kind, value);
  BOOST_REQUIRE((made && key && added != nullptr));
  X509_add_ext(made.get(), added, -1);
  X509_EXTENSION_free(added);
  BOOST_REQUIRE(X509_sign(made.get(), key.get(), EVP_sha256()) != 0);
  const bio_ptr out(BIO_new(BIO_s_mem()));
  PEM_write_bio_X509(out.get(), made.get());
  return text_of(out.get());
}

}  // namespace rw::tls::test
