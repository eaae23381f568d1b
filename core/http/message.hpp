#pragma once

#include "rw/core/lifetime.hpp"
#include "rw/core/requirements.hpp"
#include "rw/core/text.hpp"

#include <boost/asio/ip/tcp.hpp>
#include <boost/system/error_code.hpp>

#include <chrono>
#include <cstdint>
#include <functional>
#include <memory>
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
  std::string_view get(std::string_view name) const noexcept RW_LIFETIMEBOUND;
  bool has(std::string_view name) const noexcept { return find(name) != spans_.size(); }

  std::size_t size() const noexcept { return spans_.size(); }
  field operator[](std::size_t i) const noexcept;

  /// Appends each field as HTTP/1.1 writes it, with a line break before it.
  void append_lines(std::string& out) const;

  /// The size of the list as RFC 9113, section 6.5.2, counts it: names, values, and 32 bytes each.
  std::size_t bytes() const noexcept { return text_.size() + 32 * spans_.size(); }

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

using core::iequals;

/// Who sent a request. Views are valid as long as the request.
struct peer {
  boost::asio::ip::tcp::endpoint address;  ///< IPv4-mapped ones as IPv4
  std::string_view certificate;            ///< verified by TLS, DER; empty without mutual TLS
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

/// A body that a server sends while it comes to be, such as a watch. On the connection's executor.
class body_source {
 public:
  enum class state : std::uint8_t {
    more,     ///< call again when what was given is on its way
    pending,  ///< nothing now; `ready` will be called
    end,      ///< the body is whole
    broken,   ///< to be cut off: the connection (HTTP/1.1) or stream (HTTP/2) is reset
  };

  /// Goes when it has ended, or the client has gone.
  virtual ~body_source() = default;

  /// Appends about `room` bytes at most to `into`. With `end` and `broken` they are sent before
  /// that takes effect.
  virtual state read(std::string& into, std::size_t room) = 0;

  /// Called once, before the first read. `ready` is to be called, on the connection's executor,
  /// whenever there is something to read after `pending`; calling it too often does no harm.
  virtual void on_ready(std::function<void()> ready) = 0;

  /// The server drains. True: the source comes to its end by itself, soon (it calls `ready` if it
  /// was pending). False: it is cut off when it has nothing more to give. Either way it is cut off
  /// when the server's write limit has passed.
  virtual bool drain() { return false; }
};

/// Takes an answer's body at a client while it comes.
class body_sink {
 public:
  virtual ~body_sink() = default;

  /// The head of a successful (2xx) answer came: its body follows.
  virtual void begin() {}

  /// The next bytes of the body of a successful (2xx) answer, on the client's executor; they are
  /// gone after the call. It may begin other exchanges. False: enough; the exchange is given up
  /// with `client_error::abandoned`.
  virtual bool take(std::string_view bytes) = 0;

  /// The body of an opened exchange (client_slot::open) has ended: no error if it is whole. It may
  /// destroy that exchange's object, but neither begin nor give up others. Not called once the
  /// object has gone.
  virtual void end(boost::system::error_code) {}
};

/// What a server sends, or a client received. The server adds content-length and, on HTTP/1.1, what
/// the connection needs.
struct response {
  /// In a server 0 means: break off without an answer, as a server that dies does (HTTP/2: the
  /// stream is reset; HTTP/1.1: the connection is closed).
  unsigned status = 200;
  fields headers;
  std::string body;

  /// In a server: the body, instead of `body`. It may take as long as it likes, but what it gives
  /// the client must take within the server's write limit, renewed with each piece. A client that
  /// closes its side of the connection has gone.
  std::unique_ptr<body_source> source = {};

  /// In a server: the last answer that the client is to ask this connection for (HTTP/2: GOAWAY,
  /// where exchanges that are under way go on; HTTP/1.1: it is closed).
  bool last = false;

  void clear() noexcept;

  /// Makes this a plain text answer of one line.
  void text(unsigned code, std::string_view line);
};

/// The longest method that a server reads; the registered ones have 17 bytes at most.
inline constexpr std::size_t longest_method = 32;

/// Bytes that a server keeps allocated behind each body, so that a vectorised parser may read past
/// it.
inline constexpr std::size_t body_padding = 64;

/// Appends to a body that may become as long as `expected`, with `body_padding` to spare behind it.
/// Takes memory as the bytes come, not as they are announced.
void append_body(std::string& body, std::string_view bytes, std::size_t expected);

/// Returns true for a status code of three digits (RFC 9110, section 15).
constexpr bool is_status(unsigned status) noexcept {
  return status >= 100 && status <= 999;
}

/// The standard phrase of a status, such as "Not Found" (RFC 9110, section 15).
std::string_view reason_phrase(unsigned status) noexcept;

/// A time as header fields write it, such as "Sun, 06 Nov 1994 08:49:37 GMT" (RFC 9110,
/// section 5.6.7). Valid until the thread's next call with another second.
std::string_view http_date(std::chrono::system_clock::time_point time);

}  // namespace rw::http
