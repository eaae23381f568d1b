#pragma once

#include "rw/core/http/client.hpp"
#include "rw/k8s/client/client.hpp"
#include "rw/reactors/cli/app.hpp"
#include "rw/reactors/cli/kcp_error.hpp"
#include "rw/reactors/shared/fleet_verdict.hpp"

#include <boost/asio/awaitable.hpp>
#include <boost/json/value.hpp>

#include <memory>
#include <optional>
#include <string>

namespace rw::cli {

/// Reads `/runtimes`, and another page, of the manager that leads: at an address, or through KCP's
/// API server. On one executor.
class runtimes_client {
 public:
  struct answer {
    boost::json::value runtimes = {};  ///< all pages as one
    std::string error = {};            ///< empty: there is a response
    std::string next = {};             ///< what to do about the error; may be empty
    /// Says that the manager has another version than this program; empty: it has not, or an
    /// earlier response said so.
    std::string warning = {};
    /// There is no way to the leader: no right to the proxy, no pod, or the address is that of
    /// another replica. It says nothing of the leader.
    bool no_way = false;
    bool other_leads = false;  ///< another replica than the one that was asked, as `error` says
  };

  /// The verdict of who has no answer: unknown. Without access to KCP nothing is known of a leader.
  static fleet_verdict verdict_without(const answer& of);

  /// At a manager's admin port, or a Service of them. `token_file`: its --admin-token-file; may be
  /// empty.
  runtimes_client(services& with, core::host_port address, std::string token_file);

  /// At the address that the settings have, in a pod of the manager at its own, and otherwise
  /// through the API server of their kubeconfig, as below. Throws `setting_error`.
  runtimes_client(services& with, const leader_access& way, std::string user_agent);

  /// Through the API server's proxy of pods: the Lease names the leader's pod, and the Secret of
  /// leader_secret.hpp has its port and a token. The user needs the rights to get the Lease, that
  /// Secret and `pods/proxy`. `kcp` must outlive the client.
  runtimes_client(k8s::client& kcp, k8s::object_key lease);

  /// Reads all pages of a query ("/runtimes?limit=5000&state=failed"). Throws setting_error if the
  /// token is unreadable.
  boost::asio::awaitable<answer> ask(std::string query);

  /// Reads another page, one JSON object, which the response has as `runtimes`; its texts are not
  /// made printable.
  boost::asio::awaitable<answer> ask_object(std::string target);

  boost::asio::awaitable<void> close();

 private:
  /// The leader's pod behind the API server's proxy.
  struct proxied_pod {
    std::string target = {};  ///< "/api/v1/namespaces/NS/pods/POD:PORT/proxy"
    std::string name = {};
    std::string token = {};
    kcp_error error = {};  ///< why it is not known; without a message: it is
  };
  struct page {
    std::string body = {};
    kcp_error error = {};  ///< without a message: there is a response
    bool no_way = false;
    bool other_leads = false;
  };

  boost::asio::awaitable<proxied_pod> find_way(answer* to);
  boost::asio::awaitable<boost::json::value> get(const proxied_pod* pod, const std::string* target,
                                                 answer* to);
  void note_stranger(const proxied_pod* pod, answer* to) const;
  void compare_version(answer& of);
  boost::asio::awaitable<proxied_pod> find_pod();
  boost::asio::awaitable<page> get_at_address(const std::string* target);
  boost::asio::awaitable<page> get_by_proxy(const proxied_pod* pod, const std::string* target);

  void connect_to(services& with, core::host_port address);

  std::unique_ptr<k8s::client> own_kcp_;  ///< null: it is another owner's, or there is none
  k8s::client* kcp_ = nullptr;            ///< null: at an address
  const k8s::object_key lease_ = {};
  core::host_port address_ = {};
  const std::string token_file_ = {};
  std::unique_ptr<core::transport> plain_;
  std::optional<http::client> client_;
  std::string compared_ = {};  ///< the manager's version in the latest response
};

}  // namespace rw::cli
