#pragma once

#include "rw/core/http/message.hpp"
#include "rw/k8s/client/client.hpp"
#include "rw/k8s/config/config.hpp"

#include "tests/unit/http/host.hpp"
#include <memory>
#include <string>
#include <string_view>
#include <vector>

namespace rw::k8s::devserver {
class server;
}

namespace rw::conformance {

using host = http::test::host;

/// The API server that the suite is run against: the one that RW_CONFORMANCE_KUBECONFIG names, or
/// an embedded one in this process. One for all tests; made by the first that asks.
///
/// The kubeconfig has these contexts: `admin`, who may do everything; `viewer`, of the group
/// viewers, who has a token and no rights; `certificate`, of the group system:masters, who has a
/// client certificate. RW_CONFORMANCE_ETCD may name the etcd below ("http://host:port").
class backend {
 public:
  static backend& get();
  /// Ends what there is.
  static void stop();
  /// True if the suite runs against the embedded server. To be asked at any time.
  static bool embedded();

  backend(const backend&) = delete;
  backend& operator=(const backend&) = delete;
  ~backend();

  /// The admin's client, for all tests.
  k8s::client& api() { return *api_; }
  /// A client of another user's.
  std::unique_ptr<k8s::client> client(const std::string& user, k8s::client_options options = {});
  k8s::config config(const std::string& user) const;

  struct answer {
    unsigned status = 0;
    http::fields headers;
    std::string body;
  };
  /// One plain HTTP exchange, for what the client hides; with the admin's token unless `headers`
  /// bring an authorization field (an empty one: none).
  answer http(const std::string& method, const std::string& target, const std::string& body = {},
              std::vector<std::pair<std::string, std::string>> headers = {});

  /// One exchange with an empty cluster of the embedded server, without simulated controllers,
  /// which is made when it is first named; as its admin unless the request says who it is.
  answer http_on(const std::string& name, http::request what);

  /// Forgets all history, as etcd's compaction does.
  void compact();

  /// A name that no other test, and no other run of the suite, uses.
  std::string unique(std::string_view stem);

  /// The server's version, and how its name is to be told.
  std::string description();

  host here;

 private:
  backend();
  void start_embedded();
  void start_transport();
  answer send(const http::request& what);

  struct embedded_server;
  std::unique_ptr<embedded_server> embedded_;
  std::string kubeconfig_file_;
  std::unique_ptr<k8s::client> api_;
  k8s::config admin_;
  std::unique_ptr<core::transport> transport_;
  std::unique_ptr<http::client> http_;
  std::string prefix_;  ///< of the server's URL, without a slash at the end
  std::string run_;     ///< part of all unique names
  unsigned counter_ = 0;
};

}  // namespace rw::conformance
