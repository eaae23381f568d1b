#pragma once

#include "rw/k8s/objects/names.hpp"
#include "rw/reactors/dev/clusters.hpp"

#include <cstdint>
#include <string>
#include <string_view>

namespace rw::dev {

// The objects of a trial system, as YAML that a person could apply as well.

/// The CustomResourceDefinitions of deploy/crds and deploy/dev.
std::string definitions();
/// deploy/samples/watcher.yaml.
std::string sample_watcher();
/// KCP's namespaces, the Gateway `klm-watcher` that runtimes reach at `host` and `port`, and the
/// Issuer that the runtimes' Certificates name.
std::string kcp_manifests(const std::string& host, std::uint16_t port);
/// A runtime's namespace, and the Kyma in it that Watchers watch.
std::string runtime_manifests();

/// In KCP: the Kyma of a runtime, and the Secret that gives access to it.
std::string kyma_manifest(const cluster& runtime);
std::string access_manifest(const cluster& runtime);

/// deploy/samples/bootstrapper-sources.yaml: the sources of the Runtime Bootstrapper's
/// configuration.
std::string sample_bootstrapper_sources();
/// In KCP: the ClusterTrustBundle that belongs to these, with the certificates of a CA (PEM).
std::string trust_bundle_manifest(const std::string& certificates);
/// In KCP: Kyma Infrastructure Manager's Runtime, of the runtime's Kyma.
std::string runtime_manifest(const cluster& runtime);

}  // namespace rw::dev
