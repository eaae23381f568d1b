#pragma once

#include <boost/json/value.hpp>

#include <string>

namespace rw::watcher_installer {

bool has_ready_pod(const boost::json::value& deployment);

/// Why no pod of a list is ready: the reason that a container waits for, or that the pod has no
/// node. Starting up is a reason only where there is no other.
struct waiting {
  std::string reason = {};
  std::string message = {};
};
waiting waiting_of(const boost::json::value& pods);

}  // namespace rw::watcher_installer
