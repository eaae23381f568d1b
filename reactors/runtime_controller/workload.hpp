#pragma once

#include <boost/json/value.hpp>

namespace rw {

/// True if all pods of a Deployment run with what it says. Where no controller says what it has
/// observed, a ready replica is enough.
bool is_rolled_out(const boost::json::value& deployment);

/// True if its controller has given up waiting for the pods (condition Progressing, reason
/// ProgressDeadlineExceeded).
bool has_given_up(const boost::json::value& deployment);

}  // namespace rw
