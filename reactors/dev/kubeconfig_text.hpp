#pragma once

#include "k8s/config/config.hpp"

#include <string>

namespace rw::dev {

/// A kubeconfig that needs nothing beside itself, of a configuration that may have come from
/// several files: what is to lie in a Secret must be such a one. Fails where credentials come from
/// a program, which nobody may run on behalf of a Secret.
k8s::result<std::string> kubeconfig_text(const k8s::config& of, const std::string& name);

}  // namespace rw::dev
