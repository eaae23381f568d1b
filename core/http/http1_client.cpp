#include "rw/core/http/buffers.hpp"
#include "rw/core/http/client_connection.hpp"
#include "rw/core/http/parser.hpp"
#include "rw/core/wake.hpp"

#include <boost/asio/post.hpp>
#include <boost/asio/this_coro.hpp>
#include <boost/asio/use_awaitable.hpp>
#include <boost/beast/http/error.hpp>

#include <optional>

namespace rw::http {
namespace {

namespace asio = boost::asio;

constexpr int informational_at_most = 10;
constexpr std::size_t written_at_once =
    32 * 1024;                                  // written at once: the permit is asked before each
constexpr std::size_t kept_request = 4 * 1024;  // larger buffers are not kept for the next exchange

/// A kept-alive HTTP/1.1 connection: one exchange at a time.
class http1_client final : public client_connection {
 public:
  http1_client(const client_options& options, const client_environment& environment,
               asio::any_io_executor executor, std::unique_ptr<core::stream> stream)
      : client_connection(options, environment, std::move(executor), std::move(stream)),
        deadline_(environment_.watchdog->watch(executor_, [this] { expire(); })),
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

  asio::awaitable<boost::system::error_code> exchange(const request* request, response* into,
                                                      exchange_options options) override;
  asio::awaitable<boost::system::error_code> open(const request*, response*, exchange_options,
                                                  client_slot*,
                                                  std::unique_ptr<opened_exchange>*) override {
    co_return client_error::protocol;
  }
  std::unique_ptr<opened_exchange> begin(const request&, response&, exchange_options,
                                         client_slot::end_handler, client_slot&) override {
    return nullptr;
  }

  std::size_t capacity() const noexcept override { return open_ && !retired_ ? 1 : 0; }
  bool multiplexed() const noexcept override { return false; }
  bool can_take() override;

 private:
  /// One exchange, in the frame of its coroutine. If that goes before the exchange has ended, the
  /// connection is of no further use.
  class under_way {
   public:
    under_way(http1_client& owner, exchange_clock time) : owner_(owner) {
      owner_.time_ = time;
      owner_.busy_ = true;
      owner_.expired_ = owner_.any_response_ = false;
      owner_.deadline_.arm(time.due());
    }
    ~under_way() {
      owner_.busy_ = false;
      owner_.rest_until(owner_.options_.limits.idle);
      if (well_) {
        owner_.used_before_ = true;
      } else {
        owner_.retired_ = true;
      }
    }
    under_way(const under_way&) = delete;
    under_way& operator=(const under_way&) = delete;

    void ended_well() noexcept { well_ = true; }

   private:
    http1_client& owner_;
    bool well_ = false;
  };

  void expire() {
    expired_ = true;
    if (busy_) {
      core::interrupt(stream_->socket());
    } else {
      end();
    }
  }

  void end() override {
    open_ = false;
    ended_.set();
  }

  void rest_until(std::chrono::milliseconds limit) {
    deadline_.arm(environment_.watchdog->now() + limit);
  }

  void write_head(const request& request);
  asio::awaitable<boost::system::error_code> send_and_receive(const request* request,
                                                              response* into,
                                                              exchange_options options);
  asio::awaitable<boost::system::error_code> send(const send_permit* permit);
  asio::awaitable<boost::system::error_code> receive(response_parser* parser);
  core::io_result read(response_parser& parser);
  boost::system::error_code parse(response_parser& parser, std::string_view bytes);
  asio::awaitable<boost::system::error_code> wait(core::want direction);

  core::deadline deadline_;
  core::wake ended_;
  exchange_clock time_{{}, options_.limits, {}};
  std::string out_;
  std::string input_;  ///< what the parser has left, to see it again with more behind it
  bool open_ = true;
  bool shut_down_ = false;
  bool busy_ = false;
  bool expired_ = false;
  bool any_response_ = false;
};

/// Looks at what the peer did to the idle connection: one that was closed, or on which something
/// came that is no answer to anything, is of no use, and nothing has been written to it.
bool http1_client::can_take() {
  if (slots_ >= capacity()) return false;
  read_buffer buffer;
  const auto got = stream_->read(buffer.bytes());
  if (!got.error && got.wants != core::want::nothing) return true;
  end();
  return false;
}

void http1_client::write_head(const request& request) {
  out_.clear();
  out_ += request.method;
  out_ += ' ';
  out_ += request.target;
  out_ += " HTTP/1.1\r\nhost: ";
  out_ += authority(options_, stream_->encrypted());
  request.headers.append_lines(out_);
  out_ += "\r\ncontent-length: ";
  out_ += std::to_string(request.body.size());
  out_ += "\r\n\r\n";
  out_ += request.body;
}

asio::awaitable<boost::system::error_code> http1_client::wait(core::want direction) {
  if (expired_) co_return client_error::timed_out;
  const auto [error] = co_await core::ready(stream_->socket(), direction);
  if (expired_) co_return client_error::timed_out;
  // Closed from here, or the exchange was cancelled.
  if (shut_down_ || error == asio::error::operation_aborted) co_return client_error::shut_down;
  co_return error;
}

asio::awaitable<boost::system::error_code> http1_client::send(const send_permit* permit) {
  for (std::size_t sent = 0; sent < out_.size();) {
    // The upstream lacks the request's end then, which the closed connection tells it.
    if (permit != nullptr && !permit->open()) co_return client_error::not_permitted;
    const auto put =
        stream_->write({out_.data() + sent, std::min(out_.size() - sent, written_at_once)});
    sent += put.bytes;
    if (put.error) co_return sent > 0 ? client_error::closed : client_error::not_processed;
    if (put.wants == core::want::nothing) continue;
    const auto error = co_await wait(put.wants);
    if (error) co_return error;
  }
  if (out_.capacity() > kept_request) std::string().swap(out_);
  co_return boost::system::error_code();
}

/// Parses `bytes`, which follow those that are kept already.
boost::system::error_code http1_client::parse(response_parser& parser, std::string_view bytes) {
  boost::beast::error_code error;
  if (input_.empty()) {
    input_ = bytes.substr(feed_response(parser, bytes, error));
  } else {
    input_.append(bytes);
    input_.erase(0, feed_response(parser, input_, error));
  }
  if (input_.empty() && input_.capacity() > kept_request) input_.shrink_to_fit();
  if (error == boost::beast::http::error::body_limit ||
      error == boost::beast::http::error::header_limit) {
    return client_error::response_too_large;
  }
  if (error)
    return error == client_error::abandoned ? client_error::abandoned : client_error::protocol;
  // What is neither header nor body (chunk extensions, trailers) is not limited by the parser.
  if (!parser.is_done() && input_.size() > options_.limits.header_bytes) {
    return client_error::response_too_large;
  }
  return {};
}

/// Takes one step: reads what is there, and parses it.
core::io_result http1_client::read(response_parser& parser) {
  read_buffer buffer;
  auto got = stream_->read(buffer.bytes());
  if (got.error == asio::error::eof && parser.got_some()) {
    // An answer without a length ends with its connection (RFC 9112, section 6.3).
    boost::beast::error_code error;
    parser.put_eof(error);
    if (!error && parser.is_done()) return {};
  }
  if (got.error) return {.error = client_error::closed};
  if (got.wants != core::want::nothing) return got;
  any_response_ = true;
  got.error = parse(parser, {buffer.bytes().data(), got.bytes});
  if (parser.is_header_done()) {
    time_.heard(environment_.watchdog->now());
    deadline_.arm(time_.due());
  }
  return got;
}

/// Reads one answer.
asio::awaitable<boost::system::error_code> http1_client::receive(response_parser* parser) {
  // An informational answer may have brought the next one's first bytes.
  const auto kept = std::exchange(input_, {});
  const auto malformed = parse(*parser, kept);
  if (malformed) co_return malformed;
  for (unsigned reads = 1; !parser->is_done(); ++reads) {
    const auto got = read(*parser);
    if (got.error) co_return got.error;
    if (got.wants != core::want::nothing) {
      const auto failed = co_await wait(got.wants);
      if (failed) co_return failed;
    } else if (reads % reads_per_turn == 0) {
      co_await asio::post(executor_, asio::use_awaitable);
    }
    if (expired_) co_return client_error::timed_out;
  }
  co_return boost::system::error_code();
}

asio::awaitable<boost::system::error_code> http1_client::send_and_receive(
    const request* request, response* into, exchange_options options) {
  write_head(*request);
  const auto unsent = co_await send(options.permit.get());
  if (unsent) co_return unsent;
  const auto body_bytes = options.body_bytes > 0 ? options.body_bytes : options_.limits.body_bytes;
  std::optional<response_parser> parser;
  for (int i = 0; i == 0 || into->status < 200; ++i) {
    // Informational answers (1xx) come before the real one.
    if (i > informational_at_most) co_return client_error::protocol;
    into->clear();
    parser.emplace(*into, options_.limits.header_bytes, body_bytes, options.sink);
    if (request->method == "HEAD") parser->skip(true);
    const auto error = co_await receive(&*parser);
    if (error) co_return error;
    if (!is_status(into->status)) co_return client_error::protocol;
  }
  if (!parser->keep_alive() || !input_.empty()) retired_ = true;
  co_return boost::system::error_code();
}

asio::awaitable<boost::system::error_code> http1_client::exchange(const request* request,
                                                                  response* into,
                                                                  exchange_options options) {
  if (!open_) co_return client_error::not_processed;
  under_way self(*this, {options, options_.limits, environment_.watchdog->now()});
  const auto error = co_await send_and_receive(request, into, options);
  if (error == client_error::closed && used_before_ && !any_response_) {
    co_return client_error::reused_connection_closed;
  }
  if (!error) self.ended_well();
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
