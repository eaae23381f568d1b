#pragma once

#include "rw/core/backoff.hpp"
#include "rw/core/lru_map.hpp"
#include "rw/core/metrics.hpp"
#include "rw/k8s/client/client.hpp"
#include "rw/k8s/config/config.hpp"
#include "rw/k8s/objects/failure.hpp"
#include "rw/tls/digest.hpp"

#include <boost/asio/any_io_executor.hpp>
#include <boost/asio/awaitable.hpp>

#include <chrono>
#include <cstddef>
#include <memory>
#include <string>

namespace rw::k8s {

struct client_pool_options {
  std::string name = "pool";   ///< the metrics' label `pool`
  std::size_t capacity = 512;  ///< clusters at once; each costs a connection and its buffers
  /// After this time a client is replaced, however much it is used, so that connections, and what a
  /// cluster's name stood for, do not live for ever. Shortened by up to a tenth at random.
  core::duration expiry = std::chrono::hours(1);
  /// For each client; its name is the metrics' label that they share.
  client_options client = {};
  std::shared_ptr<const fence> writes = {};      ///< of each client (`client::fenced`); may be null
  local_servers local = local_servers::refused;  ///< in kubeconfigs
};

/// Clients for many API servers, one for each cluster's name, made when they are first asked for.
/// Beyond `capacity` the one that was used longest ago goes. A client also goes when its cluster's
/// kubeconfig has become another text, when its time is over, and when `evict` says so, after a
/// failure of TLS or of its credentials for instance.
///
/// What `get` gives stays usable as long as its holder keeps it, also when the pool has given it
/// up; with the last holder the client is closed, in the background. `close` waits for that.
///
/// Kubeconfigs are believed as little as parse_foreign_kubeconfig (k8s/config/config.hpp) says.
///
/// Metrics, with the label `pool`: `rw_client_pool_clients`, `rw_client_pool_made_total`,
/// `rw_client_pool_given_up_total{reason}` (capacity, expired, replaced, evicted),
/// `rw_client_pool_closing`.
///
/// Everything happens on one executor (thread or strand).
class client_pool {
 public:
  /// Throws as the client's constructor does for its options.
  client_pool(boost::asio::any_io_executor executor, client_pool_options options,
              client_environment environment);
  /// All clients must have been given back, and `close` awaited.
  ~client_pool();
  client_pool(const client_pool&) = delete;
  client_pool& operator=(const client_pool&) = delete;

  /// The client of a cluster. Fails with `errc::not_configured` if the kubeconfig is no good, and
  /// with `errc::address_refused`; then there is none for that name any more.
  result<std::shared_ptr<client>> get(const std::string& cluster, const std::string& kubeconfig);

  /// What kubeconfigs may say from now on, in place of the option.
  void set_local(local_servers local) noexcept { local_ = local; }

  /// Gives a client up; the next `get` makes a new one, with new connections.
  void evict(const std::string& cluster);

  /// Gives clients up whose time is over, though nobody asks for them, until cancelled.
  boost::asio::awaitable<void> run();

  /// Gives all clients up and waits until they are closed, those too that somebody still holds.
  /// Afterwards `get` fails with `errc::shut_down`.
  boost::asio::awaitable<void> close();

  std::size_t size() const noexcept { return clients_.size(); }

 private:
  struct numbers;
  struct closer;
  struct entry {
    std::shared_ptr<client> api;
    tls::sha256_digest from{};
    core::time_point until{};
  };

  core::time_point now() const;
  void give_up(const std::string& cluster, core::counter& reason);
  void publish();
  core::time_point end_of_life() const;
  std::shared_ptr<client> make(config configuration);

  const boost::asio::any_io_executor executor_;
  const client_pool_options options_;
  const client_environment environment_;
  const std::unique_ptr<numbers> numbers_;
  const core::random_source random_;
  local_servers local_;
  bool closed_ = false;
  const std::shared_ptr<closer> closer_;
  core::lru_map<std::string, entry> clients_;
};

/// Returns a pool's client as `client::dry` does. It keeps the pool's.
std::shared_ptr<client> dry(const std::shared_ptr<client>& of, std::shared_ptr<const bool> is_dry);
/// Likewise, as `client::previewing` does.
std::shared_ptr<client> previewing(const std::shared_ptr<client>& of,
                                   std::shared_ptr<write_preview> into);

/// True if a failure says something about the connection or the credentials rather than about the
/// request: then the cluster's client is not worth keeping.
bool is_unhealthy(const failure& error) noexcept;

}  // namespace rw::k8s
