#pragma once

#include "rw/core/backoff.hpp"
#include "rw/core/http/client.hpp"
#include "rw/core/lru_map.hpp"
#include "rw/core/task_group.hpp"
#include "rw/core/thread_owner.hpp"
#include "rw/core/token_bucket.hpp"
#include "rw/core/wake.hpp"
#include "rw/k8s/client/authenticator.hpp"
#include "rw/k8s/client/call.hpp"
#include "rw/k8s/client/client.hpp"
#include "rw/k8s/client/request_metrics.hpp"
#include "rw/k8s/objects/url.hpp"

#include <boost/asio/any_io_executor.hpp>
#include <boost/asio/awaitable.hpp>

#include <memory>
#include <string>
#include <vector>

namespace rw::k8s {

/// Throws std::invalid_argument if the options lack a name that a client needs.
void check_names(const client_options& options);

/// Sends a client's calls to its server, again where that is safe, and reports what became of them.
/// Knows credentials, limits and Status objects, and nothing of the API's verbs. Calls keep it
/// alive. On the client's executor.
class session : public std::enable_shared_from_this<session> {
 public:
  /// Throws as the client's constructor does.
  session(boost::asio::any_io_executor executor, config settings, client_options options,
          client_environment environment);

  /// The 2xx answer to `request`, which must live until then. Throws boost::system::system_error
  /// (operation_aborted) if the caller's coroutine is cancelled.
  boost::asio::awaitable<result<http::response>> perform(call* request);

  void retire() {
    const core::thread_owner::scope here(owner_);
    connections_.retire();
  }
  boost::asio::awaitable<void> close();

  const config& configuration() const noexcept { return config_; }
  const client_options& options() const noexcept { return options_; }
  const client_environment& environment() const noexcept { return environment_; }
  const boost::asio::any_io_executor& executor() const noexcept { return executor_; }

  bool streams_lists = true;  ///< none has come to nothing

 private:
  struct attempt;
  class presence;

  static server_url checked(const config& settings);
  http::client_options http_options() const;

  boost::asio::awaitable<void> try_once(call* request, attempt* now);
  boost::asio::awaitable<void> exchange(call* request, attempt* now);
  boost::asio::awaitable<void> await_turn(const call* request, attempt* now);
  boost::asio::awaitable<void> pause(core::duration length);
  void write_head(call& request) const;
  bool worth_retrying(const call& request, const attempt& last) const;
  bool begin(const call& request);
  void judge(const call& request, boost::system::error_code error, attempt& now);
  void fail(const call& request, attempt& now, errc code, const std::string& cause) const;
  void note_retry(const call& request, const attempt& last, core::duration wait);
  void note_warnings(const call& request, const http::fields& headers);

  const core::thread_owner owner_{"a client"};
  const boost::asio::any_io_executor executor_;
  const config config_;
  const client_options options_;
  client_environment environment_;
  core::own_watchdog own_watchdog_;
  const server_url server_;
  core::random_source random_;
  core::token_bucket bucket_;
  core::log_limit log_limit_;
  core::log_limit warning_limit_;
  request_metrics metrics_;
  authenticator authenticator_;
  http::client connections_;
  core::lru_map<std::string, bool> warnings_;  ///< that were logged
  std::vector<core::timer*> sleepers_;
  core::wake idle_;
  std::size_t present_ = 0;
  bool started_ = false;  ///< `background_` has its task
  bool closed_ = false;
  core::task_group background_;  ///< the own watchdog, from the first call on
};

}  // namespace rw::k8s
