#include "reactors/bootstrapper/status.hpp"

#include "k8s/text.hpp"
#include "k8s/types.hpp"
#include "reactors/bootstrapper/manifest_set.hpp"
#include "reactors/workload.hpp"

#include <boost/json/array.hpp>
#include <boost/json/object.hpp>

#include <utility>

namespace rw::bootstrapper {
namespace {

namespace json = boost::json;
using k8s::find_string;

constexpr std::size_t message_limit = 4096;  // the schema's is 32768; this is more than one reads
constexpr std::size_t version_limit = 63;    // of a label's value, and the schema's

std::string joined(const std::vector<std::string>& all, std::size_t most = 10) {
  std::string out;
  for (std::size_t i = 0; i < std::min(all.size(), most); ++i) out += (i == 0 ? "" : "; ") + all[i];
  if (all.size() > most) out += "; and " + std::to_string(all.size() - most) + " more";
  return out;
}

/// One call of `next_status`.
class telling {
 public:
  telling(const json::value& resource, const situation& seen,
          std::chrono::system_clock::time_point now)
      : seen_(seen), now_(now), generation_(k8s::generation_of(resource)) {
    const auto* const status = k8s::find(resource, {"status"});
    next_ = {{"status", status != nullptr && status->is_object() ? *status : json::object()}};
    had_version_ = find_string(next_, {"status", "installedVersion"});
  }

  json::value run() {
    status()["observedGeneration"] = generation_;
    status()["mode"] = to_string(seen_.mode);
    tell_error();
    if (seen_.deleting) {
      status()["state"] = "Deleting";
      set("Ready", "False", "Deleting", seen_.failed);
      return std::move(next_.as_object()["status"]);
    }
    if (seen_.report) {
      tell_installation();
      tell_sets();
      tell_sources();
      tell_compatible();
      tell_synced();
      tell_record();
      tell_shadow();
      tell_kims();
      tell_ready();
    } else {
      tell_nothing_seen();
    }
    if (seen_.suspended) status()["state"] = "Suspended";
    return std::move(next_.as_object()["status"]);
  }

 private:
  json::object& status() { return next_.as_object()["status"].as_object(); }

  /// The schema wants a message; where there is none the reason says it all.
  void set(std::string type, std::string is, std::string reason, std::string message) {
    if (message.empty()) message = reason;
    k8s::set_condition(next_,
                       {std::move(type), std::move(is), std::move(reason),
                        std::string(k8s::first_bytes(message, message_limit)), generation_},
                       now_);
  }

  std::string why_not() const {
    if (!seen_.invalid.empty()) return seen_.invalid;
    if (!seen_.failed.empty()) return seen_.failed;
    return seen_.report ? seen_.report->refused : std::string();
  }

  void tell_error() {
    const auto why = why_not();
    if (why.empty()) {
      status().erase("lastError");
    } else {
      status()["lastError"] = k8s::first_bytes(why, message_limit);
    }
  }

  void tell_installation() {
    const auto& report = *seen_.report;
    how_ = installation_of(report.deployment, report.version);
    status()["state"] = to_string(how_);
    // A label of somebody else's cluster, who may not keep to the rules for labels.
    const std::string runs(k8s::first_bytes(version_of(report.deployment), version_limit));
    if (how_ == installation::ready && !runs.empty()) status()["installedVersion"] = runs;
    if (how_ == installation::not_started) status().erase("installedVersion");
    switch (how_) {
      case installation::not_started:
        return set("Installed", "False", "NotStarted", "the Deployment is not on the runtime");
      case installation::in_progress:
        return set("Installed", "False", "InProgress", "the Deployment's pods are not all ready");
      case installation::ready:
        return set("Installed", "True", "Ready", "version " + (runs.empty() ? "unknown" : runs));
      case installation::failed:
        return set("Installed", "False", "Failed",
                   "the Deployment's pods did not become ready in time");
      case installation::upgrade_needed:
        return set("Installed", "True", "UpgradeNeeded",
                   "version " + (runs.empty() ? "unknown" : runs) + " runs, " + report.version +
                       " is wanted");
    }
  }

  void tell_sets() {
    const auto& report = *seen_.report;
    const auto digest = short_digest(report.digest);
    if (report.digest.empty()) {
      if (!report.half_way) status().erase("digest");
    } else if (find_string(next_, {"status", "digest"}) != digest) {
      status()["digest"] = digest;
      status()["lastSyncTime"] = k8s::format_time(now_);
    }
    if (report.wanted.empty()) {
      status().erase("wantedDigest");
    } else {
      status()["wantedDigest"] = short_digest(report.wanted);
    }
  }

  bool synced() const {
    const auto& report = *seen_.report;
    return report.refused.empty() && !report.wanted.empty() && report.digest == report.wanted;
  }

  /// Of what is in place: sources that are refused are not.
  void tell_sources() {
    if (!synced()) return;
    const auto* const before = k8s::find(next_, {"status", "resources"});
    json::array all;
    for (const auto& one : seen_.sources) {
      json::object item{{"part", to_string(one.of)}, {"source", one.source}};
      if (!one.resource_version.empty()) item["resourceVersion"] = one.resource_version;
      if (!one.digest.empty()) item["digest"] = short_digest(one.digest);
      all.push_back(with_time(std::move(item), before));
    }
    status()["resources"] = std::move(all);
  }

  /// The time of the last sync stays as long as nothing else changes.
  json::object with_time(json::object item, const json::value* before) const {
    item["lastSyncTime"] = k8s::format_time(now_);
    if (before == nullptr || !before->is_array()) return item;
    for (const auto& one : before->get_array()) {
      if (find_string(one, {"part"}) != find_string(item, "part")) continue;
      auto same = item;
      same["lastSyncTime"] = find_string(one, {"lastSyncTime"});
      if (json::value(same) == one) return same;
    }
    return item;
  }

  static std::string_view find_string(const json::object& in, std::string_view name) {
    const auto* const value = in.if_contains(name);
    return value != nullptr && value->is_string() ? std::string_view(value->get_string())
                                                  : std::string_view();
  }
  static std::string_view find_string(const json::value& in,
                                      std::initializer_list<std::string_view> path) {
    return k8s::find_string(in, path);
  }

  void tell_compatible() {
    const auto& report = *seen_.report;
    if (!seen_.invalid.empty()) return set("Compatible", "False", "Invalid", seen_.invalid);
    if (report.refused.empty()) {
      return set("Compatible", "True", "Validated", "the set is valid, and the runtime takes it");
    }
    set("Compatible", "False", report.wanted.empty() ? "Invalid" : "RefusedByRuntime",
        report.refused);
  }

  void tell_synced() {
    const auto& report = *seen_.report;
    if (synced()) {
      return set("ConfigurationSynced", "True", "Synced",
                 "the set " + short_digest(report.digest) + " is in place");
    }
    if (report.half_way) {
      return set("ConfigurationSynced", "False", "HalfWay", "a set is being applied");
    }
    if (seen_.mode == bootstrapper_mode::shadow) {
      return set("ConfigurationSynced", "False", "Shadow", "nothing is written in this mode");
    }
    const bool former = !report.digest.empty();
    set("ConfigurationSynced", "False", former ? "FormerSetKept" : "NothingInPlace",
        (former ? "the runtime keeps the set " + short_digest(report.digest) + ": " : "") +
            report.refused);
  }

  void tell_record() {
    if (!seen_.report->distrusted) return drop("RecordTrusted");
    set("RecordTrusted", "False", "NotOurs",
        "the record on the runtime of what was applied there is not as it was written; nothing of "
        "it counted, and what is wanted is applied afresh");
  }

  void tell_shadow() {
    if (seen_.mode != bootstrapper_mode::shadow) return drop("InStep");
    const auto& differences = seen_.report->differences;
    if (!seen_.report->refused.empty()) {
      return set("InStep", "Unknown", "NotCompatible", seen_.report->refused);
    }
    if (differences.empty()) return set("InStep", "True", "NothingToWrite", "nothing differs");
    set("InStep", "False", "WouldWrite", joined(differences));
  }

  void drop(std::string_view type) {
    auto* const all = status().if_contains("conditions");
    if (all == nullptr || !all->is_array()) return;
    json::array kept;
    for (auto& one : all->get_array()) {
      if (k8s::find_string(one, {"type"}) != type) kept.push_back(one);
    }
    *all = std::move(kept);
  }

  void tell_kims() {
    const auto& report = *seen_.report;
    const bool upgrades =
        !had_version_.empty() && !report.version.empty() && had_version_ != report.version;
    const auto kims = [&](const char* is, const std::string& reason, const std::string& message) {
      set("RuntimeBootstrapperReady", is, "RuntimeBootstrapper" + reason, message);
    };
    const std::string what = upgrades ? "Upgrade" : "Installation";
    if (how_ == installation::failed || (report.rolled_back && how_ != installation::ready)) {
      return kims("False", what + "Failed", why_not());
    }
    if (report.rolled_back && upgrades) return kims("False", "UpgradeFailed", report.refused);
    if (!report.refused.empty()) return kims("False", "ConfigurationFailed", report.refused);
    if (how_ == installation::ready && synced())
      return kims("True", "Configured",
                  "version " + report.version + " runs with the set in place");
    if (how_ == installation::upgrade_needed) return kims("False", "UpgradeInProgress", "");
    kims("False", what + "InProgress", "");
  }

  void tell_ready() {
    if (how_ == installation::ready && synced())
      return set("Ready", "True", "Ready", "the runtime has what is wanted, and it runs");
    if (!seen_.report->refused.empty())
      return set("Ready", "False", "Refused", seen_.report->refused);
    const std::string state(to_string(how_));
    set("Ready", "False", how_ == installation::ready ? "NotSynced" : state, "");
  }

  /// Nothing new is known of the runtime.
  void tell_nothing_seen() {
    if (!status().contains("state")) status()["state"] = to_string(installation::not_started);
    if (!seen_.invalid.empty()) {
      set("Compatible", "False", "Invalid", seen_.invalid);
      set("Ready", "False", "Invalid", seen_.invalid);
      return;
    }
    if (seen_.suspended) return set("Ready", "Unknown", "Suspended", "the spec says suspend");
    if (!seen_.waiting.empty()) return set("Ready", "Unknown", "Waiting", seen_.waiting);
    set("Ready", "Unknown", "RuntimeUnreachable", seen_.failed);
    set("RuntimeBootstrapperReady", "Unknown", "RuntimeBootstrapperStatusUnknown", seen_.failed);
  }

  const situation& seen_;
  const std::chrono::system_clock::time_point now_;
  const std::int64_t generation_;
  json::value next_;
  std::string had_version_;
  installation how_ = installation::not_started;
};

}  // namespace

std::string_view to_string(installation of) noexcept {
  switch (of) {
    case installation::not_started:
      return "NotStarted";
    case installation::in_progress:
      return "InProgress";
    case installation::ready:
      return "Ready";
    case installation::failed:
      return "Failed";
    case installation::upgrade_needed:
      return "UpgradeNeeded";
  }
  return "";
}

installation installation_of(const json::value& deployment, std::string_view wanted) {
  if (!deployment.is_object()) return installation::not_started;
  const auto runs = version_of(deployment);
  if (!wanted.empty() && runs != wanted) return installation::upgrade_needed;
  if (is_rolled_out(deployment)) return installation::ready;
  return has_given_up(deployment) ? installation::failed : installation::in_progress;
}

std::optional<json::value> next_status(const json::value& resource, const situation& seen,
                                       std::chrono::system_clock::time_point now) {
  auto next = telling(resource, seen, now).run();
  const auto* const before = k8s::find(resource, {"status"});
  if (before != nullptr && *before == next) return std::nullopt;
  return next;
}

}  // namespace rw::bootstrapper
