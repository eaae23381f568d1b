#pragma once

#include "core/clock.hpp"
#include "k8s/client/client.hpp"

#include <boost/asio/awaitable.hpp>

#include <string>

namespace rw::dev {

/// Applies manifests (server-side, by force) in the order of application, and waits until
/// definitions are served. Definitions that are there are left alone: a cluster may have the true
/// ones. Throws std::runtime_error that says which object failed, where and why:
/// without them there is nothing to try. What is pointed to must live until then.
///
/// `defining`: of the manifests, only the definition of this kind, if not empty.
boost::asio::awaitable<void> apply_manifests(k8s::client* api, core::clock* time, std::string text,
                                             std::string defining = {});

}  // namespace rw::dev
