#pragma once

#include "rw/tls/digest.hpp"

#include <boost/json/fwd.hpp>

#include <string>
#include <string_view>

namespace rw {

/// A digest of the content of objects, the same in every process and version of this program, so
/// that it may be stored on objects and compared later: SHA-256 over a form that delimits each
/// value by its kind and length, and sorts an object's members by name.
///
/// Not thread-safe. Throws as tls::sha256 does.
class content_digest {
 public:
  content_digest& add(std::string_view text);
  content_digest& add(const boost::json::value& value);

  /// Ends the digest. Returns the first 128 bits, 32 hexadecimal digits.
  std::string hex();

 private:
  void put(char kind, std::string_view bytes);

  tls::sha256_stream stream_;
};

}  // namespace rw
