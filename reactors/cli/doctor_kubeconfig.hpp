#pragma once

#include "rw/k8s/client/client.hpp"

#include <boost/asio/awaitable.hpp>

#include <string>
#include <string_view>

namespace rw::cli {

/// Returns the Secret with the kubeconfig of a Kyma's runtime, "Secret kcp-system/kubeconfig-a";
/// empty: KCP does not tell it.
boost::asio::awaitable<std::string> name_kubeconfig_secret(k8s::client* kcp, std::string kyma);

/// Says that the kubeconfig in `secret`, which may be empty, can't be used. `error` is that of
/// k8s::client_pool::get for the Kyma.
std::string unusable_kubeconfig(std::string_view secret, std::string_view kyma,
                                const k8s::failure& error);

/// Returns what to do about a kubeconfig in `secret`, which may be empty, that can't be used, or
/// may not be, because of `error`: --allow-local-runtimes first where that helps.
std::string kubeconfig_remedy(std::string_view secret, const k8s::failure& error);

}  // namespace rw::cli
