#include "rw/reactors/runtime_rollout/runtime_rollout.hpp"

#include "rw/core/task_group.hpp"
#include "rw/k8s/objects/types.hpp"
#include "rw/reactors/shared/explanations.hpp"
#include "rw/reactors/shared/kyma_resources.hpp"
#include "rw/reactors/shared/status_reason.hpp"

#include <boost/json/object.hpp>

#include <algorithm>
#include <array>
#include <charconv>
#include <utility>

namespace rw::runtime_rollout {
namespace {

namespace asio = boost::asio;
namespace json = boost::json;
using k8s::object_key;

/// After a start nothing is decided before the health of each runtime is known, or this has passed:
/// shares are of all runtimes, and a canary whose health is unknown would be replaced by another.
constexpr auto warm_up = std::chrono::minutes(5);

/// What is awaited goes by the clock of the wall, and counts anew from where that is set back to.
constexpr auto longest_wait = std::chrono::seconds(10);

constexpr const char* outdated_definition =
    "the definition of RuntimeRollouts is older than this manager: kubectl apply -f deploy/crds";

std::string text_of(double value) {
  std::array<char, 32> out{};
  return {out.data(), std::to_chars(out.begin(), out.end(), value).ptr};
}

/// The spec has not changed. The status has, mostly by this roll-out, and a decision that followed
/// at once would be followed by the next: while runtimes change, each writes another status.
bool asks_the_same(const k8s::delta& change) {
  if (!change.before || !change.now) return false;
  const auto before = change.before.parse();
  const auto now = change.now.parse();
  return k8s::uid_of(before) == k8s::uid_of(now) &&
         k8s::generation_of(before) == k8s::generation_of(now);
}

bool begins_anew(content_health before, content_health now) {
  const auto runs_badly = [](content_health each) {
    return each == content_health::progressing || each == content_health::failed;
  };
  return before != now && !(runs_badly(before) && runs_badly(now));
}

}  // namespace

runtime_rollout::runtime_rollout(asio::any_io_executor executor, rollout_options with,
                                 rollout_environment in)
    : options_(std::move(with)),
      environment_(std::move(in)),
      key_{std::string(kcp_namespace), options_.component},
      writer_(environment_.kcp, runtime_rollouts_type()),
      controller_(std::move(executor),
                  {.name = "rollout-" + options_.component,
                   .concurrent = 1,
                   .queue = {.retry_limit = std::chrono::seconds(30)}},
                  *this, environment_.common) {
  controller_.watch(environment_.rollouts,
                    [this](const k8s::delta& change, k8s::controller::keys& out) {
                      if (change.latest().key() != key_) return;
                      if (asks_the_same(change)) return decide_soon();
                      out.push_back(key_);
                    });
}

asio::awaitable<void> runtime_rollout::run() {
  started_ = environment_.common.clock.now();
  for (const bool passed : {true, false}) verifications(passed);
  decide_soon();
  core::task_group tasks(co_await asio::this_coro::executor);
  tasks.spawn(watch_access());
  tasks.spawn(controller_.run());
  co_await tasks.join();
}

/// Notices where RuntimeRollouts can't be read. The informer goes on by itself.
asio::awaitable<void> runtime_rollout::watch_access() {
  const auto executor = co_await asio::this_coro::executor;
  const auto pause = environment_.common.clock.make_timer(executor);
  for (bool due = true; due;) {
    const auto got =
        co_await environment_.kcp.list(runtime_rollouts_type(), {.ns = key_.ns}, {.limit = 1});
    if (got) {
      if (closed_reason_ != definition_outdated) set_closed({}, {});
    } else if (got.error().is(k8s::errc::not_found)) {
      set_closed(kind_not_served,
                 "there is no definition of RuntimeRollouts: kubectl apply -f deploy/crds");
    } else if (got.error().is(k8s::errc::forbidden)) {
      set_closed(to_string(status_reason::rights_missing),
                 "rights to RuntimeRollouts are missing: " + got.error().message);
    }
    pause->expires_at(environment_.common.clock.now() + options_.access_interval);
    due = co_await pause->wait();
  }
}

void runtime_rollout::set_closed(std::string_view reason, std::string text) {
  core::make_gauge(environment_.common.metrics, "rw_rollout_closed",
                   "1 if nothing is rolled out, as the RuntimeRollout can't be used",
                   {{"component", options_.component}})
      .Set(reason.empty() ? 0 : 1);
  if (text == closed_) return;
  if (closed_.empty()) closed_since_ = environment_.common.clock.wall();
  closed_reason_ = reason;
  closed_ = std::move(text);
  if (closed_.empty()) {
    environment_.common.log.info("roll-outs go on", {{"component", options_.component}});
    return;
  }
  environment_.common.log.warning("nothing is rolled out",
                                  {{"component", options_.component}, {"reason", closed_}});
  if (environment_.lease.is_null()) return;
  environment_.events.warning(
      k8s::reference_to(environment_.lease), "RolloutClosed"_reason,
      "Nothing of the " + options_.component + " is rolled out: " + closed_);
}

bool runtime_rollout::admit(const object_key& runtime, const shared_content& content,
                            const content_revisions& desired, const content_facts& now) {
  // A pass that began before the pin, or one that can't read what is pinned.
  if (!pinned_.empty() && content.digest != pinned_) return false;
  const bool was_awaited = std::exchange(awaits_sources_, {}).has_value();
  if (content != content_ || was_awaited) decide_soon();
  if (content.digest != content_.digest) {
    new_ahead_ = 0;
    for (auto& [name, each] : runtimes_) {
      each.wanted.clear();
      each.admitted.reset();
      each.ahead = false;
    }
  }
  content_ = content;
  if (!std::exchange(unreadable_, {}).empty()) decide_soon();
  if (desired.newest.empty()) {
    leave(runtime);
    return false;
  }
  auto& known = runtimes_.try_emplace(runtime.name, participant{.observed = {}}).first->second;
  auto next = known;
  next.wanted = desired.newest;
  next.completed = desired.completed;
  locate(runtime.name, next);
  take(runtime, known, std::move(next), now);
  return known.has_turn();
}

bool runtime_rollout::still_admits(const object_key& runtime, std::string_view content) const {
  if (content != content_.digest || (!pinned_.empty() && content != pinned_)) return false;
  const auto found = runtimes_.find(runtime.name);
  return found != runtimes_.end() && found->second.has_turn();
}

void runtime_rollout::refresh(const shared_content& content) {
  // Another content comes with the next pass.
  const bool same = content.sources == content_.sources && content.waiting == content_.waiting;
  if (content.digest != content_.digest || same) return;
  content_.sources = content.sources;
  content_.waiting = content.waiting;
  decide_soon();
}

void runtime_rollout::observe(const object_key& runtime, const content_facts& now) {
  const auto found = runtimes_.find(runtime.name);
  if (found == runtimes_.end()) return;
  if (now.health) found->second.observed = environment_.common.clock.wall();
  take(runtime, found->second, found->second, now);
}

/// A decision looks at all runtimes, so that it is made only where one of them has changed.
void runtime_rollout::take(const object_key& runtime, participant& known, participant next,
                           const content_facts& now) {
  if (!warm_ && (now.health || !now.error.empty())) seen_.insert(runtime);
  next.in_place = now.in_place.value_or(known.in_place);
  next.is = now.health.value_or(known.is);
  const bool changed = next.in_place != known.in_place || next.is != known.is;
  const bool reported = now.since && *now.since != known.reported_since;
  // The same again: it may have been held to the clock. If it is in the future, since the clock was
  // set back, it hides when another state began. (Failed and not ready are one to the conditions.)
  const bool hidden =
      now.since && !reported && (next.in_place != known.in_place || begins_anew(known.is, next.is));
  if (reported) next.since = next.reported_since = *now.since;
  if (hidden || (!now.since && changed)) next.since = environment_.common.clock.wall();
  next.rejected = !now.rejected.empty() && now.rejected == next.wanted;
  if (now.health || !now.error.empty()) next.error = now.error;
  if (now.ahead && !known.ahead) ++new_ahead_;
  next.ahead = known.ahead || now.ahead;
  if (next != known || inspects_) decide_soon();
  known = std::move(next);
}

void runtime_rollout::leave(const object_key& runtime) {
  if (!warm_) seen_.insert(runtime);
  if (runtimes_.erase(runtime.name) > 0) decide_soon();
}

bool runtime_rollout::holds(const std::string& runtime) const {
  const auto found = runtimes_.find(runtime);
  return found != runtimes_.end() && !found->second.has_turn();
}

std::string_view runtime_rollout::content_of(const std::string& runtime) const {
  const auto found = runtimes_.find(runtime);
  return found == runtimes_.end() ? std::string_view() : found->second.in_place;
}

bool runtime_rollout::has_warmed_up() {
  if (warm_) return true;
  bool all = environment_.resources.synced() && environment_.runtimes.synced();
  environment_.resources.objects().for_each(
      [&](const k8s::object& each) { all = all && seen_.contains(each.key()); });
  warm_ = all || environment_.common.clock.now() >= started_ + warm_up;
  if (warm_) seen_.clear();
  return warm_;
}

/// Finds where a runtime is: its position, and the labels of steps.
void runtime_rollout::locate(const std::string& name, participant& into) const {
  const auto runtime = environment_.runtimes.objects().get(key_.ns, name);
  const auto uid = runtime ? runtime.uid() : std::string_view(name);
  if (into.uid != uid) {
    into.uid = uid;
    into.position = position_of(uid);
  }
  into.labelled.reset();
  if (!by_labels_ || !runtime) return;
  const auto value = runtime.parse();
  into.labelled = first_match(selectors_, k8s::find(value, {"metadata", "labels"}));
}

void runtime_rollout::locate_all(const std::vector<step>& steps) {
  selectors_ = selectors_of(steps);
  by_labels_ = std::ranges::any_of(selectors_, [](const auto& of) { return !of.empty(); });
  for (auto& [name, each] : runtimes_) locate(name, each);
}

/// What the clock shows as in the future, since it was set back, counts from now on.
void runtime_rollout::hold_to_the_clock() {
  const auto now = environment_.common.clock.wall();
  for (auto& [name, each] : runtimes_) {
    each.since = std::min(each.since, now);
    if (each.admitted) each.admitted = std::min(*each.admitted, now);
  }
}

asio::awaitable<k8s::reconcile_result> runtime_rollout::reconcile(object_key) {
  const auto stored = environment_.rollouts.objects().get(key_);
  if (!stored) {
    writer_.forget(key_);
    const auto made =
        co_await environment_.kcp.create(runtime_rollouts_type(), make_rollout(options_.component));
    const bool there = made || made.error().is(k8s::errc::already_exists);
    co_return there ? result::requeue_after(settle()) : result::error(made.error());
  }
  if (!has_warmed_up()) co_return result::requeue_after(settle());
  auto object = writer_.newest(stored);
  const bool decidable = follow_pin(object);
  if (!unreadable_.empty()) {
    auto reported = co_await report_unreadable(&object);
    co_return reported;
  }
  if (!decidable) co_return awaits_sources_ ? result::requeue_after(settle()) : result::done();
  if (content_.digest.empty()) {
    auto idle = co_await report_idle(&object);
    co_return idle;
  }
  hold_to_the_clock();
  const auto spec = read_spec(object, options_.usual);
  locate_all(spec.with.steps);
  const auto content = content_;
  const auto before = read_state(object);
  auto known = before;
  const auto added = new_ahead_;
  if (before.content == content.digest) known.ahead += added;
  rollout_request request{.content = content.digest,
                          .at_once = content.at_once,
                          .paused = spec.paused,
                          .resume = spec.resume,
                          .wire_version = content.wire_version,
                          .sources = content.sources,
                          .promote = spec.promote,
                          .can_verify = environment_.prometheus != nullptr};
  auto decided = decide(known, request, runtimes_, spec.with, environment_.common.clock.wall());
  if (before.content != content.digest) decided.next.ahead = added;
  while (decided.to_verify) {
    const auto number = *decided.to_verify;
    request.verified = co_await verify(number, *spec.with.steps[number].verify);
    if (content.digest != content_.digest) co_return result::requeue_after(settle());
    // Runtimes may have appeared meanwhile.
    hold_to_the_clock();
    locate_all(spec.with.steps);
    decided = decide(decided.next, request, runtimes_, spec.with, environment_.common.clock.wall());
  }
  std::optional<k8s::failure> not_stored;
  if (decided.next.at == phase::completed && stored_ != content.digest) {
    const auto done = co_await callbacks_.store(content.digest);
    if (done) {
      stored_ = content.digest;
    } else {
      // It is completed when it can be fallen back to.
      not_stored = done.error();
      decided.not_stored = not_stored->message;
      if (before.at != phase::completed || before.content != content.digest) {
        decided.next.at = phase::waves;
        decided.next.history.back().ended.clear();
        decided.next.history.back().outcome = to_string(phase::waves);
      }
    }
  }
  bool keeps_later = false;
  if (kept_ != content.digest && not_kept_ != content.digest && callbacks_.keep) {
    const auto kept = co_await callbacks_.keep(content.digest);
    if (kept) kept_ = content.digest;
    keeps_later = !kept && !is_permanent(kept.error());
    if (!kept && !keeps_later) {
      not_kept_ = content.digest;
      environment_.common.log.warning(
          "content can't be kept, and can't be pinned later",
          {{"component", options_.component}, {"error", kept.error().message}});
    }
  }
  auto& present = decided.next.history.back();
  present.kept = present.kept || kept_ == content.digest;
  if (auto status =
          next_status(object, decided, spec, environment_.common.clock.wall(), content.waiting)) {
    const auto ended = co_await writer_.write_status(&object, std::move(*status));
    if (ended) co_return *ended;
    const bool kept = read_state(object) == decided.next;
    if (kept) set_closed({}, {});
    if (!kept) set_closed(definition_outdated, outdated_definition);
  }
  if (closed_reason_ == definition_outdated)
    co_return result::requeue_after(options_.access_interval);
  if (content.digest != content_.digest) co_return result::requeue_after(settle());
  new_ahead_ -= added;
  note(object, before, decided);
  publish(decided);
  let_in(decided);
  if (not_stored) co_return result::error(*not_stored);
  inspects_ = !decided.to_inspect.empty();
  for (const auto& name : decided.to_inspect) callbacks_.requeue({key_.ns, name});
  if (!decided.recheck_at) {
    co_return keeps_later ? result::requeue_after(options_.access_interval) : result::done();
  }
  const auto wait = std::chrono::duration_cast<core::duration>(*decided.recheck_at -
                                                               environment_.common.clock.wall());
  co_return result::requeue_after(std::max(std::min<core::duration>(wait, longest_wait), settle()));
}

core::counter& runtime_rollout::verifications(bool passed) {
  return core::make_counter(
      environment_.common.metrics, "rw_rollout_verifications_total",
      "Number of verifications of steps of a roll-out, by outcome",
      {{"component", options_.component}, {"outcome", passed ? "passed" : "failed"}});
}

asio::awaitable<verification_result> runtime_rollout::verify(std::size_t number, verification by) {
  const auto got = co_await environment_.prometheus->query(by.query);
  const bool passed = got && *got <= by.threshold;
  const auto text =
      got ? text_of(*got) + (passed ? " is at most " : " is more than ") + text_of(by.threshold)
          : "the query " + got.error().message;
  verifications(passed).Increment();
  environment_.common.log.info("step of a roll-out verified", {{"component", options_.component},
                                                               {"step", number + 1},
                                                               {"passed", passed},
                                                               {"result", text}});
  co_return verification_result{number, passed, "step " + std::to_string(number + 1) + ": " + text};
}

/// No runtime has been given to `admit`. What was rolled out before stays in the status.
asio::awaitable<k8s::reconcile_result> runtime_rollout::report_idle(json::value* object) {
  if (!read_state(*object).content.empty()) co_return result::done();
  rollout_decision none{.next = {.at = phase::completed}, .message = "no runtime takes part"};
  auto status = next_status(*object, none, read_spec(*object, options_.usual),
                            environment_.common.clock.wall());
  if (!status) co_return result::done();
  const auto ended = co_await writer_.write_status(object, std::move(*status));
  co_return ended.value_or(result::done());
}

void runtime_rollout::let_in(const rollout_decision& decided) {
  const auto now = environment_.common.clock.wall();
  bool changed = false;
  auto next = decided.admitted.begin();  // in the order of the runtimes
  for (auto& [name, each] : runtimes_) {
    while (next != decided.admitted.end() && *next < name) ++next;
    const bool admitted = next != decided.admitted.end() && *next == name;
    const bool before = each.admitted.has_value();
    // In a pause a runtime keeps the content; one that loses it, also after the decision, does not
    // get it again.
    const bool keeps = decided.next.at == phase::paused && (each.updated() || !each.ahead);
    if (keeps || !admitted) {
      each.admitted.reset();
    } else if (!each.admitted) {
      each.admitted = now;
      if (!each.updated()) callbacks_.requeue({key_.ns, name});
    }
    changed = changed || each.admitted.has_value() != before;
  }
  if (changed) decide_soon();  // how long it takes counts from now on
}

/// Logs and emits what has changed.
void runtime_rollout::note(const json::value& object, const state& before,
                           const rollout_decision& decided) {
  const auto& next = decided.next;
  const auto about = k8s::reference_to(object);
  const bool same = before.content == next.content;
  if (next.ahead > 0 && (!same || before.ahead == 0)) {
    environment_.events.warning(
        about, "WavesBypassed"_reason,
        "Another writer has applied the content to runtimes before their turn");
  }
  if (same && before.at == next.at && before.reason == next.reason) return;
  const auto& now = decided.now;
  const auto text = "content " + next.content + ": " + std::to_string(now.updated) + " updated, " +
                    std::to_string(now.ready) + " ready, " + std::to_string(now.failed) +
                    " failed of " + std::to_string(now.total) +
                    (decided.message.empty() ? "" : "; " + decided.message);
  environment_.common.log.info("roll-out changed its phase", {{"component", options_.component},
                                                              {"phase", to_string(next.at)},
                                                              {"reason", next.reason},
                                                              {"progress", text}});
  const bool unfinished = before.at != phase::completed && !before.content.empty();
  if (!same && unfinished) environment_.events.normal(about, "RolloutSuperseded"_reason, text);
  if (next.at == phase::paused) {
    environment_.events.warning(about, "RolloutPaused"_reason, next.reason + "; " + text);
  } else {
    environment_.events.normal(about, "Rollout" + std::string(to_string(next.at)), text);
  }
}

void runtime_rollout::publish(const rollout_decision& decided) {
  const auto set = [&](const char* name, const char* help, core::labels with, std::size_t value) {
    with.emplace("component", options_.component);
    core::make_gauge(environment_.common.metrics, name, help, with).Set(static_cast<double>(value));
  };
  for (const auto& [name, member] : count_names) {
    set("rw_rollout_runtimes", "Number of runtimes of a roll-out, in each state",
        {{"state", std::string(name)}}, decided.now.*member);
  }
  for (const auto each : {phase::canary, phase::waves, phase::paused, phase::completed}) {
    set("rw_rollout_phase", "1 if a roll-out is in this phase",
        {{"phase", std::string(to_string(each))}}, each == decided.next.at ? 1 : 0);
  }
  set("rw_rollout_step",
      "Number of the present step of a roll-out, one more than there are at its end", {},
      decided.next.step + 1);
  set("rw_rollout_ahead_runtimes", "Number of runtimes with the content before their turn", {},
      decided.next.ahead);
}

}  // namespace rw::runtime_rollout
