#pragma once

#include "core/wake.hpp"

#include <boost/asio/any_io_executor.hpp>
#include <boost/asio/ip/address.hpp>

#include <cstddef>
#include <functional>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

namespace rw::core {

/// One look-up of a host's addresses. `done` is set when `found` or `problem` is; who lets go of
/// the look-up before gives it up. On the executor that it was begun with.
struct lookup {
  explicit lookup(boost::asio::any_io_executor executor) : done(std::move(executor)) {}

  wake done;
  std::vector<boost::asio::ip::address> found = {};
  std::string problem = {};  ///< in words; empty if there are addresses
};

/// What a `system_lookup` says: addresses, or why there are none.
struct resolved {
  std::vector<boost::asio::ip::address> found = {};
  std::string problem = {};
};

/// Looks names up with the system's resolver, getaddrinfo, on threads of its own, since that blocks
/// and can't be interrupted: a name whose servers are dead keeps its thread for many seconds.
///
/// So look-ups are done in *lanes*, which never wait for one another: each has up to `threads`
/// threads, which end when nothing is left to do in it. Who speaks to many hosts that nobody
/// vouches for takes a lane for all of them, and only they suffer. Within a lane a host is looked
/// up once at a time, however many ask; what was given up before its turn is not looked up. Beyond
/// `waiting` hosts in a lane further ones are refused at once.
///
/// There is one resolver for each execution context (an Asio service, as Asio's own is). When the
/// context is destroyed it waits for the look-ups that are under way, as Asio's own does.
///
/// Thread-safe.
class resolver {
 public:
  static constexpr std::size_t threads = 32;
  static constexpr std::size_t waiting = 4096;

  /// Blocks; called on the resolver's threads.
  using system_lookup = std::function<resolved(const std::string& host)>;

  /// That of the executor's context.
  static resolver& of(const boost::asio::any_io_executor& executor);

  virtual ~resolver() = default;

  /// Begins to look `host` up, which is a name and no address. It has no deadline of its own.
  virtual std::shared_ptr<lookup> begin(boost::asio::any_io_executor executor,
                                        const std::string& lane, const std::string& host) = 0;

  /// True while a look-up is under way, whoever still waits for it: the end of the execution
  /// context would wait for it, too.
  virtual bool busy() = 0;

  /// Asks something else than the system from now on.
  virtual void ask(system_lookup other) = 0;
};

}  // namespace rw::core
