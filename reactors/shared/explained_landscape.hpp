#pragma once

#include "rw/reactors/shared/explained_runtimes.hpp"

namespace rw {

/// Conditions of the landscape and their reasons, also as Events of the manager's Lease. Those that
/// are alerts, too, have their entries there.
inline constexpr explanation landscape_conditions[] = {
    {"StandsBack", "the manager takes events, and writes nothing",
     "lifecycle-manager runs; a restored or foreign Lease; `--shadow`",
     "the reason beside it; deploy/manager/MIGRATION.md"},
    {"LifecycleManagerRuns",
     "lifecycle-manager renews its Lease, and two managers would undo each other's writes",
     "it has not been scaled to 0 yet",
     "deploy/manager/MIGRATION.md; it goes on by itself once that Lease is given up, or with "
     "--take-over"},
    {"LeaseNotAbandoned",
     "lifecycle-manager's Lease is not renewed, and may be again: the manager waits",
     "lifecycle-manager crashed, or was just scaled to 0",
     "wait until the time that the message names, or set --take-over"},
    {"LeaseUnreadable",
     "lifecycle-manager's Lease can't be read, so that it is not known whether it runs",
     "rights of the manager", next_steps::control_plane},
    {"Shadow", "nothing is written, as the mode or `--shadow` says",
     "a trial before the manager takes over",
     "see what it would write: runtime-watcher status -o json"},
    {"ResourceUnreadable", "a kind in KCP can't be read; what was read before stays in use",
     "its definition is missing, or the right to list or watch it", next_steps::control_plane},
    {"KindNotServed", "KCP does not serve a kind, which the message names",
     "its definition was deleted or never applied",
     "kubectl apply -f deploy/crds, for kinds of others install what defines them; no restart is "
     "needed"},
    {"DefinitionOutdated",
     "the definition of RuntimeRollouts is older than this manager, and drops fields of its status",
     "the manager was upgraded without its definitions", "kubectl apply -f deploy/crds"},
    {"EndsWithoutEvents", "watches of KCP end at once without having brought anything",
     "a proxy or a load balancer before KCP's API server",
     "see to what stands before that API server"},
    {"WatcherInError",
     "a Watcher is in state Error; its last valid VirtualService and webhooks stay",
     "the reason beside it", "kubectl describe watchers.operator.kyma-project.io -n kcp-system"},
    {"WrittenByOthers", "another client writes what the manager writes",
     "lifecycle-manager or KIM still runs beside it", "switch that client's part off"},
};

/// What the verdict on the landscape begins with; `degraded` and `unknown` are states, too, and
/// have their entries there.
inline constexpr explanation fleet_levels[] = {
    {"well", "at most 1 % of the runtimes are ill, and the landscape has no fault"},
    {"outage", "more than 5 % of the runtimes are ill at once, and more than one, or all",
     "the gateway, its certificate, a region or a provider: the causes below the verdict",
     "repair what the runtimes of a cause share: runtime-watcher explain FleetOutage"},
};

/// Reasons of the condition VirtualService of a Watcher; with `Watcher` before them those of
/// Events.
inline constexpr explanation watcher_reasons[] = {
    {"VirtualService", "the Watcher's events are routed to its operator",
     "where it is False: its Gateway is missing or has no hosts, or KCP rejects the VirtualService",
     "runtime-watcher explain REASON, with the condition's reason"},
    {"Error", "the Watcher is invalid, or can't be routed; its last valid content stays in use",
     "the reason of its condition VirtualService",
     "runtime-watcher explain REASON, with that reason"},
    {"Processing", "the Watcher is new, and its VirtualService is being written"},
    {"Invalid", "the object is invalid; its last valid content stays in use",
     "the message names the fields",
     "correct them: deploy/watcher.md, deploy/configuration-of-runtimes.md"},
    {"LimitExceeded",
     "there are more Watchers than fit on a runtime: 200, or a managers' file of 512 KiB",
     "Watchers that no operator needs", "delete some: this one becomes Ready when there is room"},
    {"GatewayNotFound", "`spec.gateway.selector` selects no Gateway",
     "the Gateway was deleted, or is in another namespace than `--gateway-namespace`",
     "correct the selector or the Gateway's labels; no restart is needed"},
    {"GatewayWithoutHosts", "the Gateway that the Watcher selects has no hosts in `spec.servers`",
     "it was edited", "write the public host name into it: deploy/pki/README.md"},
    {"VirtualServiceNotApplied", "KCP did not accept the Watcher's VirtualService",
     "rights of the manager, or Istio's admission webhook",
     "what the message names; it is tried again"},
    {"VirtualServiceNotDeleted",
     "KCP did not delete the VirtualService of a deleted Watcher, which waits for that",
     "rights of the manager, or an admission webhook", "what the message names; it is tried again"},
    {"WatcherVirtualServiceContested",
     "another client changes a VirtualService after each repair; the next repair is delayed",
     "a GitOps tool, or lifecycle-manager, writes it", "switch that client's part off"},
    {"WatcherStatusUpdate", "KCP did not accept the status of a Watcher",
     "an older definition of Watchers, or rights of the manager",
     "kubectl apply -f deploy/crds; runtime-watcher doctor"},
};

/// The CA rotation: conditions of the landscape, and Events of the gateway's Secret.
inline constexpr explanation rotation_reasons[] = {
    {"settled", "the gateway serves with the root's certificate: no rotation is under way"},
    {"grace", "the gateway's bundle has the new CA, and the grace period of the rotation runs"},
    {"distributing",
     "the grace period of the rotation is over, and the switch to the new CA waits for the "
     "runtimes that lack it"},
    {"CARotation", "the CA rotation has reached another phase, which the message names"},
    {"CARotationBlocked", "the CA rotation needs a person",
     "a bundle of 100 CAs, or no CA is known for the bundle",
     "repair what the message names: deploy/pki/README.md"},
    {"RootSecretUnusable",
     "the root CA's Secret is missing or damaged; runtimes and gateway go on with what they have",
     "the Secret `istio-system/klm-watcher` was deleted or edited",
     "restore it: deploy/operations.md#disaster"},
    {"CARotationHeldUp",
     "the switch to the new CA is due, and waits until its deadline for what is no runtime's own "
     "fault",
     "the reason beside it",
     "see the reasons of the runtimes that it names: runtime-watcher status"},
    {"FaultInKCP", "the switch waits for runtimes that fail by a fault in KCP",
     "KCP's API server, or the manager's rights", next_steps::control_plane},
    {"FaultOfIssuer", "the switch waits for runtimes whose certificates are not issued",
     "the issuer is not ready, or its root Secret is missing", next_steps::certificates},
    {"FaultOfManager", "the switch waits for runtimes that the manager has not got to",
     "a manager that stands back, or is short of CPU", next_steps::control_plane},
    {"TooManyRuntimesFail",
     "more runtimes fail than `--ca-excuse-percent`, so that none is left out before the deadline",
     "KCP lacks their kubeconfigs; a region is down", next_steps::messages},
    {"CARotationDeadlineNear",
     "the gateway will switch its certificate soon, without the runtimes that the message names",
     "they are unreachable, or left alone",
     "make them reachable, or accept it: deploy/pki/README.md#the-rotation-and-its-deadline"},
    {"CARotationRuntimesLeftBehind",
     "the deadline has come, and the gateway serves with a certificate that some runtimes do not "
     "trust yet",
     "they were unreachable until then",
     "make them reachable: they get the CA with their next pass, and send what waits"},
    {"CABundleExtended",
     "the root's new CA was added to the gateway's bundle; client certificates are issued anew"},
    {"ExpiredCADropped", "expired CAs were dropped from the gateway's bundle"},
    {"ServerCertificateSwitched", "the gateway serves with the new root's certificate from now on"},
    {"ServerCertificateExpiring", "the gateway's server certificate expires within 14 days",
     "no new root was issued, or the rotation waits for runtimes",
     "kubectl get certificate -n istio-system klm-watcher; runtime-watcher status"},
    {"GatewaySecretCreated", "the gateway's Secret was made from the root CA"},
    {"GatewaySecretRepaired", "the gateway's Secret was damaged, and is repaired",
     "another client edited it", "see who writes the Secret `istio-system/klm-istio-gateway`"},
};

}  // namespace rw
