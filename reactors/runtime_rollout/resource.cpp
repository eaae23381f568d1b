#include "rw/reactors/runtime_rollout/resource.hpp"

#include "rw/core/config.hpp"
#include "rw/k8s/objects/label_selector.hpp"
#include "rw/k8s/objects/types.hpp"
#include "rw/reactors/shared/explanations.hpp"
#include "rw/reactors/shared/kyma_resources.hpp"
#include "rw/reactors/shared/wire_version.hpp"

#include <boost/json/array.hpp>
#include <boost/json/object.hpp>
#include <boost/json/serialize.hpp>

#include <algorithm>
#include <array>
#include <cmath>
#include <cstdint>
#include <utility>

namespace rw::runtime_rollout {
namespace {

namespace json = boost::json;
using k8s::find_string;

/// A field that is an integer or a string; empty: there is none.
std::string int_or_string(const json::value& spec, std::string_view field) {
  const auto* const value = k8s::find(spec, {field});
  if (value != nullptr && value->is_int64()) return std::to_string(value->get_int64());
  return std::string(find_string(spec, {field}));
}

/// A number as an API server writes it.
json::value as_number(double value) {
  constexpr double whole = 1LL << 53;
  if (std::abs(value) < whole && std::trunc(value) == value)
    return static_cast<std::int64_t>(value);
  return value;
}

std::string as_duration(std::chrono::milliseconds of) {
  const auto ms = of.count();
  return ms % 1000 == 0 ? std::to_string(ms / 1000) + "s" : std::to_string(ms) + "ms";
}

/// A step of a spec or a status; none if it can't be used.
std::optional<step> read_step(const json::value& in, std::chrono::milliseconds bake) {
  step out{int_or_string(in, "runtimes"), bake};
  const auto number = parse_share(out.runtimes);
  if (!is_canaries(out.runtimes) || (number && number->value == 0)) return std::nullopt;
  if (const auto* const text = k8s::find(in, {"bake"})) {
    const auto given = text->is_string() ? core::parse_duration(text->get_string()) : std::nullopt;
    if (!given) return std::nullopt;
    out.bake = *given;
  }
  const auto* const verify = k8s::find(in, {"verify"});
  if (verify == nullptr) return out;
  const auto* const threshold = k8s::find(*verify, {"threshold"});
  out.verify.emplace().query = find_string(*verify, {"query"});
  if (out.verify->query.empty() || threshold == nullptr || !threshold->is_number()) {
    return std::nullopt;
  }
  out.verify->threshold = threshold->to_number<double>();
  return out;
}

/// The steps of a status, as they are placed at present.
std::vector<placed_step> read_steps(const json::value& object) {
  std::vector<placed_step> out;
  const auto* const all = k8s::find_array(object, {"status", "steps"});
  for (const auto& each : all == nullptr ? json::array() : *all) {
    const auto below = k8s::find_number(each, {"positionsBelow"});
    out.push_back({read_step(each, {}).value_or(step()), static_cast<std::uint64_t>(below)});
  }
  return out;
}

json::array write_steps(const std::vector<placed_step>& all) {
  json::array out;
  for (const auto& [of, below] : all) {
    json::object each{{"runtimes", of.runtimes},
                      {"bake", as_duration(of.bake)},
                      {"positionsBelow", static_cast<std::int64_t>(below)}};
    if (of.verify) {
      each["verify"] = {{"query", of.verify->query},
                        {"threshold", as_number(of.verify->threshold)}};
    }
    out.push_back(std::move(each));
  }
  return out;
}

constexpr std::string_view partial = "Partial";

bool is_partial(const rollout_decision& of) {
  return phase_text(of.next, of.now) == partial;
}

json::array write_sources(const std::vector<content_source>& all) {
  json::array out;
  for (const auto& each : all) {
    out.push_back(
        {{"kind", each.kind}, {"name", each.name}, {"resourceVersion", each.resource_version}});
  }
  return out;
}

std::vector<content_source> read_sources(const json::value& in) {
  std::vector<content_source> out;
  const auto* const all = k8s::find_array(in, {"sources"});
  for (const auto& each : all == nullptr ? json::array() : *all) {
    out.push_back({std::string(find_string(each, {"kind"})),
                   std::string(find_string(each, {"name"})),
                   std::string(find_string(each, {"resourceVersion"}))});
  }
  return out;
}

/// The texts of a record, by their names in a status.
constexpr std::array<std::pair<const char*, std::string rollout_record::*>, 4> record_fields{
    {{"content", &rollout_record::content},
     {"began", &rollout_record::began},
     {"ended", &rollout_record::ended},
     {"outcome", &rollout_record::outcome}}};

void set_conditions(const rollout_decision& decided, json::value& object, std::int64_t generation,
                    wall_time now) {
  const auto& next = decided.next;
  const auto& counts = decided.now;
  const bool unverifiable = next.at == phase::paused && next.reason == state::no_prometheus;
  const bool stalled = next.stopped() || unverifiable || !decided.not_stored.empty();
  const bool done = next.at == phase::completed;
  std::string reason(to_string(next.at));
  if (next.at == phase::paused) reason = next.reason;
  const bool catches_up = is_partial(decided) && decided.catches_up;
  if (is_partial(decided)) reason = catches_up ? "RuntimesUpdating"_reason : "RuntimesAside"_reason;
  if (!decided.not_stored.empty()) reason = "ContentNotStored"_reason;
  const auto step = step_text(next);
  const auto message = step + (step.empty() ? "" : ": ") + std::to_string(counts.updated) + " of " +
                       std::to_string(counts.total) + " runtimes have the content";
  const auto set = [&](const char* type, bool is) {
    k8s::set_condition(object, {type, is ? "True" : "False", reason, message, generation}, now);
  };
  set("Ready"_reason, done && !stalled && !is_partial(decided));
  set("Reconciling"_reason, (!done || catches_up) && !stalled);
  set("Stalled"_reason, stalled);
}

void set_pinned(const std::string& revision, const state& next,
                const std::vector<content_source>& waiting, json::value& object,
                std::int64_t generation, wall_time now) {
  const auto pinned = decide_pin(revision, next);
  const bool is = !pinned.revision.empty() && next.content == pinned.revision;
  std::string message = "the sources are rolled out";
  if (is) {
    message = "revision " + revision + " is rolled out until spec.revision is taken away";
    for (const auto& each : waiting) {
      message += "; newer: " + each.kind + "/" + each.name + "=" + each.resource_version;
    }
  } else if (pinned.refused == "KimWrites"_reason) {
    message = "another writer applies the sources, and would undo it: edit the sources";
  } else if (pinned.refused == "UnsupportedWireVersion"_reason) {
    message = "the program of revision " + revision +
              " reads and sends other formats than this manager: roll the manager back first";
  } else if (!pinned.refused.empty()) {
    message = "revision " + revision + " can't be rolled out: see status.history";
  }
  const auto reason = is                       ? "Revision"_reason
                      : pinned.refused.empty() ? "None"_reason
                                               : pinned.refused;
  k8s::set_condition(object, {"Pinned"_reason, is ? "True" : "False", reason, message, generation},
                     now);
}

}  // namespace

pin decide_pin(const std::string& revision, const state& of) {
  if (revision.empty()) return {};
  const auto found = std::ranges::find(of.history, revision, &rollout_record::content);
  if (found == of.history.end()) return {{}, "NotInHistory"_reason};
  const auto kept = std::ranges::find_if(of.history, [&](const rollout_record& each) {
    return each.content == revision && each.kept;
  });
  if (kept == of.history.end()) return {{}, "NotKept"_reason};
  if (kept->wire_version != 0 && !is_supported_wire_version(kept->wire_version)) {
    return {{}, "UnsupportedWireVersion"_reason};
  }
  if (of.ahead > 0 && of.content != revision) return {{}, "KimWrites"_reason};
  return {revision, {}};
}

const k8s::resource_type& runtime_rollouts_type() {
  static const k8s::resource_type type{{"operator.kyma-project.io", "v1alpha1", "RuntimeRollout"},
                                       "runtimerollouts"};
  return type;
}

bool is_canaries(std::string_view text) {
  const auto selector = k8s::label_selector::parse(text);
  return parse_share(text) || (selector && !selector->empty());
}

rollout_spec read_spec(const json::value& object, const defaults& otherwise) {
  rollout_spec out;
  const auto* const found = k8s::find(object, {"spec"});
  const json::value spec = found == nullptr ? json::object() : *found;
  const auto refuse = [&](std::string_view field, const std::string& text) {
    out.invalid += out.invalid.empty() ? "" : "; ";
    out.invalid += "spec." + std::string(field) + " can't be used: " + text;
  };
  const auto use = [&](std::string_view field, const share& usual, share& into) {
    const auto text = int_or_string(spec, field);
    const auto given = parse_share(text);
    into = given.value_or(usual);
    if (!given && !text.empty()) refuse(field, text);
  };
  use("maxUnavailable", otherwise.max_unavailable, out.with.max_unavailable);
  use("failureBudget", otherwise.failure_budget, out.with.failure_budget);
  auto canaries = int_or_string(spec, "canaries");
  if (!canaries.empty() && !is_canaries(canaries)) {
    refuse("canaries", canaries);
    canaries.clear();
  }
  if (canaries.empty()) canaries = otherwise.canaries;
  const auto number = parse_share(canaries);
  out.with.canaries_at_once = number.has_value();
  out.with.steps = {{canaries, otherwise.soak}};
  if (number && number->value == 0) out.with.steps.clear();
  std::vector<step> steps;
  const auto* const given = k8s::find_array(spec, {"steps"});
  for (const auto& each : given == nullptr ? json::array() : *given) {
    auto known = read_step(each, otherwise.soak);
    if (!known) refuse("steps", json::serialize(each));
    if (known) steps.push_back(std::move(*known));
  }
  if (!steps.empty() && steps.size() == given->size()) {
    out.with.steps = std::move(steps);
    out.with.canaries_at_once = false;
  }
  const auto* const paused = k8s::find(spec, {"paused"});
  out.paused = paused != nullptr && *paused == json::value(true);
  out.resume = find_string(spec, {"resume"});
  out.promote = find_string(spec, {"promote"});
  out.revision = find_string(spec, {"revision"});
  return out;
}

json::value make_rollout(std::string_view component) {
  const auto& type = runtime_rollouts_type().gvk;
  return {{"apiVersion", type.api_version()},
          {"kind", type.kind},
          {"metadata", {{"name", component}, {"namespace", kcp_namespace}}},
          {"spec", {{"component", component}}}};
}

std::vector<std::string_view> status_fields() {
  std::vector<std::string_view> out{"phase",    "reason",       "message",
                                    "content",  "completed",    "resumed",
                                    "steps",    "conditions",   "observedGeneration",
                                    "step",     "settled",      "bakeEnded",
                                    "promoted", "verification", "ahead",
                                    "sources",  "history",      "acceptedFailures"};
  for (const auto& [name, member] : count_names) out.push_back(name);
  return out;
}

state read_state(const json::value& object) {
  const auto* const status = k8s::find(object, {"status"});
  if (status == nullptr) return {};
  state out{.content = std::string(find_string(*status, {"content"})),
            .completed = std::string(find_string(*status, {"completed"})),
            .at = find_string(*status, {"phase"}) == partial
                      ? phase::completed
                      : parse_phase(find_string(*status, {"phase"})).value_or(phase::canary),
            .reason = std::string(find_string(*status, {"reason"})),
            .accepted = static_cast<std::size_t>(k8s::find_number(*status, {"acceptedFailures"})),
            .resumed = std::string(find_string(*status, {"resumed"})),
            .ahead = static_cast<std::size_t>(k8s::find_number(*status, {"ahead"}))};
  out.sources = read_sources(*status);
  const auto* const history = k8s::find_array(*status, {"history"});
  for (const auto& each : history == nullptr ? json::array() : *history) {
    auto& added = out.history.emplace_back();
    for (const auto& [name, member] : record_fields) added.*member = find_string(each, {name});
    added.sources = read_sources(each);
    added.kept = k8s::find(each, {"kept"}) != nullptr;
    added.wire_version = static_cast<int>(k8s::find_number(each, {"wireVersion"}));
  }
  out.steps = read_steps(object);
  const auto present = k8s::find_number(*status, {"step"});
  out.step = present > 0 ? static_cast<std::size_t>(present) - 1 : 0;
  out.bake_ended = k8s::find(*status, {"bakeEnded"}) != nullptr;
  out.promoted = find_string(*status, {"promoted"});
  out.verification = find_string(*status, {"verification"});
  out.settled = k8s::parse_rfc3339(find_string(*status, {"settled"}));
  return out;
}

std::string step_text(const state& of) {
  if (of.at == phase::completed || of.step >= of.steps.size()) return {};
  return "step " + std::to_string(of.step + 1) + " of " + std::to_string(of.steps.size()) + " (" +
         of.steps[of.step].of.runtimes + ")";
}

std::optional<json::value> next_status(const json::value& object, const rollout_decision& decided,
                                       const rollout_spec& spec, wall_time now,
                                       const std::vector<content_source>& waiting) {
  const auto& next = decided.next;
  json::value out{{"status",
                   {{"phase", phase_text(next, decided.now)},
                    {"observedGeneration", k8s::generation_of(object)},
                    {"ahead", static_cast<std::int64_t>(next.ahead)},
                    {"acceptedFailures", static_cast<std::int64_t>(next.accepted)}}}};
  auto& status = out.as_object()["status"].as_object();
  for (const auto& [name, member] : count_names) {
    status[name] = static_cast<std::int64_t>(decided.now.*member);
  }
  std::string message;
  const auto not_stored = decided.not_stored.empty()
                              ? std::string()
                              : "the content can't be stored as rolled out: " + decided.not_stored;
  for (const auto* const text : {&spec.invalid, &not_stored, &decided.message}) {
    if (!text->empty()) message += (message.empty() ? "" : "; ") + *text;
  }
  for (const auto& [name, text] : {std::pair("reason", &next.reason),
                                   {"message", &message},
                                   {"content", &next.content},
                                   {"completed", &next.completed},
                                   {"promoted", &next.promoted},
                                   {"verification", &next.verification},
                                   {"resumed", &next.resumed}}) {
    if (!text->empty()) status[name] = *text;
  }
  if (!next.steps.empty()) {
    status["steps"] = write_steps(next.steps);
    status["step"] = static_cast<std::int64_t>(next.step) + 1;
  }
  if (next.bake_ended) status["bakeEnded"] = true;
  if (next.settled) status["settled"] = k8s::format_time(*next.settled);
  if (!next.sources.empty()) status["sources"] = write_sources(next.sources);
  json::array history;
  for (const auto& each : next.history) {
    json::object entry;
    for (const auto& [name, member] : record_fields) {
      if (!(each.*member).empty()) entry[name] = each.*member;
    }
    if (!each.sources.empty()) entry["sources"] = write_sources(each.sources);
    if (each.kept) entry["kept"] = true;
    if (each.wire_version != 0) entry["wireVersion"] = each.wire_version;
    history.push_back(std::move(entry));
  }
  if (!history.empty()) status["history"] = std::move(history);
  const auto* const before = k8s::find(object, {"status"});
  const auto* const conditions = k8s::find(object, {"status", "conditions"});
  if (conditions != nullptr) status["conditions"] = *conditions;
  const bool bypassed = next.ahead > 0;
  const auto* const text = bypassed ? "others, such as KIM, applied the content before its turn"
                                    : "no other writer applied the content";
  k8s::set_condition(
      out,
      {"WavesBypassed"_reason, bypassed ? "True" : "False",
       bypassed ? "WrittenByOthers"_reason : "None"_reason, text, k8s::generation_of(object)},
      now);
  set_conditions(decided, out, k8s::generation_of(object), now);
  set_pinned(spec.revision, next, waiting, out, k8s::generation_of(object), now);
  if (before != nullptr && *before == out.at("status")) return std::nullopt;
  return std::move(out.as_object()["status"]);
}

std::optional<json::value> unreadable_status(const json::value& object, const std::string& pinned,
                                             const std::string& error, wall_time now) {
  const auto* const before = k8s::find(object, {"status"});
  json::value out{{"status", before != nullptr ? *before : json::object()}};
  const auto message = "nothing is rolled out, as revision " + pinned + " can't be read: " + error +
                       "; take spec.revision away, or name another one of status.history";
  out.at("status").as_object()["message"] = message;
  const auto set = [&](const char* type, bool is) {
    k8s::set_condition(
        out,
        {type, is ? "True" : "False", "ContentLost"_reason, message, k8s::generation_of(object)},
        now);
  };
  set("Ready"_reason, false);
  set("Reconciling"_reason, false);
  set("Stalled"_reason, true);
  set("Pinned"_reason, false);
  if (before != nullptr && *before == out.at("status")) return std::nullopt;
  return std::move(out.as_object()["status"]);
}

}  // namespace rw::runtime_rollout
