// The leader's verdict on its landscape, for /runtimes, the page, status and alerts.

#include "rw/core/metrics.hpp"
#include "rw/k8s/objects/types.hpp"
#include "rw/reactors/cli/manager_view.hpp"
#include "rw/reactors/gateway_secret/rotation.hpp"
#include "rw/reactors/shared/explanations.hpp"

#include <algorithm>
#include <chrono>
#include <cstddef>
#include <iterator>
#include <string>
#include <utility>
#include <vector>

namespace rw::cli {
namespace {

constexpr std::chrono::seconds between_verdicts(5);

/// Runtimes of which a service level indicator says something, and those in order among them.
struct objective {
  const char* name;
  std::size_t all = 0;
  std::size_t good = 0;

  void add(bool is_good) {
    ++all;
    good += is_good ? 1 : 0;
  }
  void publish(core::metrics& to) const {
    for (const auto& [state, count] : {std::pair("all", all), std::pair("good", good)}) {
      core::make_gauge(to, "rw_fleet_sli_runtimes",
                       "Number of runtimes that a service level indicator is about, and of those "
                       "in order: path, the latest heartbeat and probe; delivery, below 1 s",
                       {{"sli", name}, {"state", state}})
          .Set(static_cast<double>(count));
    }
  }
};

/// Conditions of manager_conditions.cpp that are wanted, or of single runtimes.
bool is_no_fault(std::string_view condition) {
  return condition == "StandsBack" || condition == "Contested";
}

}  // namespace

runtime_observation manager_app::view::observation_of(const k8s::object_key& kyma,
                                                      const runtime& known) const {
  const auto* const cluster = manager_.clusters_.find(kyma);
  const auto scope = cluster == nullptr ? cluster_scope::managed : cluster->scope;
  const bool leaves = known.is_deleted || scope == cluster_scope::leaving;
  runtime_observation out{.is_left_out = scope == cluster_scope::unselected ||
                                         scope == cluster_scope::left_alone ||
                                         (leaves && !known.fails_removal())};
  if (known.installed != nullptr) {
    out.installation = known.installed->state;
    out.reason = known.installed->reason;
    out.since = known.installed->since;
  }
  // The watchers that another manager installed report to that one.
  const bool expected = manager_.heartbeats_ && !*manager_.dry_run_ && cluster != nullptr;
  if (expected && cluster->is_reporting()) {
    out.heartbeats = known.health == nullptr ? liveness::unknown : known.health->state;
    if (known.health != nullptr) {
      out.heartbeat_reason = known.health->reason;
      out.waits_for = known.health->waits_for;
    }
  }
  return out;
}

judged_runtime manager_app::view::judged(const k8s::object_key& kyma, const runtime& known) const {
  return rw::judge(kyma.name, observation_of(kyma, known), manager_.services_.clock.wall());
}

std::vector<fleet_fault> manager_app::view::faults() const {
  std::vector<fleet_fault> out;
  manager_.rollouts_.objects().for_each([&](const k8s::object& object) {
    if (auto fault = fault_of_rollout(object.parse())) out.push_back(std::move(*fault));
  });
  if (manager_.runtime_config_) {
    std::ranges::move(manager_.runtime_config_->invalid().faults(), std::back_inserter(out));
  }
  const auto& plan = manager_.rotator_->last();
  if (const auto reason = gateway_secret::reason_of(plan.phase); !reason.empty()) {
    out.push_back({std::string(reason), "the CA rotation needs a person: " + plan.waiting,
                   std::string(explain(reason)->next)});
  }
  for (const auto& each : conditions()) {
    const auto text = [&](std::string_view member) {
      return std::string(k8s::find_string(each, {member}));
    };
    if (is_no_fault(text("type"))) continue;
    out.push_back({text("reason"), text("type") + ": " + text("message"),
                   std::string(explain(text("type"))->next)});
  }
  return out;
}

fleet_verdict manager_app::view::verdict() const {
  if (!manager_.leads_) return no_leader("this replica does not lead");
  if (!judged_at_) return no_leader("this replica begins to lead");
  if (manager_.services_.clock.now() - *judged_at_ > verdict_expiry) {
    return no_leader("the leader's verdict is old");
  }
  return verdict_;
}

void manager_app::view::judge() {
  if (!manager_.kymas_.synced()) return;
  std::vector<judged_runtime> all;
  objective path{"path"};
  objective delivery{"delivery"};
  manager_.kymas_.objects().for_each([&](const k8s::object& kyma) {
    const auto key = kyma.key();
    const auto known = find(key);
    const auto seen = observation_of(key, known);
    all.push_back(rw::judge(key.name, seen, manager_.services_.clock.wall()));
    if (!seen.heartbeats || *seen.heartbeats == liveness::unknown) return;
    path.add(*seen.heartbeats == liveness::live);
    // A runtime's word counts for itself alone.
    const auto* const last = *seen.heartbeats == liveness::silent ? nullptr : &known.health->last;
    if (last != nullptr && last->delivery) delivery.add(*last->delivery < std::chrono::seconds(1));
  });
  verdict_ = rw::judge_fleet(all, faults());
  judged_at_ = manager_.services_.clock.now();
  remember(all);
  // A replica that does not lead has no such series.
  auto& metrics = manager_.services_.metrics;
  for (std::size_t i = 0; i < fleet_level_count; ++i) {
    const auto level = static_cast<fleet_level>(i);
    core::make_gauge(metrics, "rw_fleet_verdict",
                     "1 of the level that the leader's latest verdict on the landscape has",
                     {{"verdict", std::string(to_string(level))}})
        .Set(level == verdict_.level ? 1 : 0);
  }
  for (std::size_t i = 0; i < runtime_condition_count; ++i) {
    const auto condition = static_cast<runtime_condition>(i);
    core::make_gauge(metrics, "rw_fleet_runtimes",
                     "Number of runtimes by their condition in the leader's latest verdict",
                     {{"condition", std::string(to_string(condition))}})
        .Set(static_cast<double>(verdict_.count(condition)));
  }
  for (const auto& each : {path, delivery}) each.publish(metrics);
  const std::chrono::duration<double> since = manager_.services_.clock.wall().time_since_epoch();
  core::make_gauge(metrics, "rw_fleet_verdict_timestamp_seconds",
                   "Unix time of the leader's latest verdict on the landscape")
      .Set(since.count());
}

boost::asio::awaitable<void> manager_app::judge_fleet() {
  const auto timer = services_.clock.make_timer(services_.executor);
  for (bool due = true; due;) {
    view_->judge();
    timer->expires_at(services_.clock.now() + between_verdicts);
    due = co_await timer->wait();
  }
}

}  // namespace rw::cli
