#include "reactors/bootstrapper/direct_sync.hpp"

#include "core/task_group.hpp"
#include "core/within.hpp"
#include "k8s/types.hpp"
#include "reactors/bootstrapper/pass.hpp"
#include "reactors/kyma_resources.hpp"

#include <boost/asio/this_coro.hpp>

#include <algorithm>
#include <utility>

namespace rw::bootstrapper {
namespace {

namespace asio = boost::asio;
namespace json = boost::json;
using k8s::object_key;

/// How long a change of others may be on its way from the API server.
constexpr auto catch_up = std::chrono::milliseconds(200);

k8s::controller_options controller_options_of(const options& with) {
  k8s::controller_options out{.name = "runtime-bootstrapper", .concurrent = with.concurrent};
  // Each wait in a pass has a limit of its own; this one is a net below them.
  out.reconcile_limit =
      4 * (with.runtime_limit + with.unhealthy_probe) + with.sync_timeout + std::chrono::minutes(2);
  out.queue.retry_base = with.backoff_base;
  out.queue.retry_limit = with.backoff_limit;
  out.queue.retries_per_second = 0;  // each runtime has its own backoff
  return out;
}

}  // namespace

direct_sync::direct_sync(asio::any_io_executor executor, options with, sources from, environment in)
    : with_(std::move(with)),
      in_(std::move(in)),
      writes_(core::make_counter(in_.metrics, "rw_bootstrapper_writes_total",
                                 "Number of writing requests to runtimes, without dry runs")),
      seconds_(core::make_histogram(in_.metrics, "rw_bootstrapper_sync_seconds",
                                    "Duration of passes over a runtime, with all writes", {},
                                    core::latency_bounds())),
      held_back_(core::make_counter(in_.metrics, "rw_bootstrapper_held_back_total",
                                    "Number of passes delayed because repairs are undone")),
      from_(from),
      last_good_(in_.kcp, with_.state_namespace),
      revisions_(from_, last_good_, in_.metrics),
      kcp_(from_, with_.defaults, with_.mode, with_.allow_inline_manifests),
      progress_(in_.metrics),
      backoff_({.base = with_.drift_delay, .limit = with_.resync_period}),
      runtimes_(in_.metrics, "rw_bootstrapper", "bootstrapper"),
      places_(in_.metrics, "rw_bootstrapper", std::max<std::size_t>(with_.unhealthy_concurrent, 1),
              [this](const object_key& key) { return requeue(key); }),
      drift_(executor, with_.drift_delay, [this](const object_key& key) { on_drift(key); },
             {in_.clock, in_.metrics, in_.random}),
      controller_(std::move(executor), controller_options_of(with_), *this,
                  {in_.clock, in_.watchdog, in_.log, in_.metrics, in_.random}) {
  kcp_.watch(controller_, with_.create_for_runtimes,
             [this](std::vector<object_key> keys, k8s::controller::keys& rest) {
               fan_out(std::move(keys), rest);
             });
}

direct_sync::~direct_sync() = default;

asio::awaitable<void> direct_sync::run() {
  const auto executor = co_await asio::this_coro::executor;
  core::task_group tasks(executor);
  tasks.spawn(drift_.run());
  tasks.spawn(serve(&tasks));
  co_await tasks.join();
}

/// Without the controller nobody would act on drift.
asio::awaitable<void> direct_sync::serve(core::task_group* all) {
  co_await controller_.run();
  all->cancel();
}

bool direct_sync::requeue(const object_key& key) {
  const auto added = controller_.add(key);
  return added == core::add_result::added || added == core::add_result::merged;
}

/// A later event does not postpone a pending pass.
void direct_sync::on_drift(const object_key& key) {
  const auto wait = backoff_.wait(key, in_.clock.now());
  if (wait > core::duration::zero()) held_back_.Increment();
  controller_.add_after(key, wait);
}

/// Each at a moment of its own, so that neither the runtimes nor this process are flooded.
void direct_sync::fan_out(std::vector<object_key> keys, k8s::controller::keys& rest) {
  const auto now = in_.clock.wall();
  const auto count = static_cast<core::duration::rep>(keys.size());
  const auto within = std::min(with_.spread * count, with_.spread_limit);
  for (auto& key : keys) {
    if (may(key, action::sync)) progress_.outdated(key, now);
    const auto range =
        static_cast<std::uint64_t>(std::max<core::duration::rep>(within.count(), 0)) + 1;
    const core::duration delay(static_cast<core::duration::rep>(in_.random() % range));
    const auto added = controller_.add_after(key, delay);
    if (added == core::add_result::full) rest.push_back(std::move(key));  // the source waits
  }
}

bool direct_sync::may(const object_key& key, action what) const {
  return decide(kcp_.facts_of(key), with_.create_for_runtimes).what == what;
}

core::duration direct_sync::with_jitter(core::duration base) const {
  const auto range = static_cast<std::uint64_t>(base.count() / 10) + 1;
  return base + core::duration(static_cast<core::duration::rep>(in_.random() % range));
}

// --- one pass --------------------------------------------------------------------------

asio::awaitable<k8s::reconcile_result> direct_sync::reconcile(object_key key) {
  pass in{.key = key, .permit = places_.claim(key)};
  const auto facts = kcp_.facts_of(key);
  in.input.mode = facts.mode;
  in.input.decided = decide(facts, with_.create_for_runtimes);
  const auto stored = from_.bootstrappers.objects().get(key);
  if (stored) in.resource = own_writes_.newest(stored);
  switch (in.input.decided.what) {
    case action::none:
    case action::create: {
      if (!stored) own_writes_.forget(key);
      forget(key);
      if (in.input.decided.what == action::none) co_return result::done();
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
      auto released = co_await release(&in, in.input.decided.message);
      co_return released;
    }
    case action::preview:
    case action::sync:
      break;
  }
  auto synced = co_await run_sync(&in);
  co_return synced;
}

asio::awaitable<k8s::reconcile_result> direct_sync::create(object_key key) {
  const auto runtime = from_.runtimes.objects().get(key);
  if (!runtime) co_return result::done();
  const auto made = co_await in_.kcp.create(runtime_bootstrappers_type(),
                                            resource_for(runtime.parse(), with_.defaults));
  if (made || made.error().is(k8s::errc::already_exists)) co_return result::done();
  co_return result::error(made.error());
}

/// The runtime is left as it is.
asio::awaitable<k8s::reconcile_result> direct_sync::stand_by(pass* in) {
  const auto& decided = in->input.decided;
  drift_.unwatch(in->key);
  progress_.leave(in->key);
  progress_.differs(in->key, false);
  const bool failed = decided.what == action::reject || decided.reason == "NoAccess";
  if (failed) {
    note(in, runtime_state::failed, decided.message, decided.message, false);
  } else {
    runtimes_.forget(in->key);
  }
  if (k8s::is_being_deleted(in->resource)) {
    const auto left = removal_left(in->resource, with_.removal_limit, in_.clock.wall());
    if (left <= core::duration::zero()) {
      auto released = co_await release(in, decided.message);
      co_return released;
    }
    in->input.failed = "the bootstrapper can't be removed from the runtime: " + decided.message;
    in->input.decided.reason = "Deleting";
    auto reported = co_await report(in, result::requeue_after(left));
    co_return reported;
  }
  auto reported = co_await report(in, failed ? result::terminal(decided.message) : result::done());
  co_return reported;
}

/// Makes a client and probes the runtime. False: the pass ends with `in->then`.
asio::awaitable<bool> direct_sync::connect(pass* in) {
  const auto& key = in->key;
  const auto kubeconfig = kcp_.kubeconfig_of(key);
  const bool sick = runtimes_.sick(key);
  if (!sick) in->permit = {};
  if (sick && !in->permit) in->permit = places_.take(key);
  if (sick && !in->permit) {
    // In its turn, in the same state as before.
    const auto error = "the runtime does not answer: " + runtimes_.complaint(key);
    in->then = result::error(error, "unreachable");
    co_return false;
  }
  in->client_name = kcp_.client_name(key);
  auto api = kubeconfig ? in_.runtimes.get(in->client_name, *kubeconfig)
                        : k8s::result<std::shared_ptr<k8s::client>>(kubeconfig.error());
  if (!api) {
    in->then = co_await unreachable(in, api.error().message);
    co_return false;
  }
  const auto limit = sick ? runtimes_.patience(key, with_.unhealthy_probe, with_.runtime_limit / 2)
                          : with_.probe_timeout;
  auto probe = (*api)->get(namespaces_type(), {{}, std::string(skr_namespace)}, true);
  const auto got = co_await core::within(in_.clock, in_.clock.now() + limit, std::move(probe));
  if (got && (*got || !k8s::is_sick(got->error()))) {
    in->api = std::move(*api);
    co_return true;
  }
  if (got || sick) {
    in->then = co_await unreachable(in, got ? got->error().message : runtimes_.complaint(key));
    co_return false;
  }
  // Nothing is known yet, so nothing is reported: the connection may be what is broken.
  in_.runtimes.evict(in->client_name);
  drift_.unwatch(key);
  runtimes_.set_sick(key, "it was slow to answer");
  places_.want(key);
  in->then = result::requeue_after(with_.backoff_limit);  // it is called before
  co_return false;
}

asio::awaitable<k8s::reconcile_result> direct_sync::unreachable(pass* in, std::string error) {
  drift_.unwatch(in->key);
  if (!in->client_name.empty()) in_.runtimes.evict(in->client_name);
  runtimes_.set_sick(in->key, error);
  note(in, runtime_state::unreachable, {}, error, false);
  in->input.failed = "the runtime does not answer: " + error;
  const auto then = result::error(in->input.failed, "unreachable");
  auto reported = co_await report(in, then);
  co_return reported;
}

asio::awaitable<k8s::reconcile_result> direct_sync::run_sync(pass* in) {
  const auto& key = in->key;
  const bool direct = in->input.decided.what == action::sync;
  if (direct) {
    progress_.expect(key, in_.clock.wall());
    progress_.differs(key, false);
  } else {
    progress_.leave(key);
    drift_.unwatch(key);
  }
  diagnostics unused;
  const auto view = read_resource(in->resource, with_.defaults, unused);
  auto resolved = co_await revisions_.resolve(view, in_.clock.wall());
  if (!resolved) co_return result::error(resolved.error());
  in->units = std::move(*resolved);
  if (direct && !k8s::has_finalizer(in->resource, finalizer)) {
    auto marked = in->resource;
    k8s::add_finalizer(marked, finalizer);
    const auto written = co_await patch(in, finalizers_of(marked), {});
    if (!written) co_return in->then;
  }
  const bool connected = co_await connect(in);
  if (!connected) co_return in->then;

  sync_request request{.to = view.to, .write = direct, .adopt = view.adopt};
  for (const auto of : all_units) {
    const auto i = static_cast<std::size_t>(of);
    request.revisions[i] = in->units[i].revisions;
    in->input.units[i] = in->units[i].status;
    if (!direct) continue;
    // What is about to be applied for the first time is all that there is to fall back to.
    const auto stored = co_await revisions_.store(&in->units[i], true);
    if (!stored) warn_not_stored(in->input.units[i], stored.error());
  }
  request.rejected = rejections_.current(key, in_.clock.now());
  request.state = read_state(in->resource);
  request.may_write = [this, key] { return may(key, action::sync); };
  request.record = [this, in](unit of, inventory objects) {
    return record(in, of, std::move(objects));
  };
  const auto begin = in_.clock.now();
  if (direct) writing_.insert(key);
  auto work = bootstrapper::sync(in->api, &with_.apply, std::move(request));
  auto got = co_await core::within(in_.clock, begin + with_.sync_timeout, std::move(work));
  writing_.erase(key);
  seconds_.Observe(std::chrono::duration<double>(in_.clock.now() - begin).count());
  if (in->kcp_failed) co_return in->then;
  if (!got || (!*got && k8s::is_sick(got->error()))) {
    auto ended =
        co_await unreachable(in, got ? got->error().message : "the runtime did not answer in time");
    co_return ended;
  }
  if (!*got && direct && !may(key, action::sync)) co_return result::requeue_after(catch_up);
  if (!*got && (got->error().is(k8s::errc::fenced) || got->error().is(k8s::errc::shut_down))) {
    co_return result::error(got->error());
  }
  runtimes_.set_healthy(key);
  in->permit = {};
  if (!*got) {
    count_result("failed");
    in->input.failed = got->error().message;
    const auto then = result::error(got->error());
    note(in, runtime_state::failed, then.reason, in->input.failed, false);
    auto reported = co_await report(in, then);
    co_return reported;
  }
  in->input.report = std::move(**got);
  auto finished = co_await finish(in);
  co_return finished;
}

/// After the runtime has answered everything.
asio::awaitable<k8s::reconcile_result> direct_sync::finish(pass* in) {
  const auto& key = in->key;
  const bool direct = in->input.decided.what == action::sync;
  auto& report_of = *in->input.report;
  writes_.Increment(static_cast<double>(report_of.writes));
  bool changed = false;
  std::optional<k8s::failure> failed;
  for (const auto of : all_units) {
    const auto i = static_cast<std::size_t>(of);
    const auto& unit_of_report = report_of.units[i];
    changed = changed || unit_of_report.changed;
    if (unit_of_report.failed) failed = unit_of_report.failed;
    rejections_.update(key, of, in->input.units[i].desired, unit_of_report, in_.clock.now());
    if (direct && !in->input.units[i].desired.empty() &&
        unit_of_report.applied == in->input.units[i].desired) {
      const auto stored = co_await revisions_.store(&in->units[i], false);
      if (!stored) warn_not_stored(in->input.units[i], stored.error());
    }
  }
  if (direct && with_.watch_runtimes) drift_.watch(key, in->api, std::move(report_of.left));
  const auto error = blocked_by(in->input);
  note_repair(in);
  if (!direct) {
    bool differs = false;
    for (const auto& each : report_of.units) differs = differs || !each.differences.empty();
    progress_.differs(key, differs);
  } else if (is_synced(in->input)) {
    progress_.current(key);
  } else {
    progress_.outdated(key, in_.clock.wall());
  }
  const auto state =
      installation_of(report_of.deployment, report_of.at(unit::bootstrapper).version);
  const bool ready = state == installation::ready;
  // Pods of what is rejected do not come, and those that have given up come back seldom.
  const bool coming = state == installation::in_progress ||
                      (error.empty() && state != installation::failed && !ready);
  if (failed) {
    note(in, runtime_state::failed, failed->code.message(), failed->message, false);
  } else if (!error.empty()) {
    note(in, runtime_state::failed, error, error, false);
  } else if (!ready) {
    const std::string name(to_string(state));
    note(in, runtime_state::not_ready, name, name, false);
  } else {
    note(in, runtime_state::installed, {}, report_of.at(unit::bootstrapper).version, changed);
  }
  auto again = with_jitter(with_.resync_period);
  const auto times = std::min(runtimes_.look(key, coming), 10U);
  if (coming) {
    const auto pause = std::min(with_.ready_interval * (1U << times), with_.ready_interval_limit);
    again = std::min(again, with_jitter(pause));
  }
  if (const auto due = rejections_.due(key)) {
    again = std::min(again, std::max<core::duration>(*due - in_.clock.now(), catch_up));
  }
  auto reported =
      co_await report(in, failed ? result::error(*failed) : result::requeue_after(again));
  co_return reported;
}

}  // namespace rw::bootstrapper
