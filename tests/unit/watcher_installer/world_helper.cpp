#include "rw/core/backoff.hpp"
#include "rw/k8s/objects/types.hpp"
#include "rw/reactors/shared/kyma_resources.hpp"
#include "rw/reactors/shared/trust_bundle.hpp"

#include <boost/json/array.hpp>
#include <boost/json/object.hpp>
#include <boost/test/unit_test.hpp>

#include "tests/unit/run.hpp"
#include "tests/unit/watcher_installer/world.hpp"
#include <chrono>
#include <utility>

namespace rw::watcher_installer_test {

watcher_installer::installer_options quick_options() {
  using namespace std::chrono_literals;
  watcher_installer::installer_options out;
  out.ready_interval = 50ms;
  out.ready_interval_limit = 200ms;
  out.backoff_base = 50ms;
  out.backoff_limit = 500ms;
  out.install.delays.propagation = 1s;
  return out;
}

using test::object_of;

// --- issuing ---------------------------------------------------------------------------

const tls::key_pair& issuing::issued(const std::string& kyma) {
  const auto found = issued_.find(kyma);
  if (found != issued_.end()) return found->second;
  return issued_.emplace(kyma, ca_->issue(kyma)).first->second;
}

asio::awaitable<certificate_state> issuing::ensure(json::value kyma) {
  ++asked;
  co_return current(kyma);
}

certificate_state issuing::current(const json::value& kyma) {
  certificate_state out;
  out.reason = "the issuer is asleep";
  if (!issues) return out;
  const auto& pair = issued(k8s::key_of(kyma).name);
  out.state = certificate_state::kind::ready;
  out.current = pair;
  return out;
}

asio::awaitable<k8s::result<void>> issuing::remove(k8s::object_key kyma) {
  removed.push_back(kyma.name);
  co_return k8s::result<void>();
}

asio::awaitable<k8s::result<void>> issuing::try_removal(k8s::object_key kyma,
                                                        std::shared_ptr<k8s::write_preview> into) {
  into->add(
      {.type = secrets_type(), .key = {"istio-system", kyma.name}, .live = {{"kind", "Secret"}}});
  co_return k8s::result<void>();
}

// --- world -----------------------------------------------------------------------------

world::world(watcher_installer::installer_options with, std::unique_ptr<core::clock> time)
    : environment(
          {.server = {.bookmark_interval = std::chrono::seconds(1)}, .clock = std::move(time)}),
      with_(std::move(with)),
      kcp_(api("kcp").dry(is_dry)) {
  certificates.use(first);
}

asio::awaitable<void> world::add_any_runtime() {
  if (!use_real("skr")) {
    add_cluster("skr");
    co_return;
  }
  static const watcher_installer::install_options options;
  const auto cleaned = co_await watcher_installer::uninstall(client("skr"), &options);
  test::required(cleaned);
}

asio::awaitable<void> world::begin() {
  // gcc 14 can't compile lists of strings in co_await.
  std::vector<std::string> files{
      "crds/operator.kyma-project.io_watchers.yaml", "dev/operator.kyma-project.io_kymas.yaml",
      "crds/operator.kyma-project.io_runtimerollouts.yaml", "dev/networking.istio.io_gateways.yaml",
      "dev/networking.istio.io_virtualservices.yaml"};
  std::vector<std::string> namespaces{"kcp-system", "istio-system", with_.records_namespace};
  co_await define(std::move(files), std::move(namespaces));
  auto gateway = object_of(gateways_type(), "kcp-system", "klm-watcher");
  gateway.as_object()["spec"] = {
      {"servers", json::array{{{"hosts", json::array{"events.kcp.example.com"}},
                               {"port", {{"number", 443}}}}}}};
  co_await create("kcp", std::move(gateway), gateways_type());
  co_await create("kcp", object_of(secrets_type(), "istio-system", "klm-istio-gateway"),
                  secrets_type());
  co_await set_bundle(first.pem());
  start();
}

asio::awaitable<void> world::begin_with_runtime() {
  co_await begin();
  co_await add_any_runtime();
  co_await add_watcher("kyma", "lifecycle-manager", "spec");
  co_await add_kyma("skr", kubeconfig("skr"));
  const bool ready = co_await until_ready("skr");
  BOOST_REQUIRE(ready);
}

void world::start() {
  auto& kymas = inform(kymas_type(), {.objects = {.ns = "kcp-system"}});
  auto& watchers = inform(watchers_type(), {});
  auto& kubeconfigs = inform(secrets_type(), {.objects = watcher_installer::kubeconfig_secrets()});
  auto& gateways = inform(gateways_type(), {.objects = {.ns = "kcp-system"}});
  auto& routes = inform(virtual_services_type(), {.objects = {.ns = "kcp-system"}});
  auto& secrets = inform(secrets_type(), {.objects = {.ns = "istio-system"}});
  std::vector<k8s::informer*> own;
  if (watches_certificates) own.push_back(&secrets);
  installer = std::make_unique<watcher_installer::watcher_installer>(
      context.get_executor(), with_,
      watcher_installer::installer_sources{.kymas = kymas,
                                           .watchers = watchers,
                                           .kubeconfigs = kubeconfigs,
                                           .gateways = gateways,
                                           .gateway_secrets = secrets,
                                           .virtual_services = routes,
                                           .certificates = own},
      watcher_installer::installer_environment{
          .common = {kcp_, open_pool({.client = watcher_installer::runtime_client_options()}),
                     record_events("watcher-installer"), clock, watchdog, log, numbers,
                     core::make_random_source(), is_dry},
          .certificates = certificates,
          .clusters = tracker,
          .lease = {{"apiVersion", "coordination.k8s.io/v1"},
                    {"kind", "Lease"},
                    {"metadata", {{"name", "manager"}, {"namespace", "kcp-system"}}}},
          .finalizers = releases ? &api("kcp") : nullptr,
          .reports = [this](const k8s::object_key&) { return reports; },
          .on_reconcile =
              [this](const k8s::object_key& of) {
                if (on_reconcile) on_reconcile(of);
              }});
  prepare(kymas);
  installing_ = std::make_unique<core::task_group>(context.get_executor());
  installing_->spawn(installer->run());
}

asio::awaitable<void> world::stop() {
  if (!installing_) co_return;
  installing_->cancel();
  co_await installing_->join();
}

asio::awaitable<void> world::take_over(watcher_installer::installer_options with) {
  co_await stop();
  with_ = std::move(with);
  tracker = cluster_states();
  start();
}

world::~world() {
  end_faults();
  on_reconcile = nullptr;  // it may refer to what its test has left
  test::run(context, stop());
  shut_down();
}

asio::awaitable<void> world::set_bundle(std::string pem) {
  json::value change = object_of(secrets_type(), "istio-system", "klm-istio-gateway");
  k8s::set_secret_data(change, "ca.crt", pem);
  k8s::set_secret_data(change, "tls.crt", first.pem());  // a root that serves with its own
  co_await merge(secrets_type(), {"istio-system", "klm-istio-gateway"}, std::move(change));
}

asio::awaitable<void> world::add_kyma(std::string name, std::string kubeconfig) {
  auto kyma = object_of(kymas_type(), "kcp-system", name);
  k8s::set_label(kyma, runtime_id_label, "runtime-of-" + name);
  co_await set_kubeconfig(name, name, std::move(kubeconfig));
  co_await create("kcp", std::move(kyma), kymas_type());
}

asio::awaitable<void> world::add_watcher(std::string name, std::string manager, std::string field) {
  auto object = object_of(watchers_type(), "kcp-system", name);
  object.as_object()["spec"] = {
      {"resourceToWatch",
       {{"group", "operator.kyma-project.io"}, {"version", "*"}, {"resource", "kymas"}}},
      {"labelsToWatch", {{"operator.kyma-project.io/watched-by", "kyma"}}},
      {"field", field},
      {"manager", manager},
      {"serviceInfo", {{"name", "events"}, {"port", 8082}, {"namespace", "kcp-system"}}},
      {"gateway", {{"selector", {{"matchLabels", {{"gw", "default"}}}}}}}};
  co_await apply(std::move(object), watchers_type());
}

asio::awaitable<void> world::set_ready(std::string runtime) {
  co_await environment::set_ready(std::move(runtime), {"kyma-system", "skr-webhook"});
}

asio::awaitable<bool> world::until_ready(std::string kyma) {
  co_await set_ready(kyma);
  installer->requeue({"kcp-system", kyma});
  const bool told = co_await until_event(kyma, "WatcherInstalled");
  co_return told;
}

double world::passes() const {
  return metric(
      "controller_runtime_reconcile_total{controller=\"watcher-installer\",result=\"requeue_"
      "after\"}");
}

}  // namespace rw::watcher_installer_test
