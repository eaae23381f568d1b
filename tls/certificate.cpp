#include "rw/tls/certificate.hpp"

#include "rw/core/lru_map.hpp"
#include "rw/core/text.hpp"
#include "rw/tls/digest.hpp"
#include "rw/tls/openssl.hpp"

#include <openssl/err.h>
#include <openssl/pem.h>

#include <algorithm>
#include <arpa/inet.h>
#include <array>
#include <ctime>
#include <span>

namespace rw::tls {

struct certificate::fields {
  x509_ptr native;
  std::string der;
  std::string common_name;
  std::vector<std::string> dns_names;
  std::vector<std::string> uris;
  std::vector<std::string> ips;
  std::string fingerprint;
  wall_time not_before;
  wall_time not_after;
  bool is_ca = false;
};

namespace {

using boost::system::error_code;

constexpr std::size_t max_bundle_bytes = 1024 * 1024;
constexpr std::size_t max_bundle_certificates = 512;

using names_ptr = std::unique_ptr<GENERAL_NAMES, openssl_free<&GENERAL_NAMES_free>>;

struct pem_free {
  void operator()(void* memory) const noexcept { OPENSSL_free(memory); }
};

/// Accepts valid UTF-8 without NUL. OpenSSL converts the older string types and checks the
/// encoding.
bool to_text(const ASN1_STRING* from, std::string& to) {
  unsigned char* utf8 = nullptr;
  const int size = ASN1_STRING_to_UTF8(&utf8, from);
  if (size < 0) return false;
  const std::unique_ptr<unsigned char, pem_free> owner(utf8);
  to.assign(reinterpret_cast<const char*>(utf8), static_cast<std::size_t>(size));
  return to.find('\0') == std::string::npos;
}

/// Accepts IA5String (ASCII) without control characters, as RFC 5280 4.2.1.6 demands of DNS names
/// and URIs.
bool to_ascii(const ASN1_IA5STRING* from, std::string& to) {
  const auto* data = ASN1_STRING_get0_data(from);
  to.assign(reinterpret_cast<const char*>(data),
            static_cast<std::size_t>(ASN1_STRING_length(from)));
  for (const unsigned char c : to) {
    if (c < 0x20 || c > 0x7e) return false;
  }
  return true;
}

bool to_address(const ASN1_OCTET_STRING* from, std::string& to) {
  const int size = ASN1_STRING_length(from);
  if (size != 4 && size != 16) return false;
  char text[INET6_ADDRSTRLEN];
  const int family = size == 4 ? AF_INET : AF_INET6;
  if (!::inet_ntop(family, ASN1_STRING_get0_data(from), text, sizeof text)) return false;
  to = text;
  return true;
}

/// Clamps to the range of the clock: certificates "without end" run to the year 9999.
bool to_time(const ASN1_TIME* from, wall_time& to) {
  std::tm parts{};
  if (!from || ASN1_TIME_to_tm(from, &parts) != 1) return false;
  using std::chrono::seconds;
  const auto least = std::chrono::ceil<seconds>(wall_time::min()).time_since_epoch();
  const auto most = std::chrono::floor<seconds>(wall_time::max()).time_since_epoch();
  auto since = seconds(::timegm(&parts));
  since = std::min(std::max(since, least), most);
  to = wall_time(since);
  return true;
}

bool read_common_name(const X509* from, std::string& to) {
  const auto* subject = X509_get_subject_name(from);
  int last = -1;
  for (int next = -1; (next = X509_NAME_get_index_by_NID(subject, NID_commonName, last)) >= 0;) {
    last = next;
  }
  if (last < 0) return true;
  return to_text(X509_NAME_ENTRY_get_data(X509_NAME_get_entry(subject, last)), to);
}

std::string name_text(const X509_NAME* name) {
  const bio_ptr out(BIO_new(BIO_s_mem()));
  if (!out || X509_NAME_print_ex(out.get(), name, 0, XN_FLAG_RFC2253 & ~ASN1_STRFLGS_ESC_MSB) < 0) {
    return {};
  }
  return text_of(out.get());
}

struct pem_block {
  std::string kind;
  std::string der;
};

/// Reads the next block from `bio`. Error not_pem: there is none.
boost::system::result<pem_block> next_block(BIO* bio) {
  char* kind = nullptr;
  char* header = nullptr;
  unsigned char* data = nullptr;
  long size = 0;
  if (PEM_read_bio(bio, &kind, &header, &data, &size) != 1) {
    const auto code = ERR_peek_last_error();
    ERR_clear_error();
    const bool none =
        ERR_GET_LIB(code) == ERR_LIB_PEM && ERR_GET_REASON(code) == PEM_R_NO_START_LINE;
    return error_code(none ? error::not_pem : error::truncated_pem);
  }
  const std::unique_ptr<char, pem_free> kind_owner(kind);
  const std::unique_ptr<char, pem_free> header_owner(header);
  const std::unique_ptr<unsigned char, pem_free> data_owner(data);
  return pem_block{kind,
                   std::string(reinterpret_cast<char*>(data), static_cast<std::size_t>(size))};
}

/// What this thread has parsed last, by fingerprint. Within one pass over a runtime the same texts
/// are read many times, issuers are those of many, and to parse one takes some 500 allocations.
core::lru_map<std::string, certificate>& parsed_last() {
  constexpr std::size_t most = 64;
  thread_local core::lru_map<std::string, certificate> all(most);
  return all;
}
constexpr std::size_t most_remembered = 4096;  ///< bytes of DER: a peer chooses the size

bool is_certificate(std::string_view kind) {
  return kind == PEM_STRING_X509 || kind == PEM_STRING_X509_OLD;
}

}  // namespace

boost::system::result<certificate> certificate::from_der(std::string_view der) {
  if (der.size() > max_der) return error_code(error::too_large);
  auto fingerprint = core::hex(sha256(der));
  if (const auto* known = parsed_last().find(fingerprint))
    return parsed_last().use(fingerprint, *known);
  const auto* begin = reinterpret_cast<const unsigned char*>(der.data());
  const auto* at = begin;
  auto out = std::make_shared<fields>();
  out->native.reset(d2i_X509(nullptr, &at, static_cast<long>(der.size())));
  ERR_clear_error();
  if (!out->native || at != begin + der.size()) return error_code(error::malformed_certificate);
  const auto* native = out->native.get();

  if (!read_common_name(native, out->common_name)) {
    ERR_clear_error();
    return error_code(error::malformed_name);
  }
  int critical = -1;
  const names_ptr names(static_cast<GENERAL_NAMES*>(
      X509_get_ext_d2i(native, NID_subject_alt_name, &critical, nullptr)));
  ERR_clear_error();
  if (!names && critical != -1) return error_code(error::malformed_certificate);
  for (int i = 0; i < sk_GENERAL_NAME_num(names.get()); ++i) {
    const auto* name = sk_GENERAL_NAME_value(names.get(), i);
    std::string text;
    bool good = true;
    switch (name->type) {
      case GEN_DNS:
        good = to_ascii(name->d.dNSName, text);
        out->dns_names.push_back(std::move(text));
        break;
      case GEN_URI:
        good = to_ascii(name->d.uniformResourceIdentifier, text);
        out->uris.push_back(std::move(text));
        break;
      case GEN_IPADD:
        good = to_address(name->d.iPAddress, text);
        out->ips.push_back(std::move(text));
        break;
      default:
        break;
    }
    if (!good) return error_code(error::malformed_name);
  }
  if (!to_time(X509_get0_notBefore(native), out->not_before) ||
      !to_time(X509_get0_notAfter(native), out->not_after)) {
    return error_code(error::malformed_certificate);
  }
  // Also caches the extensions inside the object, so that later readers do not write to it.
  out->is_ca = X509_check_ca(out->native.get()) == 1;
  ERR_clear_error();

  out->fingerprint = std::move(fingerprint);
  out->der = der;
  certificate made(std::move(out));
  if (der.size() <= most_remembered) parsed_last().use(made.fingerprint(), made);
  return made;
}

boost::system::result<certificate> certificate::from_pem(std::string_view text) {
  if (text.size() > max_bundle_bytes) return error_code(error::too_large);
  const auto bio = read_bio(text);
  if (!bio) return error_code(error::out_of_memory);
  const auto block = next_block(bio.get());
  if (!block) return block.error();
  if (!is_certificate(block->kind)) return error_code(error::not_pem);
  return from_der(block->der);
}

const std::string& certificate::common_name() const noexcept {
  return parsed_->common_name;
}
std::string certificate::subject() const {
  return name_text(X509_get_subject_name(parsed_->native.get()));
}
std::string certificate::issuer() const {
  return name_text(X509_get_issuer_name(parsed_->native.get()));
}
const std::vector<std::string>& certificate::dns_names() const noexcept {
  return parsed_->dns_names;
}
const std::vector<std::string>& certificate::uris() const noexcept {
  return parsed_->uris;
}
const std::vector<std::string>& certificate::ips() const noexcept {
  return parsed_->ips;
}
wall_time certificate::not_before() const noexcept {
  return parsed_->not_before;
}
wall_time certificate::not_after() const noexcept {
  return parsed_->not_after;
}

std::string_view certificate::key_algorithm() const noexcept {
  const auto* const key = X509_get0_pubkey(native());
  const char* const name = key != nullptr ? EVP_PKEY_get0_type_name(key) : nullptr;
  return name != nullptr ? name : "";
}

bool certificate::is_ca() const noexcept {
  return parsed_->is_ca;
}
const std::string& certificate::fingerprint() const noexcept {
  return parsed_->fingerprint;
}
std::string_view certificate::der() const noexcept {
  return parsed_->der;
}
x509_st* certificate::native() const noexcept {
  return parsed_->native.get();
}

std::string certificate::pem() const {
  const bio_ptr out(BIO_new(BIO_s_mem()));
  // As it came: what OpenSSL would encode anew may be other bytes.
  const auto* const bytes = reinterpret_cast<const unsigned char*>(parsed_->der.data());
  const auto size = static_cast<long>(parsed_->der.size());
  if (!out || PEM_write_bio(out.get(), PEM_STRING_X509, "", bytes, size) <= 0) return {};
  return text_of(out.get());
}

result<std::vector<certificate>> load_pem_bundle(std::string_view text) {
  constexpr std::string_view pem_begin = "-----BEGIN ";
  if (text.size() > max_bundle_bytes) return failure(error::too_large, "larger than 1 MiB");
  const auto bio = read_bio(text);
  if (!bio) return failure(error::out_of_memory);
  std::vector<certificate> out;
  for (std::size_t number = 1;; ++number) {
    const auto in_words = [number](error_code code) {
      return failure(code, "PEM block " + std::to_string(number) + ": " + code.message());
    };
    const auto rest = BIO_ctrl_pending(bio.get());
    const auto block = next_block(bio.get());
    // OpenSSL takes a block whose last line is damaged, with the next block as a part of it.
    const auto taken = text.substr(text.size() - rest, rest - BIO_ctrl_pending(bio.get()));
    const auto first = taken.find(pem_begin);
    if (first != taken.npos && taken.find(pem_begin, first + 1) != taken.npos) {
      return in_words(error::truncated_pem);
    }
    if (!block) {
      if (block.error() != error::not_pem) return in_words(block.error());
      break;
    }
    if (!is_certificate(block->kind)) continue;
    if (out.size() == max_bundle_certificates) {
      return failure(error::too_large, "more than 512 certificates");
    }
    auto parsed = certificate::from_der(block->der);
    if (!parsed) return in_words(parsed.error());
    out.push_back(std::move(*parsed));
  }
  if (out.empty()) return failure(error::not_pem, "holds no PEM certificate");
  return out;
}

}  // namespace rw::tls
