#pragma once

#include "core/clock.hpp"
#include "core/log.hpp"
#include "core/metrics.hpp"
#include "core/watchdog.hpp"
#include "k8s/devserver/faults.hpp"
#include "tls/issuer.hpp"

#include <boost/asio/any_io_executor.hpp>
#include <boost/asio/awaitable.hpp>
#include <boost/asio/ip/tcp.hpp>

#include <chrono>
#include <cstddef>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace rw::k8s::devserver {

/// Where a Service of a simulated cluster is reached: asked with the cluster's name and the Service
/// as "namespace/name:port", for each call of a webhook that clientConfig.service names. Nothing:
/// the Service is not found. The webhook's certificate must still be for the Service's name.
using service_resolver = std::function<std::optional<boost::asio::ip::tcp::endpoint>(
    std::string_view cluster, std::string_view service)>;

struct server_options {
  std::string name = "devserver";  ///< in logs and as the metrics' label `server`
  boost::asio::ip::tcp::endpoint address = {boost::asio::ip::address_v4::loopback(), 0};
  std::vector<std::string> host_names = {"localhost"};  ///< in the server's certificate
  /// What TLS is to choose from (ALPN), the preferred first.
  std::vector<std::string> protocols = {"h2", "http/1.1"};
  std::size_t history = 1000;  ///< changes of each cluster that a watch may still resume from
  std::chrono::milliseconds bookmark_interval = std::chrono::seconds(60);
  std::size_t object_bytes = 3u << 19;  ///< largest object, 1.5 MiB as with etcd
  std::size_t body_bytes = 3u << 20;    ///< largest request
  service_resolver services = {};       ///< for webhooks; empty: no Service is found
  bool authorization = false;           ///< roles count; otherwise every user may do everything
  /// After the creation of a CustomResourceDefinition, requests for its objects are answered with
  /// 429 for so long, and up to a second more (kube-apiserver: "storage is (re)initializing").
  std::chrono::milliseconds storage_delay{0};
};

/// All of it must outlive the server.
struct server_environment {
  core::clock& clock;
  core::watchdog& watchdog;
  core::logger& log;
  core::metrics& metrics;
};

/// What a server has in memory: its CA, its users' tokens, its clusters with objects and histories.
class server_memory;
/// What a cluster had stored at one moment.
struct cluster_backup;

/// A Kubernetes API server in memory, with many logical clusters in one process, each below its own
/// URL prefix ("https://127.0.0.1:port/clusters/NAME"). It speaks the real protocol well enough for
/// kubectl and every client of this project; tests/conformance says how well. TLS with HTTP/2 and
/// HTTP/1.1; identities are tokens and client certificates of its own CA. Nothing is kept on disk.
/// Validating webhooks are called as a real one calls them (admission.hpp), also for what is
/// deleted behind a namespace or an owner.
///
/// Everything happens on one executor (thread or strand).
class server {
 public:
  /// Binds and listens; makes a CA of its own. Throws `std::runtime_error` that says what failed.
  ///
  /// With the `memory` of a server that is gone it is that one, restarted. Clusters keep the length
  /// of their histories.
  server(boost::asio::any_io_executor executor, server_options options,
         server_environment environment, std::shared_ptr<server_memory> memory = nullptr);
  ~server();
  server(const server&) = delete;
  server& operator=(const server&) = delete;

  boost::asio::ip::tcp::endpoint address() const;
  /// May be kept beyond the server's end, for another one.
  std::shared_ptr<server_memory> memory() const;

  /// PEM of the CA that the server's certificate, and clients', come from.
  const std::string& ca_certificate() const;
  /// Issues client certificates whose common name is the user and whose organizations the groups.
  const tls::issuer& ca() const;

  /// Adds a cluster, with the namespaces default, kube-system, kube-public and kube-node-lease.
  /// Throws std::invalid_argument if the name is taken or no DNS label.
  void add_cluster(std::string_view name);
  /// Forgets a cluster with all its objects; its watches end.
  void remove_cluster(std::string_view name);
  std::vector<std::string> clusters() const;

  /// The cluster's URL without a slash at the end.
  std::string url(std::string_view cluster) const;

  /// A kubeconfig (YAML) for the cluster, with a token of the user's own; the same token each time.
  std::string kubeconfig(std::string_view cluster, std::string_view user = "admin");
  /// The same with a client certificate, of a user in these groups.
  std::string kubeconfig_with_certificate(std::string_view cluster, std::string_view user,
                                          std::vector<std::string> groups = {"system:masters"});

  /// What is to go wrong on purpose.
  devserver::faults& faults(std::string_view cluster);

  /// Forgets the history of a cluster's changes, as compaction does: every watch that would have to
  /// go back gets 410.
  void compact(std::string_view cluster);
  /// What a cluster has stored now.
  std::shared_ptr<const cluster_backup> back_up(std::string_view cluster) const;
  /// Puts a backup in the place of what a cluster has stored, as etcd is restored for Kubernetes
  /// (etcd, "Disaster recovery": --bump-revision --mark-compacted): objects are as they were, at
  /// their versions of then; all watches end, and none may resume from before.
  void restore(std::string_view cluster, const cluster_backup& from);
  /// As a restart of the process would look to the clients: all connections break; objects stay.
  void drop_connections();

  /// Serves until drained or cancelled.
  boost::asio::awaitable<void> run();
  void drain();

 private:
  class implementation;
  std::unique_ptr<implementation> impl_;
};

}  // namespace rw::k8s::devserver
