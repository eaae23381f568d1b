#pragma once

#include "rw/core/wake.hpp"

#include <boost/asio/any_io_executor.hpp>
#include <boost/asio/awaitable.hpp>
#include <boost/asio/error.hpp>
#include <boost/system/system_error.hpp>

#include <cstddef>
#include <memory>
#include <utility>

namespace rw::observation {

/// Bounds the lists that run at once: a semaphore for coroutines. On one executor.
class list_turns {
 public:
  list_turns(boost::asio::any_io_executor executor, std::size_t count)
      : free_(count), waiting_(std::move(executor)) {}

  /// Waits for a turn. The one that has a turn ends it within its requests' deadlines. Throws
  /// Asio's operation_aborted if cancelled.
  boost::asio::awaitable<void> begin() {
    while (free_ == 0) {
      const bool woken = co_await waiting_.wait();
      if (!woken) throw boost::system::system_error(boost::asio::error::operation_aborted);
    }
    --free_;
  }
  void end() {
    ++free_;
    waiting_.wake_one();
  }

 private:
  std::size_t free_;
  core::wake_list waiting_;
};

/// One list's turn: begun when it needs one, ended once.
class list_turn {
 public:
  explicit list_turn(std::shared_ptr<list_turns> of) : turns_(std::move(of)) {}
  ~list_turn() { end(); }
  list_turn(const list_turn&) = delete;
  list_turn& operator=(const list_turn&) = delete;

  /// Has the turn after it. One call at a time.
  boost::asio::awaitable<void> begin() {
    if (has_turn_) co_return;
    co_await turns_->begin();
    has_turn_ = true;
  }
  void end() {
    if (std::exchange(has_turn_, false)) turns_->end();
  }

 private:
  const std::shared_ptr<list_turns> turns_;
  bool has_turn_ = false;
};

}  // namespace rw::observation
