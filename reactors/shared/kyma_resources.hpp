#pragma once

#include "rw/k8s/objects/names.hpp"

#include <string_view>

namespace rw {

// The kinds and well-known names of a Kyma control plane that more than one reactor needs. Kyma's
// lifecycle-manager, Istio and cert-manager define them; existing clusters use them, so they are
// fixed.

// --- kinds -----------------------------------------------------------------------------

const k8s::resource_type& watchers_type();          ///< operator.kyma-project.io/v1beta2
const k8s::resource_type& kymas_type();             ///< operator.kyma-project.io/v1beta2
const k8s::resource_type& gateways_type();          ///< networking.istio.io/v1beta1
const k8s::resource_type& virtual_services_type();  ///< networking.istio.io/v1beta1
const k8s::resource_type& runtimes_type();          ///< infrastructuremanager.kyma-project.io/v1
const k8s::resource_type& secrets_type();
const k8s::resource_type& config_maps_type();
const k8s::resource_type& namespaces_type();

// --- namespaces ------------------------------------------------------------------------

inline constexpr std::string_view kcp_namespace = "kcp-system";      ///< of the custom resources
inline constexpr std::string_view istio_namespace = "istio-system";  ///< of certificates, in KCP
inline constexpr std::string_view skr_namespace = "kyma-system";     ///< on the watched clusters

// --- labels, annotations, finalizers ---------------------------------------------------

/// On a Watcher: the manager, if its spec names none. On objects applied to an SKR: the component
/// that applied them.
inline constexpr std::string_view managed_by_label = "operator.kyma-project.io/managed-by";
/// On a kubeconfig Secret: the Kyma of its SKR.
inline constexpr std::string_view kyma_name_label = "operator.kyma-project.io/kyma-name";
/// On a Kyma: its SKR's runtime id, the common name of that SKR's client certificate.
inline constexpr std::string_view runtime_id_label = "kyma-project.io/runtime-id";
/// "true" on a Kyma: it is not reconciled, as in lifecycle-manager.
inline constexpr std::string_view skip_label = "operator.kyma-project.io/skip-reconciliation";
/// On a Kyma: the domain that its SKR's certificate is for.
inline constexpr std::string_view skr_domain_annotation = "skr-domain";

/// On a Watcher, while it may have a VirtualService.
inline constexpr std::string_view watcher_finalizer = "operator.kyma-project.io/watcher";

// --- objects ---------------------------------------------------------------------------

/// Name of the watcher's Deployment, Service and webhook configuration on an SKR.
inline constexpr std::string_view skr_webhook_name = "skr-webhook";
/// The VirtualService in KCP that routes heartbeats to the manager.
inline constexpr auto heartbeat_routes_name = "runtime-watcher-heartbeats";
/// Who owns the fields that this project writes, unless it is told otherwise.
inline constexpr std::string_view default_field_manager = "runtime-watcher";
/// The Gateway in KCP that receives events; also the root certificate's Secret.
inline constexpr std::string_view klm_watcher_name = "klm-watcher";

}  // namespace rw
