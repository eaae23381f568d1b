#include "rw/reactors/shared/fleet_verdict.hpp"

#include "rw/k8s/objects/types.hpp"
#include "rw/reactors/shared/explanations.hpp"

#include <boost/json/array.hpp>

#include <algorithm>
#include <cmath>
#include <map>
#include <ranges>
#include <tuple>
#include <utility>

namespace rw {
namespace {

namespace json = boost::json;
using std::chrono::seconds;

constexpr std::chrono::minutes time_to_start(10);
constexpr double degraded_above = 0.01;
constexpr double outage_above = 0.05;
constexpr std::size_t shown_runtimes = 5;

/// Remembers the first few names of a cause.
void note(fleet_cause& cause, const std::string& kyma) {
  ++cause.count;
  auto& names = cause.runtimes;
  if (names.size() == shown_runtimes && names.back() <= kyma) return;
  names.insert(std::ranges::upper_bound(names, kyma), kyma);
  if (names.size() > shown_runtimes) names.pop_back();
}

/// "0.1 %", "12 %".
std::string percent(double share) {
  const auto tenths = std::lround(share * 1000);
  if (tenths == 0) return "less than 0.1 %";
  if (tenths >= 100) return std::to_string(std::lround(share * 100)) + " %";
  return std::to_string(tenths / 10) + "." + std::to_string(tenths % 10) + " %";
}

/// True if heartbeats prove the way to KCP, so that only an operator lacks the events.
bool is_of_operator(status_reason reason) noexcept {
  return reason == status_reason::events_wait || reason == status_reason::events_refused;
}

/// The ill runtimes.
struct ill_runtimes {
  std::vector<fleet_cause> causes = {};  ///< those of most runtimes first
  fleet_cause all = {};                  ///< the first of them, whatever their cause
  std::size_t waiting = 0;               ///< those that only an operator keeps waiting
  /// Of these, the first whose names are known, by the number of their runtimes.
  std::vector<std::string> operators = {};

  std::size_t cut_off() const noexcept { return all.count - waiting; }
};

ill_runtimes ill_of(std::span<const judged_runtime> runtimes, std::size_t expected) {
  std::map<std::pair<status_reason, std::string>, fleet_cause> causes;
  ill_runtimes out;
  for (const auto& runtime : runtimes) {
    if (runtime.condition != runtime_condition::ill) continue;
    note(causes[{runtime.reason, runtime.waits_for}], runtime.kyma);
    note(out.all, runtime.kyma);
    if (is_of_operator(runtime.reason)) ++out.waiting;
  }
  std::vector<std::pair<fleet_cause, std::string>> by_count;
  for (auto& [key, cause] : causes) {
    const auto& [reason, name] = key;
    cause.reason = reason == status_reason::none ? "Other" : std::string(to_string(reason));
    cause.next = cause.count * 2 < expected ? next_step_of_few(reason) : next_step(reason);
    if (!name.empty()) cause.message = name + " does not accept them";
    by_count.emplace_back(std::move(cause), name);
  }
  std::ranges::sort(by_count, [](const auto& a, const auto& b) {
    return std::tie(b.first.count, a.first.reason, a.second) <
           std::tie(a.first.count, b.first.reason, b.second);
  });
  for (auto& [cause, name] : by_count) {
    const bool is_new = !name.empty() && out.operators.size() <= shown_runtimes &&
                        std::ranges::find(out.operators, name) == out.operators.end();
    if (is_new) out.operators.push_back(std::move(name));
    out.causes.push_back(std::move(cause));
  }
  return out;
}

std::string sentence(const fleet_verdict& of, const ill_runtimes& found) {
  using enum runtime_condition;
  const auto total = std::to_string(of.expected());
  const auto is = [](std::size_t count) { return count == 1 ? " is " : " are "; };
  const auto share_of = [&](std::size_t count) {
    return std::to_string(count) + " of " + total + (of.expected() == 1 ? " runtime" : " runtimes");
  };
  std::string out;
  const auto add = [&](const std::string& text) { out += (out.empty() ? "" : "; ") + text; };
  if (found.cut_off() > 0) {
    const auto share = static_cast<double>(found.cut_off()) / static_cast<double>(of.expected());
    add(share_of(found.cut_off()) + is(found.cut_off()) + "ill (" + percent(share) + ")");
  }
  if (found.waiting > 0) {
    const auto names = first_of(found.operators, found.operators.size());
    add("events of " + share_of(found.waiting) + " wait for " +
        (names.empty() ? "their operators" : names));
  }
  // `well` alone would hide them.
  if (of.level == fleet_level::well && found.all.count > 0) {
    out += ": " + first_of(found.all.runtimes, found.all.count);
  }
  if (of.expected() == 0) {
    add("there are no runtimes");
  } else if (found.all.count == 0) {
    add(share_of(of.count(well)) + is(of.count(well)) + "well");
  }
  const auto add_count = [&](runtime_condition condition, const char* text) {
    const auto count = of.count(condition);
    if (count > 0) add(std::to_string(count) + is(count) + text);
  };
  add_count(under_way, "under way");
  add_count(unknown, "not looked at yet");
  add_count(left_out, "left out (being deleted, or left alone)");
  return out;
}

fleet_level level_of(const fleet_verdict& of, std::size_t cut_off, bool has_faults) {
  using enum runtime_condition;
  const auto total = of.expected();
  const auto is_wide = [&](std::size_t count) {
    const auto share = total == 0 ? 0 : static_cast<double>(count) / static_cast<double>(total);
    return share > outage_above && (count > 1 || count == total);
  };
  if (is_wide(cut_off)) return fleet_level::outage;
  // Those that nobody has looked at may be ill, too.
  if (is_wide(cut_off + of.count(unknown)) && of.count(unknown) > 0) {
    return fleet_level::unknown;
  }
  if (total > 0 && of.count(well) == 0 && of.count(ill) == 0) return fleet_level::unknown;
  const bool few = of.share(ill) <= degraded_above;
  return few && !has_faults ? fleet_level::well : fleet_level::degraded;
}

}  // namespace

std::string first_of(const std::vector<std::string>& names, std::size_t all) {
  std::string out;
  for (const auto& name : names | std::views::take(shown_runtimes)) {
    out += (out.empty() ? "" : ", ") + name;
  }
  return all > std::min(names.size(), shown_runtimes) ? out + ", ..." : out;
}

std::string_view to_string(runtime_condition of) noexcept {
  constexpr std::string_view names[] = {"well", "ill", "underWay", "unknown", "leftOut"};
  return names[static_cast<std::size_t>(of)];
}

std::string_view to_string(fleet_level of) noexcept {
  constexpr std::string_view names[] = {"well", "degraded", "outage", "unknown"};
  return names[static_cast<std::size_t>(of)];
}

judged_runtime judge(std::string kyma, const runtime_observation& of,
                     std::chrono::system_clock::time_point now) {
  using enum runtime_condition;
  judged_runtime out{std::move(kyma), well, status_reason::none};
  if (of.is_left_out) {
    out.condition = left_out;
  } else if (!of.installation) {
    out.condition = unknown;
  } else if (*of.installation != runtime_state::installed) {
    const bool may_come = is_progress(of.reason) && now < of.since + time_to_start;
    out.condition = may_come ? under_way : ill;
    if (!may_come) out.reason = of.reason;
  } else if (of.heartbeats == liveness::silent || of.heartbeats == liveness::degraded) {
    out.condition = ill;
    out.reason = of.heartbeat_reason;
    out.waits_for = of.waits_for;
  } else if (of.heartbeats == liveness::unknown) {
    out.condition = under_way;
  }
  return out;
}

namespace {

/// By the reason of a roll-out that stands still.
std::string next_step_of_rollout(std::string_view reason, const std::string& name) {
  const auto* const known = explain(reason);
  std::string out(known != nullptr ? known->next : next_steps::failed_rollout);
  constexpr std::string_view placeholder = "NAME";
  const auto at = out.find(placeholder);
  if (at != out.npos) out.replace(at, placeholder.size(), name);
  return out;
}

}  // namespace

std::optional<fleet_fault> fault_of_rollout(const json::value& rollout) {
  const auto stalled = k8s::find_condition(rollout, "Stalled");
  const bool paused = k8s::find_string(rollout, {"status", "phase"}) == "Paused";
  if (!paused && !(stalled && stalled->status == "True")) return std::nullopt;
  const auto name = k8s::key_of(rollout).name;
  const std::string reason(paused ? k8s::find_string(rollout, {"status", "reason"})
                                  : std::string_view(stalled->reason));
  auto message = "the roll-out of " + name + (paused ? " is paused" : " is stalled");
  if (!reason.empty()) message += " (" + reason + ")";
  const auto text = k8s::find_string(rollout, {"status", "message"});
  if (!text.empty()) message += ": " + std::string(text);
  return fleet_fault{paused ? "RolloutPaused"_reason : "RolloutStalled"_reason, std::move(message),
                     next_step_of_rollout(reason, name)};
}

std::size_t fleet_verdict::expected() const noexcept {
  std::size_t out = 0;
  for (const auto each : counts) out += each;
  return out - count(runtime_condition::left_out);
}

double fleet_verdict::share(runtime_condition of) const noexcept {
  const auto all = expected();
  return all == 0 ? 0 : static_cast<double>(count(of)) / static_cast<double>(all);
}

fleet_verdict judge_fleet(std::span<const judged_runtime> runtimes,
                          std::span<const fleet_fault> faults) {
  fleet_verdict out;
  for (const auto& runtime : runtimes) ++out.counts[static_cast<std::size_t>(runtime.condition)];
  auto found = ill_of(runtimes, out.expected());
  out.causes = std::move(found.causes);
  if (out.causes.size() > fleet_verdict::max_causes) out.causes.resize(fleet_verdict::max_causes);
  for (const auto& each : faults.first(std::min(faults.size(), fleet_verdict::max_causes))) {
    out.causes.push_back({each.reason, 0, {}, each.message, each.next});
  }
  out.level = level_of(out, found.cut_off(), !faults.empty());
  out.message = std::string(to_string(out.level)) + ": " + sentence(out, found);
  if (!faults.empty()) {
    out.message += "; " + faults.front().message;
    if (faults.size() > 1) out.message += ", and " + std::to_string(faults.size() - 1) + " more";
  }
  return out;
}

fleet_verdict no_leader(std::string_view reason) {
  fleet_verdict out;
  out.message = "unknown: no leader";
  if (!reason.empty()) out.message.append(": ").append(reason);
  return out;
}

json::object json_of(const fleet_verdict& of, std::chrono::system_clock::duration age) {
  json::object out{{"level", to_string(of.level)},
                   {"message", of.message},
                   {"ageSeconds", std::chrono::floor<seconds>(age).count()},
                   {"runtimes", of.expected()}};
  for (std::size_t i = 0; i < runtime_condition_count; ++i) {
    out[to_string(static_cast<runtime_condition>(i))] = of.counts[i];
  }
  out["illShare"] = of.share(runtime_condition::ill);
  auto& causes = out["causes"].emplace_array();
  for (const auto& each : of.causes) {
    json::object cause{{"reason", each.reason}, {"next", each.next}};
    if (!each.message.empty()) cause["message"] = each.message;
    if (each.count > 0) {
      cause["count"] = each.count;
      cause["runtimes"] = json::array(each.runtimes.begin(), each.runtimes.end());
    }
    causes.push_back(std::move(cause));
  }
  return out;
}

fleet_verdict read_verdict(const json::value& response) {
  const auto* const found = k8s::find(response, {"verdict"});
  if (found == nullptr || !found->is_object()) return no_leader("the manager tells no verdict");
  const auto number = [](const json::value& of, std::string_view member) {
    return static_cast<std::size_t>(std::max<std::int64_t>(k8s::find_number(of, {member}), 0));
  };
  fleet_verdict out;
  const auto level = k8s::find_string(*found, {"level"});
  for (std::size_t i = 0; i < fleet_level_count; ++i) {
    if (to_string(static_cast<fleet_level>(i)) == level) out.level = static_cast<fleet_level>(i);
  }
  const seconds age(number(*found, "ageSeconds"));
  if (age > verdict_expiry) {
    return no_leader("its verdict is " + std::to_string(age.count()) + " s old");
  }
  out.message = k8s::find_string(*found, {"message"});
  for (std::size_t i = 0; i < runtime_condition_count; ++i) {
    out.counts[i] = number(*found, to_string(static_cast<runtime_condition>(i)));
  }
  const auto* const causes = k8s::find_array(*found, {"causes"});
  for (const auto& each : causes == nullptr ? json::array() : *causes) {
    fleet_cause cause{.reason = std::string(k8s::find_string(each, {"reason"})),
                      .count = number(each, "count"),
                      .message = std::string(k8s::find_string(each, {"message"})),
                      .next = std::string(k8s::find_string(each, {"next"}))};
    const auto* const names = k8s::find_array(each, {"runtimes"});
    for (const auto& name : names == nullptr ? json::array() : *names) {
      if (name.is_string()) cause.runtimes.emplace_back(name.get_string());
    }
    out.causes.push_back(std::move(cause));
  }
  return out;
}

std::string text_of(const fleet_verdict& of) {
  auto out = of.message + "\n";
  for (const auto& each : of.causes) {
    out += "  " + each.reason + ": ";
    if (each.count > 0) {
      out += std::to_string(each.count) + " (" + first_of(each.runtimes, each.count) + ")";
    }
    out += (each.count > 0 && !each.message.empty() ? ": " : "") + each.message;
    if (!each.next.empty()) out += "\n    " + each.next;
    out += "\n";
  }
  return out;
}

std::string_view fleet_verdict::next_step_of(status_reason reason) const noexcept {
  std::size_t count = 0;
  for (const auto& each : causes) {
    if (each.reason == to_string(reason)) count += each.count;
  }
  return count * 2 < expected() ? next_step_of_few(reason) : next_step(reason);
}

std::string_view next_step_of_few(status_reason of) noexcept {
  if (of != status_reason::no_heartbeat && of != status_reason::gateway_unreachable) {
    return next_step(of);
  }
  return "the gateway serves the other runtimes. On these: kubectl -n kyma-system get pods -l "
         "app=skr-webhook, the logs of these pods, and what keeps them from the gateway, such as a "
         "NetworkPolicy";
}

std::string_view next_step(status_reason of) noexcept {
  return runtime_reasons[static_cast<std::size_t>(of)].next;
}

}  // namespace rw
