#pragma once

#include <nghttp2/nghttp2.h>

#include "tests/unit/http/wire.hpp"
#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace rw::http::test {

using field_list = std::vector<std::pair<std::string, std::string>>;

/// A frame of HTTP/2 as it goes over the wire (RFC 9113, section 4.1).
struct frame {
  enum type : std::uint8_t {
    data,
    headers,
    priority,
    rst_stream,
    settings,
    push_promise,
    ping,
    goaway,
    window_update,
    continuation
  };
  static constexpr std::uint8_t ack = 1;
  static constexpr std::uint8_t end_stream = 1;
  static constexpr std::uint8_t end_headers = 4;

  std::uint8_t kind = 0;
  std::uint8_t flags = 0;
  std::uint32_t stream = 0;
  std::string payload;

  bool ends_stream() const {
    return (kind == data || kind == headers) && (flags & end_stream) != 0;
  }
};

inline std::string big_endian(std::uint32_t value, int bytes = 4) {
  std::string out;
  for (int shift = 8 * (bytes - 1); shift >= 0; shift -= 8)
    out += static_cast<char>(value >> shift);
  return out;
}

inline std::uint32_t read_big_endian(std::string_view bytes) {
  std::uint32_t value = 0;
  for (const char c : bytes) value = value << 8 | static_cast<std::uint8_t>(c);
  return value;
}

inline std::string bytes_of(const frame& f) {
  return big_endian(static_cast<std::uint32_t>(f.payload.size()), 3) + static_cast<char>(f.kind) +
         static_cast<char>(f.flags) + big_endian(f.stream) + f.payload;
}

/// A text in HPACK, without Huffman code (RFC 7541, section 5.2).
inline std::string hpack_text(std::string_view text) {
  std::string out;
  if (text.size() < 127) {
    out += static_cast<char>(text.size());
  } else {
    out += '\x7f';
    auto rest = text.size() - 127;
    for (; rest >= 128; rest /= 128) out += static_cast<char>(rest % 128 + 128);
    out += static_cast<char>(rest);
  }
  return out.append(text);
}

/// Literal fields without indexing, with literal names (RFC 7541, section 6.2.2).
inline std::string hpack(const field_list& fields) {
  std::string out;
  for (const auto& [name, value] : fields) {
    out += '\0';
    out += hpack_text(name) + hpack_text(value);
  }
  return out;
}

inline field_list post_fields(std::string_view target, field_list more = {}) {
  field_list fields = {{":method", "POST"},
                       {":scheme", "https"},
                       {":path", std::string(target)},
                       {":authority", "t"}};
  fields.insert(fields.end(), more.begin(), more.end());
  return fields;
}

/// An answer on one stream.
struct h2_answer {
  unsigned status = 0;  ///< 0: there was none
  std::map<std::string, std::string> fields;
  std::string body;
  bool complete = false;
  std::optional<std::uint32_t> reset;  ///< the error code of RST_STREAM
};

/// A client that writes HTTP/2's frames by hand.
class h2_wire {
 public:
  explicit h2_wire(wire over, std::string settings = {}) : wire_(std::move(over)) {
    nghttp2_hd_inflater* raw = nullptr;
    nghttp2_hd_inflate_new(&raw);
    inflater_.reset(raw);
    wire_.send("PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n" +
               bytes_of({frame::settings, 0, 0, std::move(settings)}));
  }

  wire& raw() { return wire_; }

  bool send(const frame& f) { return wire_.send(bytes_of(f)); }

  void send_headers(std::uint32_t stream, const field_list& fields, bool end_stream) {
    send({frame::headers,
          static_cast<std::uint8_t>(frame::end_headers | (end_stream ? frame::end_stream : 0)),
          stream, hpack(fields)});
  }

  /// Sends a request; its body as far as the peer's windows allow, waiting for more.
  void send_post(std::uint32_t stream, std::string_view target, std::string_view body,
                 const field_list& more = {}) {
    send_headers(stream, post_fields(target, more), body.empty());
    send_body(stream, body);
  }

  void send_body(std::uint32_t stream, std::string_view body) { send_data(stream, body, true); }
  void send_unfinished(std::uint32_t stream, std::string_view body) {
    send_data(stream, body, false);
  }

  void send_data(std::uint32_t stream, std::string_view body, bool end_stream) {
    while (!body.empty()) {
      const auto window = std::min(connection_window_, window_of(stream));
      const auto n = std::min({body.size(), std::size_t{16384},
                               static_cast<std::size_t>(std::max(window, std::int64_t{0}))});
      if (n == 0) {
        if (answers_[stream].reset || answers_[stream].complete || !read_one()) return;
        continue;
      }
      const bool last = end_stream && n == body.size();
      if (!send({frame::data, static_cast<std::uint8_t>(last ? frame::end_stream : 0), stream,
                 std::string(body.substr(0, n))})) {
        return;
      }
      connection_window_ -= static_cast<std::int64_t>(n);
      windows_[stream] -= static_cast<std::int64_t>(n);
      body.remove_prefix(n);
    }
  }

  /// The answer on one stream, read to its end, its reset, or the connection's end.
  h2_answer read_answer(std::uint32_t stream) {
    auto& one = answers_[stream];
    while (!one.complete && !one.reset && read_one()) {
    }
    return one;
  }

  h2_answer ask(std::uint32_t stream, std::string_view target, std::string_view body,
                const field_list& more = {}) {
    send_post(stream, target, body, more);
    return read_answer(stream);
  }

  /// Reads until GOAWAY; its error code, or none if the connection ended without.
  std::optional<std::uint32_t> read_goaway() {
    while (!goaway_ && read_one()) {
    }
    return goaway_;
  }

  /// Reads until the peer closes the connection. False: it does not.
  bool read_end() {
    while (read_one()) {
    }
    return wire_.at_end();
  }

  /// Reads until the peer has acknowledged `n` pings.
  bool read_pongs(std::size_t n) {
    while (pongs_ < n && read_one()) {
    }
    return pongs_ >= n;
  }

  bool acknowledge_settings = true;
  bool open_windows = true;  ///< give back what was received

 private:
  struct deleter {
    void operator()(nghttp2_hd_inflater* p) const noexcept { nghttp2_hd_inflate_del(p); }
  };

  std::int64_t window_of(std::uint32_t stream) {
    return windows_.try_emplace(stream, initial_window_).first->second;
  }

  bool read_one() {
    const auto head = wire_.take(9);
    if (head.size() < 9) return false;
    frame f;
    const auto size = read_big_endian(std::string_view(head).substr(0, 3));
    f.kind = static_cast<std::uint8_t>(head[3]);
    f.flags = static_cast<std::uint8_t>(head[4]);
    f.stream = read_big_endian(std::string_view(head).substr(5)) & 0x7fffffffu;
    f.payload = wire_.take(size);
    if (f.payload.size() < size) return false;
    understand(f);
    return true;
  }

  void understand(const frame& f) {
    auto& one = answers_[f.stream];
    switch (f.kind) {
      case frame::settings:
        if ((f.flags & frame::ack) == 0) on_settings(f);
        break;
      case frame::headers:
        inflate(f, one);
        break;
      case frame::data:
        one.body += f.payload;
        if (open_windows && !f.payload.empty()) {
          const auto n = big_endian(static_cast<std::uint32_t>(f.payload.size()));
          send({frame::window_update, 0, 0, n});
          send({frame::window_update, 0, f.stream, n});
        }
        break;
      case frame::rst_stream:
        one.reset = read_big_endian(f.payload);
        break;
      case frame::goaway:
        // The first of two announces the second (RFC 9113, section 6.8).
        if (read_big_endian(std::string_view(f.payload).substr(0, 4)) != 0x7fffffffu) {
          goaway_ = read_big_endian(std::string_view(f.payload).substr(4, 4));
        }
        break;
      case frame::window_update:
        if (f.stream == 0) {
          connection_window_ += read_big_endian(f.payload);
        } else {
          window_of(f.stream);
          windows_[f.stream] += read_big_endian(f.payload);
        }
        break;
      case frame::ping:
        if ((f.flags & frame::ack) != 0) ++pongs_;
        break;
      default:
        break;
    }
    if (f.ends_stream()) one.complete = true;
  }

  void on_settings(const frame& f) {
    for (std::size_t i = 0; i + 6 <= f.payload.size(); i += 6) {
      const auto entry = std::string_view(f.payload).substr(i, 6);
      if (read_big_endian(entry.substr(0, 2)) != 4) continue;
      const auto initial = std::int64_t{read_big_endian(entry.substr(2))};
      for (auto& [stream, window] : windows_) window += initial - initial_window_;
      initial_window_ = initial;
    }
    if (acknowledge_settings) send({frame::settings, frame::ack, 0, {}});
  }

  void inflate(const frame& f, h2_answer& into) {
    auto* in = reinterpret_cast<const std::uint8_t*>(f.payload.data());
    auto left = f.payload.size();
    for (;;) {
      nghttp2_nv field;
      int flags = 0;
      const auto used = nghttp2_hd_inflate_hd2(inflater_.get(), &field, &flags, in, left, 1);
      if (used < 0) return;
      in += used;
      left -= static_cast<std::size_t>(used);
      if ((flags & NGHTTP2_HD_INFLATE_EMIT) != 0) {
        const std::string name(reinterpret_cast<const char*>(field.name), field.namelen);
        const std::string value(reinterpret_cast<const char*>(field.value), field.valuelen);
        if (name == ":status") into.status = static_cast<unsigned>(std::stoul(value));
        into.fields[name] = value;
      }
      if ((flags & NGHTTP2_HD_INFLATE_FINAL) != 0) break;
      if ((flags & NGHTTP2_HD_INFLATE_EMIT) == 0 && left == 0) break;
    }
    nghttp2_hd_inflate_end_headers(inflater_.get());
  }

  wire wire_;
  std::unique_ptr<nghttp2_hd_inflater, deleter> inflater_;
  std::map<std::uint32_t, h2_answer> answers_;
  std::map<std::uint32_t, std::int64_t> windows_;
  std::int64_t connection_window_ = 65535;
  std::int64_t initial_window_ = 65535;
  std::optional<std::uint32_t> goaway_;
  std::size_t pongs_ = 0;
};

/// What the first SETTINGS frame of a client says of SETTINGS_HEADER_TABLE_SIZE.
inline std::uint32_t header_table_of(std::string_view from_client) {
  constexpr std::string_view preface = "PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n";
  const auto first = from_client.substr(preface.size());
  auto entries = first.substr(9, read_big_endian(first.substr(0, 3)));
  for (; entries.size() >= 6; entries.remove_prefix(6)) {
    if (read_big_endian(entries.substr(0, 2)) == 1) return read_big_endian(entries.substr(2, 4));
  }
  return 4096;  // RFC 9113, section 6.5.2
}

/// One entry of a SETTINGS frame.
inline std::string setting(std::uint32_t id, std::uint32_t value) {
  return big_endian(id, 2) + big_endian(value);
}

}  // namespace rw::http::test
