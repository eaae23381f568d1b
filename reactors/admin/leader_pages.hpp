#pragma once

#include "rw/core/config.hpp"
#include "rw/core/http/client.hpp"
#include "rw/core/http/message.hpp"
#include "rw/core/task_group.hpp"

#include <boost/asio/any_io_executor.hpp>
#include <boost/asio/awaitable.hpp>

#include <cstddef>
#include <functional>
#include <memory>
#include <string>

namespace rw::admin {

/// Where the leader's pages are.
struct leader_address {
  core::host_port at = {};
  std::string token = {};  ///< of the leader's term
  std::string error = {};  ///< why it is not known; empty: it is
};

/// Field of a forwarded request, which is never forwarded again.
inline constexpr std::string_view forwarded_field = "x-runtime-watcher-forwarded";

struct leader_pages_options {
  /// What the leader has sent and one viewer has not taken: beyond it that viewer is cut off, and
  /// begins anew.
  std::size_t pending_bytes = 8u << 20;
  std::size_t response_bytes = 64u << 20;  ///< of `/runtimes`
};

/// Serves the leader's `/live` and `/runtimes` at a replica that does not lead.
///
/// A request that comes here has been judged by `pages`; it is sent on with the token of the
/// leader's term in place of what the client has shown, and with `forwarded_field`. Each request
/// opens a connection of its own: there are few, and the leader changes.
///
/// Everything happens on one executor, on which `find` is called, too.
class leader_pages {
 public:
  using find_leader = std::function<boost::asio::awaitable<leader_address>()>;

  leader_pages(boost::asio::any_io_executor executor, http::client_environment environment,
               find_leader find, leader_pages_options options = {});
  ~leader_pages();

  /// Responds to a GET of the target with what the leader does. Returns why it can't be; empty:
  /// `into` is its response.
  boost::asio::awaitable<std::string> forward(std::string target, http::response& into);

  /// Cuts off all viewers, and waits for the end of what is under way.
  boost::asio::awaitable<void> close();

 private:
  struct relay;
  class relay_source;

  boost::asio::awaitable<void> run(std::shared_ptr<relay> of);

  const boost::asio::any_io_executor executor_;
  const http::client_environment environment_;
  const find_leader find_;
  const leader_pages_options options_;
  core::task_group running_;
};

}  // namespace rw::admin
