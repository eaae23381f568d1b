#pragma once

#include "rw/core/backoff.hpp"
#include "rw/core/clock.hpp"
#include "rw/core/log.hpp"
#include "rw/core/metrics.hpp"
#include "rw/core/watchdog.hpp"
#include "rw/k8s/devserver/faults.hpp"
#include "rw/k8s/devserver/service_route.hpp"
#include "rw/tls/issuer.hpp"

#include <boost/asio/any_io_executor.hpp>
#include <boost/asio/awaitable.hpp>
#include <boost/asio/ip/tcp.hpp>

#include <chrono>
#include <cstddef>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace rw::k8s::devserver {

struct server_options {
  std::string name = "devserver";  ///< in logs and as the metrics' label `server`
  boost::asio::ip::tcp::endpoint address = {boost::asio::ip::address_v4::loopback(), 0};
  std::vector<std::string> host_names = {"localhost"};  ///< in the server's certificate
  /// False: without TLS, on the streams that the executor's network makes (core/network.hpp).
  bool tls = true;
  /// PEM of the server's certificate and key, in place of one of its own CA. Kubeconfigs then trust
  /// the certificate itself.
  std::string certificate = {};
  std::string key = {};
  std::string client_ca = {};                 ///< PEM of a further CA of client certificates
  std::string root_cluster = {};              ///< the cluster that is also served without a prefix
  std::string version = "v1.32.0+devserver";  ///< at /version; it changes nothing else
  /// Protocols that TLS offers (ALPN), the preferred first.
  std::vector<std::string> protocols = {"h2", "http/1.1"};
  std::size_t history = 1000;  ///< changes of each cluster that a watch may resume from
  std::chrono::milliseconds bookmark_interval = std::chrono::seconds(60);
  std::size_t object_bytes = 3u << 19;  ///< largest object, 1.5 MiB as with etcd
  std::size_t body_bytes = 3u << 20;    ///< largest request
  service_resolver services = {};       ///< for webhooks; empty: no Service is found
  pod_resolver pods = {};               ///< for proxies of Pods; empty: there are no proxies
  std::vector<std::string> audiences = {"https://kubernetes.default.svc"};  ///< of tokens
  bool authorization = false;       ///< roles count; otherwise every user may do everything
  bool refuse_unsupported = false;  ///< what is beyond this server gets 501, not a warning
  bool test_control = false;        ///< serves /devserver of each cluster (test_control.hpp)
  /// For this long after the creation of a CustomResourceDefinition, and up to a second more,
  /// requests for its objects get 429 (kube-apiserver: "storage is (re)initializing").
  std::chrono::milliseconds storage_delay{0};
  core::random_source (*make_random)() = core::make_random_source;  ///< of uids, names and tokens
};

/// All of it must outlive the server.
struct server_environment {
  core::clock& clock;
  core::watchdog& watchdog;
  core::logger& log;
  core::metrics& metrics;
};

/// The state of a server: its CA, its users' tokens, its clusters with objects and histories.
class server_memory;
/// Snapshot of a cluster's stored objects.
struct cluster_backup;

/// A Kubernetes API server in memory, with many logical clusters in one process, each below its own
/// URL prefix ("https://127.0.0.1:port/clusters/NAME"). It implements the protocol as far as
/// kubectl and every client of this project need it; tests/conformance defines that. TLS with
/// HTTP/2 and HTTP/1.1; identities are tokens and client certificates of its own CA. It writes
/// nothing to disk. It calls validating webhooks as kube-apiserver does (admission.hpp), also for
/// objects that are deleted with their namespace or owner.
///
/// Everything happens on one executor (thread or strand).
class server {
 public:
  /// Binds and listens; makes a CA of its own. Throws `std::runtime_error` that names the error.
  ///
  /// With the `memory` of a destroyed server it is that server, restarted. Clusters keep the length
  /// of their histories.
  server(boost::asio::any_io_executor executor, server_options options,
         server_environment environment, std::shared_ptr<server_memory> memory = nullptr);
  ~server();
  server(const server&) = delete;
  server& operator=(const server&) = delete;

  boost::asio::ip::tcp::endpoint address() const;
  /// Returns the state, which may outlive the server, for another one.
  std::shared_ptr<server_memory> memory() const;

  /// Returns the PEM of the CA that issues the server's and the clients' certificates.
  const std::string& ca_certificate() const;
  /// Returns the CA that issues client certificates: common name the user, organizations the
  /// groups.
  const tls::issuer& ca() const;

  /// Adds a cluster, with the namespaces default, kube-system, kube-public and kube-node-lease and
  /// the objects of default_objects.hpp, which all clusters share until they are written. Throws
  /// std::invalid_argument if the name is taken or not a DNS label.
  void add_cluster(std::string_view name);
  /// Removes a cluster with all its objects; its watches end.
  void remove_cluster(std::string_view name);
  std::vector<std::string> clusters() const;

  /// Returns the cluster's URL without a slash at the end.
  std::string url(std::string_view cluster) const;

  /// Returns a kubeconfig (YAML) for the cluster, with a token of the user's; the same token each
  /// time.
  std::string kubeconfig(std::string_view cluster, std::string_view user = "admin");
  /// Returns a kubeconfig with a client certificate, of a user in these groups.
  std::string kubeconfig_with_certificate(std::string_view cluster, std::string_view user,
                                          std::vector<std::string> groups = {"system:masters"});

  /// Accepts a token of a user's for the cluster.
  void add_token(std::string_view cluster, std::string token, std::string_view user,
                 std::vector<std::string> groups);

  /// Returns the faults to inject.
  devserver::faults& faults(std::string_view cluster);

  /// Drops the history of a cluster's changes, as compaction does: a watch that would resume from
  /// it gets 410.
  void compact(std::string_view cluster);
  std::shared_ptr<const cluster_backup> back_up(std::string_view cluster) const;
  /// Replaces a cluster's stored objects by a backup, as etcd is restored for Kubernetes (etcd,
  /// "Disaster recovery": --bump-revision --mark-compacted): objects have their old content and
  /// versions; all watches end, and none may resume from before. With `reuse_versions` as without
  /// these options: the server hands out again what came after the backup, and a watch from such a
  /// version is silent until then.
  void restore(std::string_view cluster, const cluster_backup& from, bool reuse_versions = false);
  /// Simulates a restart of the process: closes all connections; objects stay.
  void drop_connections();

  /// Serves until drained or cancelled.
  boost::asio::awaitable<void> run();
  void drain();

 private:
  class implementation;
  std::unique_ptr<implementation> impl_;
};

}  // namespace rw::k8s::devserver
