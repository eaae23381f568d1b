#pragma once

#include "core/backoff.hpp"
#include "core/http/client.hpp"
#include "core/token_bucket.hpp"
#include "core/wake.hpp"
#include "k8s/authenticator.hpp"
#include "k8s/call.hpp"
#include "k8s/client.hpp"
#include "k8s/request_metrics.hpp"
#include "k8s/url.hpp"

#include <boost/asio/any_io_executor.hpp>
#include <boost/asio/awaitable.hpp>

#include <memory>
#include <optional>
#include <string>
#include <vector>

namespace rw::k8s {

/// Sends a client's calls to its server, again where that is safe, and says what became of them.
/// Knows connections, credentials, limits and Status objects, and nothing of the API's verbs.
/// Calls keep it alive. On the client's executor.
class session : public std::enable_shared_from_this<session> {
 public:
  /// Throws as the client's constructor does.
  session(boost::asio::any_io_executor executor, config how, client_options options,
          client_environment environment);

  /// The 2xx answer to `what`, which must live until then. Throws boost::system::system_error
  /// (operation_aborted) if the caller's coroutine is cancelled.
  boost::asio::awaitable<result<http::response>> perform(call* what);

  void retire();
  boost::asio::awaitable<void> close();

  const config& configuration() const noexcept { return how_; }
  const client_options& options() const noexcept { return options_; }
  const client_environment& environment() const noexcept { return environment_; }
  const boost::asio::any_io_executor& executor() const noexcept { return executor_; }

 private:
  struct attempt;
  class presence;
  class watching;
  class turn;

  static server_url checked(const config& how);
  http::client_options http_options() const;
  http::client_environment http_environment();
  http::client& connections_for(const call& what, const watching& place);
  boost::asio::awaitable<boost::system::error_code> acquire(const call* what, const watching* place,
                                                            http::client_slot* into,
                                                            std::string* cause);
  bool fenced(const call& what) const;

  boost::asio::awaitable<void> try_once(call* what, attempt* into);
  boost::asio::awaitable<void> exchange(call* what, attempt* into);
  boost::asio::awaitable<void> await_turn(const call* what, attempt* into);
  boost::asio::awaitable<void> pause(core::duration length);
  void write_head(call& what) const;
  void judge(const call& what, boost::system::error_code error, attempt& into);
  void fail(const call& what, attempt& into, errc code, const std::string& why);
  void note_retry(const call& what, const attempt& last, core::duration wait);

  const boost::asio::any_io_executor executor_;
  const config how_;
  const client_options options_;
  const client_environment environment_;
  const server_url server_;
  core::random_source random_;
  core::token_bucket bucket_;
  core::log_limit log_limit_;
  request_metrics metrics_;
  authenticator authenticator_;
  std::unique_ptr<http::client> connections_;
  /// Where the server has no HTTP/2 each watch takes a connection of its own, and those are not
  /// counted among the ones for requests, or watches would keep them all. The same goes for watches
  /// that would use up the streams of the one connection.
  std::unique_ptr<http::client> watch_connections_;
  bool multiplexed_ = true;
  std::size_t watches_beside_requests_ = 0;
  std::vector<core::timer*> sleepers_;
  core::wake idle_;
  std::size_t present_ = 0;
  bool closed_ = false;
};

}  // namespace rw::k8s
