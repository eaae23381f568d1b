#include "reactors/bootstrapper/direct_sync.hpp"

#include "core/task_group.hpp"
#include "core/within.hpp"
#include "k8s/text.hpp"
#include "k8s/types.hpp"
#include "reactors/kyma_resources.hpp"

#include <boost/asio/this_coro.hpp>
#include <boost/json/object.hpp>

#include <algorithm>
#include <utility>

namespace rw::bootstrapper {
namespace {

namespace asio = boost::asio;
namespace json = boost::json;
using k8s::object;
using k8s::object_key;

/// How long somebody else's change may be on its way from the API server.
constexpr auto catch_up = std::chrono::milliseconds(200);
/// So many repairs in a row are a fight.
constexpr unsigned contested_after = 3;

k8s::controller_options controller_options_of(const options& with) {
  k8s::controller_options out{.name = "runtime-bootstrapper", .concurrent = with.concurrent};
  // Each wait in a reconcile has a limit of its own; this one is a net below them.
  out.reconcile_limit =
      4 * (with.runtime_limit + with.sick_limit) + with.whole_limit + std::chrono::minutes(2);
  out.queue.retry_base = with.backoff_base;
  out.queue.retry_limit = with.backoff_limit;
  out.queue.retries_per_second = 0;  // each runtime has its own backoff
  return out;
}

/// Says something about this process and nothing about the runtime.
bool is_our_own(const k8s::failure& why) {
  return why.is(k8s::errc::fenced) || why.is(k8s::errc::shut_down);
}

/// `rw_bootstrapper_syncs_total{result}`.
std::string result_of(const sync_report& report) {
  if (report.rolled_back) return "rolled_back";
  if (!report.refused.empty()) return "refused";
  if (report.repaired) return "repaired";
  return report.objects > 0 ? "changed" : "unchanged";
}

}  // namespace

direct_sync::direct_sync(asio::any_io_executor executor, options with, sources from, environment in)
    : with_(std::move(with)),
      from_(from),
      in_(std::move(in)),
      writes_(core::make_counter(in_.metrics, "rw_bootstrapper_writes_total",
                                 "Writing requests to runtimes, dry runs apart")),
      seconds_(core::make_histogram(in_.metrics, "rw_bootstrapper_sync_seconds",
                                    "Time that a look at a runtime took, with all writes", {},
                                    core::latency_bounds())),
      held_back_(core::make_counter(in_.metrics, "rw_bootstrapper_held_back_total",
                                    "Changes on runtimes that waited longer, because somebody "
                                    "undoes what is repaired")),
      progress_(in_.metrics),
      sets_(in_.metrics),
      pace_({.base = with_.heard_delay, .limit = with_.success_interval}),
      runtimes_(in_.metrics, "rw_bootstrapper", "bootstrapper"),
      places_(in_.metrics, "rw_bootstrapper", std::max<std::size_t>(with_.sick_at_once, 1),
              [this](const object_key& key) { return requeue(key); }),
      drift_(executor, with_.heard_delay, [this](const object_key& key) { heard_of(key); },
             {in_.clock, in_.log, in_.metrics, in_.random}),
      controller_(std::move(executor), controller_options_of(with_), *this,
                  {in_.clock, in_.watchdog, in_.log, in_.metrics, in_.random}) {
  add_indexes();
  watch_all();
}

direct_sync::~direct_sync() {
  remove_indexes();
}

asio::awaitable<void> direct_sync::run() {
  const auto executor = co_await asio::this_coro::executor;
  core::task_group tasks(executor);
  tasks.spawn(drift_.run());
  tasks.spawn(serve(&tasks));
  co_await tasks.join();
}

/// Without the controller nobody would act on what is heard.
asio::awaitable<void> direct_sync::serve(core::task_group* all) {
  co_await controller_.run();
  all->cancel();
}

bool direct_sync::requeue(const object_key& bootstrapper) {
  const auto added = controller_.add(bootstrapper);
  return added == core::add_result::added || added == core::add_result::merged;
}

/// What waits already is not made to wait longer by what is heard next.
void direct_sync::heard_of(const object_key& key) {
  const auto wait = pace_.wait(key, in_.clock.now());
  if (wait > core::duration::zero()) held_back_.Increment();
  controller_.add_after(key, wait);
}

asio::awaitable<k8s::reconcile_result> direct_sync::reconcile(object_key key) {
  const auto found = from_.bootstrappers.objects().get(key);
  auto kept = places_.claim(key);
  if (!found) {
    own_writes_.forget(key);
    forget(key);
    auto created = co_await create_for(key);
    co_return created;
  }
  auto resource = own_writes_.newest(found);
  if (k8s::is_being_deleted(resource)) {
    auto removed = co_await keep_removed(std::move(resource), &kept);
    co_return removed;
  }
  auto looked = co_await look(std::move(resource), &kept);
  co_return looked;
}

/// Decides whether the runtime is ours to look at.
asio::awaitable<k8s::reconcile_result> direct_sync::look(json::value resource,
                                                         places::place* kept) {
  problems wrong;
  const auto view = read_resource(resource, with_.usual, wrong);
  const auto runtime = runtime_of(view);
  situation seen{.mode = mode_of(view, runtime), .suspended = view.suspended};
  auto waiting = why_waiting(view, runtime);
  if (const auto owner = waiting.empty() ? other_owner(view) : std::nullopt) {
    wrong.push_back({"spec.runtimeRef", "RuntimeBootstrapper " + *owner + " has this runtime"});
    progress_.leave(view.key);
  }
  auto other = mismatch(view, runtime);
  if (!other.empty()) wrong.push_back({"spec.runtimeRef", std::move(other)});
  const bool direct = seen.mode == bootstrapper_mode::direct && waiting.empty();
  if (!direct || !wrong.empty()) drift_.leave(view.key);
  if (!direct) progress_.leave(view.key);
  if (!waiting.empty()) runtimes_.forget(view.key);
  if (seen.mode != bootstrapper_mode::shadow) progress_.differs(view.key, false);
  if (!wrong.empty()) {
    seen.invalid = describe(wrong);
    const auto then = result::terminal(seen.invalid);
    if (waiting.empty()) note(resource, runtime_state::failed, seen.invalid, seen.invalid, false);
    auto stopped = co_await stop_at(&resource, std::move(seen), then);
    co_return stopped;
  }
  if (!waiting.empty()) {
    seen.waiting = std::move(waiting);
    auto stopped = co_await stop_at(&resource, std::move(seen), result::done());
    co_return stopped;
  }
  auto brought = co_await bring(&resource, view, std::move(seen), kept);
  co_return brought;
}

/// Tells what is known and ends.
asio::awaitable<k8s::reconcile_result> direct_sync::stop_at(json::value* resource, situation seen,
                                                            result then) {
  const auto ended = co_await tell(resource, seen);
  if (ended) co_return *ended;
  co_return then;
}

asio::awaitable<k8s::reconcile_result> direct_sync::bring(json::value* resource, resource_view view,
                                                          situation seen, places::place* kept) {
  const auto key = view.key;
  const auto runtime = runtime_of(view);
  const bool direct = seen.mode == bootstrapper_mode::direct;
  auto request = request_for(view, seen);
  if (direct) progress_.expect(key, request.now);
  const auto kubeconfig = access_to(view, runtime);
  if (!kubeconfig) {
    seen.failed = kubeconfig.error().message;
    note(*resource, runtime_state::failed, seen.failed, seen.failed, false);
    const auto then = result::terminal(seen.failed);
    auto stopped = co_await stop_at(resource, std::move(seen), then);
    co_return stopped;
  }
  if (direct) {
    const auto ended = co_await add_finalizer(resource);
    if (ended) co_return *ended;
  }
  // Until all went well: one that answers what is read and hangs on what is written is still sick.
  const bool was_sick = runtimes_.sick(key);
  if (was_sick) {
    if (!*kept) *kept = places_.take(key);
    if (!*kept) co_return wait_for_place(key);
    const auto silent = co_await sign_of_life(key, *kubeconfig);
    if (silent) {
      auto given_up = co_await unreachable(resource, std::move(seen), *silent);
      co_return given_up;
    }
  } else {
    *kept = {};
  }
  auto api = client_of(key, *kubeconfig);
  if (!api) {
    auto given_up = co_await unreachable(resource, std::move(seen), api.error().message);
    co_return given_up;
  }
  const auto begin = in_.clock.now();
  const auto first_answer = was_sick ? with_.runtime_limit : with_.first_answer;
  auto reading = read_record(*api, &with_.how, to_string(key));
  auto record = co_await core::within(in_.clock, begin + first_answer, std::move(reading));
  if (!record && first_answer < with_.runtime_limit) co_return doubt(key);
  if (record && *record)
    request.record.emplace(std::move(**record));  // failures are sync's to tell
  std::optional<at_work> writing;
  if (direct) writing.emplace(*this, runtime);
  auto work = sync(*api, &with_.how, std::move(request));
  const auto got = co_await core::within(in_.clock, begin + with_.whole_limit, std::move(work));
  writing.reset();
  seconds_.Observe(std::chrono::duration<double>(in_.clock.now() - begin).count());
  if (!got || (!*got && k8s::is_sick(got->error()))) {
    const auto why = got ? got->error().message : "the runtime did not answer in time";
    auto given_up = co_await unreachable(resource, std::move(seen), why);
    co_return given_up;
  }
  if (!*got && is_our_own(got->error())) {
    // It is somebody else's turn now; what made it so is looked at next.
    if (direct && !may_write(key)) co_return result::requeue_after(catch_up);
    co_return result::error(got->error());
  }
  runtimes_.set_healthy(key);
  *kept = {};
  if (!*got) {
    core::make_counter(in_.metrics, "rw_bootstrapper_syncs_total", "Looks at runtimes",
                       {{"result", "failed"}})
        .Increment();
    seen.failed = got->error().message;
    const auto then = result::error(got->error());
    note(*resource, runtime_state::failed, then.reason, seen.failed, false);
    auto stopped = co_await stop_at(resource, std::move(seen), then);
    co_return stopped;
  }
  if (direct && with_.watch_runtimes) drift_.follow(key, *api, view.to.ns);
  drift_.expect(key, (*got)->versions);
  seen.report = std::move(**got);
  auto settled = co_await settle(resource, std::move(seen));
  co_return settled;
}

asio::awaitable<k8s::reconcile_result> direct_sync::settle(json::value* resource, situation seen) {
  const auto key = k8s::key_of(*resource);
  const auto& report = *seen.report;
  writes_.Increment(static_cast<double>(report.writes));
  core::make_counter(in_.metrics, "rw_bootstrapper_syncs_total", "Looks at runtimes",
                     {{"result", result_of(report)}})
      .Increment();
  if (report.repaired) note_repair(*resource, report);
  const bool in_place = report.refused.empty() && report.digest == report.wanted;
  if (report.distrusted) {
    in_.events.warning(k8s::reference_to(*resource), "BootstrapperRecordNotOurs",
                       "The record on the runtime of what was applied there is not as it was "
                       "written; nothing of it counted");
  }
  if (seen.mode == bootstrapper_mode::shadow) {
    progress_.differs(key, !report.differences.empty());
  } else if (in_place) {
    progress_.current(key);
  } else {
    progress_.outdated(key, in_.clock.wall());
  }
  const auto how = installation_of(report.deployment, report.version);
  // What is refused brings no pods, and those that have given up come back seldom.
  const bool comes = report.refused.empty() && how != installation::failed;
  const bool on_their_way =
      how == installation::in_progress || (comes && how != installation::ready);
  if (!report.refused.empty()) {
    note(*resource, runtime_state::failed, report.refused, report.refused, false);
  } else if (how != installation::ready) {
    note(*resource, runtime_state::not_ready, std::string(to_string(how)),
         std::string(to_string(how)), false);
  } else {
    note(*resource, runtime_state::installed, {}, report.version, report.objects > 0);
  }
  auto again = a_little_longer(with_.success_interval);
  const auto looks = std::min(runtimes_.look(key, on_their_way), 10U);
  if (on_their_way) {
    const auto pause = std::min(with_.ready_interval * (1U << looks), with_.ready_interval_limit);
    again = std::min(again, a_little_longer(pause));
  }
  const auto then = result::requeue_after(again);
  auto stopped = co_await stop_at(resource, std::move(seen), then);
  co_return stopped;
}

// --- runtimes that do not answer -------------------------------------------------------

asio::awaitable<k8s::reconcile_result> direct_sync::unreachable(json::value* resource,
                                                                situation seen, std::string why) {
  const auto key = k8s::key_of(*resource);
  drift_.leave(key);
  give_up_client(key);
  runtimes_.set_sick(key, why);
  note(*resource, runtime_state::unreachable, {}, why, false);
  seen.failed = "the runtime does not answer: " + why;
  const auto then = result::error(seen.failed, "unreachable");
  auto stopped = co_await stop_at(resource, std::move(seen), then);
  co_return stopped;
}

/// A runtime that did not answer last time is asked for little first. None: it answered.
asio::awaitable<std::optional<std::string>> direct_sync::sign_of_life(object_key key,
                                                                      std::string kubeconfig) {
  auto api = client_of(key, kubeconfig);
  if (!api) co_return api.error().message;
  auto work = (*api)->get(namespaces_type(), {{}, std::string(skr_namespace)}, true);
  const auto limit = runtimes_.patience(key, with_.sick_limit, with_.runtime_limit / 2);
  const auto until = in_.clock.now() + limit;
  const auto got = co_await core::within(in_.clock, until, std::move(work));
  if (!got) co_return runtimes_.complaint(key);
  if (!*got && k8s::is_sick(got->error())) co_return got->error().message;
  co_return std::nullopt;
}

/// All places for sick runtimes are taken: in its turn, in the same state as before.
k8s::reconcile_result direct_sync::wait_for_place(const object_key& key) {
  return result::error("the runtime does not answer: " + runtimes_.complaint(key), "unreachable");
}

/// One that answered last time is silent. Nothing is known yet, so nothing is told.
k8s::reconcile_result direct_sync::doubt(const object_key& key) {
  give_up_client(key);  // the connection may be what is dead
  drift_.leave(key);
  runtimes_.set_sick(key, "it was slow to answer");
  places_.want(key);
  return result::requeue_after(with_.backoff_limit);  // it is called before
}

// --- what is told ----------------------------------------------------------------------

/// Tells a state when it begins.
void direct_sync::note(const json::value& resource, runtime_state now, const std::string& reason,
                       const std::string& message, bool done) {
  const bool news = runtimes_.set(k8s::key_of(resource), now, reason, done);
  if (!news) return;
  const auto about = k8s::reference_to(resource);
  switch (now) {
    case runtime_state::installed:
      return in_.events.normal(about, "BootstrapperReady",
                               "The runtime has what is wanted; version " +
                                   (message.empty() ? std::string("unknown") : message));
    case runtime_state::not_ready:
      return in_.events.normal(about, "BootstrapperNotReady",
                               "The bootstrapper is not ready on the runtime: " + message);
    case runtime_state::failed:
      return in_.events.warning(about, "BootstrapperFailed",
                                "The runtime does not have what is wanted: " + message);
    case runtime_state::unreachable:
      return in_.events.warning(about, "RuntimeUnreachable",
                                "The runtime does not answer: " + message);
  }
}

/// Tells of a fight when it begins.
void direct_sync::note_repair(const json::value& resource, const sync_report& report) {
  const auto key = k8s::key_of(resource);
  const auto repairs = pace_.repaired(key, in_.clock.now());
  if (repairs != contested_after) return;
  const auto what = report.differences.empty() ? std::string() : report.differences.front();
  const auto message = "Somebody else undoes what is put right on the runtime, " +
                       std::to_string(repairs) + " times in a row by now, last " + what +
                       "; it is repaired less and less often";
  in_.log.warning("what was applied to a runtime is contested",
                  {{"namespace", key.ns}, {"name", key.name}, {"difference", what}});
  in_.events.warning(k8s::reference_to(resource), "BootstrapperContested", message);
}

direct_sync::step direct_sync::tell(json::value* resource, const situation& seen) {
  auto status = next_status(*resource, seen, in_.clock.wall());
  if (!status) co_return std::nullopt;
  // A member that is gone has to be taken back by name (RFC 7386).
  const auto* const before = k8s::find(*resource, {"status"});
  if (before != nullptr && before->is_object()) {
    for (const auto& [name, unused] : before->get_object()) {
      status->as_object().emplace(name, nullptr);
    }
  }
  json::value change = {{"metadata", {{"resourceVersion", k8s::resource_version_of(*resource)}}}};
  change.as_object()["status"] = std::move(*status);
  auto ended = co_await write(resource, std::move(change), "status");
  co_return ended;
}

/// Changes the resource as it is at its version. Somebody was faster: nothing is lost, as the
/// informer will tell.
direct_sync::step direct_sync::write(json::value* resource, json::value change,
                                     std::string subresource) {
  auto written = co_await in_.kcp.patch(runtime_bootstrappers_type(), k8s::key_of(*resource),
                                        k8s::patch_type::merge, std::move(change),
                                        {.subresource = std::move(subresource)});
  if (written) {
    own_writes_.wrote(*written);
    *resource = std::move(*written);
    co_return std::nullopt;
  }
  const auto& why = written.error();
  own_writes_.forget(k8s::key_of(*resource));
  if (why.is(k8s::errc::not_found)) co_return result::done();
  if (why.is(k8s::errc::conflict)) co_return result::requeue_after(catch_up);
  co_return result::error(why);
}

k8s::result<std::shared_ptr<k8s::client>> direct_sync::client_of(const object_key& key,
                                                                 const std::string& kubeconfig) {
  const auto resource = from_.bootstrappers.objects().get(key);
  if (resource) {
    const auto view = view_of(resource);
    const auto kyma = kyma_of(view, runtime_of(view));
    clients_[key] = kyma.empty() ? "runtime/" + view.runtime : to_string(object_key{key.ns, kyma});
  }
  return in_.runtimes.get(clients_[key], kubeconfig);
}

void direct_sync::give_up_client(const object_key& key) {
  const auto found = clients_.find(key);
  if (found != clients_.end()) in_.runtimes.evict(found->second);
}

void direct_sync::forget(const object_key& key) {
  progress_.leave(key);
  progress_.differs(key, false);
  drift_.leave(key);
  runtimes_.forget(key);
  pace_.forget(key);
  give_up_client(key);
  clients_.erase(key);
}

}  // namespace rw::bootstrapper
