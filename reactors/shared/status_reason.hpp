#pragma once

#include "rw/k8s/objects/failure.hpp"

#include <cstdint>
#include <optional>
#include <ostream>
#include <string_view>

namespace rw {

/// Why a runtime is not as it should be: the one word that `status`, `doctor`, `/runtimes`, the
/// page and Events show as REASON, whoever found it. Sentences are the message beside it.
enum class status_reason : std::uint8_t {
  none,

  // The way to the runtime's API server.
  access_missing,
  access_rejected,
  runtime_unreachable,
  runtime_slow,

  // What it says to requests.
  access_denied,
  namespace_terminating,
  write_rejected,
  request_failed,
  removal_failed,
  contested,
  left_alone,
  duplicate_runtime,

  // What the manager itself lacks, or does.
  gateway_invalid,
  ca_bundle_invalid,
  watchers_withdrawn,
  certificate_invalid,
  certificate_not_requested,
  certificate_pending,
  content_rejected,
  rights_missing,
  would_write,

  // Pods; as kubelet and the Deployment's controller name it, where they do.
  no_certificate,
  installing,
  no_pods,
  failed_create,
  progress_deadline_exceeded,
  pod_not_ready,
  container_creating,
  pod_initializing,
  pod_restarted,
  unschedulable,
  crash_loop_back_off,
  oom_killed,
  image_pull_back_off,
  err_image_pull,
  invalid_image_name,
  create_container_config_error,
  create_container_error,
  run_container_error,
  pod_failing,

  // Heartbeats.
  no_heartbeat,
  certificate_expires,
  events_wait,
  events_refused,
  watch_not_live,

  // Probes.
  probe_not_confirmed,
  probe_rejected,
  certificate_expired,
  certificate_name_wrong,
  ca_bundle_wrong,
  no_endpoints,
  service_missing,
  webhook_refused,
  webhook_timeout,
  webhook_call_failed,
  webhook_not_called,
  route_missing,
  listener_unavailable,
  gateway_unreachable,
};

/// Reason of a kind of KCP's that is not served, which is none of a runtime's.
inline constexpr std::string_view kind_not_served = "KindNotServed";
/// Likewise: the definition of a kind of ours is older than this version.
inline constexpr std::string_view definition_outdated = "DefinitionOutdated";

/// Returns the word in CamelCase; empty for `none`.
std::string_view to_string(status_reason of) noexcept;

/// The reason that a word names; nothing: none does.
std::optional<status_reason> parse_status_reason(std::string_view word) noexcept;

/// Of a container's or pod's reason, which the runtime's owner may have made up: `pod_failing` if
/// it is none of those above, and `none` if it is empty.
status_reason reason_of_pod(std::string_view word) noexcept;

/// Of a request to a runtime that failed.
status_reason reason_of_failure(const k8s::failure& error) noexcept;

/// True if the manager gets no response of the runtime, or has no access that is accepted.
bool is_unreachable(status_reason of) noexcept;

/// True if it passes by itself where all is well, so that it is no warning.
bool is_progress(status_reason of) noexcept;

inline bool operator==(status_reason a, std::string_view word) noexcept {
  return to_string(a) == word;
}
inline std::ostream& operator<<(std::ostream& out, status_reason of) {
  return out << to_string(of);
}

}  // namespace rw
