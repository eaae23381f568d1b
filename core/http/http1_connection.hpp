#pragma once

#include "rw/core/http/open_source.hpp"
#include "rw/core/http/parser.hpp"
#include "rw/core/http/server_connection.hpp"
#include "rw/core/wake.hpp"

#include <algorithm>
#include <optional>

namespace rw::http {

/// An HTTP/1.1 connection: one request at a time, pipelined ones answered in order.
/// http1_connection.cpp reads requests, http1_answer.cpp writes answers.
class http1_connection final : public server_connection {
 public:
  explicit http1_connection(accepted parts);

  boost::asio::awaitable<void> run() override;
  void drain() override;
  void drop() override;
  void evict(std::size_t bytes) override;

 private:
  /// Answers to pipelined requests share a write until they are this large.
  static constexpr std::size_t answers_gathered = 16 * 1024;

  enum class phase : std::uint8_t { idle, header, body, handling, streaming, write, closing };

  void expire() {
    expired_ = true;
    nudge();
  }

  void enter(phase next, std::chrono::milliseconds limit) {
    phase_ = next;
    deadline_.arm(std::min(shared_->now() + limit, source_due_));
  }
  void resume(phase before);

  /// Ends whatever it is that `run` waits for.
  void nudge() {
    core::interrupt(stream_->socket());
    if (source_woken_) source_woken_->set();
  }

  /// False if it is too late to wait for the socket, or the connection is to end.
  bool may_wait() const noexcept { return !expired_ && !dropped_; }

  boost::asio::awaitable<bool> read_request();
  boost::asio::awaitable<bool> receive(bool* complete);
  bool refuse_late();
  void rest();
  bool parse(std::string_view bytes, bool& complete);
  bool wait_for_more();
  void hold();
  void refuse(unsigned status, std::string_view line, refusal reason);
  void refuse(const boost::system::error_code& error);
  void keep(std::string_view rest);

  boost::asio::awaitable<bool> respond();
  void append_response();
  core::io_result put();
  boost::asio::awaitable<bool> flush();
  boost::asio::awaitable<bool> send_source();
  bool in_time();
  body_source::state gather(bool chunked);
  boost::asio::awaitable<bool> until_ready();
  bool watch_client(core::want& wants);
  void drain_source();

  core::deadline deadline_;
  request_parser::limit_source limit_;
  std::optional<request_parser> parser_;
  request request_;
  response response_;
  open_source source_;
  std::unique_ptr<core::wake> source_woken_;  ///< where the source is awaited, not the socket
  core::time_point source_due_ = core::time_point::max();  ///< set when the server drains
  core::time_point begun_;                                 ///< where the body did
  body_progress progress_;
  std::string input_;  ///< read, but not parsed up to in_begin_
  std::size_t in_begin_ = 0;
  std::string out_;
  std::size_t out_begin_ = 0;
  unsigned reads_in_a_row_ = 0;  ///< without waiting for the socket
  bool drained_ = false;         ///< the socket had no more at the latest read
  phase phase_ = phase::idle;
  bool any_request_ = false;
  bool open_ = true;
  bool expired_ = false;
  bool refused_ = false;
};

}  // namespace rw::http
