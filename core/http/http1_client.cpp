#include "core/http/client_connection.hpp"
#include "core/http/parser.hpp"
#include "core/ready.hpp"
#include "core/wake.hpp"

#include <boost/asio/this_coro.hpp>
#include <boost/beast/http/error.hpp>

#include <optional>

namespace rw::http {
namespace {

namespace asio = boost::asio;

constexpr std::size_t read_size = 16 * 1024;
constexpr int informational_at_most = 10;

/// A kept-alive HTTP/1.1 connection: one exchange at a time.
class http1_client final : public client_connection {
 public:
  http1_client(const client_options& options, const client_environment& environment,
               asio::any_io_executor executor, std::unique_ptr<core::stream> stream)
      : client_connection(options, environment, std::move(executor), std::move(stream)),
        deadline_(environment_.watchdog.watch(executor_, [this] { expire(); })),
        ended_(executor_) {
    rest_until(options_.limits.idle);
  }

  asio::awaitable<void> run() override {
    co_await asio::this_coro::throw_if_cancelled(false);
    while (open_ && !shut_down_) {
      const auto cancelled = co_await ended_.wait();
      if (cancelled) shut_down_ = true;
    }
    open_ = false;
    // Ends an exchange that is under way, too.
    stream_->shutdown();
    boost::system::error_code ignored;
    stream_->socket().close(ignored);
  }

  asio::awaitable<boost::system::error_code> exchange(const request& what, response& into) override;

  std::size_t capacity() const noexcept override { return open_ && !retired_ ? 1 : 0; }
  bool multiplexed() const noexcept override { return false; }

  void retire() override {
    retired_ = true;
    if (slots_ == 0) end();
  }

 private:
  void slot_given() override {
    if (retired_) end();
  }

  void expire() {
    expired_ = true;
    if (busy_) {
      core::interrupt(stream_->socket());
    } else {
      end();
    }
  }

  void end() {
    open_ = false;
    ended_.set();
  }

  void rest_until(std::chrono::milliseconds limit) {
    deadline_.arm(environment_.watchdog.now() + limit);
  }

  void write_head(const request& what);
  asio::awaitable<boost::system::error_code> send_and_receive(const request* what, response* into);
  asio::awaitable<boost::system::error_code> receive(response_parser* parser);
  asio::awaitable<boost::system::error_code> wait(core::want what);

  core::deadline deadline_;
  core::wake ended_;
  std::string out_;
  std::string in_;
  std::size_t in_end_ = 0;
  bool open_ = true;
  bool shut_down_ = false;
  bool busy_ = false;
  bool expired_ = false;
  bool retired_ = false;
  bool used_before_ = false;
  bool any_answer_ = false;
};

void http1_client::write_head(const request& what) {
  out_.clear();
  out_ += what.method;
  out_ += ' ';
  out_ += what.target;
  out_ += " HTTP/1.1\r\nhost: ";
  out_ += authority(options_);
  for (std::size_t i = 0; i < what.headers.size(); ++i) {
    const auto field = what.headers[i];
    out_ += "\r\n";
    out_ += field.name;
    out_ += ": ";
    out_ += field.value;
  }
  out_ += "\r\ncontent-length: ";
  out_ += std::to_string(what.body.size());
  out_ += "\r\n\r\n";
  out_ += what.body;
}

asio::awaitable<boost::system::error_code> http1_client::wait(core::want what) {
  if (expired_) co_return client_error::timed_out;
  const auto error = co_await core::ready(stream_->socket(), what);
  if (shut_down_) co_return client_error::shut_down;
  co_return expired_ ? client_error::timed_out : error;
}

/// Reads one answer.
asio::awaitable<boost::system::error_code> http1_client::receive(response_parser* parser) {
  for (;;) {
    boost::beast::error_code error;
    const auto used = feed(*parser, {in_.data(), in_end_}, error);
    in_.erase(0, used);
    in_end_ -= used;
    if (error == boost::beast::http::error::body_limit ||
        error == boost::beast::http::error::header_limit) {
      co_return client_error::response_too_large;
    }
    if (error) co_return client_error::protocol;
    if (parser->is_done()) co_return error;
    // What is neither header nor body (chunk extensions, trailers) is not limited by the parser.
    if (in_end_ > options_.limits.header_bytes) co_return client_error::response_too_large;

    if (in_.size() - in_end_ < read_size) in_.resize(in_end_ + read_size);
    const auto got = stream_->read({in_.data() + in_end_, in_.size() - in_end_});
    if (got.error == asio::error::eof && parser->got_some()) {
      // An answer without a length ends with its connection (RFC 9112, section 6.3).
      parser->put_eof(error);
      if (!error && parser->is_done()) co_return error;
    }
    if (got.error) co_return client_error::closed;
    if (got.wants != core::want::nothing) {
      const auto failed = co_await wait(got.wants);
      if (failed) co_return failed;
      continue;
    }
    any_answer_ = true;
    in_end_ += got.bytes;
  }
}

asio::awaitable<boost::system::error_code> http1_client::send_and_receive(const request* what,
                                                                          response* into) {
  write_head(*what);
  for (std::size_t sent = 0; sent < out_.size();) {
    const auto put = stream_->write({out_.data() + sent, out_.size() - sent});
    sent += put.bytes;
    if (put.error) co_return client_error::closed;
    if (put.wants == core::want::nothing) continue;
    const auto error = co_await wait(put.wants);
    if (error) co_return error;
  }
  in_end_ = 0;
  std::optional<response_parser> parser;
  for (int i = 0; i == 0 || into->status < 200; ++i) {
    // Informational answers (1xx) come before the real one.
    if (i > informational_at_most) co_return client_error::protocol;
    into->clear();
    parser.emplace(*into, options_.limits.header_bytes, options_.limits.body_bytes);
    const auto error = co_await receive(&*parser);
    if (error) co_return error;
  }
  if (!parser->keep_alive() || in_end_ > 0) retired_ = true;
  co_return boost::system::error_code();
}

asio::awaitable<boost::system::error_code> http1_client::exchange(const request& what,
                                                                  response& into) {
  if (!open_) co_return client_error::not_processed;  // the socket may be another's by now
  busy_ = true;
  expired_ = any_answer_ = false;
  rest_until(options_.limits.exchange);
  auto error = co_await send_and_receive(&what, &into);
  busy_ = false;
  rest_until(options_.limits.idle);
  // A kept connection that the peer closed meanwhile: it never saw this request.
  if (error == client_error::closed && used_before_ && !any_answer_) {
    error = client_error::not_processed;
  }
  used_before_ = true;
  if (error) retired_ = true;
  co_return error;
}

}  // namespace

std::shared_ptr<client_connection> make_http1_client_connection(
    const client_options& options, const client_environment& environment,
    asio::any_io_executor executor, std::unique_ptr<core::stream> stream) {
  return std::make_shared<http1_client>(options, environment, std::move(executor),
                                        std::move(stream));
}

}  // namespace rw::http
