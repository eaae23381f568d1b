#include "core/backoff.hpp"
#include "k8s/base64.hpp"
#include "k8s/config.hpp"
#include "k8s/manifests.hpp"
#include "k8s/types.hpp"
#include "reactors/kyma_resources.hpp"
#include "reactors/trust_bundle.hpp"

#include <boost/json/array.hpp>
#include <boost/json/object.hpp>
#include <boost/json/serialize.hpp>
#include <boost/test/unit_test.hpp>

#include "tests/unit/run.hpp"
#include "tests/unit/watcher_installer/world.hpp"
#include <algorithm>
#include <chrono>
#include <cstdlib>
#include <fstream>
#include <iterator>
#include <utility>

namespace rw::watcher_installer_test {

using namespace std::chrono_literals;
using watcher_installer::certificate_answer;

const k8s::resource_type deployments{{"apps", "v1", "Deployment"}, "deployments", true};
const k8s::resource_type services{{"", "v1", "Service"}, "services", true};
const k8s::resource_type webhook_configurations{
    {"admissionregistration.k8s.io", "v1", "ValidatingWebhookConfiguration"},
    "validatingwebhookconfigurations",
    false};

namespace {

const k8s::resource_type definitions{
    {"apiextensions.k8s.io", "v1", "CustomResourceDefinition"}, "customresourcedefinitions", false};

json::value object_of(const k8s::resource_type& type, const std::string& ns,
                      const std::string& name) {
  json::object metadata{{"name", name}};
  if (!ns.empty()) metadata["namespace"] = ns;
  return {{"apiVersion", type.gvk.api_version()},
          {"kind", type.gvk.kind},
          {"metadata", std::move(metadata)}};
}

/// As a Secret would have it: with nothing but inline data.
std::string real_kubeconfig() {
  const auto* const file = std::getenv("RW_CONFORMANCE_KUBECONFIG");
  if (file == nullptr) return {};
  const auto how = k8s::load_kubeconfig({file}).value();
  const json::value cluster = {{"server", how.server},
                               {"certificate-authority-data", k8s::base64_encode(how.ca)}};
  return json::serialize(json::value{
      {"current-context", "c"},
      {"clusters", json::array{{{"name", "c"}, {"cluster", cluster}}}},
      {"users", json::array{{{"name", "u"}, {"user", {{"token", how.token}}}}}},
      {"contexts", json::array{{{"name", "c"}, {"context", {{"cluster", "c"}, {"user", "u"}}}}}}});
}

bool reads(const std::string& verb) {
  return verb == "get" || verb == "list" || verb == "watch";
}

}  // namespace

// --- issuing ---------------------------------------------------------------------------

const tls::key_pair& issuing::issued(const std::string& kyma) {
  const auto found = issued_.find(kyma);
  if (found != issued_.end()) return found->second;
  return issued_.emplace(kyma, ca_->issue(kyma)).first->second;
}

asio::awaitable<certificate_answer> issuing::ensure(json::value kyma) {
  ++asked;
  certificate_answer out;
  out.why = "the issuer is asleep";
  if (!issues) co_return out;
  const auto& pair = issued(k8s::key_of(kyma).name);
  out.what = certificate_answer::kind::ready;
  out.current = {pair.certificate, pair.key, std::to_string(version_)};
  co_return out;
}

asio::awaitable<k8s::result<void>> issuing::remove(k8s::object_key kyma) {
  removed.push_back(kyma.name);
  co_return k8s::result<void>();
}

// --- world -----------------------------------------------------------------------------

world::world(watcher_installer::options with) : with_(std::move(with)) {
  certificates.use(first);
  server.add_cluster("kcp");
  tasks_.spawn(watchdog.run());
  tasks_.spawn(server.run());
}

world::~world() {
  test::run(context, [](world* self) -> asio::awaitable<void> {
    self->tasks_.cancel();
    co_await self->tasks_.join();
    if (self->pool_) co_await self->pool_->close();
    for (auto& [name, api] : self->clients_) co_await api->close();
  }(this));
}

k8s::client& world::api(const std::string& cluster) {
  auto& api = clients_[cluster];
  if (!api) {
    auto how = k8s::parse_kubeconfig(kubeconfig(cluster), cluster, "");
    api = std::make_unique<k8s::client>(context.get_executor(), std::move(*how),
                                        k8s::client_options{.name = "test"},
                                        k8s::client_environment{clock, watchdog, log, numbers});
  }
  return *api;
}

std::string world::kubeconfig(const std::string& cluster) {
  return cluster == "skr" && !real_.empty() ? real_ : server.kubeconfig(cluster, "klm");
}

asio::awaitable<void> world::add_any_runtime() {
  real_ = real_kubeconfig();
  if (real_.empty()) {
    add_runtime("skr");
    co_return;
  }
  static const watcher_installer::method how;
  const std::shared_ptr<k8s::client> real(&api("skr"), [](k8s::client*) {});
  const auto cleaned = co_await watcher_installer::uninstall(real, &how);
  BOOST_REQUIRE_MESSAGE(cleaned.has_value(), cleaned.error().message);
}

void world::add_runtime(const std::string& name) {
  server.add_cluster(name);
  server.faults(name).decide = [this, name](const std::string& verb, const std::string&) {
    ++(reads(verb) ? asked[name].reads : asked[name].writes);
    k8s::devserver::fault out;
    if (hanging[name]) out.latency = std::chrono::hours(1);
    return out;
  };
}

asio::awaitable<void> world::create(k8s::resource_type type, json::value object) {
  const auto name = k8s::key_of(object).name;
  const auto made = co_await api("kcp").create(std::move(type), std::move(object));
  BOOST_REQUIRE_MESSAGE(made.has_value(), name << ": " << made.error().message);
}

asio::awaitable<void> world::define(std::string file) {
  std::ifstream in(RW_SOURCE_DIR "/deploy/" + file);
  const std::string text((std::istreambuf_iterator<char>(in)), std::istreambuf_iterator<char>());
  const auto all = k8s::parse_manifests(text);
  BOOST_REQUIRE_MESSAGE(all.has_value(), file << ": " << all.error().message());
  for (const auto& one : *all) co_await create(definitions, one);
}

std::unique_ptr<k8s::informer> world::inform(const k8s::resource_type& type, k8s::selection what) {
  auto made = std::make_unique<k8s::informer>(
      api("kcp"), type, k8s::informer_options{.what = std::move(what)},
      k8s::informer_environment{clock, log, numbers, core::make_random_source()});
  tasks_.spawn(made->run());
  return made;
}

asio::awaitable<void> world::begin() {
  for (const auto* file :
       {"crds/operator.kyma-project.io_watchers.yaml", "dev/operator.kyma-project.io_kymas.yaml",
        "dev/networking.istio.io_gateways.yaml"}) {
    co_await define(file);
  }
  for (const auto* name : {"kcp-system", "istio-system"}) {
    co_await create(namespaces_type(), object_of(namespaces_type(), {}, name));
  }
  auto gateway = object_of(gateways_type(), "kcp-system", "klm-watcher");
  gateway.as_object()["spec"] = {
      {"servers", json::array{{{"hosts", json::array{"events.kcp.example.com"}},
                               {"port", {{"number", 443}}}}}}};
  co_await create(gateways_type(), std::move(gateway));
  co_await create(secrets_type(), object_of(secrets_type(), "istio-system", "klm-istio-gateway"));
  co_await set_bundle(first.pem());

  kymas_ = inform(kymas_type(), {.ns = "kcp-system"});
  watchers_ = inform(watchers_type(), {});
  kubeconfigs_ = inform(secrets_type(), watcher_installer::kubeconfig_secrets());
  gateways_ = inform(gateways_type(), {.ns = "kcp-system"});
  secrets_ = inform(secrets_type(), {.ns = "istio-system"});
  auto patient = watcher_installer::runtime_client_options();
  pool_ = std::make_unique<k8s::client_pool>(
      context.get_executor(), k8s::client_pool_options{.client = patient},
      k8s::client_environment{clock, watchdog, log, numbers});
  events_ = std::make_unique<k8s::event_recorder>(
      context.get_executor(), k8s::objects_of(api("kcp")),
      k8s::event_recorder_options{.component = "watcher-installer"},
      k8s::event_recorder_environment{clock, log, numbers, core::make_random_source()});
  installer = std::make_unique<watcher_installer::watcher_installer>(
      context.get_executor(), with_,
      watcher_installer::sources{*kymas_, *watchers_, *kubeconfigs_, *gateways_, *secrets_},
      watcher_installer::environment{.kcp = api("kcp"),
                                     .runtimes = *pool_,
                                     .certificates = certificates,
                                     .events = *events_,
                                     .board = &board,
                                     .clock = clock,
                                     .watchdog = watchdog,
                                     .log = log,
                                     .metrics = numbers,
                                     .random = core::make_random_source()});
  tasks_.spawn(events_->run());
  tasks_.spawn(installer->run());
}

asio::awaitable<void> world::set_bundle(std::string pem) {
  json::value change = object_of(secrets_type(), "istio-system", "klm-istio-gateway");
  k8s::set_secret_data(change, "ca.crt", pem);
  k8s::set_secret_data(change, "tls.crt", first.pem());  // a root that serves with its own
  const auto done = co_await api("kcp").patch(secrets_type(), {"istio-system", "klm-istio-gateway"},
                                              k8s::patch_type::merge, std::move(change));
  BOOST_REQUIRE_MESSAGE(done.has_value(), done.error().message);
}

asio::awaitable<void> world::set_kubeconfig(std::string kyma, std::string kubeconfig) {
  auto secret = object_of(secrets_type(), "kcp-system", "kubeconfig-" + kyma);
  k8s::set_label(secret, kyma_name_label, kyma);
  k8s::set_secret_data(secret, "config", kubeconfig);
  const auto done = co_await api("kcp").apply(secrets_type(), std::move(secret), {.force = true});
  BOOST_REQUIRE_MESSAGE(done.has_value(), done.error().message);
}

asio::awaitable<void> world::add_kyma(std::string name, std::string kubeconfig) {
  auto kyma = object_of(kymas_type(), "kcp-system", name);
  k8s::set_label(kyma, runtime_id_label, "runtime-of-" + name);
  co_await set_kubeconfig(std::move(name), std::move(kubeconfig));
  co_await create(kymas_type(), std::move(kyma));
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
  const auto done = co_await api("kcp").apply(watchers_type(), std::move(object), {.force = true});
  BOOST_REQUIRE_MESSAGE(done.has_value(), done.error().message);
}

asio::awaitable<void> world::set_ready(std::string runtime) {
  const k8s::object_key key{"kyma-system", "skr-webhook"};
  std::int64_t generation = 0;
  const bool there =
      co_await until(runtime, deployments, key, [&generation](const json::value& one) {
        generation = k8s::generation_of(one);
        return one.is_object();
      });
  BOOST_REQUIRE(there);
  const json::value status = {{"status",
                               {{"observedGeneration", generation},
                                {"replicas", 1},
                                {"updatedReplicas", 1},
                                {"readyReplicas", 1}}}};
  const auto done = co_await api(runtime).patch(deployments, key, k8s::patch_type::merge, status,
                                                {.subresource = "status"});
  BOOST_REQUIRE_MESSAGE(done.has_value(), done.error().message);
}

asio::awaitable<bool> world::until(std::string cluster, k8s::resource_type type,
                                   k8s::object_key key,
                                   std::function<bool(const json::value&)> good) {
  const auto end = std::chrono::steady_clock::now() + test::patience;
  while (std::chrono::steady_clock::now() < end) {
    auto got = co_await api(cluster).get(type, key);
    if (got ? good(*got) : got.error().is(k8s::errc::not_found) && good(nullptr)) co_return true;
    co_await test::turn();
  }
  co_return false;
}

asio::awaitable<bool> world::until_ready(std::string kyma) {
  co_await set_ready(kyma);
  installer->requeue({"kcp-system", kyma});
  const bool told = co_await until_told(kyma, "WatcherInstalled");
  co_return told;
}

asio::awaitable<bool> world::until_told(std::string kyma, std::string reason, std::string text) {
  const auto end = std::chrono::steady_clock::now() + test::patience;
  while (std::chrono::steady_clock::now() < end) {
    k8s::selection what{.ns = "kcp-system"};
    const auto list = co_await api("kcp").list(k8s::events_type(), std::move(what));
    BOOST_REQUIRE(list.has_value());
    for (const auto& one : list->at("items").as_array()) {
      const bool about = k8s::find_string(one, {"involvedObject", "name"}) == kyma;
      const auto message = k8s::find_string(one, {"message"});
      if (about && k8s::find_string(one, {"reason"}) == reason &&
          message.find(text) != message.npos) {
        co_return true;
      }
    }
    co_await test::turn();
  }
  co_return false;
}

double world::metric(const std::string& series) const {
  const auto text = '\n' + core::expose(numbers);
  const auto line = '\n' + series + ' ';
  const auto at = text.find(line);
  return at == std::string::npos ? 0 : std::stod(text.substr(at + line.size()));
}

double world::passes() const {
  return metric(
      "controller_runtime_reconcile_total{controller=\"watcher-installer\",result=\"requeue_"
      "after\"}");
}

long world::lines(const std::string& with) const {
  return std::ranges::count_if(
      logged, [&](const std::string& line) { return line.find(with) != line.npos; });
}

}  // namespace rw::watcher_installer_test
