#pragma once

#include "rw/k8s/config/config.hpp"

#include <string>

namespace rw::dev {

/// Returns a self-contained kubeconfig for a configuration that may come from several files: a
/// Secret requires that. Fails if a program provides the credentials: no reader of a Secret may run
/// one.
k8s::result<std::string> kubeconfig_text(const k8s::config& of, const std::string& name);

}  // namespace rw::dev
