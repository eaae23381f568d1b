#pragma once

#include "core/http/client.hpp"
#include "core/stream.hpp"
#include "core/task_group.hpp"
#include "k8s/devserver/admission.hpp"
#include "k8s/devserver/webhook.hpp"

#include <boost/asio/any_io_executor.hpp>
#include <boost/asio/awaitable.hpp>

#include <memory>
#include <optional>
#include <string>

namespace rw::k8s::devserver {

/// Where a webhook answers.
struct webhook_address {
  std::string host;
  std::uint16_t port = 443;
  std::string server_name;  ///< what its certificate is checked for
  std::string target;       ///< of the request: path and query
  std::string url;          ///< for messages

  /// The address of a webhook, asked of `resolver` if it is a service. Otherwise `why` says why
  /// there is none.
  static std::optional<webhook_address> of(const webhook& which,
                                           const webhooks::service_resolver& resolver,
                                           std::string& why);

  friend bool operator==(const webhook_address&, const webhook_address&) = default;
};

/// The connections to a webhook at one address, kept from call to call; HTTP/2 where it is offered,
/// HTTP/1.1 otherwise. On one executor. To be retired, or closed, before it goes.
class webhook_client : public std::enable_shared_from_this<webhook_client> {
 public:
  /// Null, and `why` says why, if the webhook's authorities are none. `tasks` closes it when it is
  /// retired, and must outlive it.
  static std::shared_ptr<webhook_client> open(core::task_group& tasks, const webhook& to,
                                              webhook_address at, webhooks::environment with,
                                              std::string& why);
  webhook_client(core::task_group& tasks, std::unique_ptr<core::transport> over, webhook_address at,
                 webhooks::environment with);

  const webhook_address& address() const noexcept { return at_; }

  /// Sends a review and judges the answer; what is pointed to must live until then. Ends within the
  /// webhook's timeout, and at once if the coroutine is cancelled or the line closed.
  boost::asio::awaitable<webhook_decision> ask(const webhook* to, const std::string* body,
                                               const std::string* uid);

  /// Closes it in the background as soon as no call is under way.
  void drain();

  /// Ends all calls and closes the connections. A second call returns at once.
  boost::asio::awaitable<void> close();

 private:
  class in_flight_guard;
  std::string text_of(boost::system::error_code error) const;

  core::task_group& tasks_;
  const webhook_address at_;
  const webhooks::environment with_;
  const std::unique_ptr<core::transport> transport_;
  http::client client_;
  std::size_t calls_ = 0;
  bool draining_ = false;
  bool closed_ = false;
};

}  // namespace rw::k8s::devserver
