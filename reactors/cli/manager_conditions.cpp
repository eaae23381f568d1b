// What is wrong with the landscape as a whole, for /runtimes and status.

#include "rw/k8s/objects/types.hpp"
#include "rw/reactors/cli/manager_view.hpp"
#include "rw/reactors/shared/explanations.hpp"

#include <algorithm>
#include <chrono>
#include <iterator>
#include <set>
#include <string>
#include <utility>
#include <vector>

namespace rw::cli {
namespace {

/// A definition that is replaced is not served for a moment.
constexpr auto unreadable_patience = std::chrono::seconds(5);

}  // namespace

bool manager_app::view::is_unreadable(const k8s::informer& informer) const {
  const auto& failing = informer.failing();
  if (!failing || manager_.services_.clock.now() - failing->since < unreadable_patience)
    return false;
  return failing->cause.is(k8s::errc::not_found) || failing->cause.is(k8s::errc::forbidden);
}

/// Returns conditions of the landscape, beyond the states of single runtimes, as Kubernetes
/// conditions.
boost::json::array manager_app::view::conditions() const {
  boost::json::array out;
  const auto add = [&](std::string_view type, std::string_view reason, std::string message,
                       std::chrono::system_clock::time_point since) {
    out.push_back({{"type", type},
                   {"status", "True"},
                   {"reason", reason},
                   {"message", std::move(message)},
                   {"lastTransitionTime", k8s::format_time(since)}});
  };
  if (manager_.stands_back_)
    add("StandsBack"_reason, "LifecycleManagerRuns"_reason, manager_.stands_back_text(),
        manager_.stands_since_);
  if (const auto& wait = manager_.klm_.waits(); manager_.awaits_klm_ && wait)
    add("StandsBack"_reason, wait->reason, wait->message, wait->since);
  if (manager_.settings_.shadow)
    add("StandsBack"_reason, "Shadow"_reason, "nothing is written, as --shadow says",
        manager_.stands_since_);
  if (const auto& plan = manager_.rotator_->last(); !plan.held_up_by.empty()) {
    add("CARotationHeldUp"_reason, plan.held_up_by, plan.waiting, *plan.due_since);
  }
  // That the kind of Watchers is not served is named once, below.
  const bool are_served = !is_unreadable(manager_.watchers_);
  for (const auto& input_error : manager_.installer_->input_errors()) {
    if (input_error.reason == status_reason::watchers_withdrawn && !are_served) continue;
    add("InputInvalid"_reason, to_string(input_error.reason), input_error.message,
        input_error.since);
  }
  std::vector<const k8s::informer*> informers;
  for (const auto& informer : manager_.informers_) informers.push_back(informer.get());
  if (manager_.runtime_config_)
    std::ranges::copy(manager_.runtime_config_->informers(), std::back_inserter(informers));
  const auto wall = [&](core::time_point since) {
    using std::chrono::system_clock;
    return manager_.services_.clock.wall() - std::chrono::duration_cast<system_clock::duration>(
                                                 manager_.services_.clock.now() - since);
  };
  std::set<std::string> suspect;  // of one type there may be several informers
  auto suspect_since = core::time_point::max();
  for (const auto* const informer : informers) {
    if (const auto since = informer->suspect_since()) {
      suspect.insert(to_string(informer->type()));
      suspect_since = std::min(suspect_since, *since);
    }
    if (!is_unreadable(*informer)) continue;
    const auto& failing = informer->failing();
    const bool absent = failing->cause.is(k8s::errc::not_found);
    add("ResourceUnreadable"_reason,
        absent ? kind_not_served : to_string(status_reason::rights_missing),
        to_string(informer->type()) + ": " + failing->cause.message, wall(failing->since));
  }
  if (!suspect.empty()) {
    std::string message =
        "watches end at once without having brought anything, so that lists alone show changes: "
        "see to the connection to the API server; of";
    for (const auto& type : suspect) message += " " + type;
    add("WatchNotLive"_reason, "EndsWithoutEvents"_reason, std::move(message), wall(suspect_since));
  }
  // Without the Gateway no Watcher has one: that is named already.
  const bool has_gateway = std::ranges::none_of(
      manager_.installer_->input_errors(),
      [](const auto& input_error) { return input_error.reason == status_reason::gateway_invalid; });
  for (const auto& [key, fault] : manager_.watcher_controller_->faults()) {
    const bool by_gateway = fault.error.reason.starts_with("Gateway");
    if (!has_gateway && by_gateway) continue;
    add("WatcherInError"_reason, fault.error.reason,
        "Watcher " + k8s::to_string(key) + ": " + fault.error.message, fault.since);
  }
  if (const auto since = manager_.installer_->records_not_kept_since()) {
    add("RecordsNotKept"_reason, "RequestFailed"_reason,
        "what a new leader must know of the runtimes can't be read or written in namespace " +
            manager_.settings_.runtime_config.direct.state_namespace,
        *since);
  }
  const auto contested = manager_.installer_->contested();
  if (contested > 0) {
    add("Contested"_reason, "WrittenByOthers"_reason,
        std::to_string(contested) + " runtimes are left to " +
            manager_.settings_.former_field_manager + ", which writes to them, too",
        manager_.installer_->contested_since());
  }
  const auto add_closed = [&](const char* component, const runtime_rollout::runtime_rollout& of) {
    if (of.closed().empty()) return;
    add("RolloutClosed"_reason, of.closed_reason(),
        "nothing of the " + std::string(component) + " is rolled out: " + of.closed(),
        of.closed_since());
  };
  add_closed("watcher", *manager_.rollout_);
  if (manager_.runtime_config_) add_closed("bootstrapper", manager_.runtime_config_->rollout());
  return out;
}

}  // namespace rw::cli
