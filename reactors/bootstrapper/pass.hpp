#pragma once

#include "reactors/bootstrapper/direct_sync.hpp"

#include <boost/json/value.hpp>

#include <chrono>
#include <memory>
#include <optional>
#include <string>

namespace rw::bootstrapper {

/// One pass over one runtime.
struct direct_sync::pass {
  bool direct() const noexcept { return input.decided.what == action::sync; }

  k8s::object_key key = {};
  places::place permit = {};         ///< among the unreachable runtimes
  boost::json::value resource = {};  ///< the RuntimeBootstrapper, as it was written last
  resource_view view = {};
  status_input input = {};
  resolved_units units = {};
  std::string client_name = {};
  std::shared_ptr<k8s::client> api = {};
  result then = {};                   ///< where a step ends the pass
  resource_writer::ended ended = {};  ///< a write to KCP failed within the sync
};

/// How much time a deletion has left for its runtime.
core::duration removal_left(const boost::json::value& resource, core::duration limit,
                            std::chrono::system_clock::time_point now);

}  // namespace rw::bootstrapper
