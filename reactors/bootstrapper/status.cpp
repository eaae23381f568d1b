#include "reactors/bootstrapper/status.hpp"

#include "k8s/text.hpp"
#include "k8s/types.hpp"
#include "reactors/bootstrapper/manifest_set.hpp"
#include "reactors/workload.hpp"

#include <boost/json/array.hpp>
#include <boost/json/object.hpp>

#include <algorithm>
#include <utility>

namespace rw::bootstrapper {
namespace {

namespace json = boost::json;
using k8s::find_string;

constexpr std::size_t message_limit = 4096;  // the schema's is 32768; this is more than one reads
constexpr std::size_t version_limit = 63;    // of a label's value, and the schema's
constexpr std::size_t most_listed = 10;

std::string joined(const std::vector<std::string>& all) {
  std::string out;
  for (std::size_t i = 0; i < std::min(all.size(), most_listed); ++i) {
    out += (i == 0 ? "" : "; ") + all[i];
  }
  if (all.size() > most_listed)
    out += "; and " + std::to_string(all.size() - most_listed) + " more";
  return out;
}

std::string text(std::string_view of) {
  return std::string(k8s::first_bytes(of, message_limit));
}

bool is_applied(const unit_status& unit, const unit_report& report) {
  return unit.invalid.empty() && !unit.desired.empty() && report.applied == unit.desired &&
         !report.failed;
}

/// "Applied", "Applying" (half of it may be there), "LastGood" (an earlier revision is in place) or
/// "NotApplied".
std::string_view phase_of(const unit_status& unit, const unit_report& report) {
  if (is_applied(unit, report)) return "Applied";
  if (report.failed && report.applied.empty()) return "Applying";
  return report.applied.empty() ? "NotApplied" : "LastGood";
}

/// `status.units[name]`; null if there is none.
const json::value* find_unit(const json::value& resource, unit of) {
  const auto* const units = k8s::find(resource, {"status", "units"});
  if (units == nullptr || !units->is_array()) return nullptr;
  const auto found = std::ranges::find_if(units->get_array(), [&](const json::value& each) {
    return find_string(each, {"name"}) == to_string(of);
  });
  return found == units->get_array().end() ? nullptr : &*found;
}

/// One call of `next_status`.
class status_writer {
 public:
  status_writer(const json::value& resource, const status_input& input,
                std::chrono::system_clock::time_point now)
      : resource_(resource), input_(input), now_(now) {
    const auto* const status = k8s::find(resource, {"status"});
    next_ = {{"status", status != nullptr && status->is_object() ? *status : json::object()}};
    previous_version_ = find_string(next_, {"status", "installedVersion"});
  }

  json::value run() {
    status()["observedGeneration"] = k8s::generation_of(resource_);
    status()["mode"] = to_string(input_.mode);
    write_texts();
    if (input_.decided.reason == "Deleting") {
      status()["state"] = "Deleting";
      set("Ready", "False", "Deleting", input_.failed);
    } else if (input_.report) {
      write_observed();
    } else {
      write_unobserved();
    }
    return std::move(next_.as_object()["status"]);
  }

 private:
  json::object& status() { return next_.as_object()["status"].as_object(); }

  void set(std::string type, std::string is, std::string reason, std::string message) {
    if (message.empty()) message = reason;  // the schema wants one
    k8s::set_condition(next_,
                       {std::move(type), std::move(is), std::move(reason), text(message),
                        k8s::generation_of(resource_)},
                       now_);
  }

  void drop(std::string_view type) {
    auto* const all = status().if_contains("conditions");
    if (all == nullptr || !all->is_array()) return;
    json::array kept;
    for (auto& each : all->get_array()) {
      if (find_string(each, {"type"}) != type) kept.push_back(each);
    }
    *all = std::move(kept);
  }

  void write_texts() {
    auto error = input_.decided.what == action::reject ? input_.decided.message : input_.failed;
    if (error.empty()) error = blocked_by(input_);
    if (error.empty()) {
      status().erase("lastError");
    } else {
      status()["lastError"] = text(error);
    }
    json::array warnings;
    for (const auto of : all_units) {
      auto all = input_.units[static_cast<std::size_t>(of)].warnings;
      if (input_.report) {
        const auto& more = input_.report->at(of).warnings;
        all.insert(all.end(), more.begin(), more.end());
      }
      for (const auto& each : all) {
        if (warnings.size() < most_listed) warnings.push_back(json::string(text(each)));
      }
    }
    if (!warnings.empty()) {
      status()["warnings"] = std::move(warnings);
    } else if (input_.report) {
      status().erase("warnings");
    }
  }

  void write_observed() {
    write_installation();
    if (input_.mode == bootstrapper_mode::shadow) {
      write_in_step();
    } else {
      write_units();
      drop("InStep");
    }
    write_compatible();
    write_synced();
    write_kim_condition();
    write_ready();
  }

  void write_installation() {
    const auto& deployment = input_.report->deployment;
    const auto& version = input_.report->at(unit::bootstrapper).version;
    installation_ = installation_of(*input_.report);
    status()["state"] = to_string(installation_);
    // A label on a cluster of others, who may not keep to the rules for labels.
    std::string runs(k8s::first_bytes(version_of(deployment), version_limit));
    if (installation_ == installation::ready && !runs.empty()) status()["installedVersion"] = runs;
    if (installation_ == installation::not_started) status().erase("installedVersion");
    if (runs.empty()) runs = "unknown";
    switch (installation_) {
      case installation::not_started:
        return set("Installed", "False", "NotStarted", "the Deployment does not exist");
      case installation::in_progress:
        return set("Installed", "False", "InProgress", "not all pods of the Deployment are ready");
      case installation::ready:
        return set("Installed", "True", "Ready", "version " + runs);
      case installation::failed:
        return set("Installed", "False", "Failed",
                   input_.report->pod_error.empty()
                       ? "the Deployment's pods did not become ready in time"
                       : input_.report->pod_error);
      case installation::upgrade_needed:
        return set("Installed", "True", "UpgradeNeeded",
                   "version " + runs + " runs, " + version + " is desired");
    }
  }

  void write_units() {
    json::array all;
    for (const auto of : all_units) {
      const auto& known = input_.units[static_cast<std::size_t>(of)];
      const auto& report = input_.report->at(of);
      const bool waits = !known.waiting.empty() && !report.failed;
      json::object unit{{"name", to_string(of)},
                        {"phase", waits ? "Waiting" : phase_of(known, report)}};
      if (!report.applied.empty()) unit["digest"] = report.applied;
      const auto& newest = known.waiting.empty() ? known.desired : known.waiting;
      if (!newest.empty()) unit["desiredDigest"] = newest;
      const auto* const before = find_unit(resource_, of);
      const bool same = before != nullptr && find_string(*before, {"digest"}) == report.applied;
      const auto* const time = same ? k8s::find(*before, {"lastAppliedTime"}) : nullptr;
      if (time != nullptr) {
        unit["lastAppliedTime"] = *time;
      } else if (!report.applied.empty()) {
        unit["lastAppliedTime"] = k8s::format_time(now_);
      }
      const auto& error = !known.invalid.empty() ? known.invalid
                          : report.rejected      ? report.rejected->message
                          : report.failed        ? report.failed->message
                                                 : std::string();
      if (!error.empty()) unit["message"] = text(error);
      all.push_back(std::move(unit));
    }
    status()["units"] = std::move(all);
    status()["inventory"] = write_inventory(input_.report->objects);
  }

  void write_compatible() {
    const auto error = blocked_by(input_);
    if (error.empty()) {
      return set("Compatible", "True", "Validated",
                 "the sources are valid, and the runtime takes them");
    }
    set("Compatible", "False", rejection_reason(), error);
  }

  std::string rejection_reason() const {
    for (const auto of : all_units) {
      if (!input_.units[static_cast<std::size_t>(of)].invalid.empty()) return "Invalid";
      const auto& rejected = input_.report->at(of).rejected;
      if (!rejected) continue;
      return rejected->why == rejection::reason::foreign_object ? "ForeignObject"
             : rejected->why == rejection::reason::unknown_kind ? "UnknownKind"
                                                                : "RejectedByRuntime";
    }
    return "Invalid";
  }

  void write_synced() {
    if (input_.mode == bootstrapper_mode::shadow) {
      return set("ConfigurationSynced", "False", "Shadow", "nothing is written in this mode");
    }
    for (const auto& each : input_.units) {
      if (each.waiting.empty()) continue;
      return set("ConfigurationSynced", "False", "WaitingForRollout",
                 "the newest content waits for its turn");
    }
    if (is_synced(input_)) {
      return set("ConfigurationSynced", "True", "Synced", "both units are in place");
    }
    for (const auto of : all_units) {
      const auto& known = input_.units[static_cast<std::size_t>(of)];
      const auto& report = input_.report->at(of);
      if (is_applied(known, report)) continue;
      const auto name = std::string(to_string(of));
      const auto phase = phase_of(known, report);
      return set("ConfigurationSynced", "False",
                 phase == "LastGood" ? "LastGoodKept" : std::string(phase),
                 name + ": " + (report.failed ? report.failed->message : blocked_by(input_)));
    }
  }

  void write_in_step() {
    const auto error = blocked_by(input_);
    if (!error.empty()) return set("InStep", "Unknown", "NotCompatible", error);
    std::vector<std::string> differences;
    for (const auto& each : input_.report->units) {
      differences.insert(differences.end(), each.differences.begin(), each.differences.end());
    }
    if (differences.empty()) return set("InStep", "True", "NothingToWrite", "nothing differs");
    set("InStep", "False", "WouldWrite", joined(differences));
  }

  /// As Kyma Infrastructure Manager would set it on the Runtime.
  void write_kim_condition() {
    const auto& version = input_.report->at(unit::bootstrapper).version;
    const bool upgrade =
        !previous_version_.empty() && !version.empty() && previous_version_ != version;
    const std::string what = upgrade ? "Upgrade" : "Installation";
    const auto error = blocked_by(input_);
    const auto set_kims = [&](const char* is, const std::string& reason, std::string message) {
      set("RuntimeBootstrapperReady", is, "RuntimeBootstrapper" + reason, std::move(message));
    };
    if (installation_ == installation::failed) return set_kims("False", what + "Failed", error);
    if (!error.empty()) return set_kims("False", "ConfigurationFailed", error);
    if (installation_ == installation::ready && is_synced(input_)) {
      return set_kims("True", "Configured",
                      "version " + version + " runs, and both units are in place");
    }
    if (installation_ == installation::upgrade_needed)
      return set_kims("False", "UpgradeInProgress", {});
    set_kims("False", what + "InProgress", {});
  }

  void write_ready() {
    const bool ready = installation_ == installation::ready;
    if (ready && is_synced(input_)) {
      return set("Ready", "True", "Ready", "both units are in place, and the Deployment runs");
    }
    const auto error = blocked_by(input_);
    if (!error.empty()) return set("Ready", "False", "Rejected", error);
    set("Ready", "False", ready ? "NotSynced" : std::string(to_string(installation_)), {});
  }

  /// The runtime was not looked at: what was known of it may not be so any longer.
  void write_unobserved() {
    const auto& decided = input_.decided;
    if (decided.what == action::reject) {
      status()["state"] = "Unknown";
      set("Compatible", "False", decided.reason, decided.message);
      set("Ready", "False", decided.reason, decided.message);
      set("ConfigurationSynced", "Unknown", decided.reason, decided.message);
      return;
    }
    const bool unreachable = decided.what != action::wait;
    const auto reason = unreachable ? std::string("RuntimeUnreachable") : decided.reason;
    const auto& message = unreachable ? input_.failed : decided.message;
    status()["state"] = reason == "Suspended" ? "Suspended" : "Unknown";
    for (const auto* type : {"Ready", "ConfigurationSynced"}) set(type, "Unknown", reason, message);
    set("RuntimeBootstrapperReady", "Unknown", "RuntimeBootstrapperStatusUnknown", message);
  }

  const json::value& resource_;
  const status_input& input_;
  const std::chrono::system_clock::time_point now_;
  json::value next_;
  std::string previous_version_;
  installation installation_ = installation::not_started;
};

}  // namespace

std::string_view to_string(installation of) noexcept {
  constexpr std::array<std::string_view, 5> names = {"NotStarted", "InProgress", "Ready", "Failed",
                                                     "UpgradeNeeded"};
  return names[static_cast<std::size_t>(of)];
}

installation installation_of(const json::value& deployment, std::string_view desired) {
  if (!deployment.is_object()) return installation::not_started;
  if (!desired.empty() && version_of(deployment) != desired) return installation::upgrade_needed;
  if (is_rolled_out(deployment)) return installation::ready;
  return has_given_up(deployment) ? installation::failed : installation::in_progress;
}

installation installation_of(const sync_report& report) {
  const auto out = installation_of(report.deployment, report.at(unit::bootstrapper).version);
  const bool fails = out == installation::in_progress && !report.pod_error.empty();
  return fails ? installation::failed : out;
}

bool is_synced(const status_input& input) {
  return input.report && std::ranges::all_of(all_units, [&](unit of) {
           return is_applied(input.units[static_cast<std::size_t>(of)], input.report->at(of));
         });
}

std::string blocked_by(const status_input& input) {
  std::string out;
  for (const auto of : all_units) {
    const auto& invalid = input.units[static_cast<std::size_t>(of)].invalid;
    const auto* const rejected =
        input.report && input.report->at(of).rejected ? &*input.report->at(of).rejected : nullptr;
    const auto& error = !invalid.empty() || rejected == nullptr ? invalid : rejected->message;
    if (!error.empty()) out += (out.empty() ? "" : "; ") + error;
  }
  return out;
}

std::optional<json::value> next_status(const json::value& resource, const status_input& input,
                                       std::chrono::system_clock::time_point now) {
  auto next = status_writer(resource, input, now).run();
  const auto* const before = k8s::find(resource, {"status"});
  if (before != nullptr && *before == next) return std::nullopt;
  return next;
}

json::value applying_status(const json::value& resource, unit of, const inventory& objects) {
  json::array units;
  for (const auto each : all_units) {
    const auto* const before = find_unit(resource, each);
    json::value next = before != nullptr
                           ? *before
                           : json::value{{"name", to_string(each)}, {"phase", "NotApplied"}};
    if (each == of) next.as_object()["phase"] = "Applying";
    units.push_back(std::move(next));
  }
  return {{"units", std::move(units)}, {"inventory", write_inventory(objects)}};
}

}  // namespace rw::bootstrapper
