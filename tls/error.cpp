#include "rw/tls/error.hpp"

#include "rw/tls/openssl.hpp"

#include <boost/system/system_error.hpp>
#include <openssl/err.h>
#include <openssl/x509_vfy.h>

namespace rw::tls {
namespace {

struct own_category final : boost::system::error_category {
  const char* name() const noexcept override { return "tls"; }
  std::string message(int code) const override {
    switch (static_cast<error>(code)) {
      case error::not_pem:
        return "no PEM block of the kind wanted";
      case error::truncated_pem:
        return "PEM block is incomplete or damaged";
      case error::malformed_certificate:
        return "not a well-formed X.509 certificate";
      case error::malformed_name:
        return "a name in the certificate is not valid text";
      case error::too_large:
        return "larger than accepted";
      case error::malformed_key:
        return "not a readable private key";
      case error::encrypted_key:
        return "private key is protected by a passphrase";
      case error::exposed_key:
        return "others than its owner may read the private key's file";
      case error::key_mismatch:
        return "private key does not belong to the certificate";
      case error::unreadable_file:
        return "file cannot be read";
      case error::unwritable_file:
        return "file cannot be written";
      case error::missing_material:
        return "certificate, key or CA bundle is not configured";
      case error::unusable_material:
        return "certificate or key is refused by OpenSSL's policy";
      case error::untrusted:
        return "certificate does not chain to the CA bundle";
      case error::stream_truncated:
        return "peer closed the connection without close_notify";
      case error::out_of_memory:
        return "OpenSSL could not allocate memory";
      case error::bad_request:
        return "the request makes no certificate";
    }
    return "unknown TLS error";
  }
};

struct openssl_error_category final : boost::system::error_category {
  const char* name() const noexcept override { return "openssl"; }
  std::string message(int code) const override {
    const auto packed = static_cast<unsigned long>(static_cast<unsigned>(code));
    if (const auto* reason = ERR_reason_error_string(packed)) return reason;
    return "OpenSSL error " + std::to_string(ERR_GET_REASON(packed)) + " in library " +
           std::to_string(ERR_GET_LIB(packed));
  }
};

struct refusal_category final : boost::system::error_category {
  const char* name() const noexcept override { return "x509"; }
  std::string message(int code) const override {
    return std::string("certificate refused: ") + X509_verify_cert_error_string(code);
  }
};

}  // namespace

const boost::system::error_category& error_category() noexcept {
  static const own_category category;
  return category;
}

boost::system::error_code make_error_code(error e) noexcept {
  return {static_cast<int>(e), error_category()};
}

const boost::system::error_category& openssl_category() noexcept {
  static const openssl_error_category category;
  return category;
}

const boost::system::error_category& verify_category() noexcept {
  static const refusal_category category;
  return category;
}

void throw_exception_from_error(const failure& f, const boost::source_location&) {
  throw boost::system::system_error(f.code, f.detail);
}

boost::system::error_code take_openssl_error(boost::system::error_code otherwise) {
  const auto packed = ERR_peek_last_error();
  ERR_clear_error();
  if (packed == 0) return otherwise;
  if (ERR_SYSTEM_ERROR(packed)) {
    return {ERR_GET_REASON(packed), boost::system::system_category()};
  }
  return {static_cast<int>(packed), openssl_category()};
}

bio_ptr read_bio(std::string_view text) {
  return bio_ptr(BIO_new_mem_buf(text.data(), static_cast<int>(text.size())));
}

std::string text_of(BIO* bio) {
  char* data = nullptr;
  const auto size = BIO_get_mem_data(bio, &data);
  return size > 0 ? std::string(data, static_cast<std::size_t>(size)) : std::string();
}

}  // namespace rw::tls
