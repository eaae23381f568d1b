#pragma once

#include "rw/reactors/shared/explanation.hpp"

namespace rw {

// What is known of each alert of deploy/monitoring, whose descriptions are these meanings.

inline constexpr explanation webhook_alerts[] = {
    {.word = "WatcherNotObserving",
     .meaning = "events of some Watchers come from reviews alone: what changes without a review is "
                "not sent",
     .causes = "the ServiceAccount `skr-webhook` lacks the right to watch, an egress NetworkPolicy "
               "cuts the API server off, or there are more objects than `OBSERVE_OBJECTS`. "
               "Wildcards, Secrets and subresources are never observed",
     .next = "grant the right, allow that egress, or raise `OBSERVE_OBJECTS`: the log says which",
     .commands =
         "On the runtime: `kubectl -n kyma-system logs deploy/skr-webhook` has \"resource not "
         "observed\", \"Watcher not observed\" or \"nothing observed\", with the reason",
     .fires = "`rw_observation_unobserved_watches` > 0"},
    {.word = "WatcherWatchLags",
     .meaning = "a watch had not shown a change within `CONFIRM_WAIT`; it was sent, and the "
                "resource listed again",
     .causes = "the runtime's API server, or its etcd, is overloaded",
     .next = "see the load of the runtime's API server; nothing is lost meanwhile",
     .commands = "On the runtime: `kubectl -n kyma-system logs deploy/skr-webhook` has \"watch "
                 "lags behind, listing again\"",
     .fires = "`rw_observation_confirmations_total{result=\"missed\"}` increases"},
    {.word = "WatcherUndelivered",
     .meaning = "changed objects wait for their event",
     .causes = "the receiver in KCP does not accept them, or the way there is broken",
     .next = "the alerts WatcherEventsWait, WatcherCircuitOpen, WatcherBacklog and "
             "WatcherEventsRejected say why",
     .commands = "On the runtime: `kubectl -n kyma-system logs deploy/skr-webhook`",
     .fires = "`rw_observation_undelivered` grows"},
    {.word = "WatcherEventsWait",
     .meaning = "an event waits since its object's latest change that long ago, or a resync has "
                "failed for "
                "as long",
     .causes = "of all operators: the gateway, an egress NetworkPolicy, certificates. Of one: its "
               "Service in KCP, or it rejects an object",
     .next = "`rw_dispatch_manager_oldest_event_seconds{manager}` names the operator, and "
             "`runtime-watcher status` says `EventsRefused`, with the object, where it takes all "
             "other events: see its log. All operators: `runtime-watcher doctor`",
     .commands = "On the runtime: `kubectl -n kyma-system logs deploy/skr-webhook` has \"request "
                 "to KCP failed; it will be repeated\", \"KCP did not accept events\" or \"cannot "
                 "connect to the upstream\"",
     .fires = "`rw_dispatch_oldest_event_seconds` > 60"},
    {.word = "WatcherHeartbeatsFail",
     .meaning = "KCP does not learn the watcher's state",
     .causes = "the gateway, an egress NetworkPolicy, or certificates; with "
               "`outcome=\"unsupported\"` no VirtualService routes `/v2/runtime-watcher/event`",
     .next = "`runtime-watcher doctor`, which checks the VirtualService "
             "`runtime-watcher-heartbeats` and the gateway",
     .commands = "On the runtime: `kubectl -n kyma-system logs deploy/skr-webhook` has \"heartbeat "
                 "not delivered\"",
     .fires = "`rw_heartbeats_total{outcome=\"failed\"}` increases"},
    {.word = "WatcherCircuitOpen",
     .meaning = "the webhook sends only probes to KCP or to an operator",
     .causes = "an operator or the gateway does not respond, or responds with 5xx",
     .next = "restore that receiver; the first success releases all events",
     .commands = "On the runtime: `kubectl -n kyma-system logs deploy/skr-webhook`; the metric "
                 "`rw_dispatch_manager_failures_total{manager}` names the receiver",
     .fires = "`rw_dispatch_open_circuits` > 0"},
    {.word = "WatcherBacklog",
     .meaning = "undelivered events of one operator accumulate",
     .causes = "the operator's listener is not ready, responds with 503, or is slower than its "
               "events come",
     .next = "see the operator's pods and their log; the events stay on the runtime until it takes "
             "them",
     .commands = "On the runtime: `kubectl -n kyma-system logs deploy/skr-webhook`",
     .fires = "`rw_dispatch_manager_events{manager}` grows"},
    {.word = "WatcherEventsLost",
     .meaning = "events were dropped, and their operators get a resync in their place",
     .causes = "`overflow`: the receiver was away for long. `removed`: a Watcher went while its "
               "changes waited. `undecided`: WatcherNotObserving",
     .next = "`overflow`: restore the receiver, or raise `SET_CAPACITY`, `OBSERVE_OBJECTS`, "
             "`CHANNEL_CAPACITY`. `rw_resyncs_owed` > 0: the receiver does not answer, or knows no "
             "resyncs (reactors/README.md#the-guarantee)",
     .commands =
         "On the runtime: `kubectl -n kyma-system logs deploy/skr-webhook` names the operator",
     .fires = "`rw_event_losses_total{reason}` increases"},
    {.word = "WatcherEventsRejected",
     .meaning = "a receiver, or a gateway on the way, rejects events; they are sent again",
     .causes = "an operator rejects an object; a gateway in a wrong state, with other routes or "
               "limits; versions that do not fit",
     .next = "`runtime-watcher status -o wide`: the reason `EventsRefused` names operator, object "
             "and status where other events are accepted: see the operator's log. Otherwise check "
             "the gateway's routes and limits, and the versions of both sides",
     .commands =
         "On the runtime: `kubectl -n kyma-system logs deploy/skr-webhook` has \"KCP did not "
         "accept events\", with the manager and the status (400, 405, 413 or another 4xx)",
     .fires = "`rw_dispatch_events_total{outcome=\"rejected\"}` increases"},
    {.word = "WatcherEventsAbandoned",
     .meaning =
         "the process ended before `DRAIN_TIMEOUT` sufficed to deliver accepted events. The "
         "counter rises as the process ends, so a scrape seldom sees it: the log is the surer sign",
     .causes = "KCP was slow or away while the process ended",
     .next = "the next process begins with a resync; find out why KCP was slow then",
     .commands = "On the runtime: `kubectl -n kyma-system logs deploy/skr-webhook --previous` has "
                 "\"events were not delivered before the end\"",
     .fires = "`rw_dispatch_events_total{outcome=\"abandoned\"}` increases"},
    {.word = "WatcherDeliverySlow",
     .meaning = "delivery is slow",
     .causes = "the gateway or the operator's listener is short of CPU; the network is slow",
     .next = "give the gateway or that listener more CPU",
     .commands = "Compare `rw_dispatch_batch_events` with the gateway's latency",
     .fires = "`rw_dispatch_delivery_seconds`, 99th percentile > 1 s"},
    {.word = "WatcherAdmissionOverflow",
     .meaning = "the channel was full for `ADMISSION_WAIT`; a write was delayed, and its event "
                "dropped where no watch is live",
     .causes = "the pod's CPU is throttled; a burst of writes",
     .next = "raise `--skr-cpu-limit` or `CHANNEL_CAPACITY`",
     .commands = "On the runtime: `kubectl -n kyma-system top pod -l app=skr-webhook` shows "
                 "whether the pod's CPU is throttled",
     .fires = "`rw_admission_overflow_total` increases"},
    {.word = "WatcherUnknownManager",
     .meaning = "a review names a manager that the managers' file lacks",
     .causes = "a webhook entry that the manager did not write, or one of a deleted Watcher",
     .next = "remove that entry; otherwise `runtime-watcher status` for that runtime",
     .commands = "On the runtime: `kubectl -n kyma-system logs deploy/skr-webhook` names manager "
                 "and peer; `kubectl -n kyma-system get validatingwebhookconfiguration skr-webhook "
                 "-o yaml` has the entries",
     .fires = "`rw_admission_unknown_manager_total` increases"},
    {.word = "WatcherUnidentifiedObjects",
     .meaning = "a review gives its object no valid name or kind",
     .causes = "a client that is no API server posts reviews",
     .next = "find the client that sends such reviews",
     .commands = "On the runtime: `kubectl -n kyma-system logs deploy/skr-webhook` names manager "
                 "and object",
     .fires = "`rw_admission_unidentified_total` increases"},
    {.word = "WatcherManagersFileRejected",
     .meaning = "the managers' file is malformed",
     .causes = "another client edited the Secret `skr-webhook-tls`",
     .next = "the manager restores it; `runtime-watcher status` says why it has not",
     .commands = "On the runtime: `kubectl -n kyma-system logs deploy/skr-webhook` names the field",
     .fires = "`rw_managers_reloads_total{outcome=\"refused\"}` increases"},
    {.word = "WatcherCertificateFilesRejected",
     .meaning = "certificate files are inconsistent; the previous ones are in use",
     .causes = "another client edited the Secret `skr-webhook-tls`; key and certificate are of "
               "different issues",
     .next = "the manager restores the Secret `skr-webhook-tls`; `runtime-watcher status` says why "
             "it has not",
     .commands = "On the runtime: `kubectl -n kyma-system logs deploy/skr-webhook` names the error",
     .fires = "`rw_tls_reloads_total{outcome=\"refused\"}` increases"},
    {.word = "WatcherCertificateExpires",
     .meaning = "the runtime's certificate is not renewed",
     .causes = "the issuer fails, or the manager does not reach the runtime",
     .next = "repair what the status of the Certificate names; `runtime-watcher status` for that "
             "runtime",
     .commands = "`kubectl get certificate -n istio-system KYMA-webhook-tls -o yaml`",
     .fires = "`rw_tls_certificate_not_after_timestamp_seconds` - now < 14 days"},
    {.word = "WatcherRejectsConnections",
     .meaning = "connections or requests are rejected",
     .causes = "`handshake`: the client does not trust the certificate; `memory`, `connections`, "
               "`flood`: a misbehaving client",
     .next = "stop the client that the log names; of the API server: `runtime-watcher status` for "
             "that runtime, reason CaBundleWrong",
     .commands =
         "On the runtime: `kubectl -n kyma-system logs deploy/skr-webhook` names peer and path",
     .fires = "`rw_http_rejected_total{reason}` increases"},
};

inline constexpr explanation manager_alerts[] = {
    {.word = "ManagerHasNoLeader",
     .meaning = "no replica leads, and events wait on the runtimes; or more than one says that it "
                "leads, of which the lease has one",
     .causes = "the pods do not start; KCP's API server is slow or away; a CPU limit throttles the "
               "leader; the right to the Lease is missing",
     .next = "see the logs of both pods, and `runtime-watcher doctor`; take a CPU limit away",
     .commands = "`kubectl get lease -n kcp-system runtime-watcher-manager -o yaml`",
     .fires = "`leader_election_master_status{name=\"runtime-watcher-manager\"}` is 1 of no "
              "replica, or of more than one, in a landscape that had a replica within a day"},
    {.word = "ManagerLeadershipLost",
     .meaning = "a leader lost its lease and ended, or it restarted. The process ends soon after "
                "the counter rises, so a scrape seldom sees that",
     .causes = "KCP's API server is slow; a CPU limit throttles the leader; the pod was evicted",
     .next = "see what KCP's API server was busy with; take a CPU limit away",
     .commands = "`kubectl -n kcp-system logs POD --previous` has \"leadership lost; the reactors "
                 "are being cancelled\"",
     .fires = "`rw_leader_election_lost_total` increases, or `process_start_time_seconds` of a "
              "leader changes"},
    {.word = "LeaseRequestsFail",
     .meaning = "requests for the lease fail; a leader that cannot renew it loses it",
     .causes = "KCP's API server is slow or away; the right to the Lease is missing",
     .next = "`runtime-watcher doctor` names a missing right; otherwise see KCP's API server",
     .commands = "The log of the manager has \"request for the lease failed\"",
     .fires = "`rw_leader_election_failures_total` increases by more than 3 in 10 min"},
    {.word = "ManagerStandsBack",
     .meaning = "the leader writes nothing: lifecycle-manager runs, or `--shadow` is set",
     .causes = "lifecycle-manager's Lease is held; a trial with `--shadow`",
     .next = "deploy/manager/MIGRATION.md",
     .commands = "`runtime-watcher status` has the condition `StandsBack`",
     .fires = "`rw_manager_stands_back` = 1"},
    {.word = "RecordsNotKept",
     .meaning = "what a new leader must know of the runtimes can't be read or written: whose each "
                "cluster is, and since when it fails",
     .causes = "the namespace of `--state-namespace` is missing, or the rights to its Secrets",
     .next = "create the namespace, and apply `manager/rbac.yaml`; no restart is needed",
     .commands = "The log of the manager has \"can't be kept\"",
     .fires = "`rw_watcher_installer_records_not_kept` = 1"},
    {.word = "InputInvalid",
     .meaning = "the Gateway with the address for events, or the gateway's CA bundle, is invalid "
                "or missing: runtimes keep the last valid one",
     .causes = "the Gateway or the Secret `klm-istio-gateway` was edited, deleted or renamed",
     .next = "repair what the message names; a leader that has seen no valid value installs "
             "nothing and removes nothing until then. No restart is needed",
     .commands = "`runtime-watcher status` has the condition `InputInvalid`, as has an event of "
                 "the manager's Lease",
     .fires = "`rw_watcher_installer_invalid_inputs` > 0"},
    {.word = "RuntimesContested",
     .meaning = "another client writes the watcher's objects on runtimes",
     .causes = "lifecycle-manager or a GitOps tool writes them as well",
     .next = "switch that client's part off; the manager resumes after `--contest-pause`",
     .commands = "`runtime-watcher status --reason Contested`",
     .fires = "`rw_watcher_installer_contested_runtimes` > 1 % of `rw_watcher_installer_runtimes`"},
    {.word = "RuntimesUnhealthy",
     .meaning = "runtimes do not respond in time; others are not affected",
     .causes =
         "one region or provider: its network. Single ones: hibernated or overloaded API servers",
     .next = "see what they share; single ones: their API servers",
     .commands = "`runtime-watcher status --state unreachable`",
     .fires = "`rw_watcher_installer_unhealthy_runtimes` or `rw_bootstrapper_unhealthy_runtimes` > "
              "1 % of `rw_watcher_installer_runtimes`"},
    {.word = "ReconcilesFail",
     .meaning = "reconciles of some objects fail all the time",
     .causes = "a right, an admission webhook, or an object that is invalid",
     .next = "repair what the error names",
     .commands =
         "The log of the manager has the error of each key once, and once more when it changes",
     .fires = "`rw_controller_failing_keys{controller}` for 1 h > 0, or > 1 % of the runtimes "
              "where the keys are runtimes"},
    {.word = "ReconcilesTimeOut",
     .meaning = "reconciles were cancelled at their time limit; they are repeated",
     .causes = "KCP's API server is slow; the manager is short of CPU",
     .next = "see both; take a CPU limit away",
     .commands = "The log of the manager has \"reconcile failed; it will be repeated until it "
                 "succeeds\" with the object",
     .fires = "`rw_controller_reconcile_timeouts_total{controller}` increases"},
    {.word = "WorkQueueStuck",
     .meaning = "a key is processed for longer than the time limit of a reconcile: a worker hangs",
     .causes = "a defect of the manager",
     .next = "restart the leader: the standby replica takes over. Report it with the log",
     .commands = "`kubectl -n kcp-system top pod`, and the log of the leader",
     .fires = "`workqueue_longest_running_processor_seconds{name}` > 600"},
    {.word = "WorkQueueFull",
     .meaning = "a work queue is full",
     .causes = "the manager is short of CPU; a resource that changes without end",
     .next = "give it more CPU; find that resource by the queue's name",
     .commands = "The metric `workqueue_depth{name}` shows which queue it is",
     .fires = "`workqueue_refused_total` increases"},
    {.word = "ApiRequestsFail",
     .meaning = "requests of the manager to KCP's API server fail",
     .causes = "401, 403: credentials and rights. 429, 5xx: the API server's load. Connections: "
               "the network",
     .next = "`runtime-watcher doctor` names missing rights; otherwise see KCP's API server",
     .commands = "`runtime-watcher doctor`; the log of the manager has \"a request to the API "
                 "server is tried again\"",
     .fires = "more than 5 % of `rw_kube_requests_total{client=~\"kcp.*\"}` have a `code` of 401, "
              "403, 429, 5xx, or of a connection that fails"},
    {.word = "FleetOutage",
     .meaning =
         "more than 5 % of the runtimes, and more than one, or all, are unreachable, not in place, "
         "silent or degraded at once, not counting those whose events only an operator keeps "
         "waiting: the cause is in KCP, or in a region. Events wait on the runtimes meanwhile",
     .causes = "the gateway, its certificate, the VirtualService `runtime-watcher-heartbeats`; a "
               "region, a provider; an image that can't be pulled",
     .next = "repair what the runtimes of a cause share. `runtime-watcher doctor` judges by what "
             "it finds itself, and names the difference",
     .commands = "`runtime-watcher status`: its last lines are the verdict, with the causes and "
                 "the next step of each",
     .fires = "`rw_fleet_verdict{verdict=\"outage\"}` = 1 for 5 min, and "
              "`rw_fleet_verdict_timestamp_seconds` is of the last minute"},
    {.word = "FleetDegraded",
     .meaning = "more than 1 % of the runtimes are ill, the landscape has a fault, such as a "
                "paused roll-out, or the leader has not looked at the runtimes",
     .causes =
         "an operator that accepts no events; a paused roll-out; a missing right; single regions",
     .next = "the reason of each cause: `runtime-watcher explain REASON`; `runtime-watcher status "
             "--reason REASON -o wide` lists its runtimes",
     .commands = "`runtime-watcher status`",
     .fires = "`rw_fleet_verdict{verdict=~\"degraded|unknown\"}` = 1 for 30 min, and "
              "`rw_fleet_verdict_timestamp_seconds` is of the last minute"},
    {.word = "ObjectiveBurnsFast",
     .meaning = "at this rate the month's budget of 0.1 % is spent within two days: path, the "
                "latest heartbeat or probe of these runtimes is not in order; delivery, the latest "
                "took a second or more",
     .causes = "path: the causes of the verdict. delivery: those of EventsLate",
     .next = "as for the causes that `runtime-watcher status` names",
     .commands = "`runtime-watcher status -o wide` has these runtimes in its first rows, with the "
                 "time in DELIVERY",
     .fires =
         "of `rw_fleet_sli_runtimes{sli}` more than 1.44 % were not `good` in the last 30 min and "
         "in the last 5 min, and there is no outage, nor was one paged in the last 10 min"},
    {.word = "ObjectiveBurnsSlowly",
     .meaning = "at this rate the month's budget of 0.1 % is spent within five days",
     .causes = "as of ObjectiveBurnsFast, of fewer runtimes",
     .next = "as for ObjectiveBurnsFast, within the working day",
     .commands = "`runtime-watcher status -o wide` has these runtimes in its first rows, with the "
                 "time in DELIVERY",
     .fires = "of `rw_fleet_sli_runtimes{sli}` more than 0.6 % were not `good` in the last 6 h and "
              "in the last 30 min"},
    {.word = "FleetVerdictOld",
     .meaning = "the leader does not judge its runtimes: it hangs. It is not known how they are",
     .causes = "the leader is short of CPU, or has a defect",
     .next = "restart the leader: the standby replica takes over. Report it with the log",
     .commands = "`kubectl -n kcp-system top pod`, and the log of the leader",
     .fires = "`rw_fleet_verdict_timestamp_seconds` is older than a minute for 5 min"},
    {.word = "RuntimesLongTail",
     .meaning = "single runtimes of many are always ill: unreachable, silent, degraded, contested, "
                "or without their configuration. It does not page",
     .causes = "faults of the runtimes' own: hibernated clusters, full nodes, policies",
     .next = "the reason and message of each row, when there is time",
     .commands = "`runtime-watcher status -o wide`",
     .fires = "severity `info`; any of the counts of single runtimes > 0 for 30 min"},
    {.word = "EventsMissed",
     .meaning = "watchers dropped something that an operator had to be told, and tell that "
                "operator to resync the runtime",
     .causes = "what these runtimes share: an operator that takes no events, a Watcher with too "
               "many objects (`rw_observation_unobserved_watches` on the runtime)",
     .next = "restore that operator, or narrow that Watcher; `rw_event_losses_total` on the "
             "runtime counts what was dropped",
     .commands = "`runtime-watcher status -o wide` has the number in column LOSSES, and the event "
                 "`EventsMissed` of the Kyma names the operators",
     .fires = "`rw_runtime_losses_total` increases by more than 1 % of the runtimes in 15 min"},
    {.word = "EventsLate",
     .meaning = "events are old when they arrive, by their senders' clocks",
     .causes = "some runtimes: their network, or a clock that is wrong. All: the gateway or the "
               "listener is short of CPU",
     .next = "see the runtimes with large values; all: give the gateway or the manager more CPU",
     .commands = "`runtime-watcher status -o wide` has the time in column DELIVERY",
     .fires = "`rw_event_delivery_seconds`, 99th percentile > 1 s"},
    {.word = "ProbesSlow",
     .meaning = "the way from a runtime's API server to KCP is slow",
     .causes =
         "some runtimes: overloaded API servers. All: the gateway or the listener is short of CPU",
     .next = "see the runtimes with large values; all: give the gateway or the manager more CPU",
     .commands = "`runtime-watcher status -o wide`",
     .fires = "`rw_probe_seconds`, 99th percentile > 20 s"},
    {.word = "HeartbeatsOfUnknownRuntimes",
     .meaning = "heartbeats with a runtime id that no Kyma has",
     .causes =
         "a Kyma lacks the label `kyma-project.io/runtime-id`, or a removed runtime still sends",
     .next = "set the label, or take the watcher off that runtime",
     .commands = "The log of the manager has the `runtimeId`",
     .fires = "`rw_heartbeats_received_total{outcome=\"unknown\"}` > 1 % of all"},
    {.word = "SendersRejected",
     .meaning = "`--pin-san` rejected a sender (403)",
     .causes = "the sender's certificate does not name the `skr-domain` of its Kyma",
     .next = "compare the Kyma's annotation with the Certificate's `dnsNames`",
     .commands = "The log of the manager has peer and path",
     .fires = "`watcher_listener_failed_verification_requests_total` increases"},
    {.word = "ListenerErrors",
     .meaning = "requests were not answered with 200",
     .causes =
         "401: `rw_listener_unidentified_requests_total{reason}`: `no_header`, `no_certificate`: "
         "the gateway does not forward the certificate; `untrusted_peer`: `--xfcc-trusted-proxies` "
         "lacks it; `several_certificates`: it appends to a header of its client, or a "
         "certificate's URI forges one. 503, 207: `rw_listener_rejected_events_total{reason}`; "
         "`share`: the runtime in the log sends more than is reconciled, the others are not "
         "affected; `full`: the reader of events is slow",
     .next = "401: set the gateway's forwarding, or the flag. 503, 207: see that runtime, or "
             "`rw_listener_pending_events` and `rw_listener_pending_seconds`",
     .commands = "The log of the manager has status, reason and peer",
     .fires = "`watcher_listener_request_errors_total` > 1 % of `watcher_listener_requests_total`"},
    {.word = "EventsOfUnknownRuntimes",
     .meaning = "events of a runtime id that no Kyma has",
     .causes =
         "a Kyma lacks the label `kyma-project.io/runtime-id`, or a removed runtime still sends",
     .next = "set the label, or take the watcher off that runtime",
     .commands = "The log of the manager has the `runtimeId`",
     .fires = "`rw_kyma_router_events_total{outcome=\"unknown\"}` > 1 % of all"},
};

inline constexpr explanation rotation_alerts[] = {
    {.word = "RuntimeCertificateNotReissued",
     .meaning = "the bundle grew 24 h ago, and the runtime's certificate is still the previous one",
     .causes = "the issuer fails, or its quota is spent",
     .next = "repair what the status of the Certificate names; event `CertificateNotReissued` of "
             "the Kyma",
     .commands = "`kubectl get certificate -n istio-system KYMA-webhook-tls -o yaml`",
     .fires = "`lifecycle_mgr_self_signed_cert_not_renew{kyma_name}` = 1 for more than 1 % of the "
              "runtimes"},
    {.word = "GatewayCertificateExpires",
     .meaning = "the gateway's server certificate expires within 14 days",
     .causes = "no new root was issued, or the rotation waits for runtimes",
     .next = "`kubectl get certificate -n istio-system klm-watcher` shows whether there is a new "
             "root; otherwise make the runtimes that are missing reachable",
     .commands = "`runtime-watcher status` has the line \"CA rotation\"",
     .fires = "`lifecycle_mgr_gateway_secret_server_cert_close_to_expiry` = 1"},
    {.word = "RotationBlocked",
     .meaning = "the rotation needs a person",
     .causes = "the root Secret was deleted or damaged; a bundle of 100 CAs",
     .next = "repair what the message names",
     .commands = "`kubectl describe secret -n istio-system klm-istio-gateway`; the log of the "
                 "manager has \"CA rotation needs attention\"",
     .fires = "`rw_gateway_secret_phase{phase=~\"blocked|no_root\"}` = 1"},
    {.word = "RotationHeldUp",
     .meaning = "the switch to the new CA is due, and waits until its deadline: a fault in KCP, of "
                "the issuer or of the manager, or more runtimes fail than `--ca-excuse-percent`",
     .causes = "KCP's API server, the issuer, or a manager without CPU; a region is down",
     .next = "repair what its reason and message name; each runtime's REASON in `runtime-watcher "
             "status`",
     .commands = "`runtime-watcher status` has the condition `CARotationHeldUp`",
     .fires = "`rw_gateway_secret_held_up` = 1"},
    {.word = "RotationDeadlineNear",
     .meaning = "at the deadline the gateway switches without these runtimes; their events then "
                "wait until the manager reaches them",
     .causes = "these runtimes are unreachable, or left alone",
     .next = "make them reachable, or accept it: what happens then "
             "(deploy/pki/README.md#the-rotation-and-its-deadline)",
     .commands = "`runtime-watcher status` names the runtimes that are missing; `-o json` has the "
                 "`rotation` of each",
     .fires = "`rw_gateway_secret_missing_runtimes` > 1 % of the runtimes, and 0 < "
              "`rw_gateway_secret_deadline_timestamp_seconds` - now < 3 days"},
};

inline constexpr explanation configuration_alerts[] = {
    {.word = "ConfigurationFails",
     .meaning = "KIM fails on a Runtime",
     .causes = "the content is invalid; KIM lacks a right on the runtime",
     .next = "see the Runtime's conditions and KIM's log; the manager marks it again by itself",
     .commands = "`kubectl get events -n kcp-system --field-selector reason=ConfigurationFailed`",
     .fires = "`rw_config_sync_runtimes{state=\"failed\"}` > 1 % of all, and "
              "`rw_config_sync_state_since_timestamp_seconds` is 1 h ago (0: none waits)"},
    {.word = "ConfigurationStuck",
     .meaning = "KIM does not remove marks, or does not finish",
     .causes = "KIM does not run, or is overloaded",
     .next = "check that KIM runs, and its load",
     .commands = "`kubectl get runtimes -n kcp-system`",
     .fires = "`rw_config_sync_runtimes{state=~\"outdated|marked|in_progress\"}` > 1 % of all, and "
              "`rw_config_sync_state_since_timestamp_seconds` is 1 h ago (0: none waits)"},
    {.word = "ContentOutdated",
     .meaning = "a runtime in mode `direct` lacks the newest content",
     .causes =
         "the runtime rejects the content, waits for its turn in a roll-out, or is unreachable",
     .next = "condition `Compatible` has a rejection; `ConfigurationSynced` has "
             "`WaitingForRollout`: `runtime-watcher rollout status bootstrapper`",
     .commands = "`kubectl get runtimebootstrappers -n kcp-system`",
     .fires = "`rw_bootstrapper_content_runtimes{state=\"outdated\"}` > 1 % of all, and "
              "`rw_bootstrapper_content_state_since_timestamp_seconds` is 1 h ago"},
    {.word = "RuntimesWithoutBootstrapper",
     .meaning = "Runtimes in mode `direct` that no client writes to",
     .causes = "no client created it, and `--create-runtime-bootstrappers` is not set",
     .next = "create a RuntimeBootstrapper, or `--create-runtime-bootstrappers`",
     .commands = "`kubectl get events -n kcp-system --field-selector reason=BootstrapperUnmanaged`",
     .fires = "`rw_bootstrapper_content_runtimes{state=\"NoResource\"}` > 1 % of all"},
    {.word = "BootstrapperFails",
     .meaning = "the bootstrapper's pods fail, or a runtime rejects the content",
     .causes = "an image, a setting or an object of the content",
     .next = "correct the content; condition `Installed` has the pod's reason",
     .commands = "`kubectl get runtimebootstrappers -n kcp-system`",
     .fires = "`rw_bootstrapper_runtimes{state=\"failed\"}` > 1 % of all"},
    {.word = "RolloutPaused",
     .meaning =
         "the roll-out of the watcher or of the bootstrapper is paused; the runtimes that it "
         "has not reached keep their content",
     .causes = "a person paused it (`ByHand`); or canaries failed, the failure budget is exceeded, "
               "or a step was not verified: an image, a flag, a manifest that the runtimes reject",
     .next = "`ByHand`: `runtime-watcher rollout resume COMPONENT`. After failures correct the "
             "content (of `watcher`: `--skr-image` or another flag), and the roll-out continues by "
             "itself; or accept them with `runtime-watcher rollout resume COMPONENT`",
     .commands = "`kubectl -n kcp-system describe runtimerollout bootstrapper`, or `watcher`: the "
                 "label `component` says which",
     .fires = "`rw_rollout_phase{phase=\"Paused\"}` = 1"},
    {.word = "RolloutClosed",
     .meaning = "the RuntimeRollout can't be used, so no new content reaches any runtime",
     .causes = "the definition of RuntimeRollouts is missing or older than the manager; a right is "
               "missing",
     .next = "`kubectl apply -f deploy/crds`, and the rights of `deploy/manager/rbac.yaml`; or "
             "`--rollout-none`",
     .commands = "`runtime-watcher status` has the condition `RolloutClosed`, as has an event of "
                 "the manager's Lease",
     .fires = "`rw_rollout_closed` = 1"},
    {.word = "RolloutBypassed",
     .meaning = "another client wrote the new content to runtimes before their turn",
     .causes = "KIM's part is not switched off",
     .next = "KIM's `--runtime-bootstrapper-enabled=false`",
     .commands =
         "`kubectl -n kcp-system describe runtimerollouts` has the condition `WavesBypassed`",
     .fires = "`rw_rollout_ahead_runtimes` > 1 % of `rw_rollout_runtimes`"},
};

inline constexpr explanation process_alerts[] = {
    {.word = "ProcessRestarts",
     .meaning = "a container restarts again and again",
     .causes = "a setting that is rejected (exit code 2), a failure at the start (1), or its "
               "memory limit (OOMKilled)",
     .next = "exit code 1 or 2: correct what the last line of the previous log names. OOMKilled: "
             "ProcessMemoryHigh",
     .commands = "`kubectl describe pod` has reason and exit code of its last state",
     .fires = "`process_start_time_seconds` changes more than twice in 1 h"},
    {.word = "ProcessMemoryHigh",
     .meaning = "the process may be ended for its memory; with other limits, change the alert",
     .causes = "more runtimes or observed objects than the limit is for",
     .next = "raise the limit (`--skr-memory-limit`), or lower `OBSERVE_OBJECTS`, `SET_CAPACITY`",
     .commands =
         "`runtime-watcher status` has the number of runtimes; the metrics of a webhook have "
         "`rw_observation_objects` and `rw_dispatch_undelivered_events{state=\"known\"}`",
     .fires = "`process_resident_memory_bytes` > 80 % of the limit of `manager/deployment.yaml` or "
              "`skr/deployment.yaml`"},
    {.word = "ProcessFilesHigh",
     .meaning = "new connections will be rejected soon",
     .causes =
         "a client that opens connections without end; a hard limit below the number of runtimes",
     .next = "stop that client; otherwise raise the hard limit of open files (the process takes "
             "all of it): a manager needs one for each runtime",
     .commands = "The metrics `rw_http_open_connections{server}` and "
                 "`rw_http_client_open_connections{client}` name the other side",
     .fires = "`process_open_fds` > 80 % of `process_max_fds`"},
};

}  // namespace rw
