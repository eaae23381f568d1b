#include "reactors/watcher_installer/pods.hpp"

#include "k8s/objects/types.hpp"

#include <boost/json/array.hpp>

namespace rw::watcher_installer {
namespace {

namespace json = boost::json;
using k8s::find_string;

std::int64_t number(const json::value& in, std::initializer_list<std::string_view> path) {
  const auto* value = k8s::find(in, path);
  return value != nullptr && value->is_int64() ? value->get_int64() : 0;
}

void take_waiting(const json::value& pod, std::string_view statuses, waiting& into) {
  const auto* list = k8s::find(pod, {"status", statuses});
  if (list == nullptr || !list->is_array()) return;
  for (const auto& one : list->get_array()) {
    const auto reason = find_string(one, {"state", "waiting", "reason"});
    if (reason.empty()) continue;
    const auto starts = [](std::string_view text) {
      return text.empty() || text == "ContainerCreating" || text == "PodInitializing";
    };
    if (!starts(into.reason)) return;
    into.reason = reason;
    into.message = find_string(one, {"state", "waiting", "message"});
  }
}

void take_unscheduled(const json::value& pod, waiting& into) {
  const auto scheduled = k8s::find_condition(pod, "PodScheduled");
  if (!scheduled || scheduled->status != "False" || !into.reason.empty()) return;
  into = {scheduled->reason, scheduled->message};
}

}  // namespace

bool has_ready_pod(const json::value& deployment) {
  return number(deployment, {"status", "readyReplicas"}) > 0;
}

waiting waiting_of(const json::value& pod_list) {
  waiting out;
  const auto* items = k8s::find(pod_list, {"items"});
  if (items != nullptr && items->is_array()) {
    for (const auto& pod : items->get_array()) {
      take_waiting(pod, "initContainerStatuses", out);
      take_waiting(pod, "containerStatuses", out);
      take_unscheduled(pod, out);
    }
    if (out.reason.empty() && !items->get_array().empty()) {
      out = {"PodNotReady", "no pod is ready yet"};
    }
  }
  if (out.reason.empty()) out = {"NoPods", "there is no pod yet"};
  return out;
}

}  // namespace rw::watcher_installer
