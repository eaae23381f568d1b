#pragma once

#include "k8s/objects/failure.hpp"
#include "k8s/objects/object.hpp"

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

}  // namespace rw
