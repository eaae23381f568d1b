#include "tests/unit/environment/environment.hpp"

#include "rw/core/backoff.hpp"
#include "rw/k8s/client/object_api.hpp"
#include "rw/k8s/config/config.hpp"
#include "rw/k8s/config/kubeconfig.hpp"
#include "rw/k8s/objects/base64.hpp"
#include "rw/k8s/objects/manifests.hpp"
#include "rw/k8s/objects/types.hpp"
#include "rw/reactors/shared/kyma_resources.hpp"

#include <boost/json/array.hpp>
#include <boost/json/serialize.hpp>

#include "tests/unit/run.hpp"
#include "tests/unit/source_dir.hpp"
#include <algorithm>
#include <cstdlib>
#include <fstream>
#include <iterator>
#include <stdexcept>
#include <utility>

namespace rw::test {
namespace {

constexpr auto author = "author";

/// As a Secret would have it: with nothing but inline data.
std::string inline_kubeconfig(const k8s::config& how) {
  const json::value cluster = {{"server", how.server},
                               {"certificate-authority-data", k8s::base64_encode(how.ca)}};
  return json::serialize(json::value{
      {"current-context", "c"},
      {"clusters", json::array{{{"name", "c"}, {"cluster", cluster}}}},
      {"users", json::array{{{"name", "u"}, {"user", {{"token", how.token}}}}}},
      {"contexts", json::array{{{"name", "c"}, {"context", {{"cluster", "c"}, {"user", "u"}}}}}}});
}

std::unique_ptr<local_network> network_of(asio::io_context& context, environment_options& with) {
  if (with.server.tls) return nullptr;
  with.server.address.port(6443);
  return std::make_unique<local_network>(context.get_executor());
}

k8s::devserver::server_options server_of(environment_options& with) {
  with.server.make_random = with.make_random;
  return std::move(with.server);
}

std::unique_ptr<core::clock> clock_of(environment_options& with) {
  if (!with.clock) with.clock = std::make_unique<core::real_clock>();
  return std::move(with.clock);
}

}  // namespace

bool is_there(const json::value& object) {
  return object.is_object();
}

bool is_gone(const json::value& object) {
  return object.is_null();
}

void require(bool holds, std::string_view otherwise) {
  if (!holds) throw std::runtime_error(std::string(otherwise));
}

json::value object_of(const k8s::resource_type& type, const std::string& ns,
                      const std::string& name) {
  json::object metadata{{"name", name}};
  if (!ns.empty()) metadata["namespace"] = ns;
  return {{"apiVersion", type.gvk.api_version()},
          {"kind", type.gvk.kind},
          {"metadata", std::move(metadata)}};
}

k8s::resource_type type_of(const json::value& object) {
  return k8s::well_known_type(k8s::find_string(object, {"apiVersion"}),
                              k8s::find_string(object, {"kind"}))
      .value_or(bundles);
}

const std::vector<json::value>& documents_of(const std::string& file) {
  static std::map<std::string, std::vector<json::value>> known;
  auto& out = known[file];
  if (!out.empty()) return out;
  std::ifstream in(rw::test::source_file("deploy/" + file));
  const std::string text((std::istreambuf_iterator<char>(in)), std::istreambuf_iterator<char>());
  auto all = k8s::parse_manifests(text);
  require(all.has_value() && !all->empty(), file);
  out = std::move(*all);
  return out;
}

bool reads(const std::string& verb) {
  return verb == "get" || verb == "list" || verb == "watch";
}

std::optional<double> metric_of(const core::metrics& in, const std::string& series) {
  const auto text = '\n' + core::expose(in);
  const auto line = '\n' + series + ' ';
  const auto at = text.find(line);
  if (at == std::string::npos) return std::nullopt;
  return std::stod(text.substr(at + line.size()));
}

environment::environment(environment_options with)
    : network_(network_of(context, with)),
      owned_clock_(clock_of(with)),
      client_options_(with.client),
      make_random(with.make_random),
      clock(*owned_clock_),
      watchdog(clock, context.get_executor(), with.tick),
      server(context.get_executor(), server_of(with), {clock, watchdog, log, numbers}) {
  server.add_cluster("kcp");
  tasks.spawn(watchdog.run());
  tasks.spawn(server.run());
}

environment::~environment() {
  shut_down();
}

void environment::end_faults() {
  on_request = nullptr;
  server.faults("kcp").decide = nullptr;
}

void environment::shut_down() {
  if (closed_) return;
  end_faults();
  run(context, close());
}

asio::awaitable<void> environment::close() {
  if (std::exchange(closed_, true)) co_return;
  tasks.cancel();
  co_await tasks.join();
  for (auto& pool : pools_) co_await pool->close();
  for (auto& [name, api] : clients_) co_await api->close();
}

// --- clusters --------------------------------------------------------------------------

void environment::add_cluster(const std::string& name) {
  if (elsewhere_.contains(name)) return;
  server.add_cluster(name);
  server.faults(name).decide = [this, name](const std::string& verb, const std::string& path) {
    const bool writing = !reads(verb);
    ++(writing ? asked[name].writes : asked[name].reads);
    k8s::devserver::fault out;
    if (on_request) out = on_request(name, verb, path);
    if (hanging[name] || (writing && hanging_writes[name])) out.latency = std::chrono::hours(1);
    return out;
  };
}

asio::awaitable<void> environment::remove_cluster(std::string name) {
  const auto found = clients_.extract(name);
  if (found.empty()) co_return;
  co_await found.mapped()->close();
  server.remove_cluster(name);
}

void environment::use(const std::string& cluster, std::string kubeconfig) {
  elsewhere_[cluster] = std::move(kubeconfig);
}

bool environment::use_real(const std::string& cluster) {
  const auto* const file = std::getenv("RW_CONFORMANCE_KUBECONFIG");
  if (file == nullptr) return false;
  use(cluster, inline_kubeconfig(k8s::load_kubeconfig({file}).value()));
  return true;
}

std::string environment::kubeconfig(const std::string& cluster) {
  const auto other = elsewhere_.find(cluster);
  return other != elsewhere_.end() ? other->second : server.kubeconfig(cluster, "test");
}

std::unique_ptr<k8s::client> environment::connect(const std::string& cluster,
                                                  k8s::client_options options) {
  for (auto* name : {&options.user_agent, &options.field_manager}) {
    if (name->empty()) *name = "test";
  }
  auto how = k8s::parse_kubeconfig(kubeconfig(cluster), cluster, "");
  require(how.has_value(), how.has_value() ? std::string_view() : how.error().message);
  return std::make_unique<k8s::client>(context.get_executor(), std::move(*how), std::move(options),
                                       client_environment());
}

std::shared_ptr<k8s::client> environment::client(const std::string& cluster) {
  auto& api = clients_[cluster];
  if (!api) api = connect(cluster, client_options_);
  return api;
}

// --- objects ---------------------------------------------------------------------------

asio::awaitable<json::value> environment::must(asio::awaitable<k8s::result<json::value>> call) {
  auto got = co_await std::move(call);
  co_return required(std::move(got));
}

asio::awaitable<json::value> environment::create(std::string cluster, json::value object,
                                                 k8s::resource_type type) {
  auto made = co_await must(api(cluster).create(std::move(type), std::move(object)));
  co_return made;
}

asio::awaitable<void> environment::apply(json::value object, k8s::resource_type type) {
  k8s::apply_options by{.field_manager = author, .force = true};
  co_await must(api("kcp").apply(std::move(type), std::move(object), std::move(by)));
}

asio::awaitable<void> environment::merge(k8s::resource_type type, k8s::object_key key,
                                         json::value change) {
  co_await must(
      api("kcp").patch(std::move(type), std::move(key), k8s::patch_type::merge, std::move(change)));
}

asio::awaitable<void> environment::remove(std::string cluster, k8s::resource_type type,
                                          k8s::object_key key) {
  co_await must(api(cluster).remove(std::move(type), std::move(key)));
}

asio::awaitable<void> environment::define(std::vector<std::string> files,
                                          std::vector<std::string> namespaces) {
  for (const auto& file : files) {
    for (const auto& one : documents_of(file)) co_await apply(one, definitions);
  }
  for (const auto& name : namespaces) {
    co_await apply(object_of(namespaces_type(), {}, name), namespaces_type());
  }
}

asio::awaitable<void> environment::set_kubeconfig(std::string runtime, std::string kyma,
                                                  std::string text) {
  auto secret = object_of(secrets_type(), std::string(kcp_namespace), "kubeconfig-" + runtime);
  k8s::set_label(secret, kyma_name_label, kyma);
  k8s::set_secret_data(secret, "config", text);
  co_await apply(std::move(secret), secrets_type());
}

asio::awaitable<void> environment::register_runtime(std::string name, json::object annotations) {
  const auto kyma = "kyma-of-" + name;
  co_await set_kubeconfig(name, kyma, kubeconfig(name));
  auto runtime = object_of(runtimes_type(), std::string(kcp_namespace), name);
  k8s::set_label(runtime, kyma_name_label, kyma);
  runtime.at("metadata").as_object()["annotations"] = std::move(annotations);
  co_await create("kcp", std::move(runtime), runtimes_type());
}

asio::awaitable<void> environment::add_runtime(std::string name, json::object annotations) {
  add_cluster(name);
  co_await create(name, object_of(namespaces_type(), {}, std::string(skr_namespace)),
                  namespaces_type());
  co_await register_runtime(name, std::move(annotations));
  asked[name] = {};
}

asio::awaitable<void> environment::set_ready(std::string cluster, k8s::object_key deployment) {
  std::int64_t generation = 0;
  const bool there =
      co_await until(cluster, deployments, deployment, [&generation](const json::value& one) {
        generation = k8s::generation_of(one);
        return one.is_object();
      });
  require(there, "there is no Deployment " + deployment.name);
  json::value status = {{"status",
                         {{"observedGeneration", generation},
                          {"replicas", 1},
                          {"updatedReplicas", 1},
                          {"readyReplicas", 1}}}};
  co_await must(api(cluster).patch(deployments, deployment, k8s::patch_type::merge,
                                   std::move(status), {.subresource = "status"}));
}

asio::awaitable<void> environment::set_crashing(std::string cluster, k8s::object_key deployment,
                                                std::string container, bool crashes) {
  static const k8s::resource_type pods{{"", "v1", "Pod"}, "pods"};
  const k8s::object_key key{deployment.ns, deployment.name + "-1"};
  if (!crashes) {
    co_await api(cluster).remove(pods, key);
    co_return;
  }
  auto pod = object_of(pods, key.ns, key.name);
  const auto owner = co_await must(api(cluster).get(deployments, deployment));
  pod.at("metadata").as_object()["labels"] = owner.at("spec").at("selector").at("matchLabels");
  pod.as_object()["spec"] = {{"containers", json::array{{{"name", container}, {"image", "a"}}}}};
  co_await api(cluster).create(pods, std::move(pod));
  json::value status{
      {"status",
       {{"containerStatuses",
         json::array{{{"name", container},
                      {"image", "a"},
                      {"imageID", "a"},
                      {"ready", false},
                      {"restartCount", 1},
                      {"state", {{"waiting", {{"reason", "CrashLoopBackOff"}}}}}}}}}}};
  co_await api(cluster).patch(pods, key, k8s::patch_type::merge, std::move(status),
                              {.subresource = "status"});
}

// --- waiting ---------------------------------------------------------------------------

asio::awaitable<bool> environment::until(std::string cluster, k8s::resource_type type,
                                         k8s::object_key key, object_check good,
                                         std::chrono::seconds within) {
  const auto end = std::chrono::steady_clock::now() + within;
  while (std::chrono::steady_clock::now() < end) {
    auto got = co_await api(cluster).get(type, key);
    if (got ? good(*got) : got.error().is(k8s::errc::not_found) && good(nullptr)) co_return true;
    co_await turn();
  }
  co_return false;
}

asio::awaitable<bool> environment::has_event(std::string about, std::string reason,
                                             std::string text) {
  const auto list =
      co_await must(api("kcp").list(k8s::events_type(), {.ns = std::string(kcp_namespace)}));
  co_return std::ranges::any_of(list.at("items").as_array(), [&](const json::value& one) {
    return k8s::find_string(one, {"involvedObject", "name"}) == about &&
           k8s::find_string(one, {"reason"}) == reason &&
           k8s::find_string(one, {"message"}).find(text) != std::string_view::npos;
  });
}

asio::awaitable<bool> environment::until_event(std::string about, std::string reason,
                                               std::string text) {
  const auto end = std::chrono::steady_clock::now() + patience;
  while (std::chrono::steady_clock::now() < end) {
    const bool told = co_await has_event(about, reason, text);
    if (told) co_return true;
    co_await turn();
  }
  co_return false;
}

// --- for reactors ----------------------------------------------------------------------

k8s::informer_environment environment::informer_environment() {
  return {clock, log, numbers, make_random()};
}

k8s::informer& environment::inform(const k8s::resource_type& type, k8s::informer_options options) {
  informers_.push_back(std::make_unique<k8s::informer>(api("kcp"), type, std::move(options),
                                                       informer_environment()));
  tasks.spawn(informers_.back()->run());
  return *informers_.back();
}

k8s::event_recorder& environment::record_events(const std::string& component) {
  recorders_.push_back(std::make_unique<k8s::event_recorder>(
      context.get_executor(), k8s::objects_of(api("kcp")),
      k8s::event_recorder_options{.component = component},
      k8s::event_recorder_environment{clock, log, numbers, core::make_random_source()}));
  tasks.spawn(recorders_.back()->run());
  return *recorders_.back();
}

k8s::client_pool& environment::open_pool(k8s::client_pool_options options) {
  options.local = k8s::local_servers::allowed;
  for (auto* name : {&options.client.user_agent, &options.client.field_manager}) {
    if (name->empty()) *name = "test";
  }
  pools_.push_back(std::make_unique<k8s::client_pool>(context.get_executor(), std::move(options),
                                                      client_environment()));
  return *pools_.back();
}

long environment::lines(std::string_view with) const {
  return std::ranges::count_if(
      logged, [&](const std::string& line) { return line.find(with) != line.npos; });
}

}  // namespace rw::test
