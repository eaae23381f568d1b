#pragma once

#include "rw/reactors/shared/explanation.hpp"

namespace rw {

// What is known of each alert of deploy/monitoring, whose descriptions are these meanings.

inline constexpr explanation webhook_alerts[] = {
    {.word = "WatcherNotObserving",
     .meaning = "events of some Watchers come from reviews alone: what changes without a review is "
                "not sent",
     .next = "rights of the ServiceAccount `skr-webhook`; the egress NetworkPolicy to the API "
             "server; `OBSERVE_OBJECTS`. Wildcards, Secrets and subresources are never observed",
     .commands = "the log: \"resource not observed\", \"Watcher not observed\", \"nothing "
                 "observed\", with the reason",
     .fires = "`rw_observation_unobserved_watches` > 0"},
    {.word = "WatcherWatchLags",
     .meaning = "a watch had not shown a change within `CONFIRM_WAIT`; it was sent, and the "
                "resource listed again",
     .next = "load of the runtime's API server",
     .commands = "the log: \"watch lags behind, listing again\"",
     .fires = "`rw_observation_confirmations_total{result=\"missed\"}` increases"},
    {.word = "WatcherUndelivered",
     .meaning = "changed objects wait for their event",
     .next = "the alerts WatcherEventsWait, WatcherCircuitOpen, WatcherBacklog and "
             "WatcherEventsRejected say why",
     .commands = "`kubectl -n kyma-system logs deploy/skr-webhook` on the runtime",
     .fires = "`rw_observation_undelivered` grows"},
    {.word = "WatcherEventsWait",
     .meaning = "an event waits since its object's latest change that long ago",
     .next = "`rw_dispatch_manager_oldest_event_seconds{manager}` names the operator, and "
             "`runtime-watcher status` says `EventsRefused`, with the object, where it takes all "
             "other events. All operators: check gateway, egress NetworkPolicy, certificates. One: "
             "its Service in KCP",
     .commands = "`kubectl -n kyma-system logs deploy/skr-webhook` on the runtime: \"request to "
                 "KCP failed; it will be repeated\", \"KCP did not accept events\", \"cannot "
                 "connect to the upstream\"",
     .fires = "`rw_dispatch_oldest_event_seconds` > 60"},
    {.word = "WatcherHeartbeatsFail",
     .meaning = "KCP does not learn the watcher's state",
     .next = "gateway, egress NetworkPolicy, certificates; `outcome=\"unsupported\"`: no "
             "VirtualService routes `/v2/runtime-watcher/event`",
     .commands = "the log: \"heartbeat not delivered\"",
     .fires = "`rw_heartbeats_total{outcome=\"failed\"}` increases"},
    {.word = "WatcherCircuitOpen",
     .meaning = "the webhook sends only probes to KCP or to an operator",
     .next = "restore that receiver; the first success releases all events",
     .commands = "`kubectl -n kyma-system logs deploy/skr-webhook` on the runtime; "
                 "`rw_dispatch_manager_failures_total{manager}`",
     .fires = "`rw_dispatch_open_circuits` > 0"},
    {.word = "WatcherBacklog",
     .meaning = "undelivered events of one operator accumulate",
     .next = "the operator's listener: is it ready, does it respond 503",
     .commands = "`kubectl -n kyma-system logs deploy/skr-webhook` on the runtime",
     .fires = "`rw_dispatch_manager_events{manager}` grows"},
    {.word = "WatcherEventsLost",
     .meaning = "events were dropped, and their operators get a resync in their place",
     .next = "`overflow`: restore the receiver, or raise `SET_CAPACITY`, `OBSERVE_OBJECTS`, "
             "`CHANNEL_CAPACITY`. `removed`: a Watcher went while its changes waited. `undecided`: "
             "WatcherNotObserving. `rw_resyncs_owed` > 0: the receiver does not answer, or knows "
             "no resyncs (reactors/README.md#the-guarantee)",
     .commands = "the log names the operator",
     .fires = "`rw_event_losses_total{reason}` increases"},
    {.word = "WatcherEventsRejected",
     .meaning = "a receiver, or a gateway on the way, rejects events; they are sent again",
     .next = "`runtime-watcher status -o wide`: the reason `EventsRefused` names operator, object "
             "and status where other events are accepted: the operator's log. Otherwise a gateway "
             "in a wrong state: its routes and limits; check the versions of both sides",
     .commands =
         "the log: \"KCP did not accept events\": manager, status (400, 405, 413 or another 4xx)",
     .fires = "`rw_dispatch_events_total{outcome=\"rejected\"}` increases"},
    {.word = "WatcherEventsAbandoned",
     .meaning =
         "the process ended before `DRAIN_TIMEOUT` sufficed to deliver accepted events. The "
         "counter rises as the process ends, so a scrape seldom sees it: the log is the surer sign",
     .next = "the next process begins with a resync; find out why KCP was slow then",
     .commands = "the log of the previous pod: \"events were not delivered before the end\"",
     .fires = "`rw_dispatch_events_total{outcome=\"abandoned\"}` increases"},
    {.word = "WatcherDeliverySlow",
     .meaning = "delivery is slow",
     .next = "gateway or listener short of CPU",
     .commands = "`rw_dispatch_batch_events`, the gateway's latency",
     .fires = "`rw_dispatch_delivery_seconds`, 99th percentile > 1 s"},
    {.word = "WatcherAdmissionOverflow",
     .meaning = "the channel was full for `ADMISSION_WAIT`; a write was delayed, and its event "
                "dropped where no watch is live",
     .next = "raise `--skr-cpu-limit` or `CHANNEL_CAPACITY`",
     .commands = "CPU throttling of the pod `skr-webhook`",
     .fires = "`rw_admission_overflow_total` increases"},
    {.word = "WatcherUnknownManager",
     .meaning = "a review names a manager that the managers' file lacks",
     .next = "a webhook entry that the manager did not write: remove it. Otherwise "
             "`runtime-watcher status` for that runtime",
     .commands = "the log names manager and peer; `kubectl -n kyma-system get "
                 "validatingwebhookconfiguration skr-webhook -o yaml`",
     .fires = "`rw_admission_unknown_manager_total` increases"},
    {.word = "WatcherUnidentifiedObjects",
     .meaning = "a review gives its object no valid name or kind",
     .next = "find the client that sends such reviews",
     .commands = "the log names manager and object",
     .fires = "`rw_admission_unidentified_total` increases"},
    {.word = "WatcherManagersFileRejected",
     .meaning = "the managers' file is malformed",
     .next = "another client edited the Secret `skr-webhook-tls`: the manager restores it; "
             "`runtime-watcher status` says why it has not",
     .commands = "the log names the field",
     .fires = "`rw_managers_reloads_total{outcome=\"refused\"}` increases"},
    {.word = "WatcherCertificateFilesRejected",
     .meaning = "certificate files are inconsistent; the previous ones are in use",
     .next = "the manager restores the Secret `skr-webhook-tls`; `runtime-watcher status` says why "
             "it has not",
     .commands = "the log names the error",
     .fires = "`rw_tls_reloads_total{outcome=\"refused\"}` increases"},
    {.word = "WatcherCertificateExpires",
     .meaning = "the runtime's certificate is not renewed",
     .next = "the issuer's error in the status of the Certificate",
     .commands = "in KCP: `kubectl get certificate -n istio-system KYMA-webhook-tls -o yaml`",
     .fires = "`rw_tls_certificate_not_after_timestamp_seconds` - now < 14 days"},
    {.word = "WatcherRejectsConnections",
     .meaning = "connections or requests are rejected",
     .next = "`handshake`: the client does not trust the certificate; `memory`, `connections`, "
             "`flood`: a misbehaving client",
     .commands = "the log names peer and path",
     .fires = "`rw_http_rejected_total{reason}` increases"},
};

inline constexpr explanation manager_alerts[] = {
    {.word = "ManagerHasNoLeader",
     .meaning = "no replica leads, and events wait on the runtimes; or more than one says that it "
                "leads, of which the lease has one",
     .next = "logs of both pods; is KCP's API server slow; is a CPU limit set",
     .commands = "`kubectl get lease -n kcp-system runtime-watcher-manager -o yaml`",
     .fires = "`leader_election_master_status{name=\"runtime-watcher-manager\"}` is 1 of no "
              "replica, or of more than one, in a landscape that had a replica within a day"},
    {.word = "ManagerLeadershipLost",
     .meaning = "a leader lost its lease and ended, or it restarted. The process ends soon after "
                "the counter rises, so a scrape seldom sees that",
     .next = "is KCP's API server slow; is a CPU limit set",
     .commands =
         "log of the previous container: \"leadership lost; the reactors are being cancelled\"",
     .fires = "`rw_leader_election_lost_total` increases, or `process_start_time_seconds` of a "
              "leader changes"},
    {.word = "LeaseRequestsFail",
     .meaning = "requests for the lease fail; a leader that cannot renew it loses it",
     .next = "is KCP's API server slow or away; rights: `runtime-watcher doctor`",
     .commands = "log: \"request for the lease failed\"",
     .fires = "`rw_leader_election_failures_total` increases by more than 3 in 10 min"},
    {.word = "ManagerStandsBack",
     .meaning = "the leader writes nothing: lifecycle-manager runs, or `--shadow` is set",
     .next = "deploy/manager/MIGRATION.md",
     .commands = "`runtime-watcher status`: condition `StandsBack`",
     .fires = "`rw_manager_stands_back` = 1"},
    {.word = "RecordsNotKept",
     .meaning = "what a new leader must know of the runtimes can't be read or written: whose each "
                "cluster is, and since when it fails",
     .next = "the namespace of `--state-namespace`, and the rights to its Secrets "
             "(`manager/rbac.yaml`); no restart is needed",
     .commands = "log of the manager: \"can't be kept\"",
     .fires = "`rw_watcher_installer_records_not_kept` = 1"},
    {.word = "InputInvalid",
     .meaning = "the Gateway with the address for events, or the gateway's CA bundle, is invalid "
                "or missing: runtimes keep the last valid one",
     .next = "repair what the message names; a leader that has seen no valid value installs "
             "nothing and removes nothing until then. No restart is needed",
     .commands =
         "`runtime-watcher status`: condition `InputInvalid`, an event on the manager's Lease",
     .fires = "`rw_watcher_installer_invalid_inputs` > 0"},
    {.word = "RuntimesContested",
     .meaning = "another client writes the watcher's objects on runtimes",
     .next = "switch that client's part off; the manager resumes after `--contest-pause`",
     .commands = "`runtime-watcher status --reason Contested`",
     .fires = "`rw_watcher_installer_contested_runtimes` > 1 % of `rw_watcher_installer_runtimes`"},
    {.word = "RuntimesUnhealthy",
     .meaning = "runtimes do not respond in time; others are not affected",
     .next = "one region or provider: its network. Single ones: their API servers",
     .commands = "`runtime-watcher status --state unreachable`",
     .fires = "`rw_watcher_installer_unhealthy_runtimes` or `rw_bootstrapper_unhealthy_runtimes` > "
              "1 % of `rw_watcher_installer_runtimes`"},
    {.word = "ReconcilesFail",
     .meaning = "reconciles of some objects fail all the time",
     .next = "repair what the error names",
     .commands = "log: the error of each key is logged once, and once more when it changes",
     .fires = "`rw_controller_failing_keys{controller}` for 1 h > 0, or > 1 % of the runtimes "
              "where the keys are runtimes"},
    {.word = "ReconcilesTimeOut",
     .meaning = "reconciles were cancelled at their time limit; they are repeated",
     .next = "CPU of the manager; is KCP's API server slow",
     .commands = "log: \"reconcile failed; it will be repeated until it succeeds\" with the object",
     .fires = "`rw_controller_reconcile_timeouts_total{controller}` increases"},
    {.word = "WorkQueueStuck",
     .meaning = "a key is processed for longer than the time limit of a reconcile: a worker hangs",
     .next = "restart the leader: the standby replica takes over. Report it with the log",
     .commands = "`kubectl -n kcp-system top pod`, the log of the leader",
     .fires = "`workqueue_longest_running_processor_seconds{name}` > 600"},
    {.word = "WorkQueueFull",
     .meaning = "a work queue is full",
     .next = "CPU of the manager; a resource that changes without end",
     .commands = "`workqueue_depth{name}`",
     .fires = "`workqueue_refused_total` increases"},
    {.word = "ApiRequestsFail",
     .meaning = "requests of the manager to KCP's API server fail",
     .next = "401, 403: credentials and rights. Otherwise the API server's load",
     .commands = "`runtime-watcher doctor`; log: \"a request to the API server is tried again\"",
     .fires = "more than 5 % of `rw_kube_requests_total{client=~\"kcp.*\"}` have a `code` of 401, "
              "403, 429, 5xx, or of a connection that fails"},
    {.word = "FleetOutage",
     .meaning =
         "more than 5 % of the runtimes are unreachable, not in place, silent or degraded at once: "
         "the cause is in KCP, or in a region. Events wait on the runtimes meanwhile",
     .next = "what the runtimes of a cause share: the gateway, its certificate, the VirtualService "
             "`runtime-watcher-heartbeats`; a region, a provider. `runtime-watcher doctor` judges "
             "by what it finds itself, and names the difference",
     .commands = "`runtime-watcher status`: its last lines are the verdict, with the causes and "
                 "the next step of each",
     .fires = "`rw_fleet_verdict{verdict=\"outage\"}` = 1 for 5 min, and "
              "`rw_fleet_verdict_timestamp_seconds` is of the last minute"},
    {.word = "FleetDegraded",
     .meaning = "more than 1 % of the runtimes are ill, the landscape has a fault, such as a "
                "paused roll-out, or the leader has not looked at the runtimes",
     .next = "the reason of each cause: `runtime-watcher explain REASON`; `runtime-watcher status "
             "--reason REASON -o wide` lists its runtimes",
     .commands = "`runtime-watcher status`",
     .fires = "`rw_fleet_verdict{verdict=~\"degraded|unknown\"}` = 1 for 30 min, and "
              "`rw_fleet_verdict_timestamp_seconds` is of the last minute"},
    {.word = "ObjectiveBurnsFast",
     .meaning = "at this rate the month's budget of 0.1 % is spent within two days: path, the "
                "latest heartbeat or probe of these runtimes is not in order; delivery, the latest "
                "took a second or more",
     .next = "path: the causes of the verdict. delivery: EventsLate",
     .commands = "`runtime-watcher status -o wide`: the rows that come first; DELIVERY",
     .fires =
         "of `rw_fleet_sli_runtimes{sli}` more than 1.44 % were not `good` in the last 30 min and "
         "in the last 5 min, and there is no outage, nor was one paged in the last 10 min"},
    {.word = "ObjectiveBurnsSlowly",
     .meaning = "at this rate the month's budget of 0.1 % is spent within five days",
     .next = "as for ObjectiveBurnsFast, within the working day",
     .commands = "`runtime-watcher status -o wide`: the rows that come first; DELIVERY",
     .fires = "of `rw_fleet_sli_runtimes{sli}` more than 0.6 % were not `good` in the last 6 h and "
              "in the last 30 min"},
    {.word = "FleetVerdictOld",
     .meaning = "the leader does not judge its runtimes: it hangs. It is not known how they are",
     .next = "restart the leader: the standby replica takes over. Report it with the log",
     .commands = "the log of the leader; its CPU",
     .fires = "`rw_fleet_verdict_timestamp_seconds` is older than a minute for 5 min"},
    {.word = "RuntimesLongTail",
     .meaning = "single runtimes of many are always ill: unreachable, silent, degraded, contested, "
                "or without their configuration. It does not page",
     .next = "the reason and message of each row, when there is time",
     .commands = "`runtime-watcher status -o wide`",
     .fires = "severity `info`; any of the counts of single runtimes > 0 for 30 min"},
    {.word = "EventsMissed",
     .meaning = "watchers dropped something that an operator had to be told, and tell that "
                "operator to resync the runtime",
     .next = "what these runtimes share: an operator that takes no events, a Watcher with too many "
             "objects (`rw_observation_unobserved_watches` on the runtime). "
             "`rw_event_losses_total` there counts what was dropped",
     .commands = "event `EventsMissed` of the Kyma, which names the operators; `runtime-watcher "
                 "status -o wide`, column LOSSES",
     .fires = "`rw_runtime_losses_total` increases by more than 1 % of the runtimes in 15 min"},
    {.word = "EventsLate",
     .meaning = "events are old when they arrive, by their senders' clocks",
     .next = "the runtimes with large values; all: gateway or listener short of CPU",
     .commands = "`runtime-watcher status -o wide`, column DELIVERY",
     .fires = "`rw_event_delivery_seconds`, 99th percentile > 1 s"},
    {.word = "ProbesSlow",
     .meaning = "the way from a runtime's API server to KCP is slow",
     .next = "the runtimes with large values; all: gateway or listener short of CPU",
     .commands = "`runtime-watcher status -o wide`",
     .fires = "`rw_probe_seconds`, 99th percentile > 20 s"},
    {.word = "HeartbeatsOfUnknownRuntimes",
     .meaning = "heartbeats with a runtime id that no Kyma has",
     .next =
         "a Kyma lacks the label `kyma-project.io/runtime-id`, or a removed runtime still sends",
     .commands = "log of the manager: `runtimeId`",
     .fires = "`rw_heartbeats_received_total{outcome=\"unknown\"}` > 1 % of all"},
    {.word = "SendersRejected",
     .meaning = "`--pin-san` rejected a sender (403)",
     .next = "the sender's certificate does not name the `skr-domain` of its Kyma: compare the "
             "Kyma's annotation with the Certificate's `dnsNames`",
     .commands = "log of the manager: peer and path",
     .fires = "`watcher_listener_failed_verification_requests_total` increases"},
    {.word = "ListenerErrors",
     .meaning = "requests were not answered with 200",
     .next = "401: `rw_listener_unidentified_requests_total{reason}`: `no_header`, "
             "`no_certificate`: the gateway does not forward the certificate; `untrusted_peer`: "
             "`--xfcc-trusted-proxies` lacks it; `several_certificates`: it appends to a header of "
             "its client, or a certificate's URI forges one. 503, 207: "
             "`rw_listener_rejected_events_total{reason}`; `share`: the runtime in the log sends "
             "more than is reconciled, the others are not affected; `full`: the reader of events "
             "is slow, see `rw_listener_pending_events` and `rw_listener_pending_seconds`",
     .commands = "log of the manager: status, reason, peer",
     .fires = "`watcher_listener_request_errors_total` > 1 % of `watcher_listener_requests_total`"},
    {.word = "EventsOfUnknownRuntimes",
     .meaning = "events of a runtime id that no Kyma has",
     .next =
         "a Kyma lacks the label `kyma-project.io/runtime-id`, or a removed runtime still sends",
     .commands = "log of the manager: `runtimeId`",
     .fires = "`rw_kyma_router_events_total{outcome=\"unknown\"}` > 1 % of all"},
};

inline constexpr explanation rotation_alerts[] = {
    {.word = "RuntimeCertificateNotReissued",
     .meaning = "the bundle grew 24 h ago, and the runtime's certificate is still the previous one",
     .next = "the issuer's error in the status; event `CertificateNotReissued` of the Kyma",
     .commands = "`kubectl get certificate -n istio-system KYMA-webhook-tls -o yaml`",
     .fires = "`lifecycle_mgr_self_signed_cert_not_renew{kyma_name}` = 1 for more than 1 % of the "
              "runtimes"},
    {.word = "GatewayCertificateExpires",
     .meaning = "the gateway's server certificate expires within 14 days",
     .next = "is there a new root (`kubectl get certificate -n istio-system klm-watcher`); which "
             "runtimes are missing",
     .commands = "`runtime-watcher status`: the line \"CA rotation\"",
     .fires = "`lifecycle_mgr_gateway_secret_server_cert_close_to_expiry` = 1"},
    {.word = "RotationBlocked",
     .meaning = "the rotation needs a person",
     .next = "repair what the message names: the root Secret, or a bundle of 100 CAs",
     .commands = "log: \"CA rotation needs attention\"; `kubectl describe secret -n istio-system "
                 "klm-istio-gateway`",
     .fires = "`rw_gateway_secret_phase{phase=~\"blocked|no_root\"}` = 1"},
    {.word = "RotationHeldUp",
     .meaning = "the switch to the new CA is due, and waits until its deadline: a fault in KCP, of "
                "the issuer or of the manager, or more runtimes fail than `--ca-excuse-percent`",
     .next = "repair what its reason and message name; each runtime's REASON in `runtime-watcher "
             "status`",
     .commands = "`runtime-watcher status`: condition `CARotationHeldUp`",
     .fires = "`rw_gateway_secret_held_up` = 1"},
    {.word = "RotationDeadlineNear",
     .meaning = "at the deadline the gateway switches without these runtimes; their events then "
                "wait until the manager reaches them",
     .next = "make them reachable, or accept it: what happens then "
             "(deploy/pki/README.md#the-rotation-and-its-deadline)",
     .commands =
         "`runtime-watcher status`: who is missing; `-o json` has each runtime's `rotation`",
     .fires = "`rw_gateway_secret_missing_runtimes` > 1 % of the runtimes, and 0 < "
              "`rw_gateway_secret_deadline_timestamp_seconds` - now < 3 days"},
};

inline constexpr explanation configuration_alerts[] = {
    {.word = "ConfigurationFails",
     .meaning = "KIM fails on a Runtime",
     .next = "the Runtime's conditions, KIM's log; the manager marks it again by itself",
     .commands = "`kubectl get events -n kcp-system --field-selector reason=ConfigurationFailed`",
     .fires = "`rw_config_sync_runtimes{state=\"failed\"}` > 1 % of all, and "
              "`rw_config_sync_state_since_timestamp_seconds` is 1 h ago (0: none waits)"},
    {.word = "ConfigurationStuck",
     .meaning = "KIM does not remove marks, or does not finish",
     .next = "check that KIM runs, and its load",
     .commands = "`kubectl get runtimes -n kcp-system`",
     .fires = "`rw_config_sync_runtimes{state=~\"outdated|marked|in_progress\"}` > 1 % of all, and "
              "`rw_config_sync_state_since_timestamp_seconds` is 1 h ago (0: none waits)"},
    {.word = "ContentOutdated",
     .meaning = "a runtime in mode `direct` lacks the newest content",
     .next = "condition `Compatible`: a rejection; `ConfigurationSynced`: `WaitingForRollout`, or "
             "unreachable",
     .commands = "`kubectl get runtimebootstrappers -n kcp-system`",
     .fires = "`rw_bootstrapper_content_runtimes{state=\"outdated\"}` > 1 % of all, and "
              "`rw_bootstrapper_content_state_since_timestamp_seconds` is 1 h ago"},
    {.word = "RuntimesWithoutBootstrapper",
     .meaning = "Runtimes in mode `direct` that no client writes to",
     .next = "create a RuntimeBootstrapper, or `--create-runtime-bootstrappers`",
     .commands = "events `BootstrapperUnmanaged`",
     .fires = "`rw_bootstrapper_content_runtimes{state=\"NoResource\"}` > 1 % of all"},
    {.word = "BootstrapperFails",
     .meaning = "the bootstrapper's pods fail, or a runtime rejects the content",
     .next = "condition `Installed` has the pod's reason",
     .commands = "`kubectl get runtimebootstrappers -n kcp-system`",
     .fires = "`rw_bootstrapper_runtimes{state=\"failed\"}` > 1 % of all"},
    {.word = "RolloutPaused",
     .meaning = "canaries failed, or the failure budget is exceeded; the other runtimes keep their "
                "content",
     .next = "correct the content (of `watcher`: `--skr-image` or another flag): the roll-out "
             "continues by itself. Or accept the failures with `spec.resume`",
     .commands = "`kubectl -n kcp-system describe runtimerollout bootstrapper`, or `watcher`: the "
                 "label `component` says which",
     .fires = "`rw_rollout_phase{phase=\"Paused\"}` = 1"},
    {.word = "RolloutClosed",
     .meaning = "the RuntimeRollout can't be used, so no new content reaches any runtime",
     .next = "`kubectl apply -f deploy/crds`, and the rights of `deploy/manager/rbac.yaml`; or "
             "`--rollout-none`",
     .commands =
         "condition RolloutClosed in `runtime-watcher status`, an event on the manager's Lease",
     .fires = "`rw_rollout_closed` = 1"},
    {.word = "RolloutBypassed",
     .meaning = "another client wrote the new content to runtimes before their turn",
     .next = "KIM's `--runtime-bootstrapper-enabled=false`",
     .commands = "condition `WavesBypassed`",
     .fires = "`rw_rollout_ahead_runtimes` > 1 % of `rw_rollout_runtimes`"},
};

inline constexpr explanation process_alerts[] = {
    {.word = "ProcessRestarts",
     .meaning = "a container restarts again and again",
     .next = "exit code 1 or 2: the last line of the previous log. OOMKilled: ProcessMemoryHigh",
     .commands = "`kubectl describe pod`: reason and exit code of its last state",
     .fires = "`process_start_time_seconds` changes more than twice in 1 h"},
    {.word = "ProcessMemoryHigh",
     .meaning = "the process may be ended for its memory; with other limits, change the alert",
     .next = "raise the limit (`--skr-memory-limit`), or lower `OBSERVE_OBJECTS`, `SET_CAPACITY`",
     .commands = "`runtime-watcher status`: number of runtimes; on a runtime "
                 "`rw_observation_objects`, `rw_dispatch_undelivered_events{state=\"known\"}`",
     .fires = "`process_resident_memory_bytes` > 80 % of the limit of `manager/deployment.yaml` or "
              "`skr/deployment.yaml`"},
    {.word = "ProcessFilesHigh",
     .meaning = "new connections will be rejected soon",
     .next = "a client that opens connections without end; otherwise raise the hard limit of open "
             "files (the process takes all of it): a manager needs one for each runtime",
     .commands = "`rw_http_open_connections{server}`, `rw_http_client_open_connections{client}`",
     .fires = "`process_open_fds` > 80 % of `process_max_fds`"},
};

}  // namespace rw
