#pragma once

#include "rw/reactors/shared/explanation.hpp"

namespace rw {

namespace next_steps {

inline constexpr std::string_view kubeconfigs =
    "have the owner of the kubeconfigs' Secrets, such as infrastructure-manager, write them anew, "
    "and see the rights of their users";
inline constexpr std::string_view runtimes =
    "see whether these runtimes' API servers are up, and what they share: a region, a provider, a "
    "network";
inline constexpr std::string_view writers =
    "see what admits objects on these runtimes, and who else writes them";
inline constexpr std::string_view certificates =
    "see the Certificates in istio-system, and their issuer";
inline constexpr std::string_view control_plane =
    "runtime-watcher doctor names what is wrong in KCP";
inline constexpr std::string_view gateway =
    "see the gateway, its certificate, and the VirtualService runtime-watcher-heartbeats";
inline constexpr std::string_view operators =
    "see the operators that get these runtimes' events, and their logs";
inline constexpr std::string_view webhook =
    "see the webhook on these runtimes, its Service and its pods: runtime-watcher doctor";
inline constexpr std::string_view messages = "see the messages: runtime-watcher status -o wide";
inline constexpr std::string_view pods =
    "on the runtime: kubectl -n kyma-system describe pod -l app=skr-webhook";

}  // namespace next_steps

/// Of each `status_reason`, in its order; that of `none` is shown where a runtime is ill without
/// one.
inline constexpr explanation runtime_reasons[] = {
    {"Other", "runtimes are ill for a reason that has no entry of its own", "the messages name it",
     next_steps::messages},

    {"AccessMissing",
     "KCP has no kubeconfig of the runtime that can be used: none, more than one, or a malformed "
     "one",
     "infrastructure-manager has not written the Secret yet, or it was deleted or damaged; or the "
     "Kyma has no label `kyma-project.io/runtime-id`",
     "see who writes the kubeconfigs' Secrets in kcp-system, such as infrastructure-manager"},
    {"AccessRejected", "the runtime's API server does not accept the kubeconfig that KCP has of it",
     "its token or certificate has expired or was revoked; the Secret was not renewed",
     next_steps::kubeconfigs},
    {"RuntimeUnreachable",
     "the runtime's API server does not respond; the watcher there still works, and its heartbeats "
     "are expected",
     "the cluster is hibernated, deleted or down; the network, a proxy or DNS between KCP and the "
     "runtime",
     next_steps::runtimes},
    {"RuntimeSlow",
     "the runtime's API server takes longer than a reconcile may; the manager contacts it less "
     "often",
     "its etcd or its API server is overloaded; an admission webhook there times out",
     next_steps::runtimes},
    {"AccessDenied",
     "the user of the kubeconfig lacks a right on the runtime, which the message names",
     "a ClusterRole or its binding was changed on the runtime", next_steps::kubeconfigs},
    {"NamespaceTerminating",
     "a namespace that the watcher needs is being deleted on the runtime, so that nothing can be "
     "created in it",
     "a client deleted it, and finalizers of its content are not taken away",
     "the namespace that the messages name is being deleted on these runtimes: see its conditions "
     "for what it waits for (kubectl get namespace NAME -o yaml); the watcher is installed again "
     "once the namespace is"},
    {"WriteRejected", "the runtime's API server rejects an object of the watcher",
     "a policy, a quota or an admission webhook of the runtime's owner", next_steps::writers},
    {"RequestFailed", "a request to the API server failed; it is repeated with a backoff",
     "the API server or one of its admission webhooks is overloaded or restarts",
     next_steps::writers},
    {"RemovalFailed",
     "the Kyma is being deleted, and the watcher can't be removed from its runtime; that is tried "
     "again until 5 minutes after the deletion",
     "an admission webhook of the runtime rejects the removal, a right is missing, or the runtime "
     "is down: the message says which",
     "correct what the message names; if the Kyma goes first (Event WatcherRemovalAbandoned), "
     "delete the objects of deploy/skr on the runtime"},
    {"Contested",
     "another client writes the watcher's objects on the runtime, which is left to it for a while",
     "lifecycle-manager still runs there, or a GitOps tool or an operator of the runtime applies "
     "them",
     next_steps::writers},
    {"LeftAlone", "the manager leaves the Kyma alone",
     "the label `operator.kyma-project.io/skip-reconciliation`, or `--only` does not select it",
     next_steps::messages},
    {"DuplicateRuntime",
     "two Kymas claim one runtime: by the same runtime id, or the same URL and CA in their "
     "kubeconfigs. The other one owns it",
     "a Kyma was copied or restored; a kubeconfig's Secret has another runtime's content",
     "correct the runtime id or the kubeconfig of one of the two Kymas, or delete it"},

    {"GatewayInvalid",
     "the Gateway with the address for events is missing, or has not exactly one host; runtimes "
     "keep the last valid address",
     "it was deleted or edited in KCP, or `--gateway-name` names another",
     next_steps::control_plane},
    {"CaBundleInvalid",
     "the gateway's CA bundle is damaged or missing; runtimes keep the last valid one",
     "the Secret `istio-system/klm-istio-gateway` was deleted or edited, or was never made, as "
     "that of the root CA is missing",
     next_steps::control_plane},
    {"WatchersWithdrawn",
     "all Watchers are gone with their definition; the webhooks stay on the runtimes",
     "the definition of Watchers was deleted in KCP, or is not served", next_steps::control_plane},
    {"CertificateInvalid",
     "the certificate of the runtime can't be requested, as the Kyma's data is no name for one",
     "the label with the runtime id, or the annotation `skr-domain`, is missing or malformed",
     "correct the Kyma's label or annotation that the message names"},
    {"CertificateNotRequested", "KCP did not accept the Certificate of the runtime, or its renewal",
     "rights of the manager; the kind of Certificates is not served; an admission webhook of the "
     "issuer is down",
     next_steps::certificates},
    {"CertificatePending", "the issuer has not issued the runtime's certificate",
     "the issuer is not ready, or its root Secret is missing; a rate limit; cert-manager does not "
     "run",
     next_steps::certificates},
    {"ContentRejected", "what is to be brought to the runtime is invalid",
     "a source in KCP is malformed or too large", next_steps::control_plane,
     "runtime-watcher doctor\nruntime-watcher rollout status bootstrapper"},
    {"RightsMissing",
     "the manager, or the user of the command, lacks a right in KCP, which the message names",
     "`deploy/manager/rbac.yaml` of another version is applied, or was changed",
     next_steps::control_plane},
    {"WouldWrite", "the manager writes nothing, and the runtime lacks what it would write",
     "`--shadow`, or lifecycle-manager runs",
     "see what it would write: runtime-watcher status -o json"},

    {"NoCertificate", "the pods wait for the runtime's certificate",
     "the issuer has not issued it yet", next_steps::certificates},
    {"Installing", "the component is being installed", "its Deployment was just written",
     next_steps::messages},
    {"NoPods", "there is no pod of the watcher yet",
     "the Deployment was just written; the controllers of the runtime do not run",
     "on the runtime: kubectl -n kyma-system describe deployment skr-webhook"},
    {"FailedCreate", "the pods of the watcher can't be created",
     "a ResourceQuota, a policy, or an admission webhook rejects them",
     "on the runtime: kubectl -n kyma-system describe replicaset -l app=skr-webhook, and what the "
     "message names: a ResourceQuota, a policy, or an admission webhook"},
    {"ProgressDeadlineExceeded",
     "the pods did not become ready within the Deployment's deadline; a roll-out counts it as a "
     "failure",
     "an image that can't be pulled, no node with room, a container that crashes",
     next_steps::pods},
    {"PodNotReady", "no pod of the watcher is ready yet",
     "it starts, or its readiness probe fails: certificates that do not match, for example",
     next_steps::pods},
    {"ContainerCreating", "kubelet creates the container",
     "the Secret of the pod is missing, or the image is being pulled", next_steps::pods},
    {"PodInitializing", "the pod runs its init containers",
     "a sidecar is injected and does not start", next_steps::pods},
    {"PodRestarted", "a container of the pod restarted, and is not ready yet",
     "the message has its exit code and the end of its log", next_steps::pods},
    {"Unschedulable", "no node has room for the pod",
     "requests, taints, or a node pool at its limit", next_steps::pods},
    {"CrashLoopBackOff", "a container crashes again and again",
     "a setting that does not parse, or certificates that do not match: the message has the end of "
     "its log",
     next_steps::pods},
    {"OOMKilled", "the container used more memory than its limit",
     "many watched objects, or a limit below the default",
     "raise the manager's --skr-memory-limit, or see what needs so much: on the runtime, kubectl "
     "-n kyma-system describe pod -l app=skr-webhook"},
    {"ImagePullBackOff", "the image can't be pulled, and is tried again later",
     "its name or tag, the pull Secret (`--skr-pull-secret`), or the registry", next_steps::pods},
    {"ErrImagePull", "the image can't be pulled",
     "its name or tag, the pull Secret (`--skr-pull-secret`), or the registry", next_steps::pods},
    {"InvalidImageName", "the image's name is malformed", "`--skr-image`", next_steps::pods},
    {"CreateContainerConfigError", "the container's configuration names what is not there",
     "a Secret or ConfigMap was deleted on the runtime", next_steps::pods},
    {"CreateContainerError", "the container runtime can't create the container",
     "the node, or its container runtime", next_steps::pods},
    {"RunContainerError", "the container does not start",
     "the image is for another architecture, or its command is missing", next_steps::pods},
    {"PodFailing", "a pod fails for another reason, which the message has",
     "the node, or a controller of the runtime's owner", next_steps::pods},

    {"NoHeartbeat",
     "no heartbeat of the runtime arrives within `--heartbeat-timeout`: its events may not arrive "
     "either",
     "the webhook's pod is gone, or the runtime has never been reached; egress from the runtime, "
     "the gateway or its certificate",
     next_steps::gateway},
    {"CertificateExpires", "the watcher's certificate expires within 72 hours, and is not renewed",
     "the issuer does not renew it, or the runtime is unreachable", next_steps::certificates},
    {"EventsWait",
     "an operator has taken no event of the runtime for 30 s, or no resync; they wait, and none is "
     "lost",
     "the operator is down, hangs, or is not routed", next_steps::operators},
    {"EventsRefused",
     "an operator rejects an event with a 4xx and takes others, for 30 s; the event is sent again",
     "the operator does not know the object or the contract; a limit of a gateway on the way",
     next_steps::operators},
    {"WatchNotLive",
     "watches of an API server end without having brought anything, so that lists alone show "
     "changes",
     "a proxy or a load balancer before the API server that ends watches",
     "see to what stands before that API server: a proxy, a load balancer, a page to log in"},

    {"ProbeNotConfirmed",
     "the watcher took a probe, and the heartbeat that would name it has not arrived",
     "the watcher does not reach KCP", next_steps::gateway},
    {"ProbeRejected", "the runtime's API server rejects the probe",
     "a policy or an admission webhook of the runtime's owner", next_steps::webhook},
    {"CertificateExpired",
     "the watcher's certificate is not valid now, so that the API server does not call it",
     "it was not renewed; or the clock of a node is wrong", next_steps::certificates},
    {"CertificateNameWrong", "the watcher's certificate is for other names than its Service's",
     "`dnsNames` of the Certificate in KCP were changed", next_steps::certificates},
    {"CaBundleWrong", "the runtime's API server does not trust the watcher's certificate",
     "`caBundle` of the webhook configuration was changed, or is of the previous CA",
     next_steps::webhook},
    {"NoEndpoints", "the Service `skr-webhook` has no endpoints", "the watcher's pod is not ready",
     next_steps::webhook},
    {"ServiceMissing", "the Service `skr-webhook`, or its pod, is missing",
     "a client deleted it on the runtime", next_steps::webhook},
    {"WebhookRefused", "the watcher's port is closed", "its pod does not run, or restarts",
     next_steps::webhook},
    {"WebhookTimeout", "the watcher did not respond to the API server in 3 s",
     "a NetworkPolicy, the tunnel between API server and pods, or a pod without CPU",
     next_steps::webhook},
    {"WebhookCallFailed", "the runtime's API server can't call the watcher",
     "the network between its control plane and its pods, such as the tunnel (vpn-shoot)",
     next_steps::webhook},
    {"WebhookNotCalled", "the runtime's API server does not call the watcher",
     "the webhook configuration was deleted or changed on the runtime", next_steps::webhook},
    {"RouteMissing", "the gateway does not route the runtime's heartbeats",
     "the VirtualService `kcp-system/runtime-watcher-heartbeats` is missing, or selects another "
     "Gateway",
     next_steps::gateway},
    {"ListenerUnavailable", "the gateway does not reach the manager's listener",
     "no replica leads; the EndpointSlice names a pod that is gone; a NetworkPolicy",
     "see whether the EndpointSlice of the manager's Service for events (--events-service) names "
     "the leader's pod, and whether a replica leads or all stand by; then the gateway and the "
     "VirtualService runtime-watcher-heartbeats"},
    {"GatewayUnreachable", "the watcher does not reach KCP's gateway, or does not trust it",
     "egress or DNS of the runtime; the gateway's certificate is of a CA that the runtime does not "
     "have",
     next_steps::gateway},
};

/// What `status` and the page show in the columns of installation and heartbeat.
inline constexpr explanation runtime_states[] = {
    {"installed",
     "the watcher's objects are on the runtime as they should be, and its pods are ready"},
    {"not_ready", "the watcher's objects are on the runtime, and its pods are not ready",
     "the reason beside it", next_steps::pods},
    {"failed", "the watcher can't be installed on the runtime", "the reason beside it",
     "runtime-watcher explain REASON, with that reason"},
    {"unreachable", "the runtime's API server does not respond, or does not let the manager in",
     "the reason beside it: RuntimeUnreachable, AccessRejected",
     "runtime-watcher explain REASON, with that reason"},
    {"deleting", "the Kyma is being deleted, and the watcher is being taken off the runtime",
     "nothing is wrong without a reason beside it; RemovalFailed: that failed",
     "runtime-watcher explain REASON, with that reason"},
    {"unknown",
     "the leader has not looked at the runtime yet, or no heartbeat of it is expected yet (as "
     "verdict, no leader says how the landscape is)",
     "the leader has just begun; the watcher was just installed", next_steps::messages},
    {"live", "heartbeats of the runtime arrive, and report no error"},
    {"degraded",
     "heartbeats arrive, and the watcher reports an error or a probe failed (as verdict, more than "
     "1 % of the runtimes are ill, or the landscape has a fault)",
     "the reason beside it", "runtime-watcher explain REASON, with that reason"},
    {"silent", "no heartbeat of the runtime has arrived for 2.5 times their interval",
     "NoHeartbeat, or what a probe found: the reason beside it", next_steps::gateway},
    {"complete",
     "the latest probe came all the way back to KCP; until then the column PROBE has where it is: "
     "runtime, webhook, gateway or heartbeat"},
};

/// Events of the Kyma, and of the Runtime where KIM configures it.
inline constexpr explanation kyma_events[] = {
    {"WatcherInstalled", "the watcher is in place on the runtime"},
    {"WatcherNotReady", "the watcher's objects are on the runtime, and its pods are not ready",
     "the reason at the beginning of the message",
     "runtime-watcher explain REASON, with that reason"},
    {"WatcherFailed", "the watcher can't be installed on the runtime",
     "the reason at the beginning of the message",
     "runtime-watcher explain REASON, with that reason"},
    {"WatcherRemoved", "the watcher was taken off the runtime, as its Kyma is being deleted"},
    {"WatcherRemovalFailed",
     "the Kyma is being deleted, and the watcher can't be removed from its runtime; that is tried "
     "again",
     "an admission webhook of the runtime, a right, or its API server: the message",
     "runtime-watcher explain RemovalFailed"},
    {"WatcherRemovalAbandoned", "the Kyma is released, and the watcher may still be on its runtime",
     "the runtime did not respond, or rejected the removal, for 5 minutes; or no manager has the "
     "Kyma in its scope",
     "where the cluster still exists, delete the objects of `deploy/skr/` there"},
    {"WatcherReleased",
     "the Kyma is released, and the watcher stays, as another Kyma has the same runtime"},
    {"WatcherLive", "heartbeats of the runtime arrive again, and report no error"},
    {"WatcherSilent", "heartbeats of the runtime have ended, or have not begun in time",
     "NoHeartbeat, or what its probe found: the message", next_steps::gateway},
    {"WatcherDegraded", "heartbeats arrive, and the watcher reports an error or a probe failed",
     "the reason at the beginning of the message",
     "runtime-watcher explain REASON, with that reason"},
    {"CertificateNotReissued",
     "the runtime's certificate has to be issued anew, and KCP did not accept the request",
     "rights of the manager; the issuer's admission webhook", next_steps::certificates},
    {"BootstrapperModeUnknown",
     "the Runtime's annotation names no mode, and its configuration is left alone",
     "a typing error in the annotation `operator.kyma-project.io/bootstrapper-mode`",
     "write off, signal, shadow or direct, or take the annotation away"},
    {"ConfigurationFailed",
     "KIM has taken the mark off, and the Runtime is not Ready; it is marked again after a backoff",
     "what the Runtime's conditions name, or a fault in KIM",
     "see the Runtime's conditions, and KIM's log"},
    {"ConfigurationNotSignalled",
     "KCP did not accept the mark on the Runtime that makes KIM configure it",
     "rights of the manager, or an admission webhook of Runtimes", next_steps::control_plane},
};

}  // namespace rw
