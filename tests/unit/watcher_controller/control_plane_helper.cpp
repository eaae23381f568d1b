#include "rw/k8s/devserver/server.hpp"
#include "rw/k8s/devserver/yaml.hpp"
#include "rw/k8s/objects/types.hpp"
#include "rw/reactors/shared/kyma_resources.hpp"

#include <boost/json/array.hpp>
#include <boost/json/object.hpp>
#include <boost/json/parse.hpp>

#include "tests/unit/source_dir.hpp"
#include "tests/unit/watcher_controller/control_plane.hpp"
#include "tests/unit/watcher_controller/samples.hpp"
#include <algorithm>
#include <array>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <random>
#include <sstream>
#include <vector>

namespace rw::watcher_controller_test {
namespace {

namespace json_ns = boost::json;
namespace fs = std::filesystem;
using json = boost::json::value;
using namespace std::chrono_literals;

constexpr auto cluster = "kcp";

const k8s::resource_type definitions{
    {"apiextensions.k8s.io", "v1", "CustomResourceDefinition"}, "customresourcedefinitions", false};

const char* environment(const char* name) {
  const char* value = std::getenv(name);
  return value != nullptr && *value != '\0' ? value : nullptr;
}

/// The kinds that the controller is about. A real API server takes its time for each definition.
bool is_needed(const json& definition) {
  const auto name = k8s::find_string(definition, {"metadata", "name"});
  return std::ranges::any_of(
      std::array{&watchers_type(), &gateways_type(), &virtual_services_type()},
      [&](const k8s::resource_type* one) { return name == one->plural + "." + one->gvk.group; });
}

/// The CustomResourceDefinitions that are needed of a folder's files.
void read_definitions(const fs::path& folder, std::vector<json>& into) {
  for (const auto& file : fs::directory_iterator(folder)) {
    std::ifstream in(file.path());
    std::string document;
    const auto take = [&] {
      std::string why;
      auto parsed = k8s::devserver::parse_yaml(document, why);
      BOOST_REQUIRE_MESSAGE(parsed, file.path() << ": " << why);
      if (is_needed(*parsed)) into.push_back(std::move(*parsed));
      document.clear();
    };
    for (std::string line; std::getline(in, line);) {
      if (line == "---") {
        take();
      } else {
        document += line + '\n';
      }
    }
    take();
  }
}

/// Removes the bounds of values from a schema: the real definitions of Watchers have none. Types
/// and enumerations stay.
void without_bounds(json& value) {
  if (auto* const list = value.if_array()) {
    for (auto& one : *list) without_bounds(one);
  } else if (auto* const object = value.if_object()) {
    for (const auto* name : {"minimum", "maximum", "minLength"}) object->erase(name);
    for (auto& member : *object) without_bounds(member.value());
  }
}

std::vector<json> all_definitions(schema watchers) {
  std::vector<json> all;
  const auto* const real = environment("RW_TEST_CRDS");
  if (!control_plane::embedded() && real != nullptr) {
    read_definitions(real, all);
    return all;
  }
  const fs::path deploy = fs::path(rw::test::source_file("deploy"));
  read_definitions(deploy / "crds", all);
  read_definitions(deploy / "dev", all);
  for (auto& one : all) {
    if (watchers == schema::without_bounds || !control_plane::embedded()) without_bounds(one);
  }
  return all;
}

std::string random_text() {
  std::random_device source;
  std::string made;
  for (int i = 0; i < 8; ++i) made += "bcdfghjklmnpqrstvwxz2456789"[source() % 27];
  return made;
}

}  // namespace

/// The API server, and the test's own client.
struct control_plane::backend {
  explicit backend(http::test::host& where) : here(where), tasks(here.executor()) {
    if (embedded()) {
      server = std::make_unique<k8s::devserver::server>(
          here.executor(), k8s::devserver::server_options{},
          k8s::devserver::server_environment{here.clock, here.watchdog, here.log, here.metrics});
      server->add_cluster(cluster);
      tasks.spawn(server->run());
    }
    api = client("test");
  }

  std::unique_ptr<k8s::client> client(const std::string& name) {
    auto how = embedded()
                   ? k8s::parse_kubeconfig(server->kubeconfig(cluster), name, "")
                   : k8s::load_kubeconfig({environment("RW_CONFORMANCE_KUBECONFIG")}, "admin");
    return std::make_unique<k8s::client>(
        here.executor(), std::move(how).value(),
        k8s::client_options{.name = name, .user_agent = "test", .field_manager = "test"},
        k8s::client_environment{here.clock, here.watchdog, here.log, here.metrics});
  }

  http::test::host& here;
  std::unique_ptr<k8s::devserver::server> server;
  core::task_group tasks;
  std::unique_ptr<k8s::client> api;
};

/// What a host process has around the controller.
struct control_plane::running {
  running(http::test::host& here, backend& behind, const std::string& ns,
          const rw::watcher_controller::watcher_controller_options& options)
      : api(behind.client("reactor")),
        reading(behind.client("informers")),
        telling(behind.client("events")),
        watchers(*reading, watchers_type(), {.objects = {.ns = ns}}, informing(here)),
        gateways(*reading, gateways_type(), {.objects = {.ns = ns}}, informing(here)),
        virtual_services(*reading, virtual_services_type(), {.objects = {.ns = ns}},
                         informing(here)),
        events(here.executor(), k8s::objects_of(*telling), {.component = "watcher"},
               {here.clock, here.log, here.metrics, core::make_random_source()}),
        controller(here.executor(), {watchers, gateways, virtual_services}, options,
                   {*api, events, here.clock, here.watchdog, here.log, here.metrics}),
        tasks(here.executor()) {
    tasks.spawn(watchers.run());
    tasks.spawn(gateways.run());
    tasks.spawn(virtual_services.run());
    tasks.spawn(events.run());
    tasks.spawn(controller.run());
  }

  static k8s::informer_environment informing(http::test::host& here) {
    return {here.clock, here.log, here.metrics, core::make_random_source()};
  }

  std::unique_ptr<k8s::client> api;
  std::unique_ptr<k8s::client> reading;
  std::unique_ptr<k8s::client> telling;
  k8s::informer watchers;
  k8s::informer gateways;
  k8s::informer virtual_services;
  k8s::event_recorder events;
  watcher_controller::watcher_controller controller;
  core::task_group tasks;
};

control_plane::control_plane(schema watchers,
                             rw::watcher_controller::watcher_controller_options options)
    : ns_("watchers-" + random_text()), options_(std::move(options)) {
  options_.gateway_namespace = ns_;
  options_.revisit = 1h;
  if (options_.own) options_.own->key.ns = ns_;
  here_.on_thread([&] { backend_ = std::make_unique<backend>(here_); });
  for (auto& one : all_definitions(watchers)) {
    const auto made = here_.call(backend_->api->create(definitions, std::move(one)));
    BOOST_REQUIRE_MESSAGE(made.has_value() || made.error().is(k8s::errc::already_exists),
                          made.error().message);
  }
  for (const auto* type : {&watchers_type(), &gateways_type(), &virtual_services_type()}) {
    eventually([&] { return here_.call(backend_->api->list(*type, {})).has_value(); },
               "the kind is served");
  }
  ok(backend_->api->create(
      namespaces_type(),
      {{"apiVersion", "v1"}, {"kind", "Namespace"}, {"metadata", json_ns::object{{"name", ns_}}}}));
  start();
}

control_plane::~control_plane() {
  stop();
  here_.call(backend_->api->close());
  here_.on_thread([&] {
    backend_->tasks.cancel();
    backend_->api.reset();
  });
  here_.call(backend_->tasks.join());
  here_.on_thread([&] { backend_.reset(); });
  here_.stop();
}

void control_plane::start() {
  here_.on_thread([&] { running_ = std::make_unique<running>(here_, *backend_, ns_, options_); });
}

void control_plane::stop() {
  if (!running_) return;
  here_.on_thread([&] { running_->tasks.cancel(); });
  here_.call(running_->tasks.join());
  for (auto* one : {&running_->api, &running_->reading, &running_->telling}) {
    here_.call((*one)->close());
  }
  here_.on_thread([&] { running_.reset(); });
}

json control_plane::create(const k8s::resource_type& type, json object) {
  return ok(backend_->api->create(type, std::move(object)));
}

json control_plane::get(const k8s::resource_type& type, std::string_view name) {
  return ok(backend_->api->get(type, {ns_, std::string(name)}));
}

bool control_plane::there(const k8s::resource_type& type, std::string_view name) {
  const auto got = here_.call(backend_->api->get(type, {ns_, std::string(name)}));
  BOOST_REQUIRE(got.has_value() || got.error().is(k8s::errc::not_found));
  return got.has_value();
}

json control_plane::merge(const k8s::resource_type& type, std::string_view name,
                          std::string_view change) {
  return ok(backend_->api->patch(type, {ns_, std::string(name)}, k8s::patch_type::merge,
                                 json_ns::parse({change.data(), change.size()})));
}

void control_plane::remove(const k8s::resource_type& type, std::string_view name) {
  ok(backend_->api->remove(type, {ns_, std::string(name)}));
}

k8s::failure control_plane::refused_creation(const k8s::resource_type& type, json object) {
  auto got = here_.call(backend_->api->create(type, std::move(object)));
  BOOST_REQUIRE_MESSAGE(got.has_error(), "the object was created");
  return got.error();
}

json control_plane::watcher(std::string_view name) const {
  auto made = valid_watcher();
  made.at("metadata") = json_ns::object{{"name", name}, {"namespace", ns_}};
  made.at("spec").as_object()["manager"] = name;
  return made;
}

json control_plane::gateway(std::string_view name, std::string_view host) const {
  auto made = json_ns::parse(R"({
    "apiVersion": "networking.istio.io/v1beta1", "kind": "Gateway",
    "spec": {"selector": {"istio": "ingressgateway"},
             "servers": [{"port": {"number": 443, "name": "https", "protocol": "HTTPS"}}]}})");
  made.as_object()["metadata"] = json_ns::object{
      {"name", name}, {"namespace", ns_}, {"labels", json_ns::object{{"gw", "default"}}}};
  json_ns::array hosts;
  hosts.emplace_back(host);
  made.at("spec").at("servers").at(0).as_object()["hosts"] = std::move(hosts);
  return made;
}

json control_plane::await_state(std::string_view name, std::string_view state) {
  json seen;
  eventually(
      [&] {
        seen = get(watchers_type(), name);
        const auto* const observed = k8s::find(seen, {"status", "observedGeneration"});
        return k8s::find_string(seen, {"status", "state"}) == state && observed != nullptr &&
               *observed == k8s::generation_of(seen);
      },
      state);
  return seen;
}

void control_plane::settle() {
  const auto api_state = [&](const k8s::resource_type& type) {
    return ok(backend_->api->list(type, {.ns = ns_})).at("items").as_array();
  };
  const auto level = [&](const k8s::informer& in) {
    const auto items = api_state(in.type());
    bool same = false;
    here_.on_thread([&] {
      same =
          items.size() == in.objects().size() && std::ranges::all_of(items, [&](const auto& one) {
            return in.objects().get(k8s::key_of(one)).resource_version() ==
                   k8s::resource_version_of(one);
          });
    });
    return same;
  };
  // Two looks at the same state of affairs: nothing was under way at the first one.
  double before = -1;
  eventually(
      [&] {
        const bool all =
            level(running_->watchers) && level(running_->gateways) &&
            level(running_->virtual_services) &&
            here_.metric(R"(controller_runtime_active_workers{controller="watcher"})") == 0;
        const auto now = reconciles() + requests();
        return all && std::exchange(before, now) == now;
      },
      "the controller settles");
}

void control_plane::eventually(const std::function<bool()>& condition, std::string_view what) {
  BOOST_REQUIRE_MESSAGE(http::test::eventually(condition), "not in time: " << what);
}

std::string control_plane::message_of(const json& watcher) {
  const auto found = k8s::find_condition(watcher, "VirtualService");
  BOOST_REQUIRE(found);
  return found->message;
}

bool control_plane::embedded() {
  return environment("RW_CONFORMANCE_KUBECONFIG") == nullptr;
}

void control_plane::fail(
    std::function<k8s::devserver::fault(const std::string&, const std::string&)> how) {
  here_.on_thread([&] { backend_->server->faults(cluster).decide = std::move(how); });
}

double control_plane::sum(std::string_view series) const {
  std::istringstream text(core::expose(here_.metrics));
  double total = 0;
  for (std::string line; std::getline(text, line);) {
    if (line.starts_with(series)) total += std::stod(line.substr(line.rfind(' ')));
  }
  return total;
}

double control_plane::requests() const {
  return sum(R"(rw_kube_requests_total{client="reactor")");
}

double control_plane::conflicts() const {
  return sum(R"(rw_kube_requests_total{client="reactor",code="409")");
}

std::string control_plane::fault_of(std::string_view watcher) {
  const auto ask = [](const watcher_controller::watcher_controller* of,
                      k8s::object_key key) -> boost::asio::awaitable<std::string> {
    const auto found = of->faults().find(key);
    co_return found == of->faults().end() ? std::string() : found->second.error.reason;
  };
  return here_.call(ask(&running_->controller, {ns_, std::string(watcher)}));
}

double control_plane::reconciles() const {
  return sum(R"(controller_runtime_reconcile_total{controller="watcher")");
}

bool control_plane::has_event(std::string_view watcher, std::string_view reason) {
  const auto all = ok(backend_->api->list(k8s::events_type(), {.ns = ns_}));
  return std::ranges::any_of(all.at("items").as_array(), [&](const json& one) {
    return k8s::find_string(one, {"involvedObject", "name"}) == watcher &&
           k8s::find_string(one, {"type"}) == "Warning" &&
           k8s::find_string(one, {"reason"}) == reason;
  });
}

}  // namespace rw::watcher_controller_test
