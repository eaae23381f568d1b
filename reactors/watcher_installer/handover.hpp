#pragma once

#include "rw/k8s/client/client.hpp"
#include "rw/reactors/watcher_installer/installation.hpp"

#include <boost/asio/awaitable.hpp>

#include <memory>

namespace rw::watcher_installer {

/// Gives the webhook configuration back to the former manager of `install_options`: its fields
/// become those that the former manager applies, so that its next apply removes what it does not
/// want, such as the webhook of a Watcher that is deleted later. As a co-owner this project would
/// keep it for ever. The webhook of probes, which only this project answers, is removed.
///
/// Of the other objects it stays a co-owner: an apply that drops fields of a Deployment, such as a
/// probe's port, would be rejected, as defaults of the API server would remain without them.
///
/// What is not there, and what this project does not own, is no failure. `how` must outlive the
/// call.
boost::asio::awaitable<k8s::result<void>> hand_over(std::shared_ptr<k8s::client> api,
                                                    const install_options* options);

}  // namespace rw::watcher_installer
