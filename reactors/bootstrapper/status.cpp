#include "rw/reactors/bootstrapper/status.hpp"

#include "rw/core/text.hpp"
#include "rw/k8s/objects/types.hpp"
#include "rw/reactors/runtime_controller/workload.hpp"
#include "rw/reactors/shared/explanations.hpp"

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
// Of the Runtime's condition, in KIM's words.
constexpr const char* status_unknown = "RuntimeBootstrapperStatusUnknown"_reason;
constexpr const char* configuration_failed = "RuntimeBootstrapperConfigurationFailed"_reason;

std::string text(std::string_view of) {
  return core::middle_cut(of, message_limit);
}

/// "Applied", "Applying" (half of it may be there), "LastGood" (an earlier revision is in place) or
/// "NotApplied".
std::string_view phase_of(const unit_state& unit) {
  if (unit.is_applied()) return "Applied"_reason;
  const bool begun = unit.applied.empty() && !unit.applying.empty();
  if (begun && (unit.failed || unit.kept || unit.lost)) return "Applying"_reason;
  return unit.applied.empty() ? "NotApplied"_reason : "LastGood"_reason;
}

/// What is wrong with the sources, or with their revision on the runtime; empty: nothing.
std::string error_of(const unit_state& unit) {
  return unit.invalid.empty() && unit.rejected ? unit.rejected->message : unit.invalid;
}

content_digests contents_of_desired(const unit_state& unit) {
  const auto found = std::ranges::find(unit.revisions, unit.desired,
                                       [](const revision_ptr& each) { return each->digest; });
  return found == unit.revisions.end() ? content_digests() : digests_of((*found)->contents);
}

/// An element of a list of the status, by a field's value; null if there is none.
const json::value* find_element(const json::value& resource, std::string_view list,
                                std::string_view field, std::string_view is) {
  const auto* const all = k8s::find_array(resource, {"status", list});
  if (all == nullptr) return nullptr;
  const auto found = std::ranges::find_if(
      *all, [&](const json::value& each) { return find_string(each, {field}) == is; });
  return found == all->end() ? nullptr : &*found;
}

const json::value* find_unit(const json::value& resource, unit of) {
  return find_element(resource, "units", "name", to_string(of));
}

/// The status' units, each as `change` makes it of what it was.
template <class Change>
json::array make_units(const json::value& resource, Change change) {
  json::array out;
  for (const auto of : all_units) {
    const auto* const before = find_unit(resource, of);
    json::value unit =
        before != nullptr ? *before : json::value{{"name", to_string(of)}, {"phase", "NotApplied"}};
    change(of, unit.as_object());
    out.push_back(std::move(unit));
  }
  return out;
}

/// The first unit whose desired revision is not in place, with its phase and why, for
/// `ConfigurationSynced`.
std::pair<std::string_view, std::string> unsynced_of(const sync_state& state) {
  for (const auto of : all_units) {
    const auto& unit = state.at(of);
    if (unit.is_applied()) continue;
    const auto phase = phase_of(unit);
    return {phase == "LastGood" ? "LastGoodKept"_reason : phase,
            std::string(to_string(of)) + ": " +
                (unit.failed ? unit.failed->message : blocked_by(state))};
  }
  return {};
}

std::string_view rejection_reason(const sync_state& state) {
  constexpr std::array<const char*, 3> names = {"RejectedByRuntime"_reason, "UnknownKind"_reason,
                                                "ForeignObject"_reason};
  for (const auto& unit : state.units) {
    if (!unit.invalid.empty()) return "Invalid"_reason;
    if (unit.rejected) return names[static_cast<std::size_t>(unit.rejected->cause)];
  }
  return {};
}

/// Half of the revision may be there.
void write_applying(json::object& unit, const std::string& digest, const content_digests& of) {
  unit["phase"] = "Applying";
  unit["desiredDigest"] = digest;
  unit["desiredContents"] = write_contents(of);
}

/// One call of `next_status`.
class status_writer {
 public:
  status_writer(const json::value& resource, const status_input& input,
                std::chrono::system_clock::time_point now)
      : resource_(resource),
        input_(input),
        state_(input.state),
        now_(now),
        error_(blocked_by(input.state)) {
    const auto* const status = k8s::find(resource, {"status"});
    next_ = {{"status", status != nullptr && status->is_object() ? *status : json::object()}};
    previous_version_ = find_string(next_, {"status", "installedVersion"});
  }

  json::value run() {
    status()["observedGeneration"] = k8s::generation_of(resource_);
    status()["mode"] = to_string(input_.mode);
    write_texts();
    if (input_.decided.reason == "Deleting"_reason) {
      status()["state"] = "Deleting";
      set("Ready"_reason, {{true, "False", "Deleting"_reason, input_.failed}});
    } else if (input_.observed) {
      write_installation();
      if (!shadow()) write_units();
      write_observed_conditions();
    } else {
      write_unobserved();
    }
    return std::move(next_.as_object()["status"]);
  }

 private:
  /// A condition, if it `applies`.
  struct row {
    bool applies;
    const char* status;
    std::string_view reason;
    std::string message;  ///< empty: the reason
  };

  json::object& status() { return next_.as_object()["status"].as_object(); }
  bool shadow() const { return input_.mode == bootstrapper_mode::shadow; }

  /// Sets the condition to the first row that applies. Without one it is removed.
  void set(std::string_view type, std::initializer_list<row> rows) {
    const auto found = std::ranges::find_if(rows, &row::applies);
    if (found != rows.end()) {
      k8s::set_condition(
          next_,
          {std::string(type), found->status, std::string(found->reason),
           text(found->message.empty() ? found->reason : std::string_view(found->message)),
           k8s::generation_of(resource_)},
          now_);
      return;
    }
    auto* const all = status().if_contains("conditions");
    if (all == nullptr || !all->is_array()) return;
    json::array kept;
    for (auto& each : all->get_array()) {
      if (find_string(each, {"type"}) != type) kept.push_back(each);
    }
    *all = std::move(kept);
  }

  void write_texts() {
    const auto& decided = input_.decided;
    const auto& error = decided.next == action::reject ? decided.message : input_.failed;
    const auto& last = error.empty() ? error_ : error;
    status().erase("lastError");
    if (!last.empty()) status()["lastError"] = text(last);
    std::vector<std::string> all;
    for (const auto& unit : state_.units) {
      all.insert(all.end(), unit.warnings.begin(), unit.warnings.end());
      for (const auto& [source, fate] : unit.missing) {
        all.push_back(source + " does not exist; " + fate);
      }
    }
    json::array warnings;
    for (const auto& each : all) {
      const json::value warning(text(each));
      const bool repeated = std::ranges::find(warnings, warning) != warnings.end();
      if (!repeated && warnings.size() < most_listed) warnings.push_back(warning);
    }
    if (!warnings.empty()) {
      status()["warnings"] = std::move(warnings);
    } else if (input_.observed) {
      status().erase("warnings");
    }
  }

  void write_installation() {
    const auto& version = state_.at(unit::bootstrapper).version;
    installation_ = installation_of(state_);
    status()["state"] = to_string(installation_);
    // A label on a cluster of others, who may not keep to the rules for labels.
    std::string runs(core::first_bytes(version_of(state_.deployment), version_limit));
    if (installation_ == installation::ready && !runs.empty()) status()["installedVersion"] = runs;
    if (installation_ == installation::not_started) status().erase("installedVersion");
    if (runs.empty()) runs = "unknown";
    const auto& skipped = state_.proof.skipped;
    const auto is = [this](installation of) { return installation_ == of; };
    set("Installed"_reason,
        {{is(installation::not_started), "False", "NotStarted"_reason,
          "the Deployment does not exist"},
         {!state_.proof.error.empty(), "False", "NotMutating"_reason, state_.proof.error},
         {is(installation::in_progress), "False", "InProgress"_reason,
          "not all pods of the Deployment are ready"},
         {is(installation::ready), "True", "Ready"_reason,
          "version " + runs +
              (skipped.empty() ? "" : "; whether it mutates pods is not known: " + skipped)},
         {is(installation::failed) && !state_.pod_error.empty(), "False", "Failed"_reason,
          state_.pod_error},
         {is(installation::failed), "False", "Failed"_reason,
          "the Deployment's pods did not become ready in time"},
         {is(installation::upgrade_needed), "True", "UpgradeNeeded"_reason,
          "version " + runs + " runs, " + version + " is desired"}});
  }

  void write_units() {
    status()["units"] = make_units(resource_, [this](unit of, json::object& unit) {
      const auto& now = state_.at(of);
      const bool same = find_string(unit, {"digest"}) == now.applied;
      const auto time = same && unit.contains("lastAppliedTime")
                            ? unit["lastAppliedTime"]
                            : json::value(k8s::format_time(now_));
      const auto phase = now.withheld && !now.failed ? "Waiting"_reason : phase_of(now);
      unit = {{"name", to_string(of)}, {"phase", phase}};
      if (!now.applied.empty()) {
        unit["digest"] = now.applied;
        unit["lastAppliedTime"] = time;
      }
      const auto& newest = phase == "Applying" ? now.applying
                           : now.withheld      ? now.withheld->digest
                                               : now.desired;
      if (!newest.empty()) unit["desiredDigest"] = newest;
      const auto has = write_contents(now.contents);
      const auto desired = write_contents(phase == "Applying" ? now.applying_contents
                                          : now.withheld      ? digests_of(now.withheld->contents)
                                                              : contents_of_desired(now));
      if (!has.empty()) unit["contents"] = has;
      if (!newest.empty() && !desired.empty() && desired != has) unit["desiredContents"] = desired;
      auto error = error_of(now);
      // In other phases a message says why the runtime rejects the revision (facts_of); that it is
      // tried again is in the conditions.
      if (error.empty() && now.failed && phase == "Applying") error = now.failed->message;
      if (!error.empty()) unit["message"] = text(error);
    });
    status()["inventory"] = write_inventory(state_.objects);
  }

  void write_observed_conditions() {
    const bool ready = installation_ == installation::ready;
    const bool synced = std::ranges::all_of(state_.units, &unit_state::is_applied);
    const bool valid = error_.empty();
    const auto unsynced = unsynced_of(state_);
    std::vector<std::string> differences;
    for (const auto& each : state_.units) {
      differences.insert(differences.end(), each.differences.begin(), each.differences.end());
    }
    std::string missing;
    for (const auto& each : state_.units) {
      for (const auto& [source, fate] : each.missing) {
        missing += (missing.empty() ? "" : "; ") + source + " does not exist; " + fate;
      }
    }
    const std::string in_shadow = "nothing is written in this mode";
    set("Compatible"_reason,
        {{valid && !missing.empty(), "False", "SourceMissing"_reason, missing},
         {valid, "True", "Validated"_reason, "the sources are valid, and the runtime takes them"},
         {true, "False", rejection_reason(state_), error_}});
    const bool waits = std::ranges::any_of(
        state_.units, [](const unit_state& each) { return each.withheld != nullptr; });
    const bool lost = std::ranges::any_of(state_.units, &unit_state::lost);
    const std::string why_lost =
        "the content in place is not stored: until a newer one takes its place, it is neither "
        "checked nor repaired";
    set("ConfigurationSynced"_reason,
        {{shadow(), "False", "Shadow"_reason, in_shadow},
         {lost, "Unknown", "ContentLost"_reason, why_lost},
         {waits, "False", "WaitingForRollout"_reason, "the newest content waits for its turn"},
         {synced, "True", "Synced"_reason, "both units are in place"},
         {true, "False", unsynced.first, unsynced.second}});
    set("InStep"_reason,
        {{shadow() && !valid, "Unknown", "NotCompatible"_reason, error_},
         {shadow() && differences.empty(), "True", "NothingToWrite"_reason, "nothing differs"},
         {shadow(), "False", "WouldWrite"_reason, describe(differences, most_listed)}});
    set("Ready"_reason,
        {{shadow(), "Unknown", "Shadow"_reason, in_shadow},
         {valid && lost, "False", "ContentLost"_reason, why_lost},
         {ready && synced, "True", "Ready"_reason,
          "both units are in place, and the Deployment runs"},
         {!valid, "False", "Rejected"_reason, error_},
         {!state_.proof.error.empty(), "False", "NotMutating"_reason, state_.proof.error},
         {ready, "False", "NotSynced"_reason, {}},
         {true, "False", to_string(installation_), {}}});
    const auto& version = state_.at(unit::bootstrapper).version;
    const bool upgrade =
        !previous_version_.empty() && !version.empty() && previous_version_ != version;
    const auto* const in_progress = upgrade ? "RuntimeBootstrapperUpgradeInProgress"_reason
                                            : "RuntimeBootstrapperInstallationInProgress"_reason;
    const auto* const failed = upgrade ? "RuntimeBootstrapperUpgradeFailed"_reason
                                       : "RuntimeBootstrapperInstallationFailed"_reason;
    set(runtime_condition, {{shadow(), "Unknown", status_unknown, in_shadow},
                            {installation_ == installation::failed, "False", failed, error_},
                            {!valid, "False", configuration_failed, error_},
                            {lost, "Unknown", status_unknown, why_lost},
                            {ready && synced, "True", "RuntimeBootstrapperConfigured"_reason,
                             "version " + version + " runs, and both units are in place"},
                            {installation_ == installation::upgrade_needed,
                             "False",
                             "RuntimeBootstrapperUpgradeInProgress"_reason,
                             {}},
                            {true, "False", in_progress, state_.proof.error}});
  }

  /// The runtime was not, or not completely, observed: what was known of it may not be so any
  /// longer.
  void write_unobserved() {
    const auto& decided = input_.decided;
    const bool rejected = decided.next == action::reject;
    const bool unreachable = !rejected && decided.next != action::wait;
    const std::string_view reason =
        unreachable ? std::string_view("RuntimeUnreachable"_reason) : decided.reason;
    const auto& message = unreachable ? input_.failed : decided.message;
    status()["state"] = reason == "Suspended"_reason ? "Suspended" : "Unknown";
    const auto* const is = rejected ? "False" : "Unknown";
    if (rejected) set("Compatible"_reason, {{true, is, reason, message}});
    set("Ready"_reason, {{true, is, reason, message}});
    set("ConfigurationSynced"_reason, {{true, "Unknown", reason, message}});
    set(runtime_condition, {{true, is, rejected ? configuration_failed : status_unknown, message}});
    const auto is_half_applied = [](const unit_state& of) {
      return of.changed && of.applied.empty();
    };
    if (shadow() || std::ranges::none_of(state_.units, is_half_applied)) return;
    status()["units"] = make_units(resource_, [&](unit of, json::object& unit) {
      const auto& now = state_.at(of);
      if (!is_half_applied(now)) return;
      write_applying(unit, now.applying, now.applying_contents);
      unit.erase("digest");
    });
  }

  const json::value& resource_;
  const status_input& input_;
  const sync_state& state_;
  const std::chrono::system_clock::time_point now_;
  const std::string error_;  ///< blocked_by
  json::value next_;
  std::string previous_version_;
  installation installation_ = installation::not_started;
};

}  // namespace

std::string_view to_string(installation of) noexcept {
  constexpr std::array<std::string_view, 5> names = {"NotStarted"_reason, "InProgress"_reason,
                                                     "Ready"_reason, "Failed"_reason,
                                                     "UpgradeNeeded"_reason};
  return names[static_cast<std::size_t>(of)];
}

installation installation_of(const json::value& deployment, std::string_view desired) {
  if (!deployment.is_object()) return installation::not_started;
  if (!desired.empty() && version_of(deployment) != desired) return installation::upgrade_needed;
  if (is_rolled_out(deployment)) return installation::ready;
  return has_given_up(deployment) ? installation::failed : installation::in_progress;
}

installation installation_of(const sync_state& state) {
  const auto out = installation_of(state.deployment, state.at(unit::bootstrapper).version);
  if (out == installation::ready && !state.proof.error.empty()) return installation::in_progress;
  const bool fails = out == installation::in_progress && !state.pod_error.empty();
  return fails ? installation::failed : out;
}

std::string blocked_by(const sync_state& state) {
  std::string out;
  for (const auto& unit : state.units) {
    const auto error = error_of(unit);
    if (!error.empty()) out += (out.empty() ? "" : "; ") + error;
  }
  return out;
}

content_facts facts_of(const json::value& resource) {
  static const json::value none;
  const auto* unit = find_unit(resource, unit::bootstrapper);
  if (unit == nullptr) unit = &none;
  const auto condition = [&](std::string_view type) {
    const auto* const found = find_element(resource, "conditions", "type", type);
    return found == nullptr ? none : *found;
  };
  const auto time = [](const json::value& in, std::string_view field) {
    return k8s::parse_rfc3339(find_string(in, {field}))
        .value_or(std::chrono::system_clock::time_point());
  };
  const auto ready = condition("Ready");
  const auto installed = condition("Installed");
  const bool observed = !ready.is_null() && find_string(ready, {"status"}) != "Unknown";
  const auto state = find_string(resource, {"status", "state"});
  content_facts out{.in_place = std::string(find_string(*unit, {"digest"})),
                    .health = !observed           ? content_health::unreachable
                              : state == "Ready"  ? content_health::ready
                              : state == "Failed" ? content_health::failed
                                                  : content_health::progressing};
  out.since = std::max(time(*unit, "lastAppliedTime"),
                       time(observed ? installed : ready, "lastTransitionTime"));
  if (observed) out.error = find_string(installed, {"message"});
  const auto phase = find_string(*unit, {"phase"});
  const auto message = find_string(*unit, {"message"});
  if (message.empty() || (phase != "LastGood" && phase != "NotApplied")) return out;
  out.rejected = find_string(*unit, {"desiredDigest"});
  out.error = message;
  return out;
}

std::optional<json::value> next_status(const json::value& resource, const status_input& input,
                                       std::chrono::system_clock::time_point now) {
  auto next = status_writer(resource, input, now).run();
  const auto* const before = k8s::find(resource, {"status"});
  if (before != nullptr && *before == next) return std::nullopt;
  return next;
}

json::value applying_status(const json::value& resource, unit of, const revision& to,
                            const inventory& objects) {
  auto units = make_units(resource, [&](unit each, json::object& unit) {
    if (each != of) return;
    write_applying(unit, to.digest, digests_of(to.contents));
    if (find_string(unit, {"digest"}) != to.digest) unit.erase("digest");
  });
  return {{"units", std::move(units)}, {"inventory", write_inventory(objects)}};
}

}  // namespace rw::bootstrapper
