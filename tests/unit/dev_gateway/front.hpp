#pragma once

#include "rw/k8s/cache/informer.hpp"
#include "rw/k8s/client/client.hpp"
#include "rw/k8s/devserver/server.hpp"
#include "rw/k8s/devserver/yaml.hpp"
#include "rw/k8s/objects/types.hpp"
#include "rw/reactors/dev/gateway/dev_gateway.hpp"
#include "rw/reactors/shared/kyma_resources.hpp"
#include "rw/tls/ca_bundle.hpp"
#include "rw/tls/transport.hpp"

#include <boost/json/parse.hpp>

#include "tests/unit/http/client_fixture.hpp"
#include "tests/unit/http/host.hpp"
#include "tests/unit/source_dir.hpp"
#include "tests/unit/tls/pki.hpp"
#include <fstream>
#include <iterator>
#include <memory>
#include <optional>
#include <string>
#include <utility>

namespace rw::dev_gateway::test {

namespace asio = boost::asio;
using http::test::eventually;
using http::test::outcome;
using tls::test::good;

/// What stands behind the gateway: answers with its name, remembers what it was asked, and
/// misbehaves on some paths.
class backend final : public http::handler {
 public:
  backend(http::test::host& here, std::string name)
      : name_(std::move(name)),
        server_(here.executor(), {name_, {asio::ip::address_v4::loopback(), 0}, {}}, *this,
                {*plain_, here.watchdog, here.log, here.metrics}),
        executor_(here.executor()) {
    here.spawn(server_.run());
  }

  asio::ip::tcp::endpoint address() const { return server_.address(); }
  std::size_t body_limit(const http::request&) const override { return 8u << 20; }

  asio::awaitable<void> handle(http::request& from, http::response& into) override {
    last.clear();
    last.target = from.target;
    last.body = from.body;
    for (std::size_t i = 0; i < from.headers.size(); ++i) {
      last.headers.add(from.headers[i].name, from.headers[i].value);
    }
    ++seen;
    into.headers.add("x-backend", name_);
    into.headers.add("watch-event-batch", "256");
    into.headers.add("connection", "keep-alive");
    if (busy || from.target.ends_with("/busy")) {
      into.headers.add("retry-after", "7");
      into.text(503, "full");
    } else if (from.target.ends_with("/breaks")) {
      into.status = 0;
    } else if (from.target.ends_with("/hangs")) {
      return hang();
    } else {
      into.body = from.body;
    }
    return {};
  }

  http::request last;  ///< read it on the host's thread
  int seen = 0;
  bool busy = false;

 private:
  asio::awaitable<void> hang() {
    core::wake never(executor_);
    co_await never.wait();
  }

  const std::string name_;
  const std::unique_ptr<core::transport> plain_ = core::make_plain_transport();
  http::server server_;
  const asio::any_io_executor executor_;
};

/// A gateway with its control plane, and two backends.
class front {
 public:
  explicit front(gateway_options with = {}) {
    here.on_thread([&] {
      api_server = std::make_unique<k8s::devserver::server>(
          here.executor(), k8s::devserver::server_options{},
          k8s::devserver::server_environment{here.clock, here.watchdog, here.log, here.metrics});
      api_server->add_cluster("kcp");
      api = std::make_unique<k8s::client>(
          here.executor(), k8s::parse_kubeconfig(api_server->kubeconfig("kcp"), "test", "").value(),
          k8s::client_options{.user_agent = "test", .field_manager = "test"},
          k8s::client_environment{here.clock, here.watchdog, here.log, here.metrics});
      here.spawn(api_server->run());
    });
    define("networking.istio.io_virtualservices.yaml");
    for (const auto* ns : {"istio-system", "kcp-system"}) {
      create(namespaces_type(), {{"apiVersion", "v1"},
                                 {"kind", "Namespace"},
                                 {"metadata", boost::json::object{{"name", ns}}}});
    }
    here.on_thread([&] {
      one = std::make_unique<backend>(here, "one");
      two = std::make_unique<backend>(here, "two");
      resolve = [this](const service_port&) { return one->address(); };
      virtual_services = inform(virtual_services_type());
      secrets = inform(secrets_type());
      under_test = std::make_unique<gateway>(
          here.executor(), std::move(with), gateway_sources{*virtual_services, *secrets},
          gateway_environment{[this](const service_port& to) { return resolve(to); }, here.clock,
                              here.watchdog, here.log, here.metrics});
      here.spawn(serve());
    });
  }

  ~front() {
    for (auto& each : clients) here.call(each->close());
    here.call(api->close());
    here.stop();
  }

  std::unique_ptr<k8s::informer> inform(const k8s::resource_type& type) {
    auto made = std::make_unique<k8s::informer>(
        *api, type, k8s::informer_options{},
        k8s::informer_environment{here.clock, here.log, here.metrics, core::make_random_source()});
    here.spawn(made->run());
    return made;
  }

  void define(const std::string& file) {
    std::ifstream in(rw::test::source_file("deploy/dev/" + file));
    const std::string text{std::istreambuf_iterator<char>(in), {}};
    std::string why;
    auto parsed = k8s::devserver::parse_yaml(text, why);
    BOOST_REQUIRE_MESSAGE(parsed, why);
    create({{"apiextensions.k8s.io", "v1", "CustomResourceDefinition"},
            "customresourcedefinitions",
            false},
           std::move(*parsed));
  }

  void create(const k8s::resource_type& type, boost::json::value object) {
    const auto made = here.call(api->create(type, std::move(object)));
    BOOST_REQUIRE_MESSAGE(made.has_value(), made.error().message);
  }
  void put(const k8s::resource_type& type, boost::json::value object) {
    const auto made = here.call(api->apply(type, std::move(object), {.force = true}));
    BOOST_REQUIRE_MESSAGE(made.has_value(), made.error().message);
  }
  void remove(const k8s::resource_type& type, k8s::object_key key) {
    const auto gone = here.call(api->remove(type, std::move(key)));
    BOOST_REQUIRE_MESSAGE(gone.has_value(), gone.error().message);
  }

  /// Writes the gateway Secret, and waits until it is in use.
  void serve_with(const tls::key_pair& own, const std::string& clients_ca) {
    put_secret(own, clients_ca);
    const auto wanted = tls::certificate::from_pem(own.certificate)->fingerprint();
    BOOST_REQUIRE(eventually([&] { return certificate() == wanted; }));
  }
  void put_secret(const tls::key_pair& own, const std::string& clients_ca) {
    boost::json::value made{{"apiVersion", "v1"},
                            {"kind", "Secret"},
                            {"metadata", boost::json::object{{"name", "klm-istio-gateway"},
                                                             {"namespace", "istio-system"}}}};
    k8s::set_secret_data(made, "tls.crt", own.certificate);
    k8s::set_secret_data(made, "tls.key", own.key);
    k8s::set_secret_data(made, "ca.crt", clients_ca);
    put(secrets_type(), std::move(made));
  }

  void route(const std::string& name, const std::string& prefix) {
    const auto before = here.metric("rw_dev_gateway_routes");
    put(virtual_services_type(),
        boost::json::parse(
            R"({"apiVersion":"networking.istio.io/v1beta1","kind":"VirtualService",)"
            R"("metadata":{"name":")" +
            name +
            R"(","namespace":"kcp-system"},"spec":{"hosts":["localhost"],"http":[{)"
            R"("match":[{"uri":{"prefix":")" +
            prefix +
            R"("}}],"route":[{"destination":{"host":)"
            R"("events.kcp-system.svc.cluster.local","port":{"number":8082}}}]}]}})"));
    BOOST_REQUIRE(eventually([&] { return here.metric("rw_dev_gateway_routes") > before; }));
  }

  std::string certificate() {
    std::string out;
    here.on_thread([&] { out = under_test->certificate(); });
    return out;
  }

  /// A client that shows `own` and believes servers of `authority`.
  http::client& connect(std::shared_ptr<tls::credentials> own) {
    http::client* out = nullptr;
    here.on_thread([&] {
      transports.push_back(
          good(tls::make_client_transport(std::move(own), {.server_name = "localhost"})));
      clients.push_back(std::make_unique<http::client>(
          here.executor(),
          http::client_options{
              "test", "localhost", under_test->address().port(), {.body_bytes = 4u << 20}},
          http::client_environment{*transports.back(), here.watchdog, here.log, here.metrics}));
      out = clients.back().get();
    });
    return *out;
  }

  outcome post(http::client& through, std::string target, std::string body = "{}",
               std::vector<std::pair<std::string, std::string>> fields = {}) {
    http::request what;
    what.target = std::move(target);
    what.body = std::move(body);
    for (const auto& [name, value] : fields) what.headers.add(name, value);
    return here.call(http::test::exchange_once(&through, std::move(what)));
  }

  double failed(const std::string& reason) {
    return here.metric("rw_dev_gateway_failed_handshakes_total{reason=\"" + reason + "\"}");
  }
  double answered(unsigned code) {
    return here.metric("rw_dev_gateway_requests_total{code=\"" + std::to_string(code) + "\"}");
  }

  http::test::host here;
  std::unique_ptr<k8s::devserver::server> api_server;
  std::unique_ptr<k8s::client> api;
  std::unique_ptr<backend> one;
  std::unique_ptr<backend> two;
  service_resolver resolve;  ///< to be changed on the host's thread
  std::unique_ptr<k8s::informer> virtual_services;
  std::unique_ptr<k8s::informer> secrets;
  std::unique_ptr<gateway> under_test;
  std::vector<std::unique_ptr<core::transport>> transports;
  std::vector<std::unique_ptr<http::client>> clients;
  bool ended = false;

 private:
  asio::awaitable<void> serve() {
    co_await under_test->run();
    ended = true;
  }
};

}  // namespace rw::dev_gateway::test
