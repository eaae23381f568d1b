#include "rw/tls/issuer.hpp"

#include "rw/tls/openssl.hpp"

#include <openssl/err.h>
#include <openssl/pem.h>
#include <openssl/rand.h>
#include <openssl/rsa.h>

#include <algorithm>
#include <arpa/inet.h>
#include <array>

namespace rw::tls {
namespace {

using bn_ptr = std::unique_ptr<BIGNUM, openssl_free<&BN_free>>;
using extension_ptr = std::unique_ptr<X509_EXTENSION, openssl_free<&X509_EXTENSION_free>>;
using name_ptr = std::unique_ptr<GENERAL_NAME, openssl_free<&GENERAL_NAME_free>>;
using names_ptr = std::unique_ptr<GENERAL_NAMES, openssl_free<&GENERAL_NAMES_free>>;

constexpr std::chrono::seconds longest_validity = std::chrono::hours(24 * 365 * 100);

enum class rank { authority, leaf };

failure refused(std::string reason) {
  return {error::bad_request, std::move(reason)};
}
failure openssl_failed(const std::string& call) {
  const auto code = take_openssl_error(error::out_of_memory);
  return {code, call + ": " + code.message()};
}

pkey_ptr make_key(key_type type) {
  switch (type) {
    case key_type::ecdsa_p256:
      return pkey_ptr(EVP_PKEY_Q_keygen(nullptr, nullptr, "EC", "P-256"));
    case key_type::rsa_2048:
      return pkey_ptr(EVP_RSA_gen(2048));
    case key_type::rsa_3072:
      return pkey_ptr(EVP_RSA_gen(3072));
    case key_type::rsa_4096:
      return pkey_ptr(EVP_RSA_gen(4096));
  }
  return {};
}

result<std::string> key_text(EVP_PKEY* key) {
  const bio_ptr out(BIO_new(BIO_s_mem()));
  if (!out) return failure(error::out_of_memory);
  const bool rsa = EVP_PKEY_get_base_id(key) == EVP_PKEY_RSA;
  const int good =
      rsa ? PEM_write_bio_PrivateKey_traditional(out.get(), key, nullptr, nullptr, 0, nullptr,
                                                 nullptr)
          : PEM_write_bio_PKCS8PrivateKey(out.get(), key, nullptr, nullptr, 0, nullptr, nullptr);
  if (good != 1) return openssl_failed("private key cannot be written");
  return text_of(out.get());
}

result<std::string> certificate_text(X509* from) {
  const bio_ptr out(BIO_new(BIO_s_mem()));
  if (!out || PEM_write_bio_X509(out.get(), from) != 1) {
    return openssl_failed("certificate cannot be written");
  }
  return text_of(out.get());
}

/// Accepts ASCII without blanks and control characters, as an IA5String of RFC 5280 may hold.
bool is_name(const std::string& text) {
  return !text.empty() && text.size() <= 2048 &&
         std::all_of(text.begin(), text.end(), [](char c) { return c > ' ' && c < 0x7f; });
}

bool add_text_name(GENERAL_NAMES* to, int type, const std::string& text) {
  name_ptr name(GENERAL_NAME_new());
  auto* value = ASN1_IA5STRING_new();
  if (!name || !value || ASN1_STRING_set(value, text.data(), static_cast<int>(text.size())) != 1) {
    ASN1_IA5STRING_free(value);
    return false;
  }
  GENERAL_NAME_set0_value(name.get(), type, value);
  if (sk_GENERAL_NAME_push(to, name.get()) == 0) return false;
  name.release();
  return true;
}

bool add_address(GENERAL_NAMES* to, const std::string& text) {
  name_ptr name(GENERAL_NAME_new());
  auto* value = a2i_IPADDRESS(text.c_str());
  if (!name || !value) {
    ASN1_OCTET_STRING_free(value);
    return false;
  }
  GENERAL_NAME_set0_value(name.get(), GEN_IPADD, value);
  if (sk_GENERAL_NAME_push(to, name.get()) == 0) return false;
  name.release();
  return true;
}

result<void> add_alternative_names(X509* to, const certificate_request& wanted) {
  const names_ptr names(sk_GENERAL_NAME_new_null());
  if (!names) return failure(error::out_of_memory);
  for (const auto& dns : wanted.dns_names) {
    if (!is_name(dns)) return refused("\"" + dns + "\" is not a DNS name");
    if (!add_text_name(names.get(), GEN_DNS, dns)) return failure(error::out_of_memory);
  }
  for (const auto& uri : wanted.uris) {
    if (!is_name(uri)) return refused("\"" + uri + "\" is not a URI");
    if (!add_text_name(names.get(), GEN_URI, uri)) return failure(error::out_of_memory);
  }
  for (const auto& ip : wanted.ips) {
    if (!add_address(names.get(), ip)) return refused("\"" + ip + "\" is not an IP address");
  }
  if (sk_GENERAL_NAME_num(names.get()) == 0) return {};
  // Without a subject the alternative names carry the identity, and are critical (RFC 5280
  // 4.1.2.6).
  const int critical = wanted.common_name.empty() ? 1 : 0;
  if (X509_add1_ext_i2d(to, NID_subject_alt_name, names.get(), critical, X509V3_ADD_APPEND) != 1) {
    return openssl_failed("alternative names");
  }
  return {};
}

bool add_extension(X509* to, X509* issued_by, int kind, const char* value) {
  X509V3_CTX context;
  X509V3_set_ctx(&context, issued_by, to, nullptr, nullptr, 0);
  const extension_ptr extension(X509V3_EXT_conf_nid(nullptr, &context, kind, value));
  return extension && X509_add_ext(to, extension.get(), -1) == 1;
}

bool add_usage(X509* to, X509* issued_by, const certificate_request& wanted, rank as) {
  // A CA may serve with its own certificate, hence digitalSignature for it as well.
  const bool rsa = EVP_PKEY_get_base_id(X509_get0_pubkey(to)) == EVP_PKEY_RSA;
  const char* leaf_usage =
      rsa ? "critical,digitalSignature,keyEncipherment" : "critical,digitalSignature";
  bool good = as == rank::authority
                  ? add_extension(to, issued_by, NID_basic_constraints, "critical,CA:TRUE") &&
                        add_extension(to, issued_by, NID_key_usage,
                                      "critical,digitalSignature,keyCertSign,cRLSign")
                  : add_extension(to, issued_by, NID_basic_constraints, "critical,CA:FALSE") &&
                        add_extension(to, issued_by, NID_key_usage, leaf_usage);
  std::string roles;
  if (wanted.server_auth) roles += "serverAuth,";
  if (wanted.client_auth) roles += "clientAuth,";
  if (!roles.empty() && as == rank::leaf) {
    roles.pop_back();
    good = good && add_extension(to, issued_by, NID_ext_key_usage, roles.c_str());
  }
  return good && add_extension(to, issued_by, NID_subject_key_identifier, "hash") &&
         add_extension(to, issued_by, NID_authority_key_identifier, "keyid");
}

bool set_serial(X509* to) {
  std::array<unsigned char, 16> random{};
  if (RAND_bytes(random.data(), random.size()) != 1) return false;
  random[0] = static_cast<unsigned char>((random[0] & 0x7f) | 0x40);  // positive, of full length
  const bn_ptr number(BN_bin2bn(random.data(), random.size(), nullptr));
  return number && BN_to_ASN1_INTEGER(number.get(), X509_get_serialNumber(to));
}

bool set_time(ASN1_TIME* to, wall_time time) {
  return ASN1_TIME_adj(to, std::chrono::system_clock::to_time_t(time), 0, 0) != nullptr;
}

bool add_name(X509* to, int kind, const std::string& name) {
  const auto* text = reinterpret_cast<const unsigned char*>(name.data());
  if (X509_NAME_add_entry_by_NID(X509_get_subject_name(to), kind, MBSTRING_UTF8, text,
                                 static_cast<int>(name.size()), -1, 0) == 1) {
    return true;
  }
  ERR_clear_error();
  return false;
}

result<void> set_subject(X509* to, const certificate_request& wanted) {
  for (const auto& name : wanted.organizations) {
    if (name.find('\0') != std::string::npos) return refused("organization holds a NUL byte");
    if (!add_name(to, NID_organizationName, name)) {
      return refused("\"" + name + "\" is no organization of 1 to 64 characters in UTF-8");
    }
  }
  const auto& name = wanted.common_name;
  if (name.empty()) return {};
  if (name.find('\0') != std::string::npos) return refused("common name holds a NUL byte");
  if (add_name(to, NID_commonName, name)) return {};
  return refused("\"" + name + "\" is no common name of 1 to 64 characters in UTF-8");
}

struct made_certificate {
  x509_ptr native;
  pkey_ptr key;
  key_pair text;
};

/// `by` and `signing_key` are null for a self-signed certificate.
result<made_certificate> make(const certificate_request& wanted, rank as, X509* by,
                              EVP_PKEY* signing_key) {
  ERR_clear_error();
  if (wanted.common_name.empty() && wanted.dns_names.empty() && wanted.uris.empty() &&
      wanted.ips.empty()) {
    return refused("a certificate needs a common name or an alternative name");
  }
  if (as == rank::authority && wanted.common_name.empty()) {
    return refused("a CA needs a common name");
  }
  if (wanted.validity <= std::chrono::seconds(0) || wanted.validity > longest_validity) {
    return refused("validity is not between a second and 100 years");
  }
  made_certificate out;
  out.native.reset(X509_new());
  auto* native = out.native.get();
  if (!native) return failure(error::out_of_memory);
  if (auto done = set_subject(native, wanted); !done) return done.error();
  out.key = make_key(wanted.key);
  if (!out.key) return openssl_failed("private key cannot be made");
  const auto begin =
      wanted.not_before.value_or(std::chrono::system_clock::now() - std::chrono::minutes(1));
  auto* issued_by = by ? by : native;
  if (X509_set_version(native, X509_VERSION_3) != 1 || !set_serial(native) ||
      X509_set_issuer_name(native, X509_get_subject_name(issued_by)) != 1 ||
      X509_set_pubkey(native, out.key.get()) != 1 ||
      !set_time(X509_getm_notBefore(native), begin) ||
      !set_time(X509_getm_notAfter(native), begin + wanted.validity) ||
      !add_usage(native, issued_by, wanted, as)) {
    return openssl_failed("certificate cannot be made");
  }
  if (auto done = add_alternative_names(native, wanted); !done) return done.error();
  if (X509_sign(native, signing_key ? signing_key : out.key.get(), EVP_sha256()) == 0) {
    return openssl_failed("certificate cannot be signed");
  }
  auto certificate_pem = certificate_text(native);
  if (!certificate_pem) return certificate_pem.error();
  auto key_pem = key_text(out.key.get());
  if (!key_pem) return key_pem.error();
  out.text = {std::move(*certificate_pem), std::move(*key_pem)};
  return out;
}

}  // namespace

std::optional<key_type> parse_key_type(std::string_view text) noexcept {
  if (text == "ecdsa-p256") return key_type::ecdsa_p256;
  if (text == "rsa-2048") return key_type::rsa_2048;
  if (text == "rsa-3072") return key_type::rsa_3072;
  if (text == "rsa-4096") return key_type::rsa_4096;
  return std::nullopt;
}

result<issuer> issuer::create(const certificate_request& ca) {
  auto made = make(ca, rank::authority, nullptr, nullptr);
  if (!made) return made.error();
  return load(made->text);
}

result<issuer> issuer::load(const key_pair& ca) {
  auto own = material::from_text({.certificate = ca.certificate, .key = ca.key, .ca = {}},
                                 {.certificate = "CA certificate", .key = "CA key", .ca = {}});
  if (!own) return own.error();
  if (!own->leaf()->is_ca()) return refused("CA certificate: it may not issue others");
  issuer out;
  out.own_ = std::make_shared<const key_pair>(ca);
  out.material_ = std::make_shared<const material>(std::move(*own));
  return out;
}

result<key_pair> issuer::issue(const certificate_request& leaf) const {
  auto made = make(leaf, rank::leaf, material_->leaf()->native(), material_->key());
  if (!made) return made.error();
  return std::move(made->text);
}

result<issuer> issuer::intermediate(const certificate_request& ca) const {
  auto made = make(ca, rank::authority, material_->leaf()->native(), material_->key());
  if (!made) return made.error();
  return load(made->text);
}

result<void> write_files(const std::filesystem::path& dir, std::string_view name,
                         const key_pair& pair) {
  const std::array files{
      output_file{std::string(name) + ".key", pair.key, 0600},
      output_file{std::string(name) + ".crt", pair.certificate, 0644},
  };
  return write_files(dir, files);
}

}  // namespace rw::tls
