#pragma once

#include "rw/core/clock.hpp"
#include "rw/k8s/devserver/storage.hpp"

#include <boost/asio/ip/tcp.hpp>

#include <memory>

namespace rw::k8s::devserver {

/// Returns the objects that kube-apiserver makes when it starts, without namespaces: the Service
/// `kubernetes` with its endpoints, for an API server at this address; PriorityClasses; the
/// user-facing ClusterRoles, with the rules that kube-controller-manager aggregates; APIServices;
/// and the objects of flow control, without rules and without effect. All clusters of a server
/// begin with them and share them.
std::shared_ptr<const storage> make_default_objects(const core::clock& clock,
                                                    const boost::asio::ip::tcp::endpoint& at);

}  // namespace rw::k8s::devserver
