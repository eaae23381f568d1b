#include "reactors/watcher_installer/watcher_installer.hpp"

#include "core/task_group.hpp"
#include "core/within.hpp"
#include "k8s/types.hpp"
#include "reactors/kyma_resources.hpp"
#include "reactors/runtime_access.hpp"
#include "tls/certificate.hpp"

#include <boost/asio/this_coro.hpp>

#include <algorithm>
#include <utility>
#include <vector>

namespace rw::watcher_installer {
namespace {

namespace asio = boost::asio;
using k8s::object;
using k8s::object_key;

k8s::controller_options controller_options_of(const options& with) {
  k8s::controller_options out{.name = "watcher-installer", .concurrent = with.concurrent};
  // Each wait in a reconcile has a limit of its own; this one is a net below them.
  out.reconcile_limit = 4 * (with.runtime_limit + with.sick_limit) + std::chrono::minutes(2);
  out.queue.retry_base = with.backoff_base;
  out.queue.retry_limit = with.backoff_limit;
  out.queue.retries_per_second = 0;  // each runtime has its own backoff
  return out;
}

/// Says something about this process and nothing about the runtime.
bool is_our_own(const k8s::failure& why) {
  return why.is(k8s::errc::fenced) || why.is(k8s::errc::shut_down);
}

}  // namespace

k8s::client_options runtime_client_options() {
  k8s::client_options out{.name = "runtimes"};
  out.connect = std::chrono::seconds(5);
  out.request = std::chrono::seconds(10);
  out.retries = 1;
  // Thousands of runtimes are visited in one process, and none of them is believed.
  out.answer_bytes = 4u << 20;
  return out;
}

watcher_installer::watcher_installer(asio::any_io_executor executor, options with, sources from,
                                     environment in)
    : with_(std::move(with)),
      from_(from),
      in_(std::move(in)),
      writes_(core::make_counter(in_.metrics, "rw_watcher_installer_writes_total",
                                 "Writing requests to runtimes")),
      runtimes_(in_.metrics, "rw_watcher_installer", "watcher"),
      places_(in_.metrics, "rw_watcher_installer", std::max<std::size_t>(with_.sick_at_once, 1),
              [this](const object_key& key) { return requeue(key); }),
      controller_(std::move(executor), controller_options_of(with_), *this,
                  {in_.clock, in_.watchdog, in_.log, in_.metrics, in_.random}) {
  watch_all();
}

watcher_installer::~watcher_installer() = default;

asio::awaitable<void> watcher_installer::run() {
  const auto executor = co_await asio::this_coro::executor;
  core::task_group tasks(executor);
  tasks.spawn(complete_board());
  tasks.spawn(controller_.run());
  co_await tasks.join();
}

/// Nobody may conclude from the board that all runtimes have something before all are on it.
asio::awaitable<void> watcher_installer::complete_board() {
  if (in_.board == nullptr) co_return;
  const bool synced = co_await from_.kymas.wait_synced();
  if (!synced) co_return;
  for (auto* each : from_.certificates) {
    const bool known = co_await each->wait_synced();
    if (!known) co_return;
  }
  from_.kymas.objects().for_each([this](const object& one) {
    if (may_have_certificate(one)) in_.board->expect(one.key());
  });
  in_.board->complete();
}

bool watcher_installer::requeue(const object_key& kyma) {
  const auto added = controller_.add(kyma);
  return added == core::add_result::added || added == core::add_result::merged;
}

// --- one runtime -----------------------------------------------------------------------

asio::awaitable<k8s::reconcile_result> watcher_installer::reconcile(object_key key) {
  if (in_.on_reconcile) in_.on_reconcile(key);
  auto kyma = from_.kymas.objects().get(key);
  auto kept = places_.claim(key);
  if (!kyma) {
    forget(key);
    co_return result::done();
  }
  if (k8s::is_being_deleted(kyma.parse())) {
    auto removed = co_await keep_removed(std::move(kyma), &kept);
    co_return removed;
  }
  auto installed = co_await keep_installed(std::move(kyma), &kept);
  co_return installed;
}

asio::awaitable<k8s::reconcile_result> watcher_installer::keep_installed(object kyma,
                                                                         places::place* kept) {
  const auto key = kyma.key();
  if (in_.board != nullptr && may_have_certificate(kyma)) in_.board->expect(key);
  auto kubeconfig = kubeconfig_of(kyma.name(), kubeconfigs_for(kyma));
  if (!kubeconfig) co_return no_access(kyma, kubeconfig.error().message);
  auto first_answer = with_.first_answer;
  if (runtimes_.sick(key)) {
    // Before anything else, so that those which wait do no work.
    if (!*kept) *kept = places_.take(key);
    if (!*kept) co_return wait_for_place(key);
    const auto limit = patience(key);
    const auto silent = co_await sign_of_life(key, *kubeconfig, limit);
    if (silent) co_return unreachable(kyma, *silent);
    first_answer = with_.runtime_limit;
  }
  *kept = {};
  auto marked = co_await add_finalizer(kyma);
  if (marked) co_return *marked;
  auto value = kyma.parse();
  const auto own = co_await in_.certificates.ensure(std::move(value));
  if (own.what == certificate_answer::kind::refused) co_return failed(kyma, own.why, false);
  if (own.what == certificate_answer::kind::failed) co_return failed(kyma, own.why, true);
  auto what = order_for(own);
  if (!what) co_return failed(kyma, what.error().message, false);
  if (in_.board != nullptr) in_.board->expect(key);
  auto brought =
      co_await bring(std::move(kyma), std::move(*kubeconfig), std::move(*what), first_answer);
  co_return brought;
}

/// A look at the runtime, and what is to be written then.
asio::awaitable<k8s::reconcile_result> watcher_installer::bring(object kyma, std::string kubeconfig,
                                                                order what,
                                                                core::duration first_answer) {
  const auto key = kyma.key();
  auto api = in_.runtimes.get(to_string(key), kubeconfig);
  if (!api) co_return no_access(kyma, api.error().message);
  visit one(*api, with_.how, bundles_);
  const auto begin = in_.clock.now();
  auto reading = one.read();
  const auto read = co_await core::within(in_.clock, begin + first_answer, std::move(reading));
  if (!read && first_answer < with_.runtime_limit) co_return doubt(key);
  if (!read) co_return unreachable(kyma, "it did not answer in time");
  if (!*read) co_return refused(kyma, read->error());
  auto bringing = one.bring(std::move(what), in_.clock.wall());
  const auto seen =
      co_await core::within(in_.clock, begin + with_.runtime_limit, std::move(bringing));
  if (!seen) co_return unreachable(kyma, "it did not answer in time");
  if (!*seen) co_return refused(kyma, seen->error());
  set_healthy(key);
  co_return settle(kyma, **seen);
}

/// A request failed: the runtime is to blame, or this process, or what was asked for.
k8s::reconcile_result watcher_installer::refused(const object& kyma, const k8s::failure& why) {
  if (k8s::is_sick(why)) return unreachable(kyma, why.message);
  if (is_our_own(why)) return result::error(why);
  set_healthy(kyma.key());
  return failed(kyma, why);
}

/// A runtime that did not answer last time is asked for little first. None: it answered.
asio::awaitable<std::optional<std::string>> watcher_installer::sign_of_life(object_key key,
                                                                            std::string kubeconfig,
                                                                            core::duration limit) {
  auto api = in_.runtimes.get(to_string(key), kubeconfig);
  if (!api) co_return api.error().message;
  auto work = (*api)->get(namespaces_type(), {{}, std::string(skr_namespace)}, true);
  const auto until = in_.clock.now() + limit;
  const auto got = co_await core::within(in_.clock, until, std::move(work));
  if (!got) co_return "it did not answer in time";
  if (!*got && k8s::is_sick(got->error())) co_return got->error().message;
  set_healthy(key);
  co_return std::nullopt;
}

core::duration watcher_installer::patience(const object_key& key) const {
  return runtimes_.patience(key, with_.sick_limit, with_.runtime_limit / 2);
}

void watcher_installer::set_healthy(const object_key& key) {
  runtimes_.set_healthy(key);
  if (in_.board != nullptr) in_.board->reached(key);
}

/// All places for sick runtimes are taken: in its turn, in the same state as before.
k8s::reconcile_result watcher_installer::wait_for_place(const object_key& key) {
  return result::error("the runtime does not answer: " + runtimes_.complaint(key), "unreachable");
}

/// One that answered last time is silent. Nothing is known yet, so nothing is told.
k8s::reconcile_result watcher_installer::doubt(const object_key& key) {
  in_.runtimes.evict(to_string(key));  // the connection may be what is dead
  runtimes_.set_sick(key, "it was slow to answer");
  places_.want(key);
  return result::requeue_after(with_.backoff_limit);  // it is called before
}

// --- what came of it -------------------------------------------------------------------

k8s::reconcile_result watcher_installer::settle(const object& kyma, const outcome& seen) {
  const auto key = kyma.key();
  writes_.Increment(static_cast<double>(seen.writes));
  record(kyma, seen);
  auto again = a_little_longer(with_.success_interval);
  const bool on_their_way = !seen.ready || !seen.rolled_out;
  const auto looks = std::min(runtimes_.look(key, on_their_way), 10U);
  if (on_their_way) {
    const auto pause = std::min(with_.ready_interval * (1U << looks), with_.ready_interval_limit);
    again = std::min(again, a_little_longer(pause));
  }
  if (!seen.ready) {
    tell(kyma, state::not_ready, seen.not_ready,
         seen.details.empty() ? seen.not_ready : seen.not_ready + ": " + seen.details);
  } else {
    // What only has to wait for its time is no news.
    const auto stuck = seen.again > core::duration::zero() ? std::string() : seen.pending;
    tell(kyma, state::installed, stuck, stuck, seen.writes > 0);
  }
  if (seen.again > core::duration::zero()) {
    again = std::min(again, seen.again + std::chrono::milliseconds(1));
  } else if (!seen.pending.empty()) {
    again = std::min(again, a_little_longer(with_.certificate_interval));
  }
  return result::requeue_after(again);
}

k8s::reconcile_result watcher_installer::unreachable(const object& kyma, const std::string& why) {
  const auto key = kyma.key();
  in_.runtimes.evict(to_string(key));
  runtimes_.set_sick(key, why);
  if (in_.board != nullptr) in_.board->unreachable(key, in_.clock.wall());
  tell(kyma, state::unreachable, {}, why);
  return result::error("the runtime does not answer: " + why, "unreachable");
}

/// There is no way to the runtime until somebody changes a Secret.
k8s::reconcile_result watcher_installer::no_access(const object& kyma, const std::string& why) {
  if (in_.board != nullptr) in_.board->unreachable(kyma.key(), in_.clock.wall());
  return failed(kyma, why, false);
}

k8s::reconcile_result watcher_installer::failed(const object& kyma, const std::string& why,
                                                bool again) {
  tell(kyma, state::failed, why, why);
  return again ? result::error(why) : result::terminal(why);
}

k8s::reconcile_result watcher_installer::failed(const object& kyma, const k8s::failure& why) {
  auto again = result::error(why);
  tell(kyma, state::failed, again.reason, why.message);
  return again;
}

/// What the pods run with, as far as their Deployment tells.
void watcher_installer::record(const object& kyma, const outcome& seen) {
  if (in_.board == nullptr || !seen.rolled_out) return;
  const auto own = tls::certificate::from_pem(seen.certificate);
  if (!own) return;
  in_.board->observed(kyma.key(), observe_rollout(seen.webhook_bundle, seen.secret_bundle, *own));
}

/// Tells a state when it begins.
void watcher_installer::tell(const object& kyma, state now, const std::string& reason,
                             const std::string& message, bool done) {
  const bool news = runtimes_.set(kyma.key(), now, reason, done);
  if (!news) return;
  const auto about = k8s::reference_to(kyma.parse());
  switch (now) {
    case state::installed:
      in_.events.normal(about, "WatcherInstalled",
                        message.empty() ? "The watcher is installed on the runtime and ready"
                                        : "The watcher is installed on the runtime; " + message);
      break;
    case state::not_ready:
      in_.events.warning(about, "WatcherNotReady",
                         "The watcher is not ready on the runtime: " + message);
      break;
    case state::failed:
      in_.events.warning(about, "WatcherFailed", "The watcher can't be installed: " + message);
      break;
    case state::unreachable:
      in_.events.warning(about, "RuntimeUnreachable", "The runtime does not answer: " + message);
      break;
  }
}

void watcher_installer::forget(const object_key& key) {
  runtimes_.forget(key);
  in_.runtimes.evict(to_string(key));
  if (in_.board != nullptr) in_.board->forget(key);
}

}  // namespace rw::watcher_installer
