#pragma once

#include "rw/core/wake.hpp"

#include <boost/asio/any_io_executor.hpp>
#include <boost/asio/ip/address.hpp>

#include <cstddef>
#include <functional>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

namespace rw::core {

/// One look-up of a host's addresses. `done` is set when `found` or `problem` is. Releasing the
/// look-up earlier abandons it. Used on the executor that it was begun with.
struct lookup {
  explicit lookup(boost::asio::any_io_executor executor) : done(std::move(executor)) {}

  wake done;
  std::vector<boost::asio::ip::address> found = {};
  std::string error = {};  ///< in words; empty if there are addresses
};

/// Result of a `system_lookup`: addresses, or the error.
struct resolved {
  std::vector<boost::asio::ip::address> found = {};
  std::string error = {};
};

/// Resolves names with the system's resolver, getaddrinfo, on threads of its own: the call blocks
/// and can't be interrupted, and a name with dead servers occupies its thread for many seconds.
///
/// Look-ups therefore belong to *queues*, which never wait for one another. Each lookup_queue has
/// up to `threads` threads, which end when it has no work. A caller that connects to many unvetted
/// hosts uses one lookup_queue for all of them, so that only they delay each other. Within a
/// lookup_queue a host has at most one look-up at a time, however many callers wait for it. An
/// abandoned look-up that has not started is skipped. Beyond `waiting` hosts in a lookup_queue
/// further hosts fail at once.
///
/// "localhost" and the names below it are the loopback addresses, at once (RFC 6761, section 6.3).
///
/// There is one resolver for each execution context (an Asio service, as Asio's own is). When the
/// context is destroyed it waits for the look-ups under way, as Asio's own does.
///
/// Thread-safe.
class resolver {
 public:
  static constexpr std::size_t threads = 32;
  static constexpr std::size_t waiting = 4096;

  /// Blocks; called on the resolver's threads.
  using system_lookup = std::function<resolved(const std::string& host)>;

  /// Returns the resolver of the executor's context.
  static resolver& of(const boost::asio::any_io_executor& executor);

  virtual ~resolver() = default;

  /// Begins a look-up of `host`, a name and not an address. It has no deadline of its own.
  virtual std::shared_ptr<lookup> begin(boost::asio::any_io_executor executor,
                                        const std::string& lookup_queue,
                                        const std::string& host) = 0;

  /// Returns true while a look-up is under way, even an abandoned one: the destructor of the
  /// execution context would wait for it.
  virtual bool busy() = 0;

  /// Replaces the system's resolver from now on.
  virtual void ask(system_lookup other) = 0;
};

}  // namespace rw::core
