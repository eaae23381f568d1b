#pragma once

#include "rw/core/clock.hpp"
#include "rw/k8s/client/client.hpp"

#include <boost/asio/awaitable.hpp>

#include <string>

namespace rw::dev {

/// Applies manifests (server-side, by force) in the order of application, and waits until the API
/// server serves their definitions. Leaves existing definitions alone: a cluster may have the
/// original ones. Throws std::runtime_error that names the object that failed, its cluster and the
/// error: a trial system can't run without them. Arguments passed by pointer must live until then.
///
/// `defining`: apply only the definition of this kind, if not empty.
boost::asio::awaitable<void> apply_manifests(k8s::client* api, core::clock* time, std::string text,
                                             std::string defining = {});

}  // namespace rw::dev
