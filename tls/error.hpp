#pragma once

#include <boost/system/error_code.hpp>
#include <boost/system/result.hpp>

#include <string>
#include <string_view>
#include <type_traits>
#include <utility>

namespace rw::tls {

/// What can be wrong with certificates, keys and TLS connections, as far as this code finds it
/// itself. What OpenSSL finds stands in openssl_category(), a refused certificate in
/// verify_category().
enum class error {
  not_pem = 1,            ///< no PEM block of the kind that is wanted
  truncated_pem,          ///< a PEM block begins and does not end, or its base64 is damaged
  malformed_certificate,  ///< not a DER certificate, or bytes behind it
  malformed_name,         ///< a name in it holds a NUL byte, or is not valid text
  too_large,              ///< larger than any honest input
  malformed_key,          ///< not a private key that can be read
  encrypted_key,          ///< the private key is protected by a passphrase
  key_mismatch,           ///< the private key does not belong to the certificate
  unreadable_file,        ///< a file cannot be read
  unwritable_file,        ///< a file cannot be written
  missing_material,       ///< a certificate, key or CA bundle that the role needs is not configured
  unusable_material,      ///< OpenSSL's policy refuses it, such as a key that is too short
  untrusted,              ///< no chain to the CA bundle
  stream_truncated,       ///< the peer closed without close_notify
  out_of_memory,          ///< OpenSSL could not allocate
  bad_request,            ///< an issuer was asked for something that makes no certificate
};

const boost::system::error_category& error_category() noexcept;
boost::system::error_code make_error_code(error e) noexcept;

/// Codes from OpenSSL's error queue; the message is OpenSSL's reason ("http request").
const boost::system::error_category& openssl_category() noexcept;

/// X509_V_ERR_* codes: why the peer's certificate was refused ("certificate refused: certificate
/// has expired").
const boost::system::error_category& verify_category() noexcept;

/// A failure with words: which file, block or certificate, and what is wrong with it.
struct failure {
  boost::system::error_code code;
  std::string detail;  ///< one line; may be empty

  failure() = default;
  failure(boost::system::error_code c, std::string d = {}) : code(c), detail(std::move(d)) {}
  failure(error e, std::string d = {}) : code(make_error_code(e)), detail(std::move(d)) {}

  /// `detail`, or where there is none the code's message.
  std::string message() const { return detail.empty() ? code.message() : detail; }
};

/// Makes result::value() throw boost::system::system_error with the detail.
[[noreturn]] void throw_exception_from_error(const failure& f, const boost::source_location& where);

/// A value, or a failure with words.
template <class T>
using result = boost::system::result<T, failure>;

}  // namespace rw::tls

template <>
struct boost::system::is_error_code_enum<rw::tls::error> : std::true_type {};
