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

std::string not_stored(const k8s::failure& error) {
  return "the content of the sources can't be stored to fall back to: " + error.message;
}

core::duration random_below(core::duration most, const core::random_source& random) {
  const auto range = static_cast<std::uint64_t>(std::max<core::duration::rep>(most.count(), 0)) + 1;
  return core::duration(static_cast<core::duration::rep>(random() % range));
}

/// Without the controller no drift would be acted upon.
asio::awaitable<void> serve(k8s::controller* controller, core::task_group* all) {
  co_await controller->run();
  all->cancel();
}

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
      usual_(from_, with_.defaults, with_.trust_at_once, last_good_),
      kcp_(from_, with_.defaults, with_.mode, with_.allow_inline_manifests),
      writer_(in_.kcp),
      progress_(in_.metrics),
      backoff_({.base = with_.drift_delay, .limit = with_.resync_period}),
      runtimes_(in_.metrics, "rw_bootstrapper", "bootstrapper"),
      places_(in_.metrics, "rw_bootstrapper", std::max<std::size_t>(with_.unhealthy_concurrent, 1),
              [this](const object_key& key) { return requeue(key); }),
      reporter_(in_.events, in_.log, in_.metrics, runtimes_, backoff_),
      drift_(executor, with_.drift_delay,
             [this](const object_key& key) {
               const auto wait = backoff_.wait(key, in_.clock.now());
               if (wait > core::duration::zero()) held_back_.Increment();
               controller_.add_after(key, wait);  // does not postpone a pending pass
             },
             {in_.clock, in_.metrics, in_.random}),
      controller_(std::move(executor), controller_options_of(with_), *this,
                  {in_.clock, in_.watchdog, in_.log, in_.metrics, in_.random}) {
  kcp_.watch(controller_, with_.create_for_runtimes,
             [this](std::vector<object_key> keys, k8s::controller::keys& rest) {
               fan_out(std::move(keys), rest);
             });
  if (in_.gate == nullptr) return;
  in_.gate->attach({[this](const object_key& key) { requeue(key); },
                    [this](std::string digest) { return usual_.store(std::move(digest)); }});
}

direct_sync::~direct_sync() = default;

asio::awaitable<void> direct_sync::run() {
  const auto executor = co_await asio::this_coro::executor;
  core::task_group tasks(executor);
  tasks.spawn(drift_.run());
  tasks.spawn(serve(&controller_, &tasks));
  co_await tasks.join();
}

bool direct_sync::requeue(const object_key& key) {
  const auto added = controller_.add(key);
  return added == core::add_result::added || added == core::add_result::merged;
}

/// Each at a moment of its own, so that neither the runtimes nor this process are flooded.
void direct_sync::fan_out(std::vector<object_key> keys, k8s::controller::keys& rest) {
  const auto now = in_.clock.wall();
  const auto count = static_cast<core::duration::rep>(keys.size());
  const auto within = std::min(with_.spread * count, with_.spread_limit);
  for (auto& key : keys) {
    if (may(key, action::sync)) progress_.outdated(key, now);
    const auto added = controller_.add_after(key, random_below(within, in_.random));
    if (added == core::add_result::full) rest.push_back(std::move(key));  // the source waits
  }
}

bool direct_sync::may(const object_key& key, action what) const {
  return decide(kcp_.facts_of(key), with_.create_for_runtimes).what == what;
}

// --- one pass --------------------------------------------------------------------------

asio::awaitable<k8s::reconcile_result> direct_sync::reconcile(object_key key) {
  pass in{.key = key, .permit = places_.claim(key)};
  const auto facts = kcp_.facts_of(key);
  in.input.mode = facts.mode;
  in.input.decided = decide(facts, with_.create_for_runtimes);
  const auto stored = from_.bootstrappers.objects().get(key);
  if (stored) in.resource = writer_.newest(stored);
  if (in_.gate != nullptr && !in.direct()) in_.gate->leave(key);
  switch (in.input.decided.what) {
    case action::none:
    case action::create: {
      if (!stored) writer_.forget(key);
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

/// The runtime is left as it is.
asio::awaitable<k8s::reconcile_result> direct_sync::stand_by(pass* in) {
  const auto& decided = in->input.decided;
  drift_.unwatch(in->key);
  progress_.leave(in->key);
  progress_.differs(in->key, false);
  const bool failed = decided.what == action::reject || decided.reason == "NoAccess";
  if (failed) {
    reporter_.note(in->resource, runtime_state::failed, decided.message, decided.message);
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
  reporter_.note(in->resource, runtime_state::unreachable, {}, error);
  in->input.failed = "the runtime does not answer: " + error;
  const auto then = result::error(in->input.failed, "unreachable");
  auto reported = co_await report(in, then);
  co_return reported;
}

asio::awaitable<k8s::reconcile_result> direct_sync::report(pass* in, result then) {
  auto status = next_status(in->resource, in->input, in_.clock.wall());
  resource_writer::ended ended;
  if (status) ended = co_await writer_.write_status(&in->resource, std::move(*status));
  if (!ended && in_.gate != nullptr) {
    const auto& report_of = in->input.report;
    in_.gate->observe(in->resource, report_of && report_of->at(unit::bootstrapper).ahead);
  }
  co_return ended.value_or(then);
}

asio::awaitable<k8s::reconcile_result> direct_sync::run_sync(pass* in) {
  const bool prepared = co_await prepare(in);
  if (!prepared) co_return in->then;
  const bool connected = co_await connect(in);
  if (!connected) co_return in->then;
  auto got = co_await execute(in);
  if (!got) {
    auto failed = co_await fail(in, got.error());
    co_return failed;
  }
  runtimes_.set_healthy(in->key);
  in->permit = {};
  in->input.report = std::move(*got);
  auto finished = co_await finish(in);
  co_return finished;
}

/// Resolves what the runtime is to have. False: the pass ends with `in->then`.
asio::awaitable<bool> direct_sync::prepare(pass* in) {
  if (in->direct()) {
    progress_.expect(in->key, in_.clock.wall());
    progress_.differs(in->key, false);
  } else {
    progress_.leave(in->key);
    drift_.unwatch(in->key);
  }
  diagnostics unused;
  in->view = read_resource(in->resource, with_.defaults, unused);
  auto content = usual_.current().digest;
  auto resolved = co_await revisions_.resolve(in->view, in_.clock.wall());
  if (!resolved) {
    in->then = result::error(resolved.error());
    co_return false;
  }
  in->units = std::move(*resolved);
  const bool decided = co_await ask_gate(in, std::move(content));
  if (!decided) co_return false;
  for (std::size_t i = 0; i < in->units.size(); ++i) in->input.units[i] = in->units[i].status;
  auto marked = in->resource;
  if (!in->direct() || !k8s::add_finalizer(marked, finalizer)) co_return true;
  const auto ended = co_await writer_.write_finalizers(&in->resource, std::move(marked));
  in->then = ended.value_or(result::done());
  co_return !ended;
}

/// Lets the roll-out decide which content the runtime gets. False: the pass ends with `in->then`.
asio::awaitable<bool> direct_sync::ask_gate(pass* in, std::string digest) {
  if (in_.gate == nullptr || !in->direct()) co_return true;
  if (!usual_.used_by(in->view)) {
    in_.gate->leave(in->key);
    co_return true;
  }
  const auto loaded = co_await usual_.load();
  const auto& content = usual_.current();
  if (!loaded || content.digest != digest) {
    in->then = loaded ? result::requeue_after(catch_up) : result::error(loaded.error());
    co_return false;
  }
  auto& of = in->units[static_cast<std::size_t>(unit::bootstrapper)];
  const auto completed = revisions_.render_contents(in->view, usual_.completed(), in_.clock.wall());
  const content_revisions desired{of.status.desired, completed ? completed->digest : std::string()};
  if (in_.gate->admit(in->resource, content, desired)) co_return true;
  const auto state = read_state(in->resource);
  hold(of, state.digests[static_cast<std::size_t>(unit::bootstrapper)], completed);
  co_return true;
}

asio::awaitable<k8s::result<sync_report>> direct_sync::execute(pass* in) {
  const auto& key = in->key;
  sync_request request{.to = in->view.to, .write = in->direct(), .adopt = in->view.adopt};
  for (std::size_t i = 0; i < in->units.size(); ++i) {
    request.revisions[i] = in->units[i].revisions;
    if (!in->direct()) continue;
    // What is applied for the first time is all that there is to fall back to.
    const auto stored = co_await revisions_.store(&in->units[i], true);
    if (!stored) in->input.units[i].warnings.push_back(not_stored(stored.error()));
  }
  request.rejected = rejections_.current(key, in_.clock.now());
  request.state = read_state(in->resource);
  request.withheld = in->units[static_cast<std::size_t>(unit::bootstrapper)].withheld;
  request.may_write = [this, key] { return may(key, action::sync); };
  request.record = [this, in](unit of, inventory objects) -> work<k8s::result<void>> {
    json::value change{{"status", applying_status(in->resource, of, objects)}};
    in->ended = co_await writer_.patch(&in->resource, std::move(change), "status");
    if (!in->ended) co_return k8s::result<void>();
    co_return k8s::failure{.code = k8s::errc::fenced, .message = in->ended->text};
  };
  const auto begin = in_.clock.now();
  std::optional<write_guard> writing;
  if (in->direct()) writing.emplace(writing_, key);
  auto sync = bootstrapper::sync(in->api, &with_.apply, std::move(request));
  auto got = co_await core::within(in_.clock, begin + with_.sync_timeout, std::move(sync));
  seconds_.Observe(std::chrono::duration<double>(in_.clock.now() - begin).count());
  if (got) co_return std::move(*got);
  co_return k8s::failure{.code = k8s::errc::timed_out,
                         .message = "the runtime did not answer in time"};
}

asio::awaitable<k8s::reconcile_result> direct_sync::fail(pass* in, k8s::failure error) {
  if (in->ended) co_return *in->ended;
  if (k8s::is_sick(error)) {
    auto ended = co_await unreachable(in, error.message);
    co_return ended;
  }
  // The decision has changed meanwhile; the next pass follows at once.
  if (in->direct() && !may(in->key, action::sync)) co_return result::requeue_after(catch_up);
  if (error.is(k8s::errc::fenced)) co_return result::error(error);
  runtimes_.set_healthy(in->key);
  in->permit = {};
  reporter_.count("failed");
  const auto then = result::error(error);
  in->input.failed = error.message;
  reporter_.note(in->resource, runtime_state::failed, then.reason, error.message);
  auto reported = co_await report(in, then);
  co_return reported;
}

/// After the runtime has answered everything.
asio::awaitable<k8s::reconcile_result> direct_sync::finish(pass* in) {
  auto& report_of = *in->input.report;
  writes_.Increment(static_cast<double>(report_of.writes));
  std::optional<k8s::failure> failed;
  bool differs = false;
  for (const auto of : all_units) {
    const auto i = static_cast<std::size_t>(of);
    const auto& result_of = report_of.units[i];
    const auto& desired = in->input.units[i].desired;
    if (result_of.failed) failed = result_of.failed;
    differs = differs || !result_of.differences.empty();
    rejections_.update(in->key, of, desired, result_of, in_.clock.now());
    if (!in->direct() || desired.empty() || result_of.applied != desired) continue;
    const auto stored = co_await revisions_.store(&in->units[i], false);
    if (!stored) in->input.units[i].warnings.push_back(not_stored(stored.error()));
  }
  if (!in->direct()) {
    progress_.differs(in->key, differs);
  } else if (is_synced(in->input)) {
    progress_.current(in->key);
  } else {
    progress_.outdated(in->key, in_.clock.wall());
  }
  reporter_.note_repair(in->resource, in->input, in_.clock.now());
  reporter_.note_observed(in->resource, in->input);
  if (in->direct() && with_.watch_runtimes) {
    drift_.watch(in->key, in->api, std::move(report_of.left));
  }
  const auto again = next_pass(in);
  auto reported =
      co_await report(in, failed ? result::error(*failed) : result::requeue_after(again));
  co_return reported;
}

/// Soon where pods are on their way, or a rejected revision is due; else at the resync.
core::duration direct_sync::next_pass(pass* in) {
  const auto& report_of = *in->input.report;
  const auto state = installation_of(report_of);
  // Pods of what is rejected do not come, and those that have given up come back seldom.
  const bool coming = state == installation::in_progress ||
                      (blocked_by(in->input).empty() && state != installation::failed &&
                       state != installation::ready);
  auto again = with_.resync_period + random_below(with_.resync_period / 10, in_.random);
  const auto times = std::min(runtimes_.look(in->key, coming), 10U);
  if (coming) {
    const auto pause = std::min(with_.ready_interval * (1U << times), with_.ready_interval_limit);
    again = std::min(again, pause + random_below(pause / 10, in_.random));
  }
  const auto due = rejections_.due(in->key);
  if (!due) return again;
  return std::min(again, std::max<core::duration>(*due - in_.clock.now(), catch_up));
}

}  // namespace rw::bootstrapper
