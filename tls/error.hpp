#pragma once

#include <boost/system/error_code.hpp>
#include <boost/system/result.hpp>

#include <string>
#include <string_view>
#include <type_traits>
#include <utility>

namespace rw::tls {

/// Errors that this code itself finds in certificates, keys and TLS connections. OpenSSL's own are
/// in openssl_category(), reasons to reject a certificate in verify_category().
enum class error {
  not_pem = 1,            ///< no PEM block of the required kind
  truncated_pem,          ///< a PEM block without an end, or with damaged base64
  malformed_certificate,  ///< not a DER certificate, or trailing bytes
  malformed_name,         ///< a name in it has a NUL byte, or is not valid text
  too_large,              ///< beyond the size limit
  malformed_key,          ///< not a readable private key
  encrypted_key,          ///< the private key is protected by a passphrase
  exposed_key,            ///< others than its owner may read the private key's file
  key_mismatch,           ///< the private key does not belong to the certificate
  unreadable_file,        ///< a file cannot be read
  unwritable_file,        ///< a file cannot be written
  missing_material,       ///< a certificate, key or CA bundle that the role needs is not configured
  unusable_material,      ///< rejected by OpenSSL's policy, such as a key that is too short
  untrusted,              ///< no chain to the CA bundle
  stream_truncated,       ///< the peer closed without close_notify
  out_of_memory,          ///< OpenSSL could not allocate
  bad_request,            ///< a certificate request that yields no valid certificate
};

const boost::system::error_category& error_category() noexcept;
boost::system::error_code make_error_code(error e) noexcept;

/// Codes from OpenSSL's error queue; the message is OpenSSL's reason ("http request").
const boost::system::error_category& openssl_category() noexcept;

/// X509_V_ERR_* codes: why the peer's certificate was rejected ("certificate refused: certificate
/// has expired").
const boost::system::error_category& verify_category() noexcept;

/// A failure with a description: which file, block or certificate, and its error.
struct failure {
  boost::system::error_code code;
  std::string detail;  ///< one line; may be empty

  failure() = default;
  failure(boost::system::error_code c, std::string d = {}) : code(c), detail(std::move(d)) {}
  failure(error e, std::string d = {}) : code(make_error_code(e)), detail(std::move(d)) {}

  /// Returns `detail`, or the code's message if that is empty.
  std::string message() const { return detail.empty() ? code.message() : detail; }
};

/// Makes result::value() throw boost::system::system_error with the detail.
[[noreturn]] void throw_exception_from_error(const failure& f,
                                             const boost::source_location& location);

/// A value, or a failure with a description.
template <class T>
using result = boost::system::result<T, failure>;

}  // namespace rw::tls

template <>
struct boost::system::is_error_code_enum<rw::tls::error> : std::true_type {};
