#include "rw/reactors/runtime_controller/workload.hpp"

#include "rw/core/text.hpp"
#include "rw/k8s/objects/manifests.hpp"
#include "rw/k8s/objects/types.hpp"

#include <boost/json/array.hpp>
#include <boost/json/object.hpp>

#include <algorithm>
#include <array>
#include <utility>

namespace rw {
namespace {

namespace asio = boost::asio;
namespace json = boost::json;
using k8s::find_number;
using k8s::find_string;

/// On pods and ReplicaSets of a Deployment: which state of its template they are of.
constexpr std::string_view template_hash_label = "pod-template-hash";
constexpr std::string_view revision_annotation = "deployment.kubernetes.io/revision";
/// Of a container that used more memory than its limit (kubelet).
constexpr std::string_view out_of_memory = "OOMKilled";
/// Of containers that wait for what may come by itself. (ErrImagePull becomes ImagePullBackOff.)
constexpr std::array<std::string_view, 3> passing_reasons = {"ContainerCreating", "PodInitializing",
                                                             "ErrImagePull"};

const json::array& elements(const json::value& in, std::initializer_list<std::string_view> path) {
  static const json::array none;
  const auto* const found = k8s::find_array(in, path);
  return found == nullptr ? none : *found;
}

/// What the text says reaches Events and terminals in KCP, and a tenant may have written it.
std::string text_of(const json::value& in, std::initializer_list<std::string_view> path) {
  return core::printable(find_string(in, path));
}

/// Bytes of what a container said at its end, which is up to 2 KiB of its log.
constexpr std::size_t longest_end = 300;

/// How a container last ended: "it ended with code 2: KCP_ADDR is required". Empty: it never did.
std::string last_end(const json::value& container) {
  const auto* const ended = k8s::find(container, {"lastState", "terminated"});
  if (ended == nullptr || !ended->is_object()) return {};
  auto out = "it ended with code " + std::to_string(find_number(*ended, {"exitCode"}));
  const auto message = text_of(*ended, {"message"});
  auto said = core::trimmed(message);
  if (said.size() > longest_end) said = said.substr(said.size() - longest_end);
  return said.empty() ? out : out + ": " + std::string(said);
}

pod_state container_state(const json::value& container) {
  const auto* const ready = k8s::find(container, {"ready"});
  const auto waits = text_of(container, {"state", "waiting", "reason"});
  const auto message = text_of(container, {"state", "waiting", "message"});
  pod_state out{.reason = waits,
                .message = message,
                .container = ", container " + text_of(container, {"name"})};
  out.lasting =
      !waits.empty() && std::ranges::find(passing_reasons, waits) == passing_reasons.end();
  const bool is_ready = ready != nullptr && *ready == json::value(true);
  const bool restarted = find_number(container, {"restartCount"}) > 0;
  if (is_ready || (!out.lasting && !restarted)) return out;
  if (!out.lasting) out.reason = "PodRestarted";
  out.lasting = true;
  const auto end = last_end(container);
  if (end.empty()) return out;
  const auto killed =
      find_string(container, {"lastState", "terminated", "reason"}) == out_of_memory;
  if (killed) out.reason = out_of_memory;
  out.message = end;
  if (killed && !waits.empty()) out.message += ", in " + waits;
  if (!message.empty()) out.message += (killed ? ": " : "; ") + message;
  return out;
}

}  // namespace

bool is_rolled_out(const json::value& deployment) {
  if (find_number(deployment, {"status", "readyReplicas"}) < 1) return false;
  if (k8s::find(deployment, {"status", "observedGeneration"}) == nullptr) return true;
  const auto replicas = find_number(deployment, {"status", "replicas"});
  return find_number(deployment, {"status", "observedGeneration"}) >=
             k8s::generation_of(deployment) &&
         find_number(deployment, {"status", "updatedReplicas"}) == replicas &&
         find_number(deployment, {"status", "readyReplicas"}) == replicas;
}

namespace {

/// The condition Progressing of a Deployment whose controller no longer waits for the pods.
std::optional<k8s::condition> expired_deadline(const json::value& deployment) {
  auto progressing = k8s::find_condition(deployment, "Progressing");
  const bool expired = progressing && progressing->status == "False" &&
                       progressing->reason == "ProgressDeadlineExceeded";
  return expired ? std::move(progressing) : std::nullopt;
}

}  // namespace

bool has_given_up(const json::value& deployment) {
  return expired_deadline(deployment).has_value();
}

std::optional<k8s::selection> pods_of(const json::value& deployment) {
  const auto* const labels = k8s::find(deployment, {"spec", "selector", "matchLabels"});
  if (labels == nullptr || !labels->is_object()) return std::nullopt;
  k8s::selection out{.ns = k8s::key_of(deployment).ns};
  for (const auto& [name, value] : labels->get_object()) {
    if (!value.is_string()) continue;
    out.labels +=
        (out.labels.empty() ? "" : ",") + std::string(name) + "=" + std::string(value.get_string());
  }
  return out;
}

std::vector<std::string> names_of_pods(const json::value& pods) {
  std::vector<std::string> out;
  for (const auto& pod : elements(pods, {"items"})) {
    const auto phase = find_string(pod, {"status", "phase"});
    if (phase != "Succeeded" && phase != "Failed") out.push_back(k8s::key_of(pod).name);
  }
  return out;
}

std::string pod_state::error() const {
  if (!lasting) return {};
  return (container.empty() ? "" : container + ": ") + reason +
         (message.empty() ? "" : ": " + message);
}

pod_state inspect_pods(const json::value& pods, std::string_view template_hash) {
  pod_state out{.reason = "NoPods", .message = "there is no pod yet"};
  int weight = 0;
  const auto note = [&](int of, pod_state now) {
    if (of > weight) out = std::move(now);
    weight = std::max(weight, of);
  };
  for (const auto& pod : elements(pods, {"items"})) {
    const auto hash = k8s::label(pod, template_hash_label);
    if (k8s::is_being_deleted(pod) || (!template_hash.empty() && hash != template_hash)) continue;
    note(1, {.reason = "PodNotReady", .message = "no pod is ready yet"});
    const auto scheduled = k8s::find_condition(pod, "PodScheduled");
    if (scheduled && scheduled->status == "False") {
      note(2, {.reason = core::printable(scheduled->reason),
               .message = core::printable(scheduled->message)});
    }
    for (const auto* list : {"initContainerStatuses", "containerStatuses"}) {
      for (const auto& each : elements(pod, {"status", list})) {
        auto now = container_state(each);
        now.container = "pod " + text_of(pod, {"metadata", "name"}) + now.container;
        if (!now.reason.empty()) note(now.lasting ? 4 : 3, std::move(now));
      }
    }
  }
  return out;
}

pod_state inspect_pods(const json::value& deployment, const json::value& pods,
                       std::string_view template_hash) {
  auto out = inspect_pods(pods, template_hash);
  const auto take = [&out](const k8s::condition& from) {
    out.reason = core::printable(from.reason);
    out.message = core::printable(from.message);
  };
  const auto refused = k8s::find_condition(deployment, "ReplicaFailure");
  if (out.reason == "NoPods" && refused && refused->status == "True") take(*refused);
  const auto expired = expired_deadline(deployment);
  if (!expired) return out;
  out.lasting = true;
  if (out.reason == "NoPods" || out.reason == "PodNotReady") take(*expired);
  return out;
}

asio::awaitable<k8s::result<pod_state>> inspect_pods(k8s::client* api, json::value deployment) {
  auto all = pods_of(deployment);
  if (is_rolled_out(deployment) || !all) co_return pod_state();
  auto sets = *all;
  sets.metadata_only = true;
  const k8s::resource_type replica_sets{{"apps", "v1", "ReplicaSet"}, "replicasets"};
  const auto found = co_await api->list(replica_sets, std::move(sets));
  if (!found && !found.error().is(k8s::errc::not_found)) co_return found.error();
  std::string hash;
  const auto revision = k8s::annotation(deployment, revision_annotation);
  const json::value none;
  for (const auto& each : elements(found ? *found : none, {"items"})) {
    if (revision.empty() || k8s::annotation(each, revision_annotation) != revision) continue;
    hash = k8s::label(each, template_hash_label);
  }
  const auto pods = co_await api->list(*k8s::well_known_type("v1", "Pod"), std::move(*all));
  if (!pods) co_return pods.error();
  auto out = inspect_pods(deployment, *pods, hash);
  // Until then they are of what the Deployment was before.
  const auto observed = find_number(deployment, {"status", "observedGeneration"});
  out.lasting = out.lasting && observed >= k8s::generation_of(deployment);
  co_return out;
}

}  // namespace rw
