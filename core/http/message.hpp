#pragma once

#include <boost/asio/ip/tcp.hpp>

#include <chrono>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

namespace rw::http {

/// Header fields in the order they came, in one buffer that is reused from message to message.
/// Names are matched without regard to case (RFC 9110, section 5.1). Views are valid until the next
/// change.
class fields {
 public:
  struct field {
    std::string_view name;
    std::string_view value;
  };

  void add(std::string_view name, std::string_view value);
  void clear() noexcept;

  /// The first field of that name, empty if there is none.
  std::string_view get(std::string_view name) const noexcept;
  bool has(std::string_view name) const noexcept { return find(name) != spans_.size(); }

  std::size_t size() const noexcept { return spans_.size(); }
  field operator[](std::size_t i) const noexcept;

  /// Bytes of all names and values.
  std::size_t bytes() const noexcept { return text_.size(); }

 private:
  struct span {
    std::uint32_t begin;
    std::uint32_t name;
    std::uint32_t value;
  };
  std::size_t find(std::string_view name) const noexcept;

  std::string text_;
  std::vector<span> spans_;
};

/// True if the two are equal but for the case of ASCII letters.
bool iequals(std::string_view a, std::string_view b) noexcept;

/// Who sent a request. Views are valid as long as the request.
struct peer {
  boost::asio::ip::tcp::endpoint address;
  std::string_view certificate;  ///< verified by TLS, DER; empty without mutual TLS
};

/// What a server received, or a client is to send.
struct request {
  std::string method = "POST";
  std::string target = "/";  ///< origin form, as it came: still percent-encoded
  fields headers;
  std::string body;  ///< in a server with `body_padding` spare bytes of capacity behind it
  http::peer peer;   ///< in a server

  void clear() noexcept;
};

/// What a server sends, or a client received. The server adds content-length and, on HTTP/1.1, what
/// the connection needs.
struct response {
  unsigned status = 200;
  fields headers;
  std::string body;

  void clear() noexcept;

  /// Makes this a plain text answer of one line.
  void text(unsigned code, std::string_view line);
};

/// Bytes that a server keeps allocated behind each body, so that a vectorised parser may read past
/// it.
inline constexpr std::size_t body_padding = 64;

/// The standard phrase of a status, such as "Not Found" (RFC 9110, section 15).
std::string_view reason_phrase(unsigned status) noexcept;

/// A time as header fields write it, such as "Sun, 06 Nov 1994 08:49:37 GMT" (RFC 9110,
/// section 5.6.7). Valid until the thread's next call with another second.
std::string_view http_date(std::chrono::system_clock::time_point when);

}  // namespace rw::http
