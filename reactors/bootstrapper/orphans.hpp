#pragma once

#include "rw/k8s/client/client.hpp"
#include "rw/k8s/controller/controller.hpp"

#include <boost/asio/awaitable.hpp>

#include <chrono>
#include <string>

namespace rw::bootstrapper {

/// Releases RuntimeBootstrappers that are deleted while the manager's mode is off, when nothing
/// else acts on them: removes the finalizer. Runtimes are left as they are.
///
/// Looks each `interval`. Where the definition does not exist, or the manager may not list them, it
/// finds none. If there are some, and it may not patch them, a log line has the command for a
/// person, once.
///
/// Metric: `rw_bootstrapper_released_total`. Single executor; the client and what `in` refers to
/// must outlive it.
class orphans {
 public:
  orphans(k8s::client& kcp, k8s::controller_environment in,
          core::duration interval = std::chrono::seconds(30));

  /// Runs until cancelled.
  boost::asio::awaitable<void> run();

 private:
  boost::asio::awaitable<k8s::result<bool>> may(std::string verb);
  boost::asio::awaitable<k8s::result<void>> release_all();
  void tell(const std::string& name);

  k8s::client& kcp_;
  const k8s::controller_environment environment_;
  const core::duration interval_;
  core::counter& released_;
  bool told_ = false;
};

}  // namespace rw::bootstrapper
