// What the manager shows at /runtimes and on its page.

#include "rw/reactors/cli/manager_view.hpp"

#include "rw/core/hash.hpp"
#include "rw/core/text.hpp"
#include "rw/k8s/objects/read_json.hpp"
#include "rw/k8s/objects/types.hpp"
#include "rw/reactors/cli/manager_options.hpp"
#include "rw/reactors/cli/version.hpp"
#include "rw/reactors/shared/kyma_resources.hpp"
#include "rw/reactors/shared/recent_events.hpp"

#include <boost/json/serialize.hpp>

#include <algorithm>
#include <array>
#include <functional>
#include <iterator>
#include <utility>
#include <vector>

namespace rw::cli {
namespace {

/// Seconds since 1970, or nothing.
void add_time(boost::json::object& to, std::string_view member,
              std::chrono::system_clock::time_point time) {
  if (time.time_since_epoch().count() <= 0) return;
  to[member] = std::chrono::floor<std::chrono::seconds>(time).time_since_epoch().count();
}

void add_text(boost::json::object& to, std::string_view member, std::string_view text) {
  constexpr std::size_t longest = 300;
  if (!text.empty()) to[member] = core::middle_cut(text, longest);
}

std::uint64_t whole(double value) {
  return static_cast<std::uint64_t>(std::max(0.0, value));
}

/// Whom a Kyma that is being deleted waits for.
std::string deletion_text(const boost::json::value& kyma) {
  std::string names;
  const auto* const all = k8s::find_array(kyma, {"metadata", "finalizers"});
  for (const auto& each : all == nullptr ? boost::json::array() : *all) {
    if (each.is_string()) names.append(names.empty() ? "" : ", ").append(each.get_string());
  }
  return "the Kyma is being deleted since " +
         std::string(k8s::find_string(kyma, {"metadata", "deletionTimestamp"})) +
         (names.empty() ? "" : ", and has the finalizers " + names);
}

/// Why the manager leaves a runtime alone; empty: it does not.
std::string left_alone_text(const cluster_state* state) {
  if (state == nullptr) return {};
  if (state->scope == cluster_scope::unselected) return "left alone, as --only says";
  if (state->scope != cluster_scope::left_alone) return {};
  return "left alone, as the label " + std::string(skip_label) + " says";
}

/// Parses those only that may be.
bool is_being_deleted(const k8s::object& kyma) {
  return kyma.text().find("\"deletionTimestamp\"") != std::string_view::npos &&
         k8s::is_being_deleted(kyma.parse());
}

}  // namespace

std::string_view manager_app::view::runtime::state() const {
  if (is_deleted) return "deleting";
  return installed != nullptr && installed->state ? to_string(*installed->state) : "unknown";
}

manager_app::view::runtime manager_app::view::find(const k8s::object_key& kyma) const {
  return {manager_.installer_->runtimes().find(kyma),
          manager_.heartbeats_ ? manager_.heartbeats_->health().find(kyma) : nullptr,
          is_being_deleted(manager_.kymas_.objects().get(kyma))};
}

runtime_summary manager_app::view::summary_of(const k8s::object_key& kyma) const {
  const auto known = find(kyma);
  runtime_summary out{.kyma = kyma, .state = known.state(), .reason = {}};
  out.condition = to_string(judged(kyma, known).condition);
  out.heartbeat = to_string(liveness_of(known.health));
  if (known.installed != nullptr && known.installed->state) {
    out.reason = to_string(known.installed->reason);
    out.since = known.installed->since;
  }
  if (!left_alone_text(manager_.clusters_.find(kyma)).empty()) {
    out.reason = to_string(status_reason::left_alone);
  }
  if (known.is_deleted) {
    const auto value = manager_.kymas_.objects().get(kyma).parse();
    const auto deleted = k8s::find_string(value, {"metadata", "deletionTimestamp"});
    out.since = k8s::parse_rfc3339(deleted).value_or(out.since);
    if (!known.fails_removal()) out.reason = {};
  }
  return out;
}

void manager_app::for_each_runtime(const std::function<void(const runtime_summary&)>& visit) const {
  kymas_.objects().for_each([&](const k8s::object& kyma) {
    auto summary = view_->summary_of(kyma.key());
    if (summary.reason.empty()) summary.reason = view_->reason_of_heartbeats(summary.kyma);
    visit(summary);
  });
}

std::string_view manager_app::view::reason_of_heartbeats(const k8s::object_key& kyma) const {
  const auto* const health = find(kyma).health;
  return health == nullptr ? std::string_view() : to_string(health->reason);
}

std::string manager_app::view::runtimes(std::string_view query, std::string& error) {
  const auto wanted = runtimes_query::parse(query, error);
  if (!error.empty()) return {};
  // First: the transitions below are as new as the conditions beside them.
  if (manager_.leads_) judge();
  std::vector<runtime_summary> all;
  manager_.kymas_.objects().for_each(
      [&](const k8s::object& kyma) { all.push_back(summary_of(kyma.key())); });
  auto page = runtimes_page(std::move(all), wanted, manager_.services_.clock.wall(),
                            [&](const auto& runtime, auto& row) {
                              describe(runtime.kyma, row);
                              // Of a single one, for its details: they are many.
                              if (!wanted.kyma.empty()) row["events"] = events_of(runtime.kyma);
                            });
  page["version"] = version_text();
  page["leads"] = manager_.leads_;
  if (const auto command = manager_.page_command(); !command.empty()) page["page"] = command;
  const auto age =
      judged_at_ ? manager_.services_.clock.now() - *judged_at_ : core::duration::zero();
  page["verdict"] =
      json_of(verdict(), std::chrono::duration_cast<std::chrono::system_clock::duration>(age));
  if (manager_.heartbeats_) page["heartbeats"] = heartbeat_counts();
  page["conditions"] = conditions();
  page["rotation"] = rotation(nullptr);
  return boost::json::serialize(page);
}

boost::json::object manager_app::view::rotation(const core::metrics_snapshot* values) const {
  if (!manager_.leads_ || !manager_.rotator_->has_planned()) return {};
  const auto& plan = manager_.rotator_->last();
  boost::json::object out{{"phase", gateway_secret::name_of(plan.phase)},
                          {"missing", plan.missing}};
  if (const auto reason = gateway_secret::reason_of(plan.phase); !reason.empty()) {
    out["reason"] = reason;
  }
  if (!plan.waiting.empty()) out["waiting"] = plan.waiting;
  if (plan.recheck_at) out["next"] = k8s::format_time(*plan.recheck_at);
  if (plan.deadline) out["deadline"] = k8s::format_time(*plan.deadline);
  if (values == nullptr) return out;
  const auto add_expiry = [&](std::string_view member, const char* certificate) {
    const auto seconds = values->sum("rw_gateway_secret_certificate_expiry_timestamp_seconds",
                                     {{"certificate", certificate}});
    if (seconds <= 0) return;
    out[member] = k8s::format_time(std::chrono::system_clock::time_point(
        std::chrono::seconds(static_cast<std::chrono::seconds::rep>(seconds))));
  };
  add_expiry("servedUntil", "served");
  add_expiry("rootUntil", "root");
  const auto close = values->sum("lifecycle_mgr_gateway_secret_server_cert_close_to_expiry");
  out["closeToExpiry"] = close > 0;
  return out;
}

void manager_app::view::describe(const k8s::object_key& kyma, boost::json::object& row) const {
  const auto value = manager_.kymas_.objects().get(kyma).parse();
  row["runtimeId"] = k8s::label(value, runtime_id_label);
  const auto* const seen = manager_.installer_->runtimes().find(kyma);
  if (seen != nullptr && !seen->message.empty()) row["message"] = seen->message;
  if (const auto text = left_alone_text(manager_.clusters_.find(kyma)); !text.empty()) {
    row["message"] = text;
  }
  const auto known = find(kyma);
  if (known.is_deleted) {
    const auto failure = known.fails_removal() ? seen->message + "; " : std::string();
    row["message"] = failure + deletion_text(value);
  }
  const auto* const changes = *manager_.dry_run_ ? manager_.installer_->changes(kyma) : nullptr;
  if (changes != nullptr && !changes->empty()) {
    // A failure is more than what the last pass before it would have written.
    const bool fails = seen != nullptr && (seen->state == runtime_state::failed ||
                                           seen->state == runtime_state::unreachable);
    if (!fails) {
      row["reason"] = to_string(status_reason::would_write);
      row["message"] = "would write " + std::to_string(changes->size()) + " objects";
    }
    auto& list = row["wouldWrite"].emplace_array();
    for (const auto& change : *changes) list.emplace_back(change);
  }
  const auto kind = certificate_options(manager_.settings_).certificates.kind;
  const auto certificate =
      manager_.certificates_.objects()
          .get({manager_.settings_.istio_namespace, certificates::certificate_name(kyma.name)})
          .parse();
  if (const auto valid = certificates::validity_in_status(certificate, kind)) {
    row["certificate"] = {{"notBefore", k8s::format_time(valid->not_before)},
                          {"notAfter", k8s::format_time(valid->not_after)}};
  }
  if (manager_.rollout_->holds(kyma.name)) row["rollout"] = "waits for its turn";
  if (manager_.heartbeats_) describe_heartbeat(kyma, row);
  const auto verdict_of_it = judged(kyma, known);
  if (verdict_of_it.reason != status_reason::none) {
    row["nextStep"] = verdict_.next_step_of(verdict_of_it.reason);
  }
  row["transitions"] = json_of(history_.transitions_of(kyma.name));
  const auto* const entry = manager_.clusters_.find(kyma);
  if (entry == nullptr) return;
  if (entry->observed) row["authorities"] = entry->observed->authorities.size();
  if (const auto& demand = manager_.rotator_->last().demand) {
    const auto lacks = gateway_secret::lacks(*entry, *demand, rotation_options(manager_.settings_),
                                             manager_.services_.clock.wall());
    if (!lacks.reason.empty()) row["rotation"] = lacks.reason;
  }
  if (!entry->error) return;
  row["notConverged"] = {{"reason", to_string(entry->error->reason)},
                         {"fault", to_string(entry->error->fault)},
                         {"since", k8s::format_time(entry->error->since)}};
}

boost::json::array manager_app::view::events_of(const k8s::object_key& kyma) const {
  constexpr std::size_t most = 16;
  auto all = manager_.recent_events_->of(kymas_type().gvk.kind, kyma);
  if (manager_.runtime_config_) {
    for (const auto& runtime : manager_.runtime_config_->runtimes_of(kyma.name)) {
      for (const auto& type : {runtimes_type(), bootstrapper::runtime_bootstrappers_type()}) {
        std::vector<recent_event> merged;
        std::ranges::merge(all, manager_.recent_events_->of(type.gvk.kind, runtime),
                           std::back_inserter(merged), std::ranges::greater(), &recent_event::at,
                           &recent_event::at);
        all = std::move(merged);
      }
    }
  }
  if (all.size() > most) all.resize(most);
  return json_of(all);
}

// The live page.

boost::json::object manager_app::view::state() {
  boost::json::object out{{"version", RW_VERSION}};
  if (const auto reasons = manager_.not_ready(); !reasons.empty()) {
    auto& list = out["notReady"].emplace_array();
    for (std::string_view rest = reasons; !rest.empty();) {
      const auto line = rest.substr(0, rest.find('\n'));
      list.emplace_back(line);
      rest.remove_prefix(std::min(line.size() + 1, rest.size()));
    }
  }
  out["conditions"] = conditions();
  out["verdict"] = json_of(verdict(), {});
  out["total"] = totals_.runtimes;
  auto& states = out["states"].emplace_object();
  for (const auto& [state, count] : totals_.states) states[state] = count;
  if (manager_.heartbeats_) {
    out["heartbeats"] = heartbeat_counts();
    out["events"] = events();
    out["certificates"] = certificates();
  }
  const core::metrics_snapshot values(manager_.services_.metrics);
  add_flow(values, out);
  out["rotation"] = rotation(&values);
  out["rollouts"] = rollouts();
  auto& warnings = out["warnings"].emplace_array();
  for (const auto& cause : manager_.services_.log.latest_warnings()) {
    auto line = k8s::read_json(cause.latest);
    if (!line) continue;
    boost::json::object warning{{"line", std::move(*line)}, {"times", cause.count}};
    if (!cause.names.empty()) {
      warning["names"] = boost::json::array(cause.names.begin(), cause.names.end());
    }
    warnings.push_back(std::move(warning));
  }
  return out;
}

boost::json::object manager_app::view::events() const {
  const auto& sum = manager_.heartbeats_->health().observed_events();
  return {{"accepted", sum.accepted},
          {"delivered", sum.delivered},
          {"lost", manager_.heartbeats_->health().observed_losses()},
          {"rejected", sum.rejected},
          {"notPersisted", sum.not_persisted},
          {"resyncs", sum.resyncs},
          {"holding", totals_.holding},
          {"oldestMilliseconds", totals_.oldest.count()}};
}

boost::json::object manager_app::view::certificates() const {
  boost::json::object out{{"expiring", totals_.expiring}};
  add_time(out, "earliest", totals_.earliest);
  add_text(out, "earliestRuntime", totals_.earliest_runtime);
  return out;
}

/// Adds what the manager's metrics say of the way of events through it.
void manager_app::view::add_flow(const core::metrics_snapshot& values,
                                 boost::json::object& to) const {
  const auto delivery = values.histogram("rw_event_delivery_seconds");
  const std::vector<std::uint64_t> counts(delivery.counts.begin(), delivery.counts.end());
  to["delivery"] = {{"bounds", boost::json::array(delivery.bounds.begin(), delivery.bounds.end())},
                    {"counts", boost::json::array(counts.begin(), counts.end())},
                    {"sum", delivery.sum}};
  to["listener"] = {
      {"requests", whole(values.sum("watcher_listener_requests_total"))},
      {"errors", whole(values.sum("watcher_listener_request_errors_total"))},
      {"inflight", whole(values.sum("watcher_listener_inflight_requests"))},
      {"connections", whole(values.sum("rw_http_open_connections", {{"server", "listener"}}))}};
  double taken = 0;
  for (const auto* const outcome : {"routed", "held", "unknown"}) {
    taken += values.sum("rw_kyma_router_events_total", {{"outcome", outcome}});
  }
  to["channel"] = {{"taken", whole(taken)},
                   {"size", manager_.listener_.events->size()},
                   {"capacity", manager_.listener_.events->capacity()}};
  const core::labels queue{{"name", "watcher-installer"}};
  to["queue"] = {
      {"depth", whole(values.sum("workqueue_depth", queue))},
      {"adds", whole(values.sum("workqueue_adds_total", queue))},
      {"retries", whole(values.sum("workqueue_retries_total", queue))},
      {"longestSeconds", values.sum("workqueue_longest_running_processor_seconds", queue)}};
  const core::labels controller{{"controller", "watcher-installer"}};
  to["reconciles"] = {
      {"total", whole(values.sum("controller_runtime_reconcile_total", controller))},
      {"errors", whole(values.sum("controller_runtime_reconcile_errors_total", controller))},
      {"active", whole(values.sum("controller_runtime_active_workers", controller))}};
}

boost::json::array manager_app::view::rollouts() const {
  boost::json::array out;
  manager_.rollouts_.objects().for_each([&](const k8s::object& object) {
    const auto value = object.parse();
    const auto* const status = k8s::find(value, {"status"});
    if (status == nullptr) return;
    boost::json::object entry{{"component", object.name()}};
    for (const auto* const member : {"phase", "reason", "message", "content"}) {
      add_text(entry, member, k8s::find_string(*status, {member}));
    }
    auto& counts = entry["counts"].emplace_object();
    for (const auto& [name, pointer] : runtime_rollout::count_names) {
      if (const auto* const count = k8s::find(*status, {name})) counts[name] = *count;
    }
    out.push_back(std::move(entry));
  });
  return out;
}

void manager_app::view::add(const k8s::object_key& kyma, const heartbeat& last) {
  constexpr std::chrono::hours notice(72);
  if (last.oldest_undelivered.count() > 0) ++totals_.holding;
  totals_.oldest = std::max(totals_.oldest, last.oldest_undelivered);
  const auto until = last.certificate_not_after;
  if (!until) return;
  if (*until < manager_.services_.clock.wall() + notice) ++totals_.expiring;
  if (totals_.earliest_runtime.empty() || *until < totals_.earliest) {
    totals_.earliest = *until;
    totals_.earliest_runtime = kyma.name;
  }
}

void manager_app::view::for_each_row(const visitor& visit) {
  totals_ = {};
  manager_.kymas_.objects().for_each([&](const k8s::object& object) {
    const auto kyma = object.key();
    const auto known = find(kyma);
    ++totals_.runtimes;
    ++totals_.states[known.state()];
    // What a runtime that is silent now reported last says nothing of its events.
    const bool is_heard = known.health != nullptr && known.health->heard;
    if (is_heard && known.health->state != heartbeats::liveness::silent) {
      add(kyma, known.health->last);
    }
    visit(kyma.name, digest_of(object, known));
  });
}

/// A digest of all that `row` reads.
std::uint64_t manager_app::view::digest_of(const k8s::object& kyma, const runtime& known) const {
  std::array<std::int64_t, 8> numbers{};
  const auto* const cluster = manager_.clusters_.find(kyma.key());
  if (cluster != nullptr) numbers[5] = static_cast<int>(cluster->scope);
  core::string_hash hash;
  hash.add(to_string(judged(kyma.key(), known).condition));
  hash.add(kyma.resource_version()).add(manager_.rollout_->content_of(std::string(kyma.name())));
  if (const auto* const now = known.installed; now != nullptr) {
    hash.add(known.state()).add(to_string(now->reason)).add(now->message);
    numbers[0] = now->since.time_since_epoch().count();
  }
  if (const auto* const now = known.health; now != nullptr) {
    hash.add(to_string(now->reason)).add(now->message).add(now->last.version);
    numbers[1] = static_cast<int>(now->state);
    numbers[2] =
        now->heard.value_or(std::chrono::system_clock::time_point()).time_since_epoch().count();
    numbers[3] = static_cast<std::int64_t>(now->losses);
    if (now->probe) {
      hash.add(to_string(now->probe->reason));
      numbers[4] = static_cast<int>(now->probe->stage) + 1;
    }
  }
  const std::string_view bytes(reinterpret_cast<const char*>(numbers.data()), sizeof numbers);
  return hash.add(bytes).value();
}

boost::json::object manager_app::view::row(std::string_view name) {
  const k8s::object_key kyma{std::string(kcp_namespace), std::string(name)};
  const auto known = find(kyma);
  boost::json::object out{{"kyma", name},
                          {"state", known.state()},
                          {"condition", to_string(judged(kyma, known).condition)}};
  const auto value = manager_.kymas_.objects().get(kyma).parse();
  add_text(out, "id", k8s::label(value, runtime_id_label));
  add_text(out, "content", manager_.rollout_->content_of(kyma.name));
  const auto left_alone = left_alone_text(manager_.clusters_.find(kyma));
  const bool is_installed =
      known.installed == nullptr || known.installed->state == runtime_state::installed;
  if (known.fails_removal()) {
    add_text(out, "reason", to_string(known.installed->reason));
    add_text(out, "message", known.installed->message);
  } else if (known.is_deleted) {
    add_text(out, "message", deletion_text(value));
  } else if (!left_alone.empty()) {
    add_text(out, "reason", to_string(status_reason::left_alone));
    add_text(out, "message", left_alone);
  } else if (!is_installed) {
    add_text(out, "reason", to_string(known.installed->reason));
    add_text(out, "message", known.installed->message);
  } else if (known.health != nullptr) {
    add_text(out, "reason", to_string(known.health->reason));
    add_text(out, "message", known.health->message);
  }
  if (known.installed != nullptr) add_time(out, "since", known.installed->since);
  if (manager_.heartbeats_) out["heartbeat"] = to_string(liveness_of(known.health));
  if (known.health == nullptr) return out;
  const auto& health = *known.health;
  out["losses"] = health.losses;
  if (health.probe) {
    out["probe"] = to_string(health.probe->stage);
    add_text(out, "probeReason", to_string(health.probe->reason));
  }
  if (!health.heard) return out;
  add_time(out, "heard", *health.heard);
  add_text(out, "version", health.last.version);
  out["oldest"] = health.last.oldest_undelivered.count();
  if (health.last.delivery) out["lag"] = health.last.delivery->count();
  if (health.last.certificate_not_after) {
    add_time(out, "certificate", *health.last.certificate_not_after);
  }
  return out;
}

}  // namespace rw::cli
