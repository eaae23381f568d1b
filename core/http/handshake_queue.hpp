#pragma once

#include "rw/core/clock.hpp"
#include "rw/core/wake.hpp"

#include <boost/asio/any_io_executor.hpp>
#include <boost/asio/awaitable.hpp>
#include <boost/asio/ip/address.hpp>
#include <boost/asio/steady_timer.hpp>

#include <chrono>
#include <functional>
#include <list>
#include <memory>
#include <mutex>

namespace rw::http {

/// Puts the steps of TLS handshakes, a signature of milliseconds among them, behind everything else
/// that a server has to do: one step at a time, and between two of them whatever is ready on
/// established connections. After a long step, while requests are being answered, it rests as long
/// as the step took: a process that asks for less than its share of a core is given it at once when
/// a request comes. Addresses take turns, so that one with many handshakes does not keep another's
/// waiting; within an address the order is that of arrival.
///
/// Its length is bounded by the memory policy's limit of handshakes. Thread-safe.
class handshake_queue : public std::enable_shared_from_this<handshake_queue> {
 public:
  class place;

  /// `time`, which must outlive it, says how long a step took; `answered` how many requests have
  /// been answered.
  handshake_queue(boost::asio::any_io_executor executor, core::clock& time,
                  std::function<double()> answered)
      : executor_(executor), clock_(time), responded_(std::move(answered)), rest_(executor) {}

 private:
  struct entry {
    entry(boost::asio::any_io_executor ex, boost::asio::ip::address address)
        : executor(ex), from(std::move(address)), granted(ex) {}

    const boost::asio::any_io_executor executor;
    const boost::asio::ip::address from;
    core::wake granted;  ///< on `executor`
  };

  /// One address's handshakes, in the order of their arrival.
  struct line {
    boost::asio::ip::address from;
    std::list<std::shared_ptr<entry>> waiting;
  };

  void enter(std::shared_ptr<entry> waiting);
  void leave(const std::shared_ptr<entry>& gone);
  void pass_on();
  void grant();

  const boost::asio::any_io_executor executor_;
  core::clock& clock_;
  const std::function<double()> responded_;
  std::mutex guard_;
  std::list<line> lines_;           ///< in turn, none empty; this and all below under `guard_`
  std::shared_ptr<entry> current_;  ///< who has the turn
  core::time_point since_;          ///< when it got it
  double responded_before_ = 0;
  boost::asio::steady_timer rest_;
  bool passing_on_ = false;
};

/// One handshake's place, given up when it goes. On the handshake's executor.
class handshake_queue::place {
 public:
  place(std::shared_ptr<handshake_queue> queue, boost::asio::any_io_executor executor,
        boost::asio::ip::address from)
      : queue_(std::move(queue)),
        entry_(std::make_shared<entry>(std::move(executor), std::move(from))) {}
  ~place() { queue_->leave(entry_); }
  place(const place&) = delete;
  place& operator=(const place&) = delete;

  /// Waits for the turn, which lasts until `done`; or for `interrupt`.
  boost::asio::awaitable<void> turn();
  void done() { queue_->leave(entry_); }
  void interrupt() { entry_->granted.set(); }

 private:
  const std::shared_ptr<handshake_queue> queue_;
  const std::shared_ptr<entry> entry_;
};

}  // namespace rw::http
