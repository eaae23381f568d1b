#pragma once

#include "rw/core/clock.hpp"
#include "rw/core/http/server.hpp"
#include "rw/core/metrics.hpp"
#include "rw/k8s/devserver/cluster.hpp"
#include "rw/k8s/devserver/identity.hpp"
#include "rw/k8s/devserver/reads.hpp"
#include "rw/k8s/devserver/reviews.hpp"
#include "rw/k8s/devserver/server_memory.hpp"
#include "rw/k8s/devserver/service_route.hpp"
#include "rw/k8s/devserver/target.hpp"
#include "rw/k8s/devserver/test_control.hpp"
#include "rw/k8s/devserver/writes.hpp"

#include <boost/asio/any_io_executor.hpp>

#include <chrono>
#include <memory>
#include <string>

namespace rw::k8s::devserver {

/// Parses a request's target, identifies its user, applies its fault, and passes it to its verb.
class api final : public http::handler {
 public:
  struct parts {
    boost::asio::any_io_executor executor;
    core::clock& clock;
    const core::metrics& metrics;
    const cluster_map& clusters;
    const identities& users;
    const devserver::reads& reads;
    const devserver::reviews& reviews;
    devserver::writes& writes;
    std::size_t body_bytes;
    bool authorization;  ///< roles count
    std::chrono::milliseconds storage_delay;
    bool refuse_unsupported;   ///< what is beyond this server gets 501, not a warning
    std::string version;       ///< of /version
    std::string root_cluster;  ///< of requests without a cluster's prefix; empty: none
    test_control* control;     ///< null: there is no /devserver
    pod_resolver pods;         ///< empty: there are no proxies of Pods
  };

  explicit api(parts with) : parts_(std::move(with)) {}

  /// Larger than the limit: the API rejects a slightly too large body in its own words.
  std::size_t body_limit(const http::request&) const override { return 2 * parts_.body_bytes; }
  boost::asio::awaitable<void> handle(http::request& from, http::response& into) override;

 private:
  boost::asio::awaitable<void> handle_json(http::request& from, http::response& into);
  boost::asio::awaitable<void> then_convert(boost::asio::awaitable<void> rest,
                                            http::response* into);

  struct visit {
    std::shared_ptr<cluster> in;
    target to;
    std::string verb;
    fault wrong;
  };

  boost::asio::awaitable<void> after(std::chrono::milliseconds latency, visit of,
                                     http::request& from, http::response& into);
  boost::asio::awaitable<void> proceed(visit of, http::request& from, http::response& into);
  boost::asio::awaitable<void> resource_request(visit of, resource_path path, identity by,
                                                http::request& from, http::response& into);
  boost::asio::awaitable<void> proxy_to_pod(const cluster& in, const resource_path& path,
                                            http::request& from, http::response& into);
  boost::asio::awaitable<void> perform(const visit& of, call call, http::request& from,
                                       http::response& into);
  static boost::asio::awaitable<void> then_warn(boost::asio::awaitable<void> rest,
                                                warning_list warnings, http::response* into);

  void show_metrics(const cluster& in, const identity& by, http::response& into) const;
  bool is_initializing(const cluster& in, const resource& of) const;

  const parts parts_;
};

}  // namespace rw::k8s::devserver
