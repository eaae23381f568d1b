// What the leading manager says of itself and of the runtimes, and no check before has found.

#include "rw/k8s/objects/types.hpp"
#include "rw/reactors/cli/doctor_app.hpp"
#include "rw/reactors/runtime_rollout/resource.hpp"
#include "rw/reactors/shared/explanations.hpp"
#include "rw/reactors/shared/fleet_verdict.hpp"
#include "rw/reactors/shared/status_reason.hpp"

#include <boost/json/array.hpp>

#include <algorithm>
#include <string>
#include <utility>

namespace rw::cli {
namespace {

namespace asio = boost::asio;
namespace json = boost::json;
using enum finding_state;

std::string kyma_of(const json::value& row) {
  const auto name = k8s::find_string(row, {"kyma"});
  return std::string(name.substr(name.rfind('/') + 1));
}

/// True if the leader judges that the runtime is ill.
bool is_ill(const json::value& row) {
  return k8s::find_string(row, {"condition"}) == to_string(runtime_condition::ill);
}

/// As the leader judges it.
judged_runtime ill_runtime(const json::value& row, std::string_view reason) {
  return {kyma_of(row), runtime_condition::ill,
          parse_status_reason(reason).value_or(status_reason::none),
          std::string(k8s::find_string(row, {"heartbeat", "waitsFor"}))};
}

/// True if it works, but not as desired.
bool is_imperfect(const json::value& row) {
  return k8s::find_string(row, {"state"}) == to_string(runtime_state::installed) &&
         k8s::find_string(row, {"condition"}) != to_string(runtime_condition::left_out) &&
         k8s::find_string(row, {"reason"}) != to_string(status_reason::would_write);
}

/// True if a finding of KCP is what that condition of the manager says.
bool is_same(const finding& found, const json::value& condition) {
  const auto type = k8s::find_string(condition, {"type"});
  const auto message = k8s::find_string(condition, {"message"});
  if (found.state == proven || found.reason != k8s::find_string(condition, {"reason"}))
    return false;
  if (found.about.empty()) return true;
  if (type == "RolloutClosed") {
    return found.about == to_string(runtime_rollout::runtime_rollouts_type());
  }
  return message.starts_with(found.about + ": ");
}

}  // namespace

/// True if a runtime is checked: the user has named it, or none.
bool doctor_app::is_selected(const std::string& kyma) const {
  const auto& only = settings_.runtimes;
  return only.empty() || std::ranges::find(only, kyma) != only.end();
}

/// True if a runtime is to be named: it is checked, and no finding is about it yet.
bool doctor_app::is_new(const std::string& kyma) const {
  return !failed_.contains(kyma) && is_selected(kyma);
}

asio::awaitable<void> doctor_app::check_manager() {
  const auto got = co_await manager_->ask("/runtimes?limit=500");
  if (!got.error.empty()) {
    if (got.no_way) unasked_ = runtimes_client::verdict_without(got);
    const auto remedy =
        !got.next.empty() ? got.next
        : no_leader_
            ? std::string("see leader")
            : "repeat it with --address 127.0.0.1:8080, where this runs beside it, with NAME as "
              "the pod that leads: kubectl -n " +
                  settings_.lease_namespace + " port-forward pod/NAME 8080";
    co_await report(got.no_way ? not_proven : failed, "manager", got.error, remedy);
    co_return;
  }
  is_manager_read_ = true;
  if (!got.warning.empty()) co_await errors_.write("warning: " + got.warning + "\n");
  std::size_t told = 0;
  const auto before = findings_;
  const auto* const conditions = k8s::find_array(got.runtimes, {"conditions"});
  for (const auto& condition : conditions == nullptr ? json::array() : *conditions) {
    const auto type = k8s::find_string(condition, {"type"});
    const std::string reason(k8s::find_string(condition, {"reason"}));
    const bool known = std::ranges::any_of(before, [&](const finding& other) {
      return other.check != "runtime" && is_same(other, condition);
    });
    const bool stands_back = type == "StandsBack";
    if (stands_back) stands_back_ = k8s::find_string(condition, {"message"});
    if (known || type == "Contested") continue;  // the latter is the runtimes' own
    ++told;
    co_await report({stands_back ? not_proven : failed, "manager",
                     reason + ": " + std::string(type) + ": " +
                         std::string(k8s::find_string(condition, {"message"})),
                     stands_back ? "see deploy/manager/MIGRATION.md" : "see deploy/failures.md",
                     reason});
  }
  for (const auto& row : got.runtimes.at("runtimes").as_array()) {
    const auto kyma = kyma_of(row);
    const std::string reason(k8s::find_string(row, {"reason"}));
    const bool ill = is_ill(row);
    // The checks do not say why an object is missing.
    const auto found = failed_.find(kyma);
    if (ill && found != failed_.end() && found->second.reason == status_reason::none) {
      found->second = ill_runtime(row, reason);
    }
    if (reason.empty() || !is_new(kyma) || (!ill && !is_imperfect(row))) continue;
    if (ill) note_failed(ill_runtime(row, reason));
    if (++told > most_lines) continue;
    // Of a fault in KCP that row says what this does.
    const auto* const known = explain(reason);
    const bool in_kcp = known != nullptr && known->next == next_steps::control_plane;
    co_await report({ill ? failed : not_proven, "manager",
                     kyma + ": " + reason + ": " + std::string(k8s::find_string(row, {"message"})),
                     in_kcp ? "runtime-watcher explain " + reason
                            : "runtime-watcher status --name " + kyma + " -o wide",
                     reason, kyma});
  }
  if (told > 0) co_return;
  co_await report(proven, "manager", "it names no fault beyond those above");
}

asio::awaitable<void> doctor_app::check_heartbeats() {
  if (!leader_.has_heartbeats()) {
    co_await report(not_proven, "heartbeats",
                    "the manager expects none, as --heartbeat-timeout is 0");
    co_return;
  }
  if (!is_manager_read_) {
    co_await report(not_proven, "heartbeats", "the manager does not say which it gets",
                    "see manager");
    co_return;
  }
  if (!stands_back_.empty()) {
    co_await report(not_proven, "heartbeats",
                    "the leader stands back, and judges no heartbeats: " + stands_back_);
    co_return;
  }
  const auto got = co_await manager_->ask("/runtimes?limit=5000&heartbeat=silent,degraded");
  if (!got.error.empty()) {
    co_await report(failed, "heartbeats", got.error, "see manager");
    co_return;
  }
  std::size_t told = 0;
  std::size_t known = 0;
  for (const auto& row : got.runtimes.at("runtimes").as_array()) {
    const auto kyma = kyma_of(row);
    if (!is_selected(kyma)) continue;
    if (!is_new(kyma)) {
      ++known;  // a fault is named once
      continue;
    }
    const auto text = [&](std::string_view field) {
      return std::string(k8s::find_string(row, {"heartbeat", field}));
    };
    const bool ill = is_ill(row);
    if (ill) note_failed(ill_runtime(row, text("reason")));
    if (told++ >= most_lines) continue;
    co_await report({ill ? failed : not_proven,
                     "heartbeats",
                     std::string(k8s::find_string(row, {"kyma"})) + " is " + text("state") +
                         " since " + text("since") + ": " + text("reason") + ": " + text("message"),
                     {},
                     text("reason"),
                     kyma});
  }
  if (told > 0) co_return;
  std::string text = settings_.runtimes.empty() ? "no runtime" : "no named runtime";
  text += " is silent or degraded";
  if (known > 0) text += " but the " + std::to_string(known) + " above";
  co_await report(known > 0 ? not_proven : proven, "heartbeats", std::move(text));
}

}  // namespace rw::cli
