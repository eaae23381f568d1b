#pragma once

#include "rw/core/http/buffers.hpp"
#include "rw/core/http/client_connection.hpp"
#include "rw/core/http/frame_budget.hpp"
#include "rw/core/http/http2_session.hpp"
#include "rw/core/recycled.hpp"
#include "rw/core/wake.hpp"

#include <boost/asio/post.hpp>

#include <algorithm>
#include <array>
#include <list>
#include <optional>

namespace rw::http {

/// An HTTP/2 connection that all exchanges share.
class http2_client final : public client_connection,
                           public std::enable_shared_from_this<http2_client> {
 public:
  http2_client(const client_options& options, const client_environment& environment,
               boost::asio::any_io_executor executor, std::unique_ptr<core::stream> stream);

  boost::asio::awaitable<void> run() override;
  boost::asio::awaitable<boost::system::error_code> exchange(const request* request, response* into,
                                                             exchange_options options) override;
  boost::asio::awaitable<boost::system::error_code> open(
      const request* request, response* into, exchange_options options, client_slot* through,
      std::unique_ptr<opened_exchange>* rest) override;
  std::unique_ptr<opened_exchange> begin(const request& request, response& into,
                                         exchange_options options, client_slot::end_handler on_end,
                                         client_slot& through) override;

  std::size_t capacity() const noexcept override {
    return ended_ || retired_ || suspected_ ? 0 : streams();
  }
  bool multiplexed() const noexcept override { return true; }
  /// Its settings come with the first round trip; until then 100 streams are assumed (RFC 9113,
  /// section 6.5.2).
  bool settling() const noexcept override { return !settled_ && capacity() > 0; }

  // What nghttp2 calls.
  int on_header(const nghttp2_frame& frame, std::string_view name, std::string_view value);
  int on_data(std::int32_t id, std::string_view bytes);
  int on_frame(const nghttp2_frame& frame);
  int on_stream_close(std::int32_t id, std::uint32_t code);
  int on_frame_not_sent(const nghttp2_frame& frame);
  int on_frame_sent(const nghttp2_frame& frame) {
    if (frame.hd.type == NGHTTP2_DATA) budget_.sent_data();
    return 0;
  }

 private:
  /// One exchange, in the frame of its coroutine or opened. If it goes before the exchange has
  /// ended, its stream is reset.
  struct call {
    call(http2_client& o, response& response, const exchange_options& options)
        : owner(o),
          into(&response),
          sink(options.sink),
          body_bytes(options.body_bytes > 0 ? options.body_bytes : o.options_.limits.body_bytes),
          permit(options.permit),
          time(options, o.options_.limits, o.environment_.watchdog->now()) {}
    ~call() {
      sink = nullptr;
      on_end = nullptr;
      if (id > 0 && !finished) owner.give_up(*this, client_error::shut_down);
    }
    call(const call&) = delete;
    call& operator=(const call&) = delete;

    /// True if what comes goes to the sink.
    bool streams() const noexcept {
      return sink != nullptr && (into == nullptr || into->status / 100 == 2);
    }

    http2_client& owner;
    std::optional<core::wake> done;   ///< what its coroutine waits for, if it has one
    client_slot::end_handler on_end;  ///< else what is told of its end
    response* into;                   ///< null once the head of an opened one was handed over
    body_sink* sink;
    const std::size_t body_bytes;
    const std::shared_ptr<const send_permit> permit;  ///< null: it needs none
    outgoing_body body;
    std::array<char, 24> content_length{};  ///< in digits
    exchange_clock time;
    boost::system::error_code error;
    bool finished = false;
    bool any_response = false;
    bool whole = false;  ///< the answer came to its end
    bool opens = false;  ///< its coroutine waits for the head of a good answer, not for its end
    std::int32_t id = 0;
    std::list<call*>::iterator self;
  };

  struct opened final : opened_exchange, core::recycled<opened> {
    opened(http2_client& owner, response& response, const exchange_options& options)
        : pending(owner, response, options) {}

    client_slot slot;  ///< keeps the connection
    call pending;
  };

  /// For a call whose coroutine waits for `done`.
  bool begin_for_coroutine(call& call, const request& request) {
    call.done.emplace(executor_);
    return start(call, request);
  }
  bool start(call& call, const request& request);

  call* find(std::int32_t id) {
    return static_cast<call*>(nghttp2_session_get_stream_user_data(session_.get(), id));
  }

  /// How many there may be at once.
  std::size_t streams() const noexcept {
    const auto offered = nghttp2_session_get_remote_settings(
        session_.get(), NGHTTP2_SETTINGS_MAX_CONCURRENT_STREAMS);
    return std::min<std::size_t>(offered, options_.limits.streams);
  }
  /// False if nothing of it can have been written yet.
  bool begun(const call& call) const {
    return nghttp2_session_find_stream(session_.get(), call.id) != nullptr;
  }
  void finish_all(bool shut_down);
  void return_queued();

  bool submit(call& call, const request& request);
  void finish(call& call, boost::system::error_code error);
  void give_up(call& call, boost::system::error_code error);
  void end() override {
    ended_ = true;
    core::interrupt(stream_->socket());
  }
  boost::asio::awaitable<void> read_responses();
  core::io_result receive();
  void leave_flood();
  void heard();
  void heard(call& call);
  void look_for_life(core::time_point now, bool overdue);
  void probe(core::time_point answered_by);
  void expire();
  /// Has `expire` look at `time` at the latest.
  void look_at(core::time_point time) {
    if (time >= next_look_) return;
    next_look_ = time;
    deadline_.arm(time);
  }
  bool may_still_be_held_back(const call& call) const;
  void hold_back();
  void drop();
  void flush();
  void push() {
    flush();
    if (ended_) core::interrupt(stream_->socket());
  }
  /// Once for all exchanges that begin before the executor comes to it: their frames share a write.
  void push_soon() {
    if (std::exchange(push_pending_, true)) return;
    boost::asio::post(executor_, [weak = weak_from_this()] {
      if (const auto self = weak.lock()) {
        self->push_pending_ = false;
        self->push();
      }
    });
  }
  boost::asio::awaitable<void> write_when_possible();

  frame_output out_;
  nghttp2_session_ptr session_;
  frame_budget budget_{frame_budget::peer::server};
  core::task_group tasks_;
  core::deadline deadline_;
  std::list<call*> calls_;
  std::list<call*> spare_calls_;  ///< nodes of ended ones, for those that begin
  std::string authority_;
  core::time_point next_look_ = core::time_point::max();
  core::time_point last_use_;
  core::time_point last_heard_;
  core::time_point probed_until_ = core::time_point::max();  ///< when an answer to PING is due
  /// Of requests of which something may be on its way out, each once.
  std::vector<std::shared_ptr<const send_permit>> permits_out_;
  bool push_pending_ = false;
  bool write_blocked_ = false;
  bool settled_ = false;    ///< the peer's settings are known
  bool suspected_ = false;  ///< an exchange timed out, and nothing else was heard either
  bool ended_ = false;
  bool flooded_ = false;  ///< the peer has sent too many frames
  bool dropped_ = false;  ///< not another byte, not even of what the kernel holds
};

}  // namespace rw::http
