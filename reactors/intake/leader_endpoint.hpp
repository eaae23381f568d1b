#pragma once

#include "rw/core/backoff.hpp"
#include "rw/core/clock.hpp"
#include "rw/core/log.hpp"
#include "rw/k8s/client/client.hpp"
#include "rw/k8s/objects/names.hpp"

#include <boost/asio/awaitable.hpp>
#include <boost/json/value.hpp>

#include <chrono>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

namespace rw::listener {

/// Returns why a text is not an address that an EndpointSlice may hold; empty if it is. An API
/// server rejects addresses that are not of another machine: loopback, link-local, multicast and
/// unspecified ones (Kubernetes, `ValidateNonSpecialIP` in pkg/apis/core/validation).
std::string endpoint_address_error(const std::string& text);

/// Finds the newest version of EndpointSlices that KCP serves: v1, or v1beta1 before
/// Kubernetes 1.21.
boost::asio::awaitable<k8s::result<k8s::resource_type>> find_endpoint_slices(k8s::client& kcp);

struct endpoint_options {
  k8s::object_key service = {};           ///< has no selector; the slice has the same name
  std::string address = {};               ///< of this pod, as `endpoint_address_error` accepts it
  std::uint16_t port = 0;                 ///< of the listener
  std::string port_name = "http-events";  ///< of the Service's port
  core::duration interval = std::chrono::seconds(10);  ///< between two reads of the slice
};

/// All of it must outlive the reactor.
struct endpoint_environment {
  core::clock& clock;
  core::logger& log;
  core::random_source random;
};

/// Routes a Service without a selector to this process while it runs: keeps the one EndpointSlice
/// of the Service on its own address, and reverts foreign changes. The leader runs it, with a
/// client that carries the leader's fence: a replica that has lost the lease no longer writes, and
/// a replica that read before its successor wrote gets a conflict.
///
/// The slice names its Service by the label `kubernetes.io/service-name`, and carries an
/// `endpointslice.kubernetes.io/managed-by` of this project. So the cluster's EndpointSlice
/// controller, which deletes its own slices of a Service without a selector, leaves it alone, and
/// so does the mirroring controller (Kubernetes concepts, "EndpointSlices", "Management").
///
/// At its end the slice stays: the next leader takes it over.
///
/// Needs get, update and delete of this one name, and create. Single executor, which is also the
/// client's.
class leader_endpoint {
 public:
  leader_endpoint(k8s::client& kcp, endpoint_options options, endpoint_environment in);

  /// Runs until cancelled. Failures are logged and retried with backoff.
  boost::asio::awaitable<void> run();

 private:
  boost::asio::awaitable<k8s::result<void>> ensure();
  boost::json::value desired() const;

  k8s::client& kcp_;
  const endpoint_options options_;
  core::clock& clock_;
  core::logger& log_;
  core::backoff backoff_;
  std::optional<k8s::resource_type> type_;
};

}  // namespace rw::listener
