#include "rw/reactors/cli/uninstall_app.hpp"

#include "rw/core/within.hpp"
#include "rw/k8s/client/object_api.hpp"
#include "rw/k8s/controller/leader_election.hpp"
#include "rw/k8s/objects/types.hpp"
#include "rw/reactors/bootstrapper/resource.hpp"
#include "rw/reactors/certificates/rendering.hpp"
#include "rw/reactors/cli/kcp_commands.hpp"
#include "rw/reactors/cli/kcp_error.hpp"
#include "rw/reactors/intake/leader_endpoint.hpp"
#include "rw/reactors/runtime_controller/runtime_access.hpp"
#include "rw/reactors/runtime_rollout/resource.hpp"
#include "rw/reactors/shared/issuer_kind.hpp"
#include "rw/reactors/shared/kyma_resources.hpp"
#include "rw/reactors/shared/resource_writer.hpp"
#include "rw/reactors/shared/trust_bundle.hpp"
#include "rw/reactors/watcher_controller/watcher_status.hpp"
#include "rw/reactors/watcher_installer/handover.hpp"
#include "rw/reactors/watcher_installer/watcher_installer.hpp"

#include <boost/json/array.hpp>
#include <boost/json/serialize.hpp>

#include <algorithm>
#include <set>
#include <unistd.h>
#include <utility>

namespace rw::cli {
namespace {

namespace asio = boost::asio;
namespace json = boost::json;

constexpr auto repeat_waiting = std::chrono::seconds(30);
constexpr auto lease_response = std::chrono::seconds(10);  // the wait for one of KCP
constexpr auto signal_record = "runtime-watcher-signalled-configuration";

k8s::client connect(services& with, const uninstall_settings& settings, const char* name) {
  return {with.executor, load_kcp_config(settings.kcp),
          k8s::client_options{.name = name,
                              .user_agent = "runtime-watcher-uninstall",
                              .field_manager = std::string(default_field_manager)},
          with.for_client()};
}

}  // namespace

uninstall_app::uninstall_app(services& with, uninstall_settings settings)
    : app(with),
      settings_(std::move(settings)),
      fence_(with.clock),
      lease_(connect(with, settings_, "lease")),
      kcp_(connect(with, settings_, "kcp").fenced(settings_.dry_run ? nullptr : leader_fence())),
      output_(with.executor, STDOUT_FILENO) {
  k8s::client_pool_options to_runtimes{.name = "skr",
                                       .client = watcher_installer::runtime_client_options()};
  to_runtimes.writes = leader_fence();
  pool_ =
      std::make_unique<k8s::client_pool>(with.executor, std::move(to_runtimes), with.for_client());
}

uninstall_app::~uninstall_app() = default;

/// Not owned: it lives as long as the clients do.
std::shared_ptr<const k8s::fence> uninstall_app::leader_fence() const {
  return {std::shared_ptr<void>(), &fence_};
}

/// Prints a line. Several coroutines add lines, and one at a time writes them.
asio::awaitable<void> uninstall_app::say(std::string line) {
  lines_.push_back(std::move(line) + "\n");
  if (writing_) co_return;
  writing_ = true;
  while (!lines_.empty()) {
    std::string text;
    for (auto& each : lines_) text += each;
    lines_.clear();
    const auto failed = co_await output_.write(std::move(text));
    if (failed) break;
  }
  writing_ = false;
}

/// Returns the objects with the finalizer, or, if that is empty, all; none if the kind is not
/// served.
asio::awaitable<k8s::result<uninstall_app::list>> uninstall_app::read_all(k8s::resource_type type,
                                                                          std::string ns,
                                                                          std::string finalizer) {
  list out;
  auto got = co_await kcp_.list_all(type, {.ns = ns, .metadata_only = finalizer.empty()});
  if (!got && got.error().is(k8s::errc::not_found)) co_return out;
  if (!got) co_return got.error();
  for (auto& entry : got->at("items").as_array()) {
    if (finalizer.empty() || k8s::has_finalizer(entry, finalizer)) out.push_back(std::move(entry));
  }
  co_return out;
}

/// Deletes an object. Returns the error; empty if it is deleted.
asio::awaitable<std::string> uninstall_app::remove(k8s::resource_type type, std::string ns,
                                                   std::string name) {
  if (settings_.dry_run) co_return "";
  const auto name_text = type.gvk.kind + " " + ns + "/" + name;
  const auto removed = co_await kcp_.remove(std::move(type), {ns, name});
  if (removed || removed.error().is(k8s::errc::not_found)) co_return "";
  co_return name_text + ": " + removed.error().message;
}

/// Removes a finalizer. Returns the error; empty if the object has lost the finalizer, or is
/// deleted.
asio::awaitable<std::string> uninstall_app::release(k8s::resource_type type, json::value object,
                                                    std::string finalizer) {
  if (settings_.dry_run) co_return "";
  resource_writer writer(kcp_, type);
  for (int i = 0; i < 5; ++i) {
    const auto ended = co_await writer.set_finalizer(&object, finalizer, false);
    if (!ended || ended->type == k8s::reconcile_result::kind::done) co_return "";
    if (ended->type == k8s::reconcile_result::kind::error) co_return ended->text;
    auto live = co_await kcp_.get(type, k8s::key_of(object));
    if (!live && live.error().is(k8s::errc::not_found)) co_return "";
    if (!live) co_return live.error().message;
    object = std::move(*live);
  }
  co_return "other clients write it continuously";
}

/// Removes the watcher from a runtime, or gives its webhooks to lifecycle-manager. A dry run checks
/// whether the runtime responds. Returns false if KCP has no kubeconfig of the runtime, as after
/// its deletion: nothing is done then.
asio::awaitable<k8s::result<bool>> uninstall_app::clean_runtime(std::string name) {
  const auto kubeconfig = co_await read_kubeconfig(kcp_, name);
  if (!kubeconfig && kubeconfig.error().is(k8s::errc::not_found)) co_return false;
  if (!kubeconfig) co_return kubeconfig.error();
  auto api = pool_->get(name, *kubeconfig);
  if (!api) co_return api.error();
  if (settings_.dry_run) {
    auto probe = (*api)->get(namespaces_type(), {{}, std::string(skr_namespace)}, true);
    const auto got = co_await std::move(probe);
    if (!got && !got.error().is(k8s::errc::not_found)) co_return got.error();
    co_return true;
  }
  auto work = settings_.keep_runtimes ? watcher_installer::hand_over(std::move(*api), &options_)
                                      : watcher_installer::uninstall(std::move(*api), &options_);
  auto cleaned = co_await std::move(work);
  pool_->evict(name);
  if (!cleaned) co_return cleaned.error();
  co_return true;
}

/// Removes everything of the manager from a Kyma and its runtime. Returns the error; empty on
/// success, and in `note` what is left on the runtime nevertheless.
asio::awaitable<std::string> uninstall_app::clean(json::value kyma, std::string* note) {
  const auto key = k8s::key_of(kyma);
  const bool alone = k8s::label(kyma, skip_label) == "true";
  if (!alone) {
    auto cleaning = clean_runtime(key.name);
    const auto until = services_.clock.now() + settings_.runtime_timeout;
    const auto cleaned = co_await core::within(services_.clock, until, std::move(cleaning));
    std::string error;
    if (!cleaned) error = "the runtime did not respond in time";
    if (cleaned && !*cleaned) error = cleaned->error().message;
    if (!error.empty() && !settings_.force) co_return error;
    if (!error.empty()) *note = "its runtime is left as it is: " + error;
    if (cleaned && *cleaned && !**cleaned) {
      *note = "its runtime is left as it is, as KCP has no kubeconfig of it";
    }
  }
  if (!settings_.keep_runtimes && !alone) {
    const auto name = certificates::certificate_name(key.name);
    const auto& ns = leader_.istio_namespace;
    using certificates::issuer_kind;
    for (const auto& type :
         {certificates::certificates_type(issuer_kind::cert_manager),
          certificates::certificates_type(issuer_kind::gardener), secrets_type()}) {
      auto failed = co_await remove(type, ns, name);
      if (!failed.empty()) co_return failed;
    }
  }
  auto failed = co_await release(kymas_type(), std::move(kyma),
                                 watcher_installer::installer_options().finalizer);
  co_return failed;
}

asio::awaitable<void> uninstall_app::clean_some(list* kymas, std::size_t* next) {
  while (*next < kymas->size()) {
    auto kyma = std::move((*kymas)[(*next)++]);
    const auto name = k8s::key_of(kyma).name;
    std::string note;
    const auto failed = co_await clean(std::move(kyma), &note);
    ++(failed.empty() ? done_ : left_);
    const std::string would = settings_.dry_run ? "would be released" : "released";
    auto line = "[" + std::to_string(done_ + left_) + "/" + std::to_string(kymas->size()) +
                "] Kyma " + name + ": " +
                (failed.empty() ? would + (note.empty() ? "" : "; " + note) : "left: " + failed);
    co_await say(std::move(line));
  }
}

/// Deletes a Watcher's VirtualService, and says in its status that it has none. Returns the error
/// of the former; what keeps the status as it is does not keep the Watcher.
asio::awaitable<std::string> uninstall_app::unroute(json::value* watcher) {
  const auto key = k8s::key_of(*watcher);
  const auto failed = co_await remove(virtual_services_type(), key.ns, key.name);
  if (!failed.empty() || settings_.dry_run) co_return failed;
  using namespace watcher_controller;
  const auto status = next_status(*watcher, processing(), services_.clock.wall());
  if (!status) co_return "";
  resource_writer writer(kcp_, watchers_type());
  const auto ended = co_await writer.write_status(watcher, *status);
  // After a conflict it is what another client wants.
  if (ended && ended->type == k8s::reconcile_result::kind::error) {
    co_await say("Watcher " + k8s::to_string(key) + ": its status stays as it is: " + ended->text);
  }
  co_return "";
}

/// `with_routes`: for Watchers, whose VirtualServices it deletes before.
asio::awaitable<std::string> uninstall_app::release_all(k8s::resource_type type,
                                                        std::string finalizer, bool with_routes) {
  auto all = co_await read_all(type, "", finalizer);
  if (!all) co_return all.error().message;
  for (auto& object : *all) {
    const auto key = k8s::key_of(object);
    std::string failed;
    if (with_routes) failed = co_await unroute(&object);
    if (failed.empty()) failed = co_await release(type, std::move(object), finalizer);
    if (!failed.empty()) co_return failed;
    auto line = type.gvk.kind + " " + k8s::to_string(key) +
                (settings_.dry_run ? ": would be released" : ": released");
    co_await say(std::move(line));
  }
  co_return "";
}

/// Removes everything of the manager from KCP. Returns the error; empty on success.
asio::awaitable<std::string> uninstall_app::clean_control_plane() {
  auto failed = co_await release_all(bootstrapper::runtime_bootstrappers_type(),
                                     std::string(bootstrapper::finalizer), false);
  const std::string ns(kcp_namespace);
  const auto slices = co_await listener::find_endpoint_slices(kcp_);
  if (failed.empty() && !slices) failed = slices.error().message;
  if (failed.empty()) failed = co_await remove(*slices, ns, leader_.events_service);
  if (failed.empty()) failed = co_await remove(config_maps_type(), ns, signal_record);
  for (const auto* component : {"watcher", "bootstrapper"}) {
    const auto& type = runtime_rollout::runtime_rollouts_type();
    if (failed.empty()) failed = co_await remove(type, ns, component);
  }
  if (failed.empty()) failed = co_await remove(virtual_services_type(), ns, heartbeat_routes_name);
  if (!failed.empty() || settings_.keep_runtimes) co_return failed;
  const auto remaining = co_await count_others();
  if (!remaining) co_return remaining.error().message;
  if (*remaining > 0) {
    co_return std::to_string(*remaining) +
        (*remaining == 1 ? " other Kyma has certificates, and its runtime needs"
                         : " other Kymas have certificates, and their runtimes need") +
        " what all share: Watchers' "
        "finalizers, VirtualServices and the gateway's Secret are left; use --keep-runtimes where "
        "lifecycle-manager takes them over";
  }
  failed = co_await release_all(watchers_type(), std::string(watcher_finalizer), true);
  if (!failed.empty()) co_return failed;
  failed =
      co_await remove(secrets_type(), leader_.istio_namespace, std::string(gateway_secret_name));
  co_return failed;
}

/// Returns the number of Kymas that have certificates without this manager's finalizer: their
/// runtimes are lifecycle-manager's. A released Kyma no longer has certificates.
asio::awaitable<k8s::result<std::size_t>> uninstall_app::count_others() {
  auto secrets = co_await read_all(secrets_type(), leader_.istio_namespace, "");
  if (!secrets) co_return secrets.error();
  std::set<std::string> names;
  for (const auto& secret : *secrets) names.insert(k8s::key_of(secret).name);
  auto kymas = co_await read_all(kymas_type(), std::string(kcp_namespace), "");
  if (!kymas) co_return kymas.error();
  const auto own_finalizer = watcher_installer::installer_options().finalizer;
  co_return static_cast<std::size_t>(std::ranges::count_if(*kymas, [&](const json::value& kyma) {
    return !k8s::has_finalizer(kyma, own_finalizer) &&
           names.contains(certificates::certificate_name(k8s::key_of(kyma).name));
  }));
}

asio::awaitable<void> uninstall_app::read_settings() {
  leader_ = co_await read_leader_settings(&lease_, settings_.lease_namespace, settings_.lease_name);
  pool_->set_local(leader_.local_runtimes_or(settings_.local_runtimes));
  options_.field_manager = leader_.field_manager;
  options_.former_manager = leader_.former_field_manager;
  if (!leader_.skr_objects.empty()) {
    options_.manifests = watcher_installer::templates::named(leader_.skr_objects);
  }
}

asio::awaitable<void> uninstall_app::uninstall() {
  done_ = left_ = 0;
  co_await read_settings();
  const auto executor = co_await asio::this_coro::executor;
  auto all = co_await read_all(kymas_type(), std::string(kcp_namespace),
                               watcher_installer::installer_options().finalizer);
  if (!all) {
    const auto& type = kymas_type();
    error_ = text_of(describe(
        all.error(), {"list", type.gvk.group, type.plural, "", std::string(kcp_namespace)}, {}));
    finished_ = true;
    co_return;
  }
  if (!all->empty() && !leader_.known) {
    co_await say("the manager's settings are not known, its defaults are assumed: " +
                 leader_.unknown_because);
  }
  std::size_t next = 0;
  core::task_group workers(executor);
  for (std::size_t i = 0; i < settings_.concurrent; ++i) {
    workers.spawn(clean_some(&*all, &next));
  }
  co_await workers.join();
  if (left_ == 0) error_ = co_await clean_control_plane();
  auto summary = std::to_string(done_) + (done_ == 1 ? " Kyma " : " Kymas ") +
                 (settings_.dry_run ? "would be released" : "released") + ", " +
                 std::to_string(left_) + " left";
  if (left_ > 0) summary += "; run it again, or with --force to leave their runtimes as they are";
  if (all->empty()) summary = "no Kyma has this manager's finalizer: there is none to release";
  co_await say(std::move(summary));
  finished_ = true;
}

asio::awaitable<void> uninstall_app::lead() {
  leads_ = true;
  co_await uninstall();
  stop();
}

k8s::object_key uninstall_app::lease_key() const {
  return {settings_.lease_namespace, settings_.lease_name};
}

/// Returns what keeps the Lease from this identity; empty: nothing is known to.
asio::awaitable<std::string> uninstall_app::holder_of_lease(std::string identity) {
  const auto name = "the Lease " + k8s::to_string(lease_key());
  const auto until = services_.clock.now() + lease_response;
  const auto answer =
      co_await core::within(services_.clock, until, lease_.get(k8s::leases_type(), lease_key()));
  if (!answer) co_return name + ": KCP does not respond";
  const auto& seen = *answer;
  if (!seen && seen.error().is(k8s::errc::not_found)) co_return "";
  if (!seen) co_return name + ": " + seen.error().message;
  const std::string holder(k8s::find_string(*seen, {"spec", "holderIdentity"}));
  if (holder.empty() || holder == identity) co_return "";
  co_return name + ", which " + holder + " holds: a manager that runs keeps it, scale it to 0";
}

/// Says what it waits for, again and again, until it leads, or its time is over.
asio::awaitable<void> uninstall_app::report_waiting(std::string identity) {
  const auto pause = services_.clock.make_timer(services_.executor);
  const auto until = services_.clock.now() + settings_.lease_timeout;
  for (bool due = true; due && !leads_;) {
    const auto kept_by = co_await holder_of_lease(identity);
    if (leads_) co_return;
    const auto now = services_.clock.now();
    if (now >= until) {
      error_ = text_of(kcp_error{
          "waited in vain for " + (kept_by.empty() ? k8s::to_string(lease_key()) : kept_by),
          "stop the manager, which would put everything back, and run this again: " +
              with_kcp_flags("kubectl -n " + settings_.lease_namespace + " scale deployment/" +
                                 settings_.lease_name + " --replicas=0",
                             settings_.kcp)});
      finished_ = true;
      stop();
      co_return;
    }
    if (!kept_by.empty()) co_await say("waiting for " + kept_by);
    pause->expires_at(std::min(now + repeat_waiting, until));
    due = co_await pause->wait();
  }
}

/// Returns why this identity may not take the Lease: waiting would not help. Empty: it may, or that
/// is not known.
asio::awaitable<std::string> uninstall_app::lease_refusal() {
  const auto key = lease_key();
  const auto& type = k8s::leases_type();
  auto answer = co_await lease_.get(type, key);
  if (answer) {
    answer = co_await lease_.update(type, std::move(*answer), {.dry_run = true});
  } else if (answer.error().is(k8s::errc::not_found)) {
    json::value lease{{"apiVersion", type.gvk.api_version()},
                      {"kind", type.gvk.kind},
                      {"metadata", {{"namespace", key.ns}, {"name", key.name}}}};
    answer = co_await lease_.create(type, std::move(lease), {.dry_run = true});
  }
  const bool refused = !answer && (answer.error().is(k8s::errc::unauthorized) ||
                                   answer.error().is(k8s::errc::forbidden));
  if (!refused) co_return "";
  co_return answer.error().message +
      ": uninstall works under the manager's Lease, see to the credentials of the kubeconfig or to "
      "its rights (deploy/manager/rbac.yaml)";
}

/// Deletes the Lease unless it is held again.
asio::awaitable<void> uninstall_app::remove_lease() {
  const auto key = lease_key();
  const auto seen = co_await lease_.get(k8s::leases_type(), key);
  if (!seen || !k8s::find_string(*seen, {"spec", "holderIdentity"}).empty()) co_return;
  k8s::delete_options as_seen{.resource_version = std::string(k8s::resource_version_of(*seen))};
  co_await lease_.remove(k8s::leases_type(), key, std::move(as_seen));
}

asio::awaitable<int> uninstall_app::run() {
  core::task_group background(services_.executor, fail_on_exception());
  core::task_group leading(services_.executor, fail_on_exception());
  background.spawn(services_.watchdog.run());
  background.spawn(pool_->run());
  auto random = core::make_random_source();
  const auto identity = k8s::make_election_identity(random);
  k8s::leader_elector elector(
      services_.executor, k8s::objects_of(lease_),
      k8s::election_options{
          .ns = settings_.lease_namespace, .name = settings_.lease_name, .identity = identity},
      std::vector<k8s::leader_elector::reactor>{[this] { return lead(); }}, fence_,
      k8s::leader_environment{services_.clock, services_.log, services_.metrics,
                              core::make_random_source()});
  if (settings_.dry_run) {
    const auto kept_by = co_await holder_of_lease(identity);
    if (!kept_by.empty()) co_await say("before anything is changed it will wait for " + kept_by);
  } else {
    const auto until = services_.clock.now() + lease_response;
    const auto refusal = co_await core::within(services_.clock, until, lease_refusal());
    error_ = refusal.value_or("");
  }
  if (!error_.empty()) {
    finished_ = true;
    stop();
  } else {
    leading.spawn(settings_.dry_run ? lead() : elector.run());
    if (!settings_.dry_run) leading.spawn(report_waiting(identity));
  }
  co_await stop_.wait();
  leading.cancel();
  co_await leading.join();
  if (!finished_) error_ = "interrupted; run it again to go on";
  const bool complete = error_.empty() && left_ == 0;
  if (complete && !settings_.dry_run) co_await remove_lease();
  co_await pool_->close();
  co_await kcp_.close();
  co_await lease_.close();
  background.cancel();
  co_await background.join();
  rethrow_failure();
  if (!error_.empty()) throw std::runtime_error(error_);
  co_return left_ == 0 ? 0 : 3;
}

}  // namespace rw::cli
