#pragma once

#include "reactors/bootstrapper/direct_sync.hpp"

#include <boost/json/value.hpp>

#include <chrono>
#include <memory>
#include <string>

namespace rw::bootstrapper {

/// One pass over one runtime.
struct direct_sync::pass {
  k8s::object_key key = {};
  places::place permit = {};         ///< among the unreachable runtimes
  boost::json::value resource = {};  ///< the RuntimeBootstrapper, as it was written last
  status_input input = {};
  resolved_units units = {};
  std::string client_name = {};
  std::shared_ptr<k8s::client> api = {};
  result then = {};         ///< where a step ends the pass
  bool kcp_failed = false;  ///< a write to KCP failed; `then` says how the pass ends
};

/// A merge patch of the finalizers, at the object's version: the list is replaced as a whole.
boost::json::value finalizers_of(const boost::json::value& resource);

/// How much time a deletion has left for its runtime.
core::duration removal_left(const boost::json::value& resource, core::duration limit,
                            std::chrono::system_clock::time_point now);

/// Appends that the content to fall back to could not be stored.
void warn_not_stored(unit_status& unit, const k8s::failure& error);

}  // namespace rw::bootstrapper
