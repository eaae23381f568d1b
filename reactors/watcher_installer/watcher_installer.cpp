#include "rw/reactors/watcher_installer/watcher_installer.hpp"

#include "rw/core/task_group.hpp"
#include "rw/k8s/objects/types.hpp"
#include "rw/reactors/runtime_controller/runtime_access.hpp"
#include "rw/reactors/shared/explanations.hpp"
#include "rw/reactors/shared/kyma_resources.hpp"

#include <boost/asio/this_coro.hpp>

#include <algorithm>
#include <utility>
#include <vector>

namespace rw::watcher_installer {
namespace {

namespace asio = boost::asio;
namespace json = boost::json;
using k8s::object;
using k8s::object_key;

constexpr auto reload_interval = std::chrono::milliseconds(500);  // as of events

runtime_names names() {
  return {.controller = "watcher-installer",
          .metrics = "rw_watcher_installer",
          .subject = "watcher",
          .events = {{{"WatcherInstalled"_reason, "The watcher is installed on the runtime: "},
                      {"WatcherNotReady"_reason, "The watcher is not ready on the runtime: "},
                      {"WatcherFailed"_reason, "The watcher can't be installed: "},
                      {"RuntimeUnreachable"_reason, "The runtime is unreachable: "}}},
          .removed = "WatcherRemoved"_reason,
          .removal_failed = {"WatcherRemovalFailed"_reason,
                             "The watcher can't be removed from the runtime: "},
          .removal_abandoned = "WatcherRemovalAbandoned"_reason};
}

}  // namespace

k8s::client_options runtime_client_options() {
  k8s::client_options out{.name = "runtimes",
                          .user_agent = "runtime-watcher",
                          .field_manager = std::string(default_field_manager)};
  out.connect = std::chrono::seconds(5);
  out.request = std::chrono::seconds(10);
  out.retries = 1;
  // Thousands of runtimes are visited in one process, and none of them is believed.
  out.response_bytes = 4u << 20;
  return out;
}

watcher_installer::watcher_installer(asio::any_io_executor executor, installer_options with,
                                     installer_sources from, installer_environment in)
    : runtime_controller(executor, names(), with, in.common, kymas_type()),
      options_(std::move(with)),
      sources_(from),
      certificates_(in.certificates),
      clusters_(in.clusters),
      claims_(from.kymas, from.kubeconfigs),
      records_(environment_.kcp, options_.records_namespace, options_.record_interval,
               {environment_.clock, environment_.log, environment_.metrics, environment_.random}),
      inputs_(from.gateways, from.gateway_secrets, from.watchers, from.virtual_services,
              std::move(from.foreseen),
              {options_.gateway, options_.istio_namespace, options_.kcp_port}, environment_.clock),
      watchers_gone_(executor),
      kymas_gone_(executor),
      began_(environment_.clock.now()),
      lease_(std::move(in.lease)),
      finalizers_(in.finalizers == nullptr ? environment_.kcp : *in.finalizers),
      content_(options_.install, environment_.log),
      reports_(std::move(in.reports)),
      on_reconcile_(std::move(in.on_reconcile)),
      writes_(core::make_counter(environment_.metrics, "rw_watcher_installer_writes_total",
                                 "Writing requests to runtimes")),
      skipped_(core::make_counter(
          environment_.metrics, "rw_watcher_installer_skipped_events_total",
          "Number of events of runtimes without a reconcile, as everything is in place there")),
      contested_gauge_(core::make_gauge(environment_.metrics,
                                        "rw_watcher_installer_contested_runtimes",
                                        "Runtimes that are left to lifecycle-manager")),
      invalid_inputs_(
          core::make_gauge(environment_.metrics, "rw_watcher_installer_invalid_inputs",
                           "Number of inputs of all runtimes that are invalid or missing in KCP")) {
  watch_all();
}

watcher_installer::~watcher_installer() = default;

asio::awaitable<void> watcher_installer::run() {
  const auto executor = co_await asio::this_coro::executor;
  co_await restore_records();
  has_records_ = true;
  core::task_group tasks(executor);
  tasks.spawn(complete_states());
  tasks.spawn(report_inputs());
  tasks.spawn(explain_gone_watchers());
  tasks.spawn(end_unknown());
  if (!environment_.kcp.is_dry()) {
    tasks.spawn(keep_records());
    tasks.spawn(keep_content());
  }
  tasks.spawn(drift_.run());
  tasks.spawn(run_controller());
  co_await tasks.join();
}

bool watcher_installer::on_event(const object_key& key, core::duration after) {
  if (!settled_.contains(key) || !drift_.is_unchanged(key)) return requeue(key, after);
  if (on_reconcile_) on_reconcile_(key);
  skipped_.Increment();
  return true;
}

void watcher_installer::on_reloaded(const object_key& key) {
  const auto found = awaited_.find(key);
  if (found == awaited_.end()) return;
  const auto now = environment_.clock.now();
  auto& [until, next] = found->second;
  if (until <= now) {
    awaited_.erase(found);
    return;
  }
  if (next > now + reload_interval) return;  // one is on its way, and another will follow it
  next = std::max(next, now);
  requeue(key, next - now);
  next += reload_interval;
}

void watcher_installer::roll_out_by(content_gate& gate, content_store& stored) {
  content_.roll_out_by(gate, stored, [this](const object_key& key) { requeue(key); });
}

/// What a former leader knew comes before any decision.
asio::awaitable<void> watcher_installer::restore_records() {
  const auto records = co_await records_.load();
  const bool synced = co_await sources_.kymas.wait_synced();
  if (!synced) co_return;
  sources_.kymas.objects().for_each([&](const object& kyma) {
    const auto found = records.find(std::string(kyma.uid()));
    if (found == records.end()) return;
    const auto& record = found->second;
    claims_.owners().restore(kyma.key(), found->first, record.clusters);
    if (record.fault) clusters_.restore(kyma.key(), *record.fault);
  });
}

void watcher_installer::visit_records(const cluster_records::visitor& visit) {
  sources_.kymas.objects().for_each([&](const object& kyma) {
    const auto key = kyma.key();
    cluster_record record{.clusters = claims_.owners().owned_by(key)};
    const auto* const state = clusters_.find(key);
    if (state != nullptr) record.fault = state->own_fault;
    visit(kyma.uid(), record);
  });
}

asio::awaitable<void> watcher_installer::keep_records() {
  const auto on_change = clusters_.subscribe([this] { records_.changed(); });
  co_await records_.keep([this](const auto& visit) { visit_records(visit); });
}

asio::awaitable<void> watcher_installer::keep_content() {
  const auto executor = co_await asio::this_coro::executor;
  const auto timer = environment_.clock.make_timer(executor);
  for (;;) {
    timer->expires_at(environment_.clock.now() + options_.content_interval);
    const bool due = co_await timer->wait();
    if (!due) co_return;
    co_await content_.repair(environment_.clock.now(), options_.unused_content_after);
  }
}

// --- one runtime -----------------------------------------------------------------------

asio::awaitable<k8s::reconcile_result> watcher_installer::reconcile(object_key key) {
  if (on_reconcile_) on_reconcile_(key);
  const auto stored = sources_.kymas.objects().get(key);
  auto to = begin(key);
  if (!stored) {
    forget(key);
    writer_.forget(key);
    auto cleaned = co_await remove_orphans(std::move(key));
    co_return cleaned;
  }
  auto kyma = writer_.newest(stored);
  const auto next = decide(stored, kyma, false);
  const bool leaving =
      next.next == action::release || next.next == action::hand_over || next.next == action::remove;
  const auto scope = scope_of(kyma, options_.only);
  clusters_.set_scope(key, leaving ? cluster_scope::leaving : scope);
  if (leaving) drop_findings(key);
  if (next.next == action::stand_back) co_return stand_back(kyma, next.owner);
  if (next.next == action::leave) {
    runtimes_.forget(key);
    drift_.unwatch(key);
    drop_findings(key);
    // Its runtime gets no new CA: a rotation stops waiting for it after a while.
    if (scope == cluster_scope::left_alone) {
      fails(key, status_reason::left_alone, cluster_fault::tenant);
    }
  } else if (next.next != action::release) {
    clusters_.belongs_to(key, {});
  }
  auto work = next.next == action::leave     ? leave(std::move(kyma))
              : next.next == action::release ? release(std::move(kyma))
              : next.next == action::hand_over
                  ? finish_removal(std::move(kyma), {.ended = true}, next.owner)
              : next.next == action::remove ? keep_removed(std::move(kyma), std::move(to))
                                            : keep_installed(std::move(kyma), std::move(to));
  auto done = co_await std::move(work);
  co_return done;
}

watcher_installer::decision watcher_installer::decide(const object& stored, const json::value& kyma,
                                                      bool is_preview) {
  if (scope_of(kyma, options_.only) != cluster_scope::managed) return {action::leave};
  const bool goes = k8s::is_being_deleted(kyma) && !is_kept_by_others(kyma);
  // Where nothing is released either, a preview has what the removal would write.
  const bool waits = is_preview && finalizers_.is_dry();
  if (goes && environment_.kcp.is_dry() && !waits) return {action::release};
  const auto changes = claims_.owners().changes();
  auto owner = is_preview ? claims_.find_other_owner(stored) : claims_.other_owner(stored);
  if (claims_.owners().changes() != changes) records_.changed();
  if (goes && owner.empty()) owner = claims_.heir(stored);
  if (owner.empty()) return {goes ? action::remove : action::install};
  return {goes ? action::hand_over : action::stand_back, std::move(owner)};
}

const std::vector<std::string>* watcher_installer::changes(const object_key& kyma) const {
  const auto found = changes_.find(kyma);
  return found == changes_.end() ? nullptr : &found->second;
}

/// A Kyma whose finalizer was removed by hand leaves its Certificate, and the Secret of that.
asio::awaitable<k8s::reconcile_result> watcher_installer::remove_orphans(object_key kyma) {
  if (!own_certificate(kyma.name)) co_return result::done();
  const auto kept = co_await time_of_orphan(kyma.name);
  if (!kept) co_return result::error(kept.error());
  if (*kept > core::duration::zero()) co_return result::requeue_after(with_jitter(*kept));
  // The Kyma may have been created again, and the informer may not know that yet.
  k8s::selection selection{.ns = kyma.ns, .fields = "metadata.name=" + kyma.name};
  const auto live = co_await environment_.kcp.list(kymas_type(), std::move(selection));
  if (!live) co_return result::error(live.error());
  const auto* const items = k8s::find(*live, {"items"});
  const bool gone = items != nullptr && items->is_array() && items->get_array().empty();
  if (!gone) co_return result::requeue_after(std::chrono::seconds(1));
  const auto removed = co_await certificates_.remove(kyma);
  if (!removed) co_return result::error(removed.error());
  if (!environment_.kcp.is_dry()) {
    environment_.log.info("certificate of a Kyma that is gone is removed", {{"kyma", kyma.name}});
  }
  co_return result::done();
}

/// Contacts the runtime; how the reconcile ends if that fails.
asio::awaitable<std::optional<k8s::reconcile_result>> watcher_installer::reach(
    const json::value* kyma, contact* to) {
  auto kubeconfig = this->kubeconfig(to->key.name);
  const bool connected = co_await connect(to, to_string(to->key), std::move(kubeconfig));
  if (connected) co_return std::nullopt;
  if (to->deferred) co_return deferred(*to);
  if (to->has_access) co_return refused(*kyma, *to, {.code = k8s::errc::unreachable});
  // There is no access to the runtime until a Secret changes.
  drift_.unwatch(to->key);
  co_return failed(*kyma, status_reason::access_missing, to->error, false);
}

asio::awaitable<k8s::reconcile_result> watcher_installer::keep_installed(json::value kyma,
                                                                         contact to) {
  // An unhealthy runtime comes first, so that nothing is done for those that wait.
  std::optional<result> ended;
  const bool has_access = kubeconfig(to.key.name).has_value();
  if (runtimes_.unhealthy(to.key) || !has_access) ended = co_await reach(&kyma, &to);
  if (ended) co_return *ended;
  ended = co_await writer_.set_finalizer(&kyma, options_.finalizer, true);
  if (ended) co_return *ended;
  const auto own = co_await certificates_.ensure(kyma);
  if (own.state == certificate_state::kind::refused) {
    co_return failed(kyma, status_reason::certificate_invalid, own.reason, false);
  }
  if (own.state == certificate_state::kind::failed) {
    co_return failed(kyma, status_reason::certificate_not_requested, own.reason, true);
  }
  refresh_inputs();
  if (!inputs_.address() || !inputs_.trust()) {
    const auto error = inputs_.errors().front();
    co_return failed(kyma, error.reason, error.message, false);
  }
  auto order = order_for(own);
  clusters_.expect(to.key);
  if (!to.api) ended = co_await reach(&kyma, &to);
  if (ended) co_return *ended;
  auto applied = co_await apply(std::move(kyma), std::move(to), std::move(order));
  co_return applied;
}

/// Adds what the roll-out has made of the Deployment so far, and what the pods say.
asio::awaitable<k8s::result<void>> watcher_installer::complete_order(const object_key* key,
                                                                     order* order) {
  const auto loaded = co_await content_.load();
  if (!loaded) co_return loaded.error();
  order->completed = content_.completed();
  const auto& wanted = content_.current();
  if (wanted->digest == content_.pinned()) order->pinned = wanted;
  if (reports_) order->reports = reports_(*key);
  co_return k8s::result<void>();
}

asio::awaitable<k8s::reconcile_result> watcher_installer::apply(json::value kyma, contact to,
                                                                order order) {
  const auto completed = co_await complete_order(&to.key, &order);
  if (!completed) co_return result::error(completed.error());
  // From now on: the pods may be faster than this reconcile.
  if (reports_) {
    awaited_[to.key].until = environment_.clock.now() + options_.install.delays.propagation;
  }
  const auto wanted = content_.current();
  // Another content may be pinned in the midst of the pass.
  order.may_update = [this, key = to.key, wanted](std::string in_place) {
    return wanted == content_.current() &&
           content_.admit(key, content_facts{.in_place = std::move(in_place)});
  };
  auto installing =
      install(to.api, &options_.install, &bundles_, std::move(order), &environment_.clock);
  auto seen = co_await bounded(&to, std::move(installing));
  if (to.deferred) co_return deferred(to);
  if (wanted != content_.current()) co_return result::requeue_after(std::chrono::milliseconds(1));
  if (!seen) co_return refused(kyma, to, seen.error());
  watch_drift(to, std::move(seen->left));
  const bool wrote = seen->writes > 0;
  drift_.reconciled(to.key, wrote && drift_.changed(to.key), wrote);
  co_return settle(kyma, *seen);
}

// --- what came of it -------------------------------------------------------------------

k8s::reconcile_result watcher_installer::settle(const json::value& kyma, const outcome& seen) {
  const auto key = k8s::key_of(kyma);
  writes_.Increment(static_cast<double>(seen.writes));
  if (seen.trust) clusters_.observed(key, *seen.trust, environment_.clock.wall(), seen.is_loaded);
  if (seen.contested.empty()) {
    clusters_.converged(key, seen.ready);
  } else {
    fails(key, status_reason::contested, cluster_fault::tenant);
  }
  if (!seen.awaits_pods) awaited_.erase(key);
  changes_[key] = seen.changes;
  if (contested_.empty()) contested_since_ = environment_.clock.wall();
  seen.contested.empty() ? contested_.erase(key) : contested_.insert(key).second;
  contested_gauge_.Set(static_cast<double>(contested_.size()));
  clusters_.set_outdated(key, !content_.admit(key, seen.content));
  const bool settled = seen.contested.empty() && seen.ready && seen.rolled_out &&
                       seen.pending.empty() && seen.unobserved.empty() &&
                       seen.again <= core::duration::zero();
  if (settled) settled_.insert(key);
  if (!settled) settled_.erase(key);
  auto again = next_pause(key, !seen.rolled_out);
  if (!seen.contested.empty()) {
    note(kyma, {.state = runtime_state::failed,
                .reason = status_reason::contested,
                .message = options_.install.former_manager + " writes " + seen.contested +
                           " too, so the runtime is left to it. Switch that off, or this manager"});
    return result::requeue_after(std::min(again, options_.install.contest_pause));
  }
  if (!seen.ready) {
    std::string text(to_string(seen.not_ready));
    if (!seen.details.empty()) text += ": " + seen.details;
    note(kyma,
         {.state = runtime_state::not_ready, .reason = seen.not_ready, .message = std::move(text)});
  } else {
    // What only has to wait for its time is no news.
    auto stuck = seen.again > core::duration::zero() ? std::string() : seen.pending;
    auto reason = stuck.empty() ? status_reason::none : status_reason::certificate_pending;
    if (stuck.empty() && !seen.unobserved.empty()) {
      stuck = seen.unobserved;
      reason = status_reason::rights_missing;
    }
    note(kyma,
         {.state = runtime_state::installed,
          .reason = reason,
          .message = stuck.empty() ? "ready" : stuck,
          .cause = stuck},
         seen.writes > 0);
  }
  if (seen.again > core::duration::zero()) {
    again = std::min(again, seen.again + std::chrono::milliseconds(1));
  } else if (!seen.pending.empty()) {
    again = std::min(again, with_jitter(options_.certificate_interval));
  }
  return result::requeue_after(again);
}

/// The reconcile continues when the runtime, which does not respond, gets a permit.
k8s::reconcile_result watcher_installer::deferred(const contact& to) {
  settled_.erase(to.key);
  content_.admit(to.key, content_facts{.health = content_health::unreachable});
  return *to.deferred;
}

/// A request failed: the runtime is to blame, or this process, or what was asked for.
k8s::reconcile_result watcher_installer::refused(const json::value& kyma, const contact& to,
                                                 const k8s::failure& error) {
  if (error.is(k8s::errc::fenced) || error.is(k8s::errc::shut_down)) return result::error(error);
  settled_.erase(to.key);
  if (runtimes_.unhealthy(to.key)) {
    fails(to.key, to.reason, cluster_fault::tenant);
    const bool admitted =
        content_.admit(to.key, content_facts{.health = content_health::unreachable});
    clusters_.set_outdated(to.key, !admitted);
    note(kyma, {.state = runtime_state::unreachable, .reason = to.reason, .message = to.error});
    return unreachable(to.error);
  }
  const bool rejects = k8s::is_permanent(error);
  fails(to.key, reason_of_failure(error), cluster_fault::tenant);
  content_.admit(to.key,
                 content_facts{.rejected = rejects ? content_.current()->digest : std::string(),
                               .error = error.message});
  auto again = result::error(error);
  note(kyma, {.state = runtime_state::failed,
              .reason = reason_of_failure(error),
              .message = error.message,
              .cause = again.reason});
  return again;
}

k8s::reconcile_result watcher_installer::failed(const json::value& kyma, status_reason reason,
                                                const std::string& error, bool again) {
  const auto key = k8s::key_of(kyma);
  // A single runtime without a kubeconfig must not hold up all. Where KCP loses them all, they are
  // more than a rotation excuses.
  const auto fault = reason == status_reason::certificate_not_requested ? cluster_fault::issuer
                     : reason == status_reason::access_missing          ? cluster_fault::tenant
                                                                        : cluster_fault::kcp;
  fails(key, reason, fault);
  settled_.erase(key);
  content_.admit(key, std::nullopt);
  note(kyma, {.state = runtime_state::failed, .reason = reason, .message = error, .cause = error});
  return again ? result::error(error) : result::terminal(error);
}

/// Nobody waits for a runtime that never got a certificate: such a one is not known.
void watcher_installer::fails(const object_key& key, status_reason reason, cluster_fault fault) {
  if (clusters_.find(key) != nullptr)
    clusters_.failing(key, reason, fault, environment_.clock.wall());
}

/// The cluster is another Kyma's. What is there belongs to that one.
k8s::reconcile_result watcher_installer::stand_back(const json::value& kyma,
                                                    const std::string& owner) {
  const auto key = k8s::key_of(kyma);
  drift_.unwatch(key);
  drop_findings(key);
  clusters_.belongs_to(key, owner);
  note(kyma, {.state = runtime_state::failed,
              .reason = status_reason::duplicate_runtime,
              .message = "also Kyma " + owner,
              .cause = owner});
  return result::done();
}

void watcher_installer::forget(const object_key& key) {
  forget_runtime(key, to_string(key));
  drop_findings(key);
  claims_.forget(key);
  records_.changed();
  clusters_.forget(key);
}

/// Drops what the last reconcile found, where the runtime is no longer reconciled.
void watcher_installer::drop_findings(const object_key& key) {
  changes_.erase(key);
  settled_.erase(key);
  awaited_.erase(key);
  contested_.erase(key);
  contested_gauge_.Set(static_cast<double>(contested_.size()));
  content_.admit(key, std::nullopt);
}

}  // namespace rw::watcher_installer
