#pragma once

#include "rw/core/http/client.hpp"
#include "rw/core/task_group.hpp"

#include <boost/asio/awaitable.hpp>

#include <algorithm>
#include <chrono>
#include <functional>
#include <memory>

namespace rw::http {

/// When an exchange is given up. Times are the watchdog's.
class exchange_clock {
 public:
  exchange_clock(const exchange_options& options, const client_limits& limits, core::time_point now)
      : silence_(options.silence) {
    const auto limit = options.limit.count() > 0 ? options.limit : limits.exchange;
    end_ = now + limit;
    due_ = options.sink != nullptr ? now + std::min(limit, limits.exchange) : end_;
  }

  /// The answer's head came, or a part of its body.
  void heard(core::time_point now) noexcept {
    due_ = silence_.count() > 0 ? std::min(end_, now + silence_) : end_;
  }

  core::time_point due() const noexcept { return due_; }

 private:
  std::chrono::milliseconds silence_;
  core::time_point end_;
  core::time_point due_;
};

/// One connection to an upstream, after its handshake. On the client's executor.
class client_connection {
 public:
  /// Called when the connection can take more, or has come to its end.
  using change_handler = std::function<void()>;

  client_connection(const client_options& options, const client_environment& environment,
                    boost::asio::any_io_executor executor, std::unique_ptr<core::stream> stream)
      : options_(options),
        environment_(environment),
        executor_(std::move(executor)),
        stream_(std::move(stream)) {}
  virtual ~client_connection() = default;

  /// What the connection does beside its exchanges; ends when it is closed.
  virtual boost::asio::awaitable<void> run() = 0;

  virtual boost::asio::awaitable<boost::system::error_code> exchange(const request* request,
                                                                     response* into,
                                                                     exchange_options options) = 0;

  /// As client_slot::open; `through` is that slot. Only where `multiplexed`.
  virtual boost::asio::awaitable<boost::system::error_code> open(
      const request* request, response* into, exchange_options options, client_slot* through,
      std::unique_ptr<opened_exchange>* rest) = 0;

  /// As client_slot::begin; `through` is that slot. Only where `multiplexed`.
  virtual std::unique_ptr<opened_exchange> begin(const request& request, response& into,
                                                 exchange_options options,
                                                 client_slot::end_handler on_end,
                                                 client_slot& through) = 0;

  /// How many exchanges there may be at once; 0 at its end.
  virtual std::size_t capacity() const noexcept = 0;
  virtual bool multiplexed() const noexcept = 0;

  /// True if one more exchange may begin now.
  virtual bool can_take() { return slots_ < capacity(); }
  /// True if the peer may still say that it takes more exchanges at once than `capacity`.
  virtual bool settling() const noexcept { return false; }
  /// True if it takes a share of client_limits::connections.
  bool counts() const noexcept { return streaming_ < capacity(); }
  void on_change(change_handler handler) { changed_ = std::move(handler); }

  /// Counted by `client_slot`.
  void take_slot(exchange_kind kind) noexcept {
    ++slots_;
    if (kind == exchange_kind::streaming) ++streaming_;
  }
  void give_slot(exchange_kind kind) {
    --slots_;
    if (kind == exchange_kind::streaming) --streaming_;
    if (retired_ && slots_ == 0) end();
    changed();
  }

  /// Ends it as soon as no exchange is under way.
  void retire() {
    retired_ = true;
    if (slots_ == 0) end();
  }

 protected:
  /// Has `run` come to its end.
  virtual void end() = 0;
  void changed() {
    if (changed_) changed_();
  }

  const client_options& options_;
  const client_environment& environment_;
  const boost::asio::any_io_executor executor_;
  const std::unique_ptr<core::stream> stream_;
  std::size_t slots_ = 0;
  std::size_t streaming_ = 0;  ///< of those
  bool retired_ = false;       ///< takes no further exchange
  bool used_before_ = false;   ///< an exchange has ended well on it

 private:
  change_handler changed_;
};

/// The upstream as the host field names it (RFC 9110, section 7.2): an IPv6 address in brackets,
/// the port unless it is the default one, of https or else of http.
std::string authority(const client_options& options, bool encrypted);

std::shared_ptr<client_connection> make_http1_client_connection(
    const client_options& options, const client_environment& environment,
    boost::asio::any_io_executor executor, std::unique_ptr<core::stream> stream);
std::shared_ptr<client_connection> make_http2_client_connection(
    const client_options& options, const client_environment& environment,
    boost::asio::any_io_executor executor, std::unique_ptr<core::stream> stream);

}  // namespace rw::http
