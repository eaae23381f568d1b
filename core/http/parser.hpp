#pragma once

#include "rw/core/http/client_error.hpp"
#include "rw/core/http/message.hpp"

#include <boost/beast/http/basic_parser.hpp>

#include <algorithm>
#include <array>
#include <functional>
#include <string_view>

namespace rw::http {

/// What both of Beast's HTTP/1.1 parsers (RFC 9112) have in common here: they fill a message of
/// ours instead of Beast's own containers. One for each message.
template <bool IsRequest, class Message>
class message_parser : public boost::beast::http::basic_parser<IsRequest> {
 public:
  message_parser(Message& into, std::size_t header_bytes) : into_(into) {
    this->header_limit(static_cast<std::uint32_t>(header_bytes));
    this->body_limit(boost::none);
    this->eager(true);
  }

  /// True in the middle of a chunk's data.
  bool in_chunk() const noexcept { return in_chunk_; }
  /// True behind the last chunk, which Beast's parser of newer versions takes before the trailers
  /// are there (357 does, 347 does not).
  bool in_trailers() const noexcept { return in_trailers_; }

 protected:
  using error_code = boost::beast::error_code;
  using string_view = boost::beast::string_view;

  /// Whether a field goes into the message.
  virtual bool keeps(boost::beast::http::field, std::string_view) { return true; }

  /// The header is there.
  virtual void on_head(error_code& error) = 0;

  /// The next bytes of the body.
  virtual void take(std::string_view bytes, error_code& error) = 0;

  Message& into_;

 private:
  void on_field_impl(boost::beast::http::field field, string_view name, string_view value,
                     error_code&) final {
    // Trailers are dropped: a gateway checks what stands in the header only (RFC 9110, 6.5.1).
    if (head_done_ || !keeps(field, {value.data(), value.size()})) return;
    into_.headers.add({name.data(), name.size()}, {value.data(), value.size()});
  }
  void on_header_impl(error_code& error) final {
    head_done_ = true;
    on_head(error);
  }
  std::size_t on_body_impl(string_view bytes, error_code& error) final {
    take({bytes.data(), bytes.size()}, error);
    return error ? 0 : bytes.size();
  }
  void on_chunk_header_impl(std::uint64_t size, string_view extensions, error_code& error) final {
    in_chunk_ = size > 0;
    in_trailers_ = size == 0;
    // A line that ends in a quoted string ends elsewhere for others (RFC 9112, section 7.1.1).
    if (extensions.find_first_of("\r\n") != string_view::npos)
      error = boost::beast::http::error::bad_chunk_extension;
  }
  std::size_t on_chunk_body_impl(std::uint64_t rest, string_view bytes, error_code& error) final {
    in_chunk_ = bytes.size() < rest;
    return on_body_impl(bytes, error);
  }

  bool head_done_ = false;
  bool in_chunk_ = false;
  bool in_trailers_ = false;
};

/// Characters of a Host: printable ASCII without what ends an authority or stands in no URI.
inline constexpr auto in_hosts = [] {
  std::array<bool, 256> table{};
  for (unsigned char c = '!'; c <= '~'; ++c) table[c] = true;
  for (const unsigned char c : std::string_view("\"<>@/?#\\^`{|}")) table[c] = false;
  return table;
}();

/// Reads a request.
class request_parser final : public message_parser<true, request> {
 public:
  /// Tells the largest body for the head that was read.
  using limit_source = std::function<std::size_t(const request& head)>;

  request_parser(request& into, const limit_source& limit, std::size_t header_bytes)
      : message_parser(into, header_bytes), limit_(limit) {}

  /// True if the client waits for leave to send the body (RFC 9110, section 10.1.1).
  bool expects_continue() const { return iequals(into_.headers.get("expect"), "100-continue"); }

  /// 10 or 11, once the header is there.
  int version() const noexcept { return version_; }

  /// What a request with a valid head is refused with all the same; 0: nothing.
  unsigned refused_status() const noexcept { return refused_status_; }
  std::string_view refused_because() const noexcept { return refused_because_; }

 private:
  bool keeps(boost::beast::http::field field, std::string_view value) override {
    if (field != boost::beast::http::field::host) return true;
    ++hosts_;
    host_is_wrong_ = host_is_wrong_ || !is_host(value);
    return !is_absolute_;
  }

  /// uri-host with a port (RFC 3986, section 3.2), loosely.
  static bool is_host(std::string_view text) noexcept {
    return std::ranges::all_of(text,
                               [](char c) { return in_hosts[static_cast<unsigned char>(c)]; });
  }

  void refuse(unsigned status, std::string_view reason, error_code& error) {
    refused_status_ = status;
    refused_because_ = reason;
    error = boost::beast::http::error::bad_field;
  }

  /// A client that takes us for a proxy says the whole URI; its authority then counts in place of
  /// Host (RFC 9112, section 3.2.2).
  void take_target(std::string_view target) {
    into_.target.assign(target);
    if (target.starts_with('/')) return;
    const auto colon = target.find("://");
    const auto scheme = target.substr(0, colon);
    is_absolute_ = colon != target.npos && (iequals(scheme, "http") || iequals(scheme, "https"));
    if (!is_absolute_) return;
    target.remove_prefix(colon + 3);
    const auto authority = target.substr(0, target.find_first_of("/?#"));
    host_is_wrong_ = authority.empty() || !is_host(authority);
    into_.headers.add("host", authority);
    target.remove_prefix(authority.size());
    into_.target.assign(target.starts_with('/') ? "" : "/").append(target);
  }

  void on_request_impl(boost::beast::http::verb, string_view method, string_view target,
                       int version, error_code& error) override {
    version_ = version;
    if (method.size() > longest_method) {
      error = boost::beast::http::error::bad_method;
      return;
    }
    into_.method.assign(method.data(), method.size());
    take_target({target.data(), target.size()});
  }
  void on_response_impl(int, string_view, int, error_code&) override {}
  void on_head(error_code& error) override {
    // A coding other than chunked leaves the end of the body unknown (RFC 9112, section 6.3).
    if (into_.headers.has("transfer-encoding")) {
      if (!chunked()) {
        error = boost::beast::http::error::bad_transfer_encoding;
        return;
      }
      // RFC 9112, section 6.1: others may not see where such a body ends.
      if (version_ < 11) return refuse(400, "HTTP/1.0 has no transfer codings", error);
      if (!iequals(into_.headers.get("transfer-encoding"), "chunked"))
        return refuse(501, "no transfer coding but chunked is known here", error);
    }
    // RFC 9112, section 3.2.
    if (hosts_ > 1 || (hosts_ == 0 && version_ > 10))
      return refuse(400, hosts_ == 0 ? "the request has no Host" : "the request has two Hosts",
                    error);
    if (host_is_wrong_) return refuse(400, "the Host is no host", error);
    largest_body_ = limit_(into_);
    const auto length = content_length();
    if (length && *length > largest_body_) error = boost::beast::http::error::body_limit;
    expected_ = length ? static_cast<std::size_t>(*length) : largest_body_;
  }
  void on_body_init_impl(const boost::optional<std::uint64_t>&, error_code&) override {}
  void on_finish_impl(error_code&) override { append_body(into_.body, {}, 0); }

  void take(std::string_view bytes, error_code& error) override {
    if (into_.body.size() + bytes.size() > largest_body_) {
      error = boost::beast::http::error::body_limit;
    } else {
      append_body(into_.body, bytes, expected_);
    }
  }

  const limit_source& limit_;
  std::size_t largest_body_ = 0;
  std::size_t expected_ = 0;
  int version_ = 11;
  unsigned hosts_ = 0;
  bool host_is_wrong_ = false;
  bool is_absolute_ = false;
  unsigned refused_status_ = 0;
  std::string_view refused_because_;
};

/// Reads a response, or gives the body of a successful one to a sink.
class response_parser final : public message_parser<false, response> {
 public:
  /// `body_bytes` limits what goes into the response; what goes into `sink` has no limit.
  response_parser(response& into, std::size_t header_bytes, std::size_t body_bytes,
                  body_sink* sink = nullptr)
      : message_parser(into, header_bytes), sink_(sink), largest_body_(body_bytes) {}

 private:
  void on_request_impl(boost::beast::http::verb, string_view, string_view, int,
                       error_code&) override {}
  void on_response_impl(int status, string_view, int, error_code&) override {
    into_.status = static_cast<unsigned>(status);
  }
  void on_head(error_code&) override {
    if (into_.status / 100 != 2) sink_ = nullptr;
    if (sink_ != nullptr) sink_->begin();
  }
  void on_body_init_impl(const boost::optional<std::uint64_t>& length, error_code& error) override {
    if (sink_ == nullptr && length && *length > largest_body_) {
      error = boost::beast::http::error::body_limit;
    }
  }
  void on_finish_impl(error_code&) override {}

  void take(std::string_view bytes, error_code& error) override {
    if (sink_ != nullptr) {
      if (!sink_->take(bytes)) error = client_error::abandoned;
    } else if (into_.body.size() + bytes.size() > largest_body_) {
      error = boost::beast::http::error::body_limit;
    } else {
      into_.body.append(bytes);
    }
  }

  body_sink* sink_;
  const std::size_t largest_body_;
};

/// Feeds `bytes` to a parser and returns how many it took; the rest is to be offered again, with
/// more behind it.
///
/// The end of a chunked body is at least "0\r\n\r\n" long, and Beast's parser asserts that it gets
/// no less once it has seen the zero: so what is shorter has to wait, unless it is a chunk's data
/// or stands behind a last chunk that was taken.
template <class Parser>
std::size_t feed(Parser& parser, std::string_view bytes, boost::beast::error_code& error) {
  constexpr std::size_t shortest_end = 5;
  const auto all = bytes.size();
  error = {};
  while (!bytes.empty() && !parser.is_done() && !error) {
    const bool between_chunks =
        parser.is_header_done() && parser.chunked() && !parser.in_chunk() && !parser.in_trailers();
    if (between_chunks && bytes.size() < shortest_end) break;
    const auto used = parser.put({bytes.data(), bytes.size()}, error);
    bytes.remove_prefix(used);
    if (used == 0) break;
  }
  if (error == boost::beast::http::error::need_more) error = {};
  return all - bytes.size();
}

/// The same for an answer, whose status line may lack the space behind the status, with the reason
/// that would follow: RFC 9112, section 4, wants the space, and Beast does, but nobody else.
inline std::size_t feed_response(response_parser& parser, std::string_view bytes,
                                 boost::beast::error_code& error) {
  constexpr std::string_view shortest = "HTTP/1.1 200\r\n";
  error = {};
  if (parser.got_some()) return feed(parser, bytes, error);
  if (bytes.size() < shortest.size() && bytes.find('\n') == std::string_view::npos) return 0;
  if (!bytes.substr(0, shortest.size()).ends_with("\r\n")) return feed(parser, bytes, error);
  const auto line = std::string(bytes.substr(0, shortest.size() - 2)) + " \r\n";
  if (feed(parser, line, error) < line.size() || error) return 0;
  bytes.remove_prefix(shortest.size());
  return shortest.size() + feed(parser, bytes, error);
}

}  // namespace rw::http
