// What the view says of heartbeats.

#include "rw/k8s/objects/types.hpp"
#include "rw/reactors/cli/manager_view.hpp"

#include <chrono>
#include <cstddef>
#include <map>

namespace rw::cli {

liveness manager_app::view::liveness_of(const heartbeats::runtime_health* known) {
  return known == nullptr ? liveness::unknown : known->state;
}

boost::json::object manager_app::view::heartbeat_counts() const {
  std::map<liveness, std::size_t> counts;
  manager_.kymas_.objects().for_each([&](const k8s::object& kyma) {
    ++counts[liveness_of(manager_.heartbeats_->health().find(kyma.key()))];
  });
  boost::json::object out;
  for (const auto state :
       {liveness::live, liveness::degraded, liveness::silent, liveness::unknown}) {
    out[to_string(state)] = counts[state];
  }
  return out;
}

void manager_app::view::describe_heartbeat(const k8s::object_key& kyma,
                                           boost::json::object& row) const {
  const auto* const known = manager_.heartbeats_->health().find(kyma);
  auto& out = row["heartbeat"].emplace_object();
  out["state"] = to_string(liveness_of(known));
  if (known == nullptr) return;
  out["since"] = k8s::format_time(known->since);
  if (known->reason != status_reason::none) out["reason"] = to_string(known->reason);
  if (!known->message.empty()) out["message"] = known->message;
  if (!known->waits_for.empty()) out["waitsFor"] = known->waits_for;
  out["losses"] = known->losses;
  if (!known->loss.empty()) out["latestLoss"] = known->loss;
  if (known->probe) {
    auto& probe = out["probe"].emplace_object();
    probe["last"] = k8s::format_time(*known->probed);
    probe["stage"] = to_string(known->probe->stage);
    if (const auto reason = known->probe->reason; reason != status_reason::none) {
      probe["reason"] = to_string(reason);
    }
    if (!known->probe->message.empty()) probe["message"] = known->probe->message;
    if (known->probe->took) {
      probe["milliseconds"] = *known->probe->took / std::chrono::milliseconds(1);
    }
  }
  if (!known->heard) return;
  const auto& last = known->last;
  out["last"] = k8s::format_time(*known->heard);
  out["version"] = last.version;
  out["source"] = last.source;
  if (last.events.abandoned > 0) out["abandonedEvents"] = last.events.abandoned;
  out["oldestUndeliveredMilliseconds"] = last.oldest_undelivered.count();
  if (last.delivery) out["deliveryMilliseconds"] = last.delivery->count();
}

}  // namespace rw::cli
