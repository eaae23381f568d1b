#pragma once

#include "k8s/objects/failure.hpp"
#include "k8s/objects/object.hpp"

#include <string>
#include <string_view>
#include <vector>

namespace rw {

/// The kubeconfig for a Kyma's runtime: key `config` of the one Secret that carries its name.
/// `secrets`: those that do. The failure is a sentence for people.
k8s::result<std::string> kubeconfig_of(std::string_view kyma,
                                       const std::vector<k8s::object>& secrets);

/// The same of a Secret that is known to be the one.
k8s::result<std::string> kubeconfig_in(const k8s::object& secret);

}  // namespace rw
