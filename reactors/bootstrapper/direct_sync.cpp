#include "rw/reactors/bootstrapper/direct_sync.hpp"

#include "rw/core/task_group.hpp"
#include "rw/k8s/objects/types.hpp"
#include "rw/reactors/shared/explanations.hpp"
#include "rw/reactors/shared/kyma_resources.hpp"

#include <boost/asio/this_coro.hpp>

#include <algorithm>
#include <utility>

namespace rw::bootstrapper {
namespace {

namespace asio = boost::asio;
namespace json = boost::json;
using k8s::object_key;

/// States of contents_.
constexpr std::string_view current = "current";
constexpr std::string_view outdated = "outdated";
/// So many repairs in a row are a fight.
constexpr unsigned contested_after = 3;

runtime_names names() {
  return {
      .controller = "runtime-bootstrapper",
      .metrics = "rw_bootstrapper",
      .subject = "bootstrapper",
      .events = {{{"BootstrapperReady"_reason,
                   "The bootstrapper runs with both units in place; version "},
                  {"BootstrapperNotReady"_reason, "The bootstrapper is not ready on the runtime: "},
                  {"BootstrapperFailed"_reason, "The runtime does not have the desired revision: "},
                  {"RuntimeUnreachable"_reason, "The runtime is unreachable: "}}},
      .removed = "BootstrapperRemoved"_reason,
      .removal_abandoned = "BootstrapperRemovalAbandoned"_reason};
}

bool is_source_missing(const json::value& resource) {
  const auto found = k8s::find_condition(resource, "Compatible");
  return found && found->reason == "SourceMissing"_reason;
}

/// Without the controller no drift would be acted upon.
asio::awaitable<void> serve(k8s::controller* controller, core::task_group* all) {
  co_await controller->run();
  all->cancel();
}

}  // namespace

direct_sync::direct_sync(asio::any_io_executor executor, direct_sync_options with, sources from,
                         runtime_environment in, content_gate* gate)
    : runtime_controller(executor, names(), with, std::move(in), runtime_bootstrappers_type()),
      options_(std::move(with)),
      writes_(core::make_counter(environment_.metrics, "rw_bootstrapper_writes_total",
                                 "Number of writing requests to runtimes, without dry runs")),
      sources_(from),
      stored_(environment_.kcp, options_.state_namespace, "bootstrapper-source-", true),
      revisions_(sources_, options_.to, options_.removal, stored_, environment_.metrics),
      usual_(sources_, options_.defaults, options_.removal, options_.trust_at_once, stored_),
      gate_(gate),
      kcp_(sources_, options_.defaults, options_.mode, options_.allow_inline_manifests,
           environment_.clock),
      contents_(environment_.metrics, "rw_bootstrapper_content",
                {current, outdated, "in_step", "differing", "NoResource"}) {
  kcp_.watch(controller_, options_.create_for_runtimes,
             [this](std::vector<object_key> all, keys& rest) {
               for (const auto& key : all) {
                 if (may(key, action::sync))
                   contents_.set(key, outdated, environment_.clock.wall());
               }
               spread(std::move(all), rest);
             });
  if (gate_ == nullptr) return;
  const auto& contents = sources_.contents;
  for (auto* const each : {&contents.config_maps, &contents.trust_bundles}) {
    controller_.watch(*each,
                      [this](const k8s::delta&, keys&) { gate_->refresh(usual_.current()); });
  }
  gate_->attach({[this](const object_key& key) { requeue(key); },
                 [this](std::string digest) { return usual_.store(std::move(digest)); },
                 [this](std::string digest) { return usual_.keep(std::move(digest)); }});
}

direct_sync::~direct_sync() = default;

asio::awaitable<void> direct_sync::run() {
  const auto executor = co_await asio::this_coro::executor;
  core::task_group tasks(executor);
  tasks.spawn(drift_.run());
  tasks.spawn(collect_contents());
  tasks.spawn(serve(&controller_, &tasks));
  co_await tasks.join();
}

/// Deletes stored contents of sources that are no longer in use, now and then.
asio::awaitable<void> direct_sync::collect_contents() {
  const auto executor = co_await asio::this_coro::executor;
  const auto pause = environment_.clock.make_timer(executor);
  bool due = co_await sources_.bootstrappers.wait_synced();
  while (due) {
    std::function<bool(std::string_view)> used = [this](std::string_view source) {
      return is_used(source);
    };
    const auto collected = co_await stored_.collect(std::move(used), environment_.clock.now(),
                                                    options_.unused_content_after);
    if (!collected) {
      environment_.log.warning("unused contents of sources can't be deleted",
                               {{"error", collected.error().message}});
    }
    pause->expires_at(environment_.clock.now() + with_jitter(options_.resync_period));
    due = co_await pause->wait();
  }
}

bool direct_sync::may(const object_key& key, action next) const {
  return decide(kcp_.facts_of(key), options_.create_for_runtimes).next == next;
}

// --- one pass --------------------------------------------------------------------------

asio::awaitable<k8s::reconcile_result> direct_sync::reconcile(object_key key) {
  pass in{.to = begin(key)};
  const auto facts = kcp_.facts_of(key);
  in.input.mode = facts.mode;
  in.input.decided = decide(facts, options_.create_for_runtimes);
  const auto& decided = in.input.decided;
  const auto stored = sources_.bootstrappers.objects().get(key);
  if (stored) in.resource = writer_.newest(stored);
  note_decision(key, facts, decided);
  if (gate_ != nullptr && !in.direct()) gate_->leave(key);
  switch (decided.next) {
    case action::none:
    case action::create: {
      if (!stored) writer_.forget(key);
      forget(key);
      if (decided.next == action::none) co_return result::done();
      auto created = co_await create(key);
      co_return created;
    }
    case action::reject:
    case action::wait: {
      auto stood = co_await stand_by(&in);
      co_return stood;
    }
    case action::undeploy: {
      auto undeployed = co_await undeploy_all(&in);
      co_return undeployed;
    }
    case action::release: {
      auto released = co_await release(&in, decided.message);
      co_return released;
    }
    case action::preview:
    case action::sync:
      break;
  }
  auto synced = co_await run_sync(&in);
  co_return synced;
}

/// The runtime is left as it is.
asio::awaitable<k8s::reconcile_result> direct_sync::stand_by(pass* in) {
  const auto& key = in->to.key;
  const auto& decided = in->input.decided;
  drift_.unwatch(key);
  const bool failed = decided.next == action::reject || decided.reason == "NoAccess"_reason;
  if (failed) {
    using enum status_reason;
    note(in->resource,
         {.state = runtime_state::failed,
          .reason = decided.next == action::reject ? content_rejected : access_missing,
          .message = decided.message,
          .cause = decided.message});
  } else {
    runtimes_.forget(key);
  }
  auto then = failed ? result::terminal(decided.message) : result::done();
  if (k8s::is_being_deleted(in->resource)) {
    const auto left = removal_left(in->resource);
    if (left <= core::duration::zero()) {
      auto released = co_await release(in, decided.message);
      co_return released;
    }
    in->input.failed = "the bootstrapper can't be removed from the runtime: " + decided.message;
    in->input.decided.reason = "Deleting"_reason;
    then = result::requeue_after(left);
  }
  auto reported = co_await report(in, std::move(then));
  co_return reported;
}

/// Sets what the runtime is to have; how the pass ends if that fails.
asio::awaitable<resource_writer::ended> direct_sync::resolve(pass* in) {
  auto& state = in->input.state;
  diagnostics unused;
  in->view = read_resource(in->resource, options_.defaults, unused);
  state = read_state(in->resource);
  auto& not_pinned = in->not_pinned;
  if (gate_ != nullptr) {
    const auto pinned = co_await usual_.pin(gate_->pinned());
    if (!pinned && !is_lost(pinned.error())) co_return result::error(pinned.error());
    if (!pinned) {  // then the gate admits nobody
      not_pinned = pinned.error().message;
      if (!in->is_preview) gate_->note_unreadable(gate_->pinned(), not_pinned);
    }
  }
  const auto digest = usual_.current().digest;
  auto pinned = usual_.used_by(in->view) ? usual_.pinned() : std::nullopt;
  const auto resolved = co_await revisions_.resolve(in->view, environment_.clock.wall(),
                                                    std::move(pinned), &state, !in->is_preview);
  if (!resolved) co_return result::error(resolved.error());
  if (!not_pinned.empty()) state.at(unit::bootstrapper).warnings.push_back(not_pinned);
  if (!in->direct()) co_return std::nullopt;
  auto ended = co_await ask_gate(in, digest);
  settle_removal(in);
  co_return ended;
}

asio::awaitable<k8s::reconcile_result> direct_sync::run_sync(pass* in) {
  const auto& key = in->to.key;
  if (!in->direct()) drift_.unwatch(key);
  auto ended = co_await resolve(in);
  if (!ended && in->direct()) {
    ended = co_await writer_.set_finalizer(&in->resource, std::string(finalizer), true);
  }
  if (ended) co_return *ended;
  const bool connected = co_await connect(&in->to, kcp_.client_name(key), kcp_.kubeconfig_of(key));
  if (!connected) drift_.unwatch(key);
  if (in->to.deferred && gate_ != nullptr) {
    gate_->observe(key, {.health = content_health::unreachable});
  }
  if (!connected && in->to.deferred) co_return *in->to.deferred;
  auto done =
      k8s::result<void>(k8s::failure{.code = k8s::errc::unreachable, .message = in->to.error});
  if (connected) done = co_await execute(in);
  auto then = done ? finish(in) : fail(in, done.error());
  auto finished = co_await std::move(then);
  co_return finished;
}

asio::awaitable<k8s::result<void>> direct_sync::execute(pass* in) {
  const auto key = in->to.key;
  sync_request request{.to = options_.to, .write = in->direct(), .adopt = in->view.adopt};
  auto& state = in->input.state;
  for (auto& each : state.units) {
    if (in->direct()) co_await revisions_.keep(&each);
  }
  skip_rejected(in);
  request.may_write = [this, key] { return may(key, action::sync); };
  request.may_begin = [this, in](unit of, const revision_ptr& to) {
    if (!has_lost_turn(*in, of, to)) return true;
    in->ended = result::requeue_after(catch_up);
    return false;
  };
  request.record = [this, in](unit of, revision_ptr to,
                              inventory objects) -> work<k8s::result<void>> {
    // Whatever becomes of this write: without their source credentials must not go back.
    auto& state = in->input.state.at(of);
    const bool first = !state.revisions.empty() && state.revisions.front() == to;
    if (of == unit::credentials && first) {
      const auto stored = co_await revisions_.store(in->view.from, &state);
      if (!stored) co_return stored.error();
    }
    json::value change{{"status", applying_status(in->resource, of, *to, objects)}};
    in->ended = co_await writer_.patch(&in->resource, std::move(change), "status");
    if (!in->ended) co_return k8s::result<void>();
    co_return k8s::failure{
        .code = k8s::errc::fenced,
        .message = "what is to be written can't be recorded: " + in->ended->text};
  };
  auto sync = bootstrapper::sync(in->to.api, &options_.apply, std::move(request), &state);
  auto done = co_await bounded(&in->to, std::move(sync));
  writes_.Increment(static_cast<double>(state.writes));
  co_return done;
}

/// The runtime is not, or not completely, as it is to be.
asio::awaitable<k8s::reconcile_result> direct_sync::fail(pass* in, k8s::failure error) {
  const auto& key = in->to.key;
  if (in->ended) co_return *in->ended;
  const bool unhealthy = runtimes_.unhealthy(key) || error.is(k8s::errc::unreachable);
  // The decision has changed meanwhile; the next pass follows at once.
  if (!unhealthy && in->direct() && !may(key, action::sync)) {
    co_return result::requeue_after(catch_up);
  }
  if (error.is(k8s::errc::fenced)) co_return result::error(error);
  if (unhealthy) drift_.unwatch(key);
  const bool half_applied = std::ranges::any_of(in->input.state.units, [](const unit_state& each) {
    return each.changed && each.applied.empty();
  });
  // One that was slow for the first time is not reported: the connection may be what is broken.
  if (in->to.deferred && !half_applied) co_return *in->to.deferred;
  auto then = result::error(error);
  in->input.failed = error.message;
  if (unhealthy) {
    in->input.failed = "the runtime is unreachable: " + error.message;
    then = in->to.deferred.value_or(unreachable(error.message));
    if (!in->to.deferred) {
      note(
          in->resource,
          {.state = runtime_state::unreachable, .reason = in->to.reason, .message = error.message});
    }
  } else {
    count_pass("failed");
    note(in->resource, {.state = runtime_state::failed,
                        .reason = reason_of_failure(error),
                        .message = error.message,
                        .cause = then.reason});
  }
  auto reported = co_await report(in, std::move(then));
  co_return reported;
}

/// The runtime has answered everything.
asio::awaitable<k8s::reconcile_result> direct_sync::finish(pass* in) {
  const auto& key = in->to.key;
  auto& state = in->input.state;
  in->input.observed = true;
  std::optional<k8s::failure> failed;
  bool differs = false;
  for (auto& each : state.units) {
    // Its definition may be on the way.
    if (each.rejected && each.rejected->cause == rejection::reason::unknown_kind) {
      failed = {.code = k8s::errc::not_found, .message = each.rejected->message};
    }
    if (each.failed) failed = each.failed;
    differs = differs || !each.differences.empty();
    const bool applied = !each.desired.empty() && each.applied == each.desired;
    if (in->direct() && applied) co_await revisions_.store(in->view.from, &each);
  }
  if (!in->direct()) {
    contents_.set(key, differs ? "differing" : "in_step", {});
  } else if (std::ranges::all_of(state.units, &unit_state::is_applied)) {
    contents_.set(key, current, {});
  } else {
    contents_.set(key, outdated, environment_.clock.wall());
  }
  const bool retry = note_rejections(in);
  note_observed(*in);
  if (in->direct()) watch_drift(in->to, std::move(state.left));
  auto again = retry ? core::duration(catch_up) : next_pass(*in);
  for (const auto& each : state.units) {
    if (each.not_stored) again = std::min(again, with_jitter(options_.resync_period / 10));
    if (!each.recheck_at) continue;
    const auto left =
        std::chrono::ceil<core::duration>(*each.recheck_at - environment_.clock.wall());
    again = std::min(again, std::max<core::duration>(left, catch_up));
  }
  auto reported =
      co_await report(in, failed ? result::error(*failed) : result::requeue_after(again));
  co_return reported;
}

/// Soon where pods are on their way, else at the resync.
core::duration direct_sync::next_pass(const pass& in) {
  // The configuration in place has ceased to need what is to be removed.
  if (in.removal_waits && in.input.state.at(unit::bootstrapper).is_applied()) return catch_up;
  const auto state = installation_of(in.input.state);
  // Pods of what is rejected do not come, and those that have given up come back seldom. Nothing is
  // on its way before the runtime's turn.
  const bool waits = state == installation::not_started &&
                     in.input.state.at(unit::bootstrapper).withheld != nullptr;
  const bool rests = waits || !blocked_by(in.input.state).empty() ||
                     state == installation::failed || state == installation::ready;
  return next_pause(in.to.key, state == installation::in_progress || !rests);
}

asio::awaitable<k8s::reconcile_result> direct_sync::report(pass* in, result then) {
  auto status = next_status(in->resource, in->input, environment_.clock.wall());
  const bool was_missing = is_source_missing(in->resource);
  resource_writer::ended ended;
  if (status) ended = co_await writer_.write_status(&in->resource, std::move(*status));
  invalid_.note(in->resource);
  if (!ended && !was_missing && is_source_missing(in->resource)) {
    environment_.events.warning(k8s::reference_to(in->resource), "SourceMissing"_reason,
                                k8s::find_condition(in->resource, "Compatible")->message);
  }
  if (!ended) ended = co_await copy_condition(in);
  if (!ended && gate_ != nullptr) {
    auto now = rollout_facts(*in);
    now.ahead = in->input.state.at(unit::bootstrapper).ahead;
    gate_->observe(in->to.key, now);
  }
  co_return ended.value_or(then);
}

/// Makes the Runtime's condition like the RuntimeBootstrapper's. Conditions of a Runtime are an
/// atomic list: all of them are written, at the resourceVersion that was read.
asio::awaitable<resource_writer::ended> direct_sync::copy_condition(pass* in) {
  if (!options_.runtime_condition || in->input.mode != bootstrapper_mode::direct)
    co_return std::nullopt;
  auto own = k8s::find_condition(in->resource, runtime_condition);
  auto runtime = sources_.runtimes.objects().get(in->to.key).parse();
  // A status without a state is invalid; Kyma Infrastructure Manager sets it first.
  if (!own || k8s::find_string(runtime, {"status", "state"}).empty()) co_return std::nullopt;
  own->observed_generation = 0;  // it is the RuntimeBootstrapper's
  if (!k8s::set_condition(runtime, *own, environment_.clock.wall())) co_return std::nullopt;
  json::value change{{"status", {{"conditions", runtime.at("status").at("conditions")}}}};
  resource_writer writer(environment_.kcp, runtimes_type());  // remembers no Runtimes
  auto ended = co_await writer.patch(&runtime, std::move(change), "status");
  co_return ended;
}

/// Counts and reports what the pass has found, and repairs that are undone again and again.
void direct_sync::note_observed(const pass& in) {
  const auto error = blocked_by(in.input.state);
  const k8s::failure* failed = nullptr;
  bool repaired = false;
  bool changed = false;
  std::string difference;
  for (const auto& each : in.input.state.units) {
    repaired = repaired || each.repaired;
    changed = changed || each.changed;
    if (each.failed && failed == nullptr) failed = &*each.failed;
    if (each.repaired && !each.differences.empty()) difference = each.differences.front();
  }
  count_pass(!error.empty() ? "refused"
             : repaired     ? "repaired"
             : changed      ? "changed"
                            : "unchanged");
  const auto& version = in.input.state.at(unit::bootstrapper).version;
  const auto state = installation_of(in.input.state);
  if (failed != nullptr || !error.empty()) {
    const bool by_runtime = failed != nullptr;
    note(in.resource,
         {.state = runtime_state::failed,
          .reason = by_runtime ? reason_of_failure(*failed) : status_reason::content_rejected,
          .message = by_runtime ? failed->message : error,
          .cause = by_runtime ? failed->code.message() : error});
  } else if (state == installation::ready) {
    note(in.resource,
         {.state = runtime_state::installed, .message = version.empty() ? "unknown" : version},
         changed);
  } else {
    const bool fails = state == installation::failed;
    const std::string name(to_string(state));
    const auto& unproven = in.input.state.proof.error;
    note(in.resource, {.state = runtime_state::not_ready,
                       .reason = fails ? status_reason::pod_failing : status_reason::installing,
                       .message = unproven.empty() ? name : unproven,
                       .cause = unproven.empty() ? name : unproven});
  }
  const auto repairs = drift_.reconciled(in.to.key, repaired, repaired);
  if (!repaired || repairs != contested_after) return;
  environment_.log.warning(
      "repairs on a runtime are undone",
      {{"namespace", in.to.key.ns}, {"name", in.to.key.name}, {"difference", difference}});
  environment_.events.warning(k8s::reference_to(in.resource), "BootstrapperContested"_reason,
                              "Repairs on the runtime are undone, " + std::to_string(repairs) +
                                  " times in a row by now, last " + difference +
                                  "; they are made less and less often");
}

void direct_sync::count_pass(const char* outcome) {
  core::make_counter(environment_.metrics, "rw_bootstrapper_syncs_total",
                     "Number of passes over runtimes", {{"result", outcome}})
      .Increment();
}

}  // namespace rw::bootstrapper
