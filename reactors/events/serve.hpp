#pragma once

#include "rw/core/clock.hpp"
#include "rw/core/config.hpp"
#include "rw/core/log.hpp"
#include "rw/core/metrics.hpp"
#include "rw/core/requirements.hpp"
#include "rw/tls/material.hpp"

#include <boost/asio/any_io_executor.hpp>
#include <boost/asio/awaitable.hpp>
#include <boost/asio/ip/tcp.hpp>

#include <chrono>
#include <cstddef>
#include <functional>
#include <string>

namespace rw::webhook {

/// Options of the webhook of one runtime. `address`, `files` and `kcp` are required.
struct serve_options {
  /// Address for AdmissionReviews of the runtime's API server, over TLS; port 0: a free one.
  boost::asio::ip::tcp::endpoint address = {};
  /// PEM files: certificate and key, for API servers and for KCP's gateway, and the CA bundle that
  /// the gateway is verified with. They are read again when they change.
  tls::material_files files = {};
  core::host_port kcp = {};  ///< address of KCP's gateway, whose certificate must name the host
  /// File with the operators and what they watch, as the manager writes it; it is read again when
  /// it changes. Empty: every operator is known, and nothing is watched.
  std::string managers_file = {};

  /// Watches the resources too, which finds changes without a review. False: reviews alone.
  bool watches = true;
  std::string kubeconfig = {};   ///< file for these watches; empty: the pod's ServiceAccount
  bool observe_secrets = false;  ///< Secrets are among the watched resources
  /// Maximum number of objects that one Watcher watches, 200 bytes each; events of a Watcher with
  /// more come from reviews alone.
  std::size_t observe_objects = 50000;
  /// Time in which further changes of an object join its event.
  std::chrono::milliseconds settle{100};
  /// Time from a review until its object is read, unless a watch has shown it by then.
  std::chrono::milliseconds confirm_wait = std::chrono::seconds(2);

  std::string pod_name = {};  ///< in heartbeats; empty: unknown
  std::string version = {};   ///< in heartbeats; empty: this library's
  /// Time between two heartbeats to KCP; 0: none are sent.
  std::chrono::milliseconds heartbeat_interval = std::chrono::minutes(1);

  /// Time that a review waits for room in the channel; without it the change raises a resync.
  std::chrono::milliseconds admission_wait{250};
  /// Time at the end in which reviews are still accepted.
  std::chrono::milliseconds shutdown_delay = std::chrono::seconds(5);
  /// Time after that in which accepted events are delivered.
  std::chrono::milliseconds drain_timeout = std::chrono::seconds(20);
  std::size_t channel_capacity = 1024;      ///< number of events between reviews and dispatch
  std::size_t set_capacity = 32768;         ///< number of events that wait for KCP
  std::size_t max_review_bytes = 8u << 20;  ///< size of a review; a larger one gets 413
  std::size_t requests_at_once = 64;        ///< number of concurrent requests to KCP
};

/// What the host brings; null: `serve` makes one of its own (the system's clock, a log to standard
/// error). They must outlive its end.
struct host_objects {
  core::clock* clock = nullptr;
  core::logger* log = nullptr;
  core::metrics* metrics = nullptr;
  /// Gets the address, once it is bound; may be empty.
  std::function<void(boost::asio::ip::tcp::endpoint)> on_listening = {};
};

/// Takes AdmissionReviews of a runtime, and sends the events to KCP, as `runtime-watcher webhook`
/// does, on `executor`, where it is also awaited, and which is one thread or a strand. It serves no
/// metrics; the host does, from its registry.
///
/// Throws std::invalid_argument, with the option's name, if a file or the kubeconfig can't be used,
/// boost::system::system_error if the address can't be bound, and what a part of it throws, after
/// the others have ended. A file that is invalid later is logged, and the last valid one stays in
/// use.
///
/// Cancellation is the graceful end: reviews for `shutdown_delay` more, then deliveries within
/// `drain_timeout`. It returns the number of accepted events that were not delivered, and its
/// caller's coroutine is not cancelled any more; what it accepts from then on is terminal
/// cancellation alone, Asio's default, whatever it accepted before.
boost::asio::awaitable<std::size_t> serve(boost::asio::any_io_executor executor,
                                          serve_options options, host_objects brought = {});

}  // namespace rw::webhook
