#pragma once

#include "k8s/config.hpp"

#include <string>

namespace rw::k8s {

/// A kubeconfig that somebody else wrote, such as one out of a Secret: the same as
/// parse_kubeconfig, but nothing in it may run a program here or read a file of this process. So
/// `exec`, `tokenFile`, `certificate-authority`, `client-certificate` and `client-key` are errors,
/// before anything is run or opened; certificates and keys stand inline (`...-data`).
result<config> parse_foreign_kubeconfig(const std::string& text, const std::string& name,
                                        const std::string& context = {});

}  // namespace rw::k8s
