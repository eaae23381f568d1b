#pragma once

#include "rw/k8s/client/client.hpp"
#include "rw/k8s/objects/failure.hpp"
#include "rw/k8s/objects/object.hpp"

#include <boost/asio/awaitable.hpp>

#include <string>
#include <string_view>
#include <vector>

namespace rw {

/// Returns the kubeconfig for a Kyma's runtime: key `config` of the one Secret labelled with its
/// name. `secrets`: all Secrets with that label. The failure is a sentence for people.
k8s::result<std::string> kubeconfig_of(std::string_view kyma,
                                       const std::vector<k8s::object>& secrets);

/// Returns the kubeconfig in that Secret.
k8s::result<std::string> kubeconfig_in(const k8s::object& secret);

/// Reads it from KCP. Fails with `errc::not_found` if no Secret has that label.
boost::asio::awaitable<k8s::result<std::string>> read_kubeconfig(k8s::client& kcp,
                                                                 std::string kyma);

}  // namespace rw
