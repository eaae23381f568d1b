// The manager's view at /runtimes.

#include "k8s/objects/types.hpp"
#include "reactors/cli/manager_app.hpp"
#include "reactors/cli/manager_options.hpp"
#include "reactors/cli/runtimes_view.hpp"
#include "reactors/shared/kyma_resources.hpp"

#include <boost/json/serialize.hpp>

#include <utility>

namespace rw::cli {

std::string manager_app::show_runtimes(std::string_view query, std::string& error) const {
  const auto wanted = runtimes_query::parse(query, error);
  if (!error.empty()) return {};
  std::vector<runtime_summary> all;
  kymas_.objects().for_each([&](const k8s::object& kyma) {
    auto key = kyma.key();
    const auto* const seen = installer_->runtimes().find(key);
    const auto* const beats = heartbeats_ ? heartbeats_->health().find(key) : nullptr;
    runtime_summary one{.kyma = std::move(key), .state = "unknown", .reason = {}};
    if (beats != nullptr) one.heartbeat = to_string(beats->state);
    if (seen != nullptr && seen->state) {
      one.state = to_string(*seen->state);
      one.reason = seen->reason;
      one.since = seen->since;
    }
    all.push_back(std::move(one));
  });
  auto page = runtimes_page(std::move(all), wanted, services_.clock.wall(),
                            [this](const auto& one, auto& row) { describe(one.kyma, row); });
  page["leads"] = leads_;
  if (heartbeats_) {
    using heartbeats::liveness;
    auto& beats = page["heartbeats"].emplace_object();
    for (const auto state :
         {liveness::live, liveness::degraded, liveness::silent, liveness::unknown}) {
      beats[to_string(state)] = heartbeats_->health().count(state);
    }
  }
  page["conditions"] = conditions();
  const auto& rotation = rotator_->last();
  auto& phase = page["rotation"].emplace_object();
  phase["phase"] = gateway_secret::name_of(rotation.where);
  phase["missing"] = rotation.missing;
  if (!rotation.waiting.empty()) phase["waiting"] = rotation.waiting;
  if (rotation.recheck_at) phase["next"] = k8s::format_time(*rotation.recheck_at);
  if (rotation.deadline) phase["deadline"] = k8s::format_time(*rotation.deadline);
  return boost::json::serialize(page);
}

/// Returns conditions of the landscape, beyond the states of single runtimes, as Kubernetes
/// conditions.
boost::json::array manager_app::conditions() const {
  boost::json::array out;
  const auto add = [&](std::string_view type, std::string_view reason, std::string message,
                       std::chrono::system_clock::time_point since) {
    out.push_back({{"type", type},
                   {"status", "True"},
                   {"reason", reason},
                   {"message", std::move(message)},
                   {"lastTransitionTime", k8s::format_time(since)}});
  };
  if (stands_back_) add("StandsBack", "LifecycleManagerRuns", stands_back_text(), stands_since_);
  if (settings_.shadow)
    add("StandsBack", "Shadow", "nothing is written, as --shadow says", stands_since_);
  const auto contested = installer_->contested();
  if (contested > 0) {
    add("Contested", "WrittenByOthers",
        std::to_string(contested) + " runtimes are left to " + settings_.former_field_manager +
            ", which writes to them, too",
        installer_->contested_since());
  }
  return out;
}

std::string manager_app::stands_back_text() const {
  return "lifecycle-manager runs, as its Lease " + settings_.lifecycle_manager_lease +
         " says: nothing is written before it ends, or --take-over says that its own part for "
         "watchers is switched off";
}

void manager_app::describe(const k8s::object_key& kyma, boost::json::object& row) const {
  const auto value = kymas_.objects().get(kyma).parse();
  row["runtimeId"] = k8s::label(value, runtime_id_label).value_or("");
  const auto* const seen = installer_->runtimes().find(kyma);
  if (seen != nullptr && !seen->message.empty()) row["message"] = seen->message;
  if (k8s::label(value, skip_label) == "true") {
    row["message"] = "left alone, as the label " + std::string(skip_label) + " says";
  }
  const auto* const changes = *dry_run_ ? installer_->changes(kyma) : nullptr;
  if (changes != nullptr && !changes->empty()) {
    row["reason"] = "would write " + std::to_string(changes->size()) + " objects";
    auto& list = row["wouldWrite"].emplace_array();
    for (const auto& one : *changes) list.emplace_back(one);
  }
  const auto kind = certificate_options(settings_).certificates.kind;
  const auto certificate =
      certificates_.objects()
          .get({settings_.istio_namespace, certificates::certificate_name(kyma.name)})
          .parse();
  if (const auto valid = certificates::validity_in_status(certificate, kind)) {
    row["certificate"] = {{"notBefore", k8s::format_time(valid->not_before)},
                          {"notAfter", k8s::format_time(valid->not_after)}};
  }
  if (rollout_->holds(kyma.name)) row["rollout"] = "waits for its turn";
  if (heartbeats_) describe_heartbeat(kyma, row);
  const auto* const entry = tracker_.find(kyma);
  if (entry == nullptr) return;
  if (entry->observed) row["authorities"] = entry->observed->authorities.size();
  if (const auto& demand = rotator_->last().demand) {
    const auto lacks =
        gateway_secret::lacks(*entry, *demand, rotation_options(settings_), services_.clock.wall());
    if (!lacks.reason.empty()) row["rotation"] = lacks.reason;
  }
  if (entry->unreachable_since) {
    row["unreachableSince"] = k8s::format_time(*entry->unreachable_since);
  }
}

void manager_app::describe_heartbeat(const k8s::object_key& kyma, boost::json::object& row) const {
  const auto* const known = heartbeats_->health().find(kyma);
  if (known == nullptr) return;
  auto& out = row["heartbeat"].emplace_object();
  out["state"] = to_string(known->state);
  out["since"] = k8s::format_time(known->since);
  if (!known->reason.empty()) out["reason"] = known->reason;
  if (!known->message.empty()) out["message"] = known->message;
  out["gaps"] = known->gaps;
  if (!known->gap.empty()) out["gap"] = known->gap;
  if (known->probe) {
    auto& probe = out["probe"].emplace_object();
    probe["last"] = k8s::format_time(*known->probed);
    probe["stage"] = to_string(known->probe->stage);
    if (!known->probe->reason.empty()) probe["reason"] = known->probe->reason;
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
  out["ledger"] = last.ledger;
  out["lostEvents"] = last.events.lost;
  out["oldestUndeliveredMilliseconds"] = last.oldest_undelivered.count();
  if (last.delivery) out["deliveryMilliseconds"] = last.delivery->count();
}

}  // namespace rw::cli
