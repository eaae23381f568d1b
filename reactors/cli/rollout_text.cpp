#include "rw/reactors/cli/rollout_text.hpp"

#include "rw/k8s/objects/types.hpp"
#include "rw/reactors/runtime_rollout/resource.hpp"
#include "rw/reactors/shared/explanations.hpp"
#include "rw/reactors/shared/fleet_verdict.hpp"

#include <boost/json/array.hpp>
#include <boost/json/object.hpp>

#include <algorithm>
#include <charconv>
#include <chrono>
#include <cstdint>
#include <utility>

namespace rw::cli {
namespace {

namespace json = boost::json;
using k8s::find_string;
using enum rollout_report::outcome;

std::string name_of(const json::value& rollout) {
  return "rollout \"" + k8s::key_of(rollout).name + "\"";
}

constexpr std::size_t shown_digits = 16;  // of a digest
constexpr std::size_t least_digits = 4;   // that name one

/// As kubectl names an object in an error.
std::string in_words(const json::value& rollout) {
  return "runtimerollouts.operator.kyma-project.io \"" + k8s::key_of(rollout).name + "\"";
}

std::string count(const json::value& rollout, std::string_view field) {
  return std::to_string(k8s::find_number(rollout, {"status", field}));
}

bool is_true(const json::value& rollout, std::string_view condition) {
  const auto found = k8s::find_condition(rollout, condition);
  return found && found->status == "True";
}

bool is_paused_by_hand(const json::value& rollout) {
  const auto* const paused = k8s::find(rollout, {"spec", "paused"});
  return paused != nullptr && *paused == json::value(true);
}

std::optional<std::uint64_t> number(std::string_view text) {
  std::uint64_t out = 0;
  const auto* const end = text.data() + text.size();
  const auto [at, error] = std::from_chars(text.data(), end, out);
  if (error != std::errc() || at != end) return std::nullopt;
  return out;
}

/// True if a roll-out has read the source in this version or a later one.
bool has_read(const json::value& rollout, const source_version& source) {
  const auto* const all = k8s::find_array(rollout, {"status", "sources"});
  for (const auto& each : all == nullptr ? json::array() : *all) {
    if (find_string(each, {"kind"}) != source.kind) continue;
    if (find_string(each, {"name"}) != source.name) continue;
    const auto read = find_string(each, {"resourceVersion"});
    if (read == source.resource_version) return true;
    const auto is = number(read);
    const auto wanted = number(source.resource_version);
    return is && wanted && *is >= *wanted;
  }
  return false;
}

/// "revision 0123 is pinned: " and what follows from that; empty: none is.
std::string pin_note(const json::value& rollout) {
  auto waiting = waiting_sources(rollout);
  const std::string revision(find_string(rollout, {"spec", "revision"}));
  if (!waiting.empty() || revision.empty()) return waiting;
  return "revision " + revision.substr(0, shown_digits) +
         " is pinned: newer sources will not be rolled out, until runtime-watcher rollout undo " +
         k8s::key_of(rollout).name + " --to-sources";
}

}  // namespace

std::optional<source_version> parse_source_version(std::string_view text) {
  const auto slash = text.find('/');
  const auto equals = text.rfind('=');
  if (slash == text.npos || equals == text.npos || equals < slash) return std::nullopt;
  source_version out{std::string(text.substr(0, slash)),
                     std::string(text.substr(slash + 1, equals - slash - 1)),
                     std::string(text.substr(equals + 1))};
  if (out.kind.empty() || out.name.empty() || out.resource_version.empty()) return std::nullopt;
  return out;
}

std::string waiting_sources(const json::value& rollout) {
  constexpr std::string_view separator = "; newer: ";
  const auto pinned = k8s::find_condition(rollout, "Pinned");
  const auto at =
      pinned && pinned->status == "True" ? pinned->message.find(separator) : std::string::npos;
  if (at == std::string::npos) return {};
  const std::string revision(find_string(rollout, {"spec", "revision"}));
  return "revision " + revision.substr(0, shown_digits) + " is pinned" +
         pinned->message.substr(at) + "; these come with runtime-watcher rollout undo " +
         k8s::key_of(rollout).name + " --to-sources";
}

std::string held_note(const json::value& rollout) {
  const auto name = k8s::key_of(rollout).name;
  std::string out;
  if (is_paused_by_hand(rollout)) {
    out += ", and paused for what comes next (runtime-watcher rollout resume " + name + ")";
  }
  const bool is_pinned = !find_string(rollout, {"spec", "revision"}).empty();
  if (is_pinned && waiting_sources(rollout).empty()) {
    out += ", and its revision is pinned (runtime-watcher rollout undo " + name + " --to-sources)";
  }
  return out;
}

std::string when_created(std::string_view component) {
  const std::string leads = "the manager creates it while it leads";
  if (component == "watcher") return leads + ", without --shadow and --rollout-none";
  if (component != "bootstrapper") return leads;
  return leads + ", its --bootstrapper-mode is not off, and it has no --rollout-none";
}

rollout_report report_of(const json::value& rollout, const std::vector<source_version>& sources,
                         std::string_view invalid) {
  const auto name = name_of(rollout);
  const auto phase = find_string(rollout, {"status", "phase"});
  if (phase.empty() ||
      k8s::find_number(rollout, {"status", "observedGeneration"}) < k8s::generation_of(rollout)) {
    return {waiting, "Waiting for " + name + " spec update to be observed..."};
  }
  const auto pinned = waiting_sources(rollout);
  for (const auto& each : sources) {
    if (has_read(rollout, each)) continue;
    if (pinned.find(" " + each.kind + "/" + each.name + "=") != pinned.npos) {
      return {failed, name + " does not observe " + each.kind + "/" + each.name + ": " + pinned};
    }
    return {waiting, "Waiting for " + name + " to observe " + each.kind + "/" + each.name +
                         " at resourceVersion " + each.resource_version + "..."};
  }
  const auto updated =
      count(rollout, "updated") + " of " + count(rollout, "total") + " runtimes have been updated";
  const auto step = runtime_rollout::step_text(runtime_rollout::read_state(rollout));
  const auto progress = step + (step.empty() ? "" : ", ") + updated;
  const std::string of_sources(invalid);
  if (is_true(rollout, "Ready")) {
    const bool accepted = k8s::find_number(rollout, {"status", "failed"}) > 0;
    const bool none = k8s::find_number(rollout, {"status", "total"}) == 0;
    const auto pin = pin_note(rollout);
    return {done, name + " successfully rolled out" + (none ? "; no runtime takes part" : "") +
                      (accepted ? "; accepted: " + count(rollout, "failed") + " that failed" : "") +
                      (is_paused_by_hand(rollout) ? "; it is paused for what comes next" : "") +
                      (pin.empty() ? "" : "; " + pin) + of_sources};
  }
  const auto message = find_string(rollout, {"status", "message"});
  const auto because = message.empty() ? std::string() : ": " + std::string(message);
  if (is_true(rollout, "Stalled")) {
    const auto reason = k8s::find_condition(rollout, "Stalled")->reason;
    const auto fault = fault_of_rollout(rollout);
    return {failed, name + " is stalled, " + reason + "; " + progress + because,
            fault ? fault->next : std::string()};
  }
  const auto ready = k8s::find_condition(rollout, "Ready");
  if (ready && ready->reason == "RuntimesAside"_reason) {
    const bool fails = k8s::find_number(rollout, {"status", "failed"}) > 0;
    return {failed,
            name + " is partial: " + updated + ", " + count(rollout, "aside") + " set aside" +
                (fails ? ", " + count(rollout, "failed") + " failed" : "") + because,
            std::string(explain(ready->reason)->next)};
  }
  auto line = "Waiting for " + name + " to finish: " + progress;
  if (ready && ready->reason == "RuntimesUpdating"_reason) {
    const auto silence =
        std::chrono::floor<std::chrono::minutes>(runtime_rollout::limits().silence);
    line +=
        ", those that respond and did not get the content in their turn get it now, each within " +
        std::to_string(silence.count()) + " minutes";
  }
  line += because + of_sources;
  if (is_paused_by_hand(rollout)) line += "; it is paused";
  return {waiting, line + "..."};
}

std::string in_columns(const json::value& rollout,
                       const std::vector<std::vector<std::string>>& rows) {
  std::vector<std::size_t> widths(rows.front().size());
  for (const auto& row : rows) {
    for (std::size_t i = 0; i < row.size(); ++i) widths[i] = std::max(widths[i], row[i].size());
  }
  std::string out = "runtimerollout.operator.kyma-project.io/" + k8s::key_of(rollout).name + "\n";
  for (const auto& row : rows) {
    for (std::size_t i = 0; i < row.size(); ++i) {
      out += row[i];
      if (i + 1 < row.size()) out.append(widths[i] - row[i].size() + 2, ' ');
    }
    out += '\n';
  }
  return out;
}

std::string history_of(const json::value& rollout) {
  std::vector<std::vector<std::string>> rows{{"REVISION", "BEGAN", "ENDED", "OUTCOME", "SOURCES"}};
  const auto* const all = k8s::find_array(rollout, {"status", "history"});
  for (const auto& each : all == nullptr ? json::array() : *all) {
    std::string sources;
    const auto* const read = k8s::find_array(each, {"sources"});
    for (const auto& source : read == nullptr ? json::array() : *read) {
      sources += (sources.empty() ? "" : ",") + std::string(find_string(source, {"kind"})) + "/" +
                 std::string(find_string(source, {"name"})) + "=" +
                 std::string(find_string(source, {"resourceVersion"}));
    }
    const auto text = [&](std::string_view field) {
      const auto value = find_string(each, {field});
      return value.empty() ? std::string("<none>") : std::string(value);
    };
    rows.push_back({text("content").substr(0, shown_digits), text("began"), text("ended"),
                    text("outcome"), sources.empty() ? "<none>" : sources});
  }
  return in_columns(rollout, rows);
}

json::value report_document(const json::value& rollout, const rollout_report& of) {
  json::value status = json::object();
  if (const auto* const known = k8s::find(rollout, {"status"})) status = *known;
  status.as_object().erase("history");
  json::object out{{"name", k8s::key_of(rollout).name},
                   {"outcome", of.is == done     ? "done"
                               : of.is == failed ? "failed"
                                                 : "waiting"},
                   {"message", of.line}};
  if (!of.next.empty()) out["fix"] = of.next;
  out["status"] = std::move(status);
  return out;
}

json::value history_document(const json::value& rollout) {
  const auto* const history = k8s::find_array(rollout, {"status", "history"});
  return {{"name", k8s::key_of(rollout).name},
          {"history", history == nullptr ? json::array() : *history}};
}

json::value pause_change(const json::value& rollout, std::string& error) {
  if (is_paused_by_hand(rollout)) {
    error = in_words(rollout) + " is already paused";
    return nullptr;
  }
  return {{"spec", {{"paused", true}}}};
}

json::value undo_change(const json::value& rollout, std::string_view revision, std::string& error) {
  const auto state = runtime_rollout::read_state(rollout);
  const auto see_history = ": see runtime-watcher rollout history " + k8s::key_of(rollout).name;
  const bool is_whole =
      std::ranges::find(state.history, revision, &runtime_rollout::rollout_record::content) !=
      state.history.end();
  // Digests may begin with any of kubectl's numbers.
  if (!revision.empty() && revision.size() < least_digits && !is_whole) {
    error = "revision " + std::string(revision) +
            (number(revision) ? " is a number, as kubectl has them, and" : " is too short:") +
            " revisions here are digests, of which at least " + std::to_string(least_digits) +
            " characters are needed" + see_history;
    return nullptr;
  }
  const auto is_one = [&](const runtime_rollout::rollout_record& each) {
    if (!revision.empty()) return each.content.starts_with(revision);
    return each.kept && each.content != state.content &&
           (each.outcome == "Completed" || each.outcome == "Partial");
  };
  const auto found = std::find_if(state.history.rbegin(), state.history.rend(), is_one);
  if (found == state.history.rend()) {
    error = revision.empty()
                ? (state.history.empty()
                       ? "no rollout history found for " + in_words(rollout)
                       : "no revision to go back to for " + in_words(rollout) +
                             ": its history has no other content that was rolled out and is kept")
                : "unable to find specified revision " + std::string(revision) + " in history" +
                      see_history;
    return nullptr;
  }
  const bool unique = std::ranges::all_of(state.history, [&](const auto& each) {
    return !is_one(each) || revision.empty() || each.content == found->content;
  });
  if (!unique) {
    error = "revision " + std::string(revision) + " is not unique in history";
  } else if (found->content == state.content) {
    return json::object();
  } else if (const auto refused = runtime_rollout::decide_pin(found->content, state).refused;
             !refused.empty()) {
    error = refused == "KimWrites"
                ? "KimWrites: another writer applies the sources, and would undo it; edit them"
            : refused == "UnsupportedWireVersion"
                ? "UnsupportedWireVersion: the program of revision " + found->content +
                      " reads and sends other formats than this manager"
                : "the content of revision " + found->content + " is not kept";
  }
  if (!error.empty()) return nullptr;
  return {{"spec", {{"revision", found->content}}}};
}

json::value resume_change(const json::value& rollout, std::string token, std::string& error) {
  const bool stopped = runtime_rollout::read_state(rollout).stopped();
  json::object spec;
  if (is_paused_by_hand(rollout)) spec["paused"] = false;
  if (stopped) spec["resume"] = std::move(token);
  if (spec.empty()) {
    error = in_words(rollout) + " is not paused";
    return nullptr;
  }
  return {{"spec", std::move(spec)}};
}

json::value promote_change(const json::value& rollout, std::string token, std::string& error) {
  const auto state = runtime_rollout::read_state(rollout);
  const auto asked = find_string(rollout, {"spec", "promote"});
  const auto name = k8s::key_of(rollout).name;
  if (state.step >= state.steps.size()) {
    error = in_words(rollout) + " is in no step";
  } else if (is_paused_by_hand(rollout) || state.stopped()) {
    error = in_words(rollout) + " is paused" + (state.stopped() ? " (" + state.reason + ")" : "") +
            ": resume it first: runtime-watcher rollout resume " + name;
  } else if (state.at == runtime_rollout::phase::paused) {
    error = in_words(rollout) + " is paused (" + state.reason + "): runtime-watcher explain " +
            state.reason;
  } else if (state.bake_ended || asked != state.promoted) {
    error = "the bake of step " + std::to_string(state.step + 1) + " of " + in_words(rollout) +
            " has been ended already";
  }
  if (!error.empty()) return nullptr;
  return {{"spec", {{"promote", std::move(token)}}}};
}

}  // namespace rw::cli
