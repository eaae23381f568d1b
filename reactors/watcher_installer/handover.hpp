#pragma once

#include "rw/k8s/client/client.hpp"
#include "rw/reactors/watcher_installer/installation.hpp"

#include <boost/asio/awaitable.hpp>

#include <memory>

namespace rw::watcher_installer {

/// Gives what `install` applies back to the former manager of `method`, without removing anything
/// but the webhook of probes, which only this project answers: the fields become those that the
/// former manager applies, so that its next apply removes what it does not want, such as the
/// webhook of a Watcher that is deleted later. As a co-owner this project would keep it for ever.
///
/// What is not there, and what this project does not own, is no failure. `how` must outlive the
/// call.
boost::asio::awaitable<k8s::result<void>> hand_over(std::shared_ptr<k8s::client> api,
                                                    const method* how);

}  // namespace rw::watcher_installer
