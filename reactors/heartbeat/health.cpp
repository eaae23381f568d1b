#include "rw/reactors/heartbeat/health.hpp"

#include "rw/k8s/objects/types.hpp"

#include <algorithm>
#include <utility>

namespace rw::heartbeats {
namespace {

using enum status_reason;

std::string seconds(core::duration of) {
  return std::to_string(std::chrono::floor<std::chrono::seconds>(of).count()) + " s";
}

std::string describe(const refused_event& of) {
  return of.manager + " rejects the event of " + of.kind + " " +
         (of.ns.empty() ? "" : of.ns + "/") + of.name + " with status " +
         std::to_string(of.status) + " and accepts others: see its log, and the gateway's";
}

std::string name_of(const watch_report& watch) {
  return watch.resource + (watch.group.empty() ? "" : "." + watch.group);
}

}  // namespace

std::string_view to_string(probe_stage of) noexcept {
  constexpr std::array<std::string_view, 5> names{"runtime", "webhook", "gateway", "heartbeat",
                                                  "complete"};
  return names.at(static_cast<std::size_t>(of));
}

fleet_health::entry& fleet_health::use(const k8s::object_key& kyma, moment at) {
  const auto [found, added] = records_.try_emplace(kyma);
  if (added) {
    found->second.heard = at.now;
    found->second.shown.since = at.wall;
    ++counts_[static_cast<std::size_t>(liveness::unknown)];
  }
  return *found;
}

/// Sets the state from what is known. Returns the change, if it is runtime.
std::optional<fleet_health::change> fleet_health::settle(entry& of, moment at) {
  auto& runtime = of.second;
  auto& shown = runtime.shown;
  const auto before = shown.state;
  const auto former = std::exchange(shown.reason, runtime.reason);
  shown.message = runtime.message;
  shown.waits_for = runtime.waits_for;
  // Until the first heartbeat is due, the watcher may not know yet that KCP is back.
  const bool early = shown.probe && shown.probe->stage == probe_stage::gateway && !shown.heard;
  const bool fails = shown.probe && shown.probe->reason != none && (runtime.silent || !early);
  // The probe knows more of why there are no heartbeats.
  if (fails && (runtime.silent || runtime.reason == none)) {
    shown.reason = shown.probe->reason;
    shown.message = shown.probe->message;
    shown.waits_for.clear();
  }
  shown.state = runtime.silent         ? liveness::silent
                : shown.reason != none ? liveness::degraded
                : shown.heard          ? liveness::live
                                       : liveness::unknown;
  if (shown.state != before) {
    --counts_[static_cast<std::size_t>(before)];
    ++counts_[static_cast<std::size_t>(shown.state)];
    shown.since = at.wall;
  }
  if (shown.state == before && shown.reason == former) return {};
  return change{of.first, shown, before};
}

core::duration fleet_health::timeout_of(const record& runtime) const {
  if (!runtime.shown.heard) return options_.timeout;
  return std::max<core::duration>(options_.timeout, runtime.shown.last.interval * 5 / 2);
}

/// Sets reason and message, empty without an error. What comes first needs a person first.
void fleet_health::assess(record& runtime, const heartbeat& content, moment at) const {
  const auto catches_up = std::ranges::find(content.watches, watch_state::catching_up,
                                            [](const auto& each) { return each.state; });
  if (catches_up == content.watches.end()) {
    runtime.catching_up.reset();
  } else if (!runtime.catching_up) {
    runtime.catching_up = at.now;
  }
  runtime.reason = none;
  runtime.message.clear();
  runtime.waits_for.clear();
  const auto& refused = content.refused;
  const auto waits = refused ? refused->oldest_other : content.oldest_undelivered;
  const auto& expiry = content.certificate_not_after;
  if (expiry && *expiry < at.wall + options_.certificate) {
    runtime.reason = certificate_expires;
    runtime.message = "the watcher's certificate expires at " + k8s::format_time(*expiry) +
                      ": see why it is not renewed";
  } else if (waits > options_.undelivered) {
    runtime.reason = events_wait;
    runtime.waits_for = content.oldest_manager;
    const auto& name = content.oldest_manager;
    runtime.message = "an event or a resync has waited for " + seconds(waits) + ": see whether " +
                      (name.empty() ? "its manager" : name) + " accepts events";
  } else if (content.oldest_undelivered > options_.undelivered) {
    runtime.reason = events_refused;
    runtime.waits_for = refused->manager;
    runtime.message = describe(*refused);
  } else if (runtime.catching_up && at.now - *runtime.catching_up > options_.catch_up) {
    runtime.reason = watch_not_live;
    runtime.message = name_of(*catches_up) + " is not watched" +
                      (catches_up->reason.empty() ? "" : ": " + catches_up->reason);
  }
}

fleet_health::receipt fleet_health::receive(const k8s::object_key& kyma, heartbeat content,
                                            moment at) {
  auto& of = use(kyma, at);
  auto& runtime = of.second;
  auto& shown = runtime.shown;
  auto lost = runtime.losses.receive(content, at.now, listening_);
  const bool first_loss = lost && (!runtime.lost || at.now - *runtime.lost >= loss_pause);
  if (first_loss) runtime.lost = at.now;
  if (lost) {
    losses_ += lost.count;
    shown.losses += lost.count;
    shown.loss = lost.message();
  }
  assess(runtime, content, at);
  std::optional<core::duration> proved;
  auto& probe = shown.probe;
  const bool waits = probe && probe->stage == probe_stage::heartbeat;
  if (waits && std::ranges::find(content.probes, probe->nonce) != content.probes.end()) {
    probe->stage = probe_stage::complete;
    probe->reason = none;
    probe->message.clear();
    probe->took = at.now - probe->begun;
    proved = probe->took;
  }
  if (probe && probe->stage == probe_stage::gateway && at.now >= probe->begun) {
    probe->reason = none;  // it reaches KCP now
    probe->message.clear();
  }
  const bool reloaded = note_pod(runtime, content, at);
  runtime.silent = false;
  runtime.heard = at.now;
  shown.heard = at.wall;
  content.watches = std::vector<watch_report>();  // = {} would keep the memory
  content.probes = std::vector<std::string>();
  content.losses = std::vector<operator_losses>();
  content.refused.reset();
  shown.last = std::move(content);
  return {.changed = settle(of, at),
          .lost = std::move(lost),
          .first_loss = first_loss,
          .probe = proved,
          .reloaded = reloaded};
}

bool fleet_health::note_pod(record& runtime, const heartbeat& content, moment at) {
  auto& pods = runtime.pods;
  const auto name_of = [](const pod& pod) -> const std::string& { return pod.loaded.pod; };
  auto found = std::ranges::find(pods, content.pod, name_of);
  const bool known = found != pods.end();
  if (known && found->boot_id == content.boot_id) {
    events_.add_increase(found->events, content.events);
  }
  if (!known && pods.size() < max_pods) found = pods.insert(pods.end(), pod());
  if (found == pods.end()) {
    found = std::ranges::min_element(pods, {}, [](const pod& pod) { return pod.loaded.heard; });
  }
  const bool reloaded = !known || !found->loaded.same_files(content);
  *found = {.loaded = {.pod = content.pod,
                       .managers_digest = content.managers_digest,
                       .ca_digest = content.ca_digest,
                       .certificate_digest = content.certificate_digest,
                       .heard = at.wall},
            .boot_id = content.boot_id,
            .events = content.events};
  return reloaded;
}

std::vector<pod_report> fleet_health::pods(const k8s::object_key& kyma) const {
  std::vector<pod_report> out;
  const auto found = records_.find(kyma);
  if (found == records_.end()) return out;
  for (const auto& each : found->second.pods) {
    if (!each.loaded.pod.empty()) out.push_back(each.loaded);
  }
  return out;
}

bool fleet_health::expect(const k8s::object_key& kyma, moment at) {
  auto& runtime = use(kyma, at).second;
  if (std::exchange(runtime.expected, true)) return false;
  runtime.heard = at.now;
  return true;
}

void fleet_health::unexpect(const k8s::object_key& kyma, moment at) {
  const auto found = records_.find(kyma);
  if (found == records_.end() || !std::exchange(found->second.expected, false)) return;
  clear(*found, at);
}

/// Forgets all but the losses.
void fleet_health::clear(entry& of, moment at) {
  auto& runtime = of.second;
  runtime.silent = false;
  runtime.reason = none;
  runtime.message.clear();
  runtime.waits_for.clear();
  runtime.pods.clear();
  runtime.shown.heard.reset();
  runtime.shown.probe.reset();
  runtime.shown.probed.reset();
  settle(of, at);
}

bool fleet_health::accepts(const k8s::object_key& kyma, const heartbeat& content, moment at) {
  auto& runtime = use(kyma, at).second;
  if (runtime.accepted.try_take(at.now)) return true;
  const auto same = [&](const pod& pod) {
    return pod.loaded.pod == content.pod && pod.loaded.same_files(content);
  };
  return std::ranges::none_of(runtime.pods, same) && runtime.reloads.try_take(at.now);
}

std::optional<fleet_health::change> fleet_health::probed(const k8s::object_key& kyma,
                                                         probe_result result, moment at) {
  auto& of = use(kyma, at);
  of.second.shown.probe = std::move(result);
  of.second.shown.probed = at.wall;
  return settle(of, at);
}

void fleet_health::poll(moment at, const visitor& report) {
  for (auto& of : records_) {
    auto& runtime = of.second;
    const auto limit = timeout_of(runtime);
    if (!runtime.expected && runtime.shown.heard && at.now - runtime.heard >= limit) clear(of, at);
    if (!runtime.expected || runtime.silent) continue;
    auto& probe = runtime.shown.probe;
    if (probe && probe->stage == probe_stage::heartbeat && probe->reason == none &&
        runtime.shown.heard && at.now - probe->begun > limit) {
      probe->reason = probe_not_confirmed;
      probe->message =
          "heartbeats arrive but do not name the probe: see whether another process has the "
          "certificate of the watcher";
      if (const auto changed = settle(of, at)) report(*changed);
    }
    if (at.now - runtime.heard < limit) continue;
    const auto& expiry = runtime.shown.last.certificate_not_after;
    runtime.silent = true;
    runtime.reason = no_heartbeat;
    runtime.waits_for.clear();
    const auto length = seconds(at.now - runtime.heard);
    runtime.message = runtime.shown.heard ? "no heartbeat for " + length
                                          : "no heartbeat has come yet, in " + length;
    runtime.message += expiry && *expiry < at.wall
                           ? ": the watcher's certificate expired at " + k8s::format_time(*expiry)
                           : ": see whether the watcher's pod runs and reaches the gateway";
    if (const auto changed = settle(of, at)) report(*changed);
  }
}

void fleet_health::retain(const std::function<bool(const k8s::object_key&)>& keep) {
  std::erase_if(records_, [&](const auto& each) {
    if (keep(each.first)) return false;
    --counts_[static_cast<std::size_t>(each.second.shown.state)];
    return true;
  });
}

const runtime_health* fleet_health::find(const k8s::object_key& kyma) const {
  const auto found = records_.find(kyma);
  return found == records_.end() ? nullptr : &found->second.shown;
}

}  // namespace rw::heartbeats
