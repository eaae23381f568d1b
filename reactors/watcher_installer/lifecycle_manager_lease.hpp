#pragma once

#include "rw/core/clock.hpp"
#include "rw/core/log.hpp"
#include "rw/k8s/client/client.hpp"
#include "rw/k8s/objects/names.hpp"

#include <boost/asio/awaitable.hpp>
#include <boost/json/value.hpp>

#include <chrono>
#include <functional>
#include <optional>
#include <string>

namespace rw {

struct lifecycle_manager_options {
  /// The Lease that it holds while it runs.
  k8s::object_key lease = {"kcp-system", "893110f7.kyma-project.io"};
  core::duration interval = std::chrono::seconds(15);  ///< between two reads
  /// For how long after its last renewal a Lease counts as held: longer than the lease lasts, as a
  /// restart of lifecycle-manager takes a while, and clocks differ.
  std::chrono::seconds patience = std::chrono::minutes(2);
};

/// True if the Lease (coordination.k8s.io/v1) has a holder that has renewed it within `patience`.
bool is_held(const boost::json::value& lease, std::chrono::system_clock::time_point now,
             std::chrono::seconds patience);

/// Finds out whether Kyma's lifecycle-manager runs on this control plane. Single executor.
class lifecycle_manager_lease {
 public:
  /// `api` needs the right to get the Lease.
  lifecycle_manager_lease(k8s::client& api, lifecycle_manager_options options, core::clock& clock,
                          core::logger& log);

  /// Why it is not known yet whether lifecycle-manager runs.
  struct wait {
    std::string reason;   ///< "LeaseNotAbandoned" or "LeaseUnreadable"
    std::string message;  ///< for people, with what happens next
    std::chrono::system_clock::time_point since;
  };

  /// Waits until it is known: a Lease that can't be read is read again, and does not count as
  /// absent; one whose holder has not renewed it lately is observed for `patience`. A Lease without
  /// a holder is abandoned.
  boost::asio::awaitable<bool> runs();
  /// Nothing unless `runs` waits.
  const std::optional<wait>& waits() const noexcept { return waits_; }
  /// Waits until it is no longer as `running` says.
  boost::asio::awaitable<void> until_changed(bool running);

 private:
  bool is_abandoned(const boost::json::value& lease);
  void wait_for(const k8s::result<boost::json::value>& lease);

  k8s::client& api_;
  const lifecycle_manager_options options_;
  core::clock& clock_;
  core::logger& log_;
  core::log_limit log_limit_;
  std::string seen_;  ///< resourceVersion of the Lease
  core::time_point seen_since_ = {};
  std::optional<wait> waits_;
};

}  // namespace rw
