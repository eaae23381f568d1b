#pragma once

#include "rw/tls/error.hpp"

#include <boost/system/error_code.hpp>
#include <openssl/bio.h>
#include <openssl/evp.h>
#include <openssl/ssl.h>
#include <openssl/x509v3.h>

#include <memory>
#include <string>
#include <string_view>

// Shared by the sources of tls/; no public header includes it.

namespace rw::tls {

template <auto Free>
struct openssl_free {
  template <class T>
  void operator()(T* object) const noexcept {
    Free(object);
  }
};

using bio_ptr = std::unique_ptr<BIO, openssl_free<&BIO_free>>;
using x509_ptr = std::unique_ptr<X509, openssl_free<&X509_free>>;
using pkey_ptr = std::unique_ptr<EVP_PKEY, openssl_free<&EVP_PKEY_free>>;
using store_ptr = std::unique_ptr<X509_STORE, openssl_free<&X509_STORE_free>>;
using ssl_ptr = std::unique_ptr<SSL, openssl_free<&SSL_free>>;
using session_ptr = std::unique_ptr<SSL_SESSION, openssl_free<&SSL_SESSION_free>>;

/// Takes the newest error off OpenSSL's queue and clears the queue. Returns `otherwise` if it is
/// empty.
boost::system::error_code take_openssl_error(boost::system::error_code otherwise);

/// Returns a read-only view of text, which must outlive it.
bio_ptr read_bio(std::string_view text);

std::string text_of(BIO* bio);

}  // namespace rw::tls
