#pragma once

#include "rw/core/http/client.hpp"
#include "rw/core/stream.hpp"
#include "rw/core/task_group.hpp"
#include "rw/k8s/devserver/admission.hpp"
#include "rw/k8s/devserver/webhook.hpp"

#include <boost/asio/any_io_executor.hpp>
#include <boost/asio/awaitable.hpp>

#include <memory>
#include <optional>
#include <string>

namespace rw::k8s::devserver {

struct webhook_address {
  std::string host;
  std::uint16_t port = 443;
  std::string server_name;  ///< the name to verify in its certificate
  std::string target;       ///< of the request: path and query
  std::string url;          ///< for messages

  /// Returns the address of a webhook, with its path cleaned; `resolver` resolves a service.
  /// Otherwise nothing, with the error in `reason`.
  static std::optional<webhook_address> of(const webhook& webhook,
                                           const webhooks::service_resolver& resolver,
                                           std::string& reason);
  /// Returns the address that a redirect to `location` names (RFC 3986, section 5.2). Otherwise
  /// nothing, with the error in `reason`.
  std::optional<webhook_address> redirected(std::string_view location, std::string& reason) const;
  /// Returns true if one connection serves both addresses.
  bool shares_server(const webhook_address& other) const noexcept;
};

/// A call of a webhook.
struct webhook_call {
  const webhook& to;
  std::string body;  ///< the review
  std::string uid;
  core::time_point end;
  webhook_address at = {};
};

/// The connections to a webhook at one address, kept from call to call; HTTP/2 if the webhook
/// offers it, HTTP/1.1 otherwise. On one executor. Drained, or closed, before it is destroyed.
class webhook_client : public std::enable_shared_from_this<webhook_client> {
 public:
  /// Returns null, with the error in `reason`, if the webhook's authorities are invalid. `tasks`
  /// closes it when it is drained, and must outlive it.
  static std::shared_ptr<webhook_client> open(core::task_group& tasks, const webhook& to,
                                              webhook_address at, webhooks::environment with,
                                              std::string& reason);
  webhook_client(core::task_group& tasks, std::unique_ptr<core::transport> over, webhook_address at,
                 webhooks::environment with);

  const webhook_address& address() const noexcept { return address_; }

  /// Sends a review and evaluates the response; the call must live until then. Ends in time for
  /// the call's end, and at once if the coroutine is cancelled or the client closed.
  boost::asio::awaitable<webhook_decision> ask(const webhook_call* call);

  /// Closes it in the background once no call is under way.
  void drain();

  /// Ends all calls and closes the connections. A second call returns at once.
  boost::asio::awaitable<void> close();

 private:
  class in_flight_guard;
  std::string text_of(boost::system::error_code error) const;

  core::task_group& tasks_;
  const webhook_address address_;
  const webhooks::environment environment_;
  const std::unique_ptr<core::transport> transport_;
  http::client client_;
  std::size_t calls_ = 0;
  bool draining_ = false;
  bool closed_ = false;
};

}  // namespace rw::k8s::devserver
