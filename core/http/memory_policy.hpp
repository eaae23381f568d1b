#pragma once

#include "rw/core/clock.hpp"
#include "rw/core/metrics.hpp"

#include <boost/asio/any_io_executor.hpp>
#include <boost/asio/ip/address.hpp>

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <mutex>
#include <vector>

namespace rw::http {

class memory_policy;

/// What a memory policy asks of the owner of an account, always on the account's executor.
class account_owner {
 public:
  /// Begins the orderly end.
  virtual void drain() = 0;

  /// Breaks the connection off, as if the process had died.
  virtual void drop() = 0;

  /// Gives back at least `bytes` by dropping the requests with the least progress; 0: closes the
  /// connection.
  virtual void evict(std::size_t bytes) = 0;

 protected:
  ~account_owner() = default;
};

/// One accepted connection's entry in the memory policy: what it holds, and since when it has made
/// no progress. Lives from accept to close; used on the connection's executor, read by the memory
/// policy from any thread.
class account : public std::enable_shared_from_this<account> {
 public:
  enum class phase : std::uint8_t {
    handshake,
    idle,       ///< between requests, or only waiting for the client's close
    receiving,  ///< a request is unfinished, or an answer not taken
    handling,   ///< never evicted: the handler, or an answer without an end, is at work
  };

  account(memory_policy& owner, boost::asio::any_io_executor executor,
          boost::asio::ip::address from, core::time_point now);
  ~account();
  account(const account&) = delete;
  account& operator=(const account&) = delete;

  /// Who is to be called; null once that is to end.
  void attach(account_owner* owner) noexcept { owner_ = owner; }

  /// `since`: the last progress, or the beginning.
  void enter(phase next, core::time_point since) noexcept;

  /// Sets what the connection holds now. Beyond the memory policy's limit it evicts, this
  /// connection too if it is the one with the least progress: the owner's `evict` has been called
  /// then.
  void hold(std::size_t bytes, core::time_point now);

  std::size_t held() const noexcept { return held_.load(std::memory_order_relaxed); }
  const boost::asio::ip::address& address() const noexcept { return address_; }

 private:
  friend class memory_policy;
  static constexpr auto unplaced = static_cast<std::size_t>(-1);

  memory_policy& memory_;
  const boost::asio::any_io_executor executor_;
  const boost::asio::ip::address address_;
  account_owner* owner_ = nullptr;
  std::atomic<std::size_t> held_{0};
  std::atomic<core::duration::rep> since_;
  std::atomic<phase> phase_{phase::handshake};
  // Under the memory policy's guard:
  std::size_t place_ = unplaced;
  std::uint64_t number_ = 0;  ///< counted up by the memory policy: the order of arrival
  bool closing_ = false;      ///< evicted, and not yet gone
};

/// One server's memory and connections, and the one policy of who has to go when there is no more
/// room:
///
/// - Memory is what connections really hold while they wait: buffers for bytes received, header
///   fields with 32 bytes each (RFC 9113, section 6.5.2), answers that were not taken. Beyond the
///   limit requests are dropped in the order of bytes held times time without progress, so that
///   somebody's half-sent requests never cost a request that comes in at the network's speed.
/// - At the limit of handshakes the oldest of the address with the most of them is closed.
/// - At the limit of connections the one that was idle longest is closed.
///
/// No address has a limit of its own: an API server behind a tunnel shares its address with others.
/// Thread-safe. Must outlive its accounts.
class memory_policy {
 public:
  struct limits {
    std::size_t connections;
    std::size_t handshakes;
    std::size_t bytes;
  };

  memory_policy(limits allowed, core::gauge& open) : limits_(allowed), gauge_(open) {}

  /// Opens the account of an accepted connection, which may close another. Null: every connection
  /// is at work, and this one has to be refused.
  std::shared_ptr<account> open(boost::asio::any_io_executor executor,
                                boost::asio::ip::address from, core::time_point now);

  /// Calls `action` on each owner, on its executor.
  void for_each(void (account_owner::*action)());

  std::size_t connections() const;
  std::size_t held() const noexcept { return held_.load(std::memory_order_relaxed); }

 private:
  friend class account;

  std::shared_ptr<account> choose_victim();
  account* oldest_handshake() const;
  account* longest_idle() const;
  void remove(account& gone) noexcept;
  void make_room(core::time_point now);

  const limits limits_;
  core::gauge& gauge_;
  std::atomic<std::size_t> held_{0};
  std::atomic<std::size_t> handshakes_{0};
  mutable std::mutex guard_;
  std::vector<account*> open_;  ///< this and all below under `guard_`
  std::size_t closing_ = 0;
  std::uint64_t numbers_ = 0;
};

}  // namespace rw::http
