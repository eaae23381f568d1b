#include "rw/reactors/cli/manager_app.hpp"

#include "rw/k8s/client/object_api.hpp"
#include "rw/k8s/objects/types.hpp"
#include "rw/reactors/cli/listening.hpp"
#include "rw/reactors/cli/manager_options.hpp"
#include "rw/reactors/cli/manager_view.hpp"
#include "rw/reactors/intake/san_pinning.hpp"
#include "rw/reactors/shared/explanations.hpp"
#include "rw/reactors/shared/kyma_resources.hpp"
#include "rw/reactors/shared/trust_bundle.hpp"
#include "rw/tls/files.hpp"

#include <stdexcept>
#include <utility>

namespace rw::cli {
namespace {

namespace asio = boost::asio;

constexpr std::size_t events_at_once = 256;
constexpr std::size_t heartbeat_room = 1024;   // of up to 16 KiB each
constexpr std::chrono::seconds last_words(2);  // for events not written yet, at the end

k8s::informer_options within(std::string_view ns) {
  return {.objects = {.ns = std::string(ns)}};
}

}  // namespace

manager_app::manager_app(services& with, manager_settings settings, manager_observer* observer)
    : app(with),
      settings_(std::move(settings)),
      observer_(observer),
      dry_run_(std::make_shared<bool>(settings_.shadow)),
      klm_runs_(std::make_shared<bool>(true)),
      stands_back_gauge_(core::make_gauge(with.metrics, "rw_manager_stands_back",
                                          "1 while the leader only dry-runs its writes: because "
                                          "lifecycle-manager runs, or in shadow mode")),
      fence_(with.clock),
      shared_(connect("kcp-shared")),
      kcp_(connect("kcp").fenced(leader_fence())),
      watcher_kcp_(kcp_.dry(dry_run_)),
      klm_(shared_, lease_options(settings_), with.clock, with.log),
      watchers_(inform(watchers_type(), {})),
      gateways_(inform(gateways_type(), {})),
      virtual_services_(inform(virtual_services_type(), {})),
      kymas_(inform(kymas_type(), within(kcp_namespace))),
      kubeconfigs_(inform(secrets_type(), {.objects = watcher_installer::kubeconfig_secrets()})),
      certificates_(
          inform(certificates::certificates_type(certificate_options(settings_).certificates.kind),
                 certificates::certificates_informer(certificate_options(settings_).certificates))),
      certificate_secrets_(
          inform(secrets_type(),
                 certificates::secrets_informer(certificate_options(settings_).certificates))),
      root_secret_(inform(
          secrets_type(),
          gateway_secret::informer_of({settings_.istio_namespace, std::string(klm_watcher_name)}))),
      gateway_secret_(
          inform(secrets_type(), gateway_secret::informer_of({settings_.istio_namespace,
                                                              std::string(gateway_secret_name)}))),
      rollouts_(shared_, runtime_rollout::runtime_rollouts_type(), within(kcp_namespace),
                services_.for_informer()),
      watcher_contents_(kcp_, settings_.runtime_config.direct.state_namespace, "watcher-content-"),
      heartbeat_channel_(settings_.heartbeat_timeout > std::chrono::milliseconds(0)
                             ? std::make_shared<core::channel<received_heartbeat>>(heartbeat_room)
                             : nullptr),
      listener_(listener::register_component(with.executor, listener_options(),
                                             {with.clock, with.watchdog, with.log, with.metrics})),
      plain_(core::make_plain_transport()),
      view_(std::make_unique<view>(*this)),
      live_(with.executor, with.clock, with.metrics, *view_),
      pages_(with.metrics, page_options()),
      admin_(std::make_unique<http::server>(
          with.executor,
          http::server_options{
              "admin", listening_address(settings_.metrics_address, "--metrics-address"), {}},
          pages_, http::server_environment{*plain_, with.watchdog, with.log, with.metrics})) {
  kyma_router::index_by_runtime(kymas_);
  make_reactors();
}

manager_app::~manager_app() = default;

admin::page_options manager_app::page_options() {
  core::labels labels;
  if (!settings_.landscape.empty()) labels.emplace("landscape", settings_.landscape);
  return {.not_ready = [this] { return not_ready(); },
          .runtimes = [this](std::string_view query,
                             std::string& error) { return view_->runtimes(query, error); },
          .history = [this](std::string_view query,
                            std::string& error) { return view_->history(query, error); },
          .diff = [this](std::string query) { return diff(std::move(query)); },
          .token = [this] { return admin_token(); },
          .term_token = [this] { return term_token_; },
          .elsewhere = [this] { return other_leader(); },
          .labels = std::move(labels),
          .live = &live_};
}

/// Not owned: it lives as long as the clients do. Null: this process leads without a Lease.
std::shared_ptr<const k8s::fence> manager_app::leader_fence() const {
  if (!settings_.leader_elect) return nullptr;
  return {std::shared_ptr<void>(), &fence_};
}

k8s::client manager_app::connect(const char* name) const {
  return {services_.executor, load_kcp_config(settings_.kcp),
          k8s::client_options{.name = name,
                              .user_agent = "runtime-watcher-manager",
                              .field_manager = std::string(default_field_manager)},
          services_.for_client()};
}

k8s::informer& manager_app::inform(const k8s::resource_type& type, k8s::informer_options options) {
  informers_.push_back(
      std::make_unique<k8s::informer>(shared_, type, std::move(options), services_.for_informer()));
  return *informers_.back();
}

listener::listener_options manager_app::listener_options() {
  auto out = listening_options(services_, settings_.listening, "--listen-address", reloader_);
  out.takes_events = [this] { return leads_; };
  out.resyncs = true;
  out.heartbeats = heartbeat_channel_;
  if (settings_.pin_san) {
    out.verify = listener::pin_san([this](std::string_view runtime) { return domain_of(runtime); });
  }
  return out;
}

/// Returns the Kymas with that runtime id, without those that claim another Kyma's cluster.
std::vector<k8s::object> manager_app::owners_of(std::string_view runtime_id) const {
  auto out = kyma_router::kymas_of(kymas_, runtime_id);
  std::erase_if(out,
                [this](const k8s::object& kyma) { return clusters_.is_duplicate(kyma.key()); });
  return out;
}

std::optional<std::string> manager_app::domain_of(std::string_view runtime_id) const {
  const auto found = owners_of(runtime_id);
  if (found.size() != 1) return {};
  const auto value = found.front().parse();
  if (!k8s::has_annotation(value, skr_domain_annotation)) return std::nullopt;
  return std::string(k8s::annotation(value, skr_domain_annotation));
}

/// Read again at each call, as it may be a mounted Secret. Without a file there is no token.
std::string manager_app::admin_token() const {
  if (settings_.admin_token_file.empty()) return {};
  const auto read = tls::read_file(settings_.admin_token_file);
  auto token = read ? *read : std::string();
  while (!token.empty() && token.back() <= ' ') token.pop_back();
  return token;
}

/// Returns one reason a line; empty if the process is ready.
std::string manager_app::not_ready() const {
  std::string reasons;
  for (const auto& each : informers_) {
    if (!each->synced()) reasons += "not in step with KCP: " + each->type().plural + "\n";
  }
  if (runtime_config_) reasons += runtime_config_->not_ready();
  if (stopping_) reasons += "stopping\n";
  return reasons;
}

/// Enqueues a Kyma. Requests lost with the leadership do no harm: the next leader inspects every
/// runtime.
void manager_app::route(const k8s::object_key& kyma, core::duration after) {
  if (!leads_ || installer_->on_event(kyma, after)) return;
  services_.log.limited(route_log_, core::log_level::warning,
                        "an event is dropped: the queue is full", {{"name", kyma.name}});
}

/// Takes events once the Kymas are known, which the checks and the routing need; senders wait until
/// then.
asio::awaitable<void> manager_app::take_events() {
  const bool synced = co_await kymas_.wait_synced();
  takes_events_ = synced && !stopping_;
  if (takes_events_) co_await listener_.runnable->run();
  listener_.events->close();
}

void manager_app::show(const listener::received_event& event) const {
  std::vector<k8s::object_key> kymas;
  for (const auto& owner : owners_of(event.runtime_id)) {
    kymas.push_back(owner.key());
  }
  observer_->on_event(event, kymas);
}

asio::awaitable<void> manager_app::read_events() {
  std::vector<listener::received_event> received;
  for (;;) {
    received.clear();
    const auto got = co_await listener_.events->receive_some(received, events_at_once);
    if (got.has_error()) co_return;
    for (const auto& event : received) {
      if (event.resync) {
        // Everything of the runtime is compared, whatever its watches have shown.
        for (const auto& kyma : owners_of(event.runtime_id)) installer_->suspect(kyma.key());
      }
      if (observer_ != nullptr) show(event);
      router_->on_event(event.runtime_id);
    }
  }
}

/// Ends the process when lifecycle-manager begins or ends. A term decides at its beginning whether
/// it stands back, so no state of the other mode remains.
asio::awaitable<void> manager_app::end_when_changed() {
  co_await klm_.until_changed(stands_back_);
  services_.log.warning(stands_back_ ? "lifecycle-manager has ended; this manager restarts"
                                     : "lifecycle-manager has started; this manager restarts");
  lost_ = true;
  stop();
}

/// Of a manager that goes on while lifecycle-manager runs. Without it nobody else writes as that.
asio::awaitable<void> manager_app::follow_lifecycle_manager() {
  for (;;) {
    *klm_runs_ = co_await klm_.runs();
    co_await klm_.until_changed(*klm_runs_);
  }
}

std::string manager_app::stands_back_text() const {
  return "lifecycle-manager runs, as its Lease " + lifecycle_manager_options().lease.name +
         " says: nothing is written before it ends, or --take-over says that its own part for "
         "watchers is switched off";
}

void manager_app::stand_back() {
  stands_back_ = true;
  *dry_run_ = true;
  services_.log.warning("this manager stands back", {{"reason", stands_back_text()}});
  recorder_->warning(k8s::reference_to(lease()), "StandsBack"_reason, stands_back_text());
}

/// What Events about the manager itself are about.
boost::json::value manager_app::lease() const {
  return {{"apiVersion", "coordination.k8s.io/v1"},
          {"kind", "Lease"},
          {"metadata", {{"name", settings_.lease_name}, {"namespace", settings_.lease_namespace}}}};
}

/// Runs the controllers of one term; a process has one term at most.
asio::awaitable<void> manager_app::lead() {
  if (stopping_ || lost_) co_return;
  services_.log.info("this replica leads");
  const bool asks = !settings_.take_over && !settings_.shadow;
  stands_since_ = services_.clock.wall();
  core::task_group reactors(services_.executor, fail_on_exception());
  // Before it is known who writes, since nobody else takes the events meanwhile.
  leads_ = true;
  if (endpoint_) reactors.spawn(endpoint_->run());
  if (elector_ && !settings_.shadow) reactors.spawn(publish_token());
  std::exception_ptr end;
  try {
    if (asks) co_await await_lifecycle_manager();
    begin_term(reactors, asks);
    co_await reactors.join();
  } catch (...) {
    end = std::current_exception();
  }
  co_await asio::this_coro::throw_if_cancelled(false);
  reactors.cancel();
  co_await reactors.join();
  leads_ = false;
  term_token_.clear();
  if (!stopping_) {
    lost_ = true;
    services_.log.error("this replica no longer leads and ends");
    stop();
  }
  if (end) std::rethrow_exception(end);
}

/// Waits until it is known whether lifecycle-manager runs.
asio::awaitable<void> manager_app::await_lifecycle_manager() {
  stands_back_gauge_.Set(1);
  awaits_klm_ = true;
  const bool runs = co_await klm_.runs();
  awaits_klm_ = false;
  *klm_runs_ = runs;
  if (runs) stand_back();
}

/// Begins what decides and writes.
void manager_app::begin_term(core::task_group& reactors, bool asks) {
  stands_back_gauge_.Set(*dry_run_ ? 1 : 0);
  in_waves_ = !*dry_run_ && !settings_.runtime_config.rollout_none;
  if (in_waves_) installer_->roll_out_by(*rollout_, watcher_contents_);
  reactors.spawn(asks ? end_when_changed() : follow_lifecycle_manager());
  reactors.spawn(watcher_controller_->run());
  reactors.spawn(rotator_->run());
  const bool bootstraps = runtime_config_ && !settings_.runtime_config.rollout_none;
  if (in_waves_ || bootstraps) reactors.spawn(rollouts_.run());
  if (in_waves_) reactors.spawn(rollout_->run());
  reactors.spawn(installer_->run());
  reactors.spawn(judge_fleet());
  if (elector_ && !*dry_run_) reactors.spawn(keep_history());
  // The watchers that another manager installed report to that one.
  if (heartbeats_ && !*dry_run_) reactors.spawn(heartbeats_->run());
  if (prober_ && !*dry_run_) reactors.spawn(prober_->run());
  if (runtime_config_) reactors.spawn(runtime_config_->lead());
  if (orphans_ && !*dry_run_) reactors.spawn(orphans_->run());
}

asio::awaitable<void> manager_app::close_clients() {
  co_await pool_->close();
  co_await kcp_.close();
  co_await shared_.close();
}

asio::awaitable<int> manager_app::run() {
  core::task_group background(services_.executor, fail_on_exception());
  core::task_group intake(services_.executor, fail_on_exception());
  core::task_group leading(services_.executor, fail_on_exception());
  core::task_group recording(services_.executor, fail_on_exception());
  background.spawn(services_.watchdog.run());
  background.spawn(admin_->run());
  background.spawn(live_.run());
  if (reloader_) background.spawn(reloader_->run());
  for (const auto& each : informers_) background.spawn(each->run());
  if (runtime_config_) background.spawn(runtime_config_->watch());
  recording.spawn(recorder_->run());
  background.spawn(pool_->run());
  intake.spawn(take_events());
  intake.spawn(read_events());  // ends after the last accepted event
  leading.spawn(elector_ ? elector_->run() : lead());
  log_listening(services_.log, "listener", address());
  log_listening(services_.log, "admin", metrics_address());

  co_await stop_.wait();

  stopping_ = true;
  const auto end = services_.clock.now() + settings_.drain_timeout;
  services_.log.info("stopping: no new events, ending what is under way");
  listener_.runnable->drain();
  if (!takes_events_) intake.cancel();  // it waits for Kymas that may never come
  co_await join_by(intake, end - settings_.drain_timeout / 2);
  // Releases the lease once the controllers have ended.
  leading.cancel();
  co_await join_by(leading, end);
  recorder_->close();
  co_await join_by(recording, services_.clock.now() + last_words);
  background.cancel();
  co_await background.join();
  co_await close_clients();
  rethrow_failure();
  services_.log.info("stopped");
  co_return lost_ ? 1 : 0;
}

}  // namespace rw::cli
