#pragma once

#include <boost/json/value.hpp>

namespace rw {

/// Returns true if all pods of a Deployment run its current template. Without a controller's
/// observed generation a ready replica is enough.
bool is_rolled_out(const boost::json::value& deployment);

/// Returns true if its controller no longer waits for the pods (condition Progressing, reason
/// ProgressDeadlineExceeded).
bool has_given_up(const boost::json::value& deployment);

}  // namespace rw
