#include "rw/core/wake.hpp"
#include "rw/k8s/client/client.hpp"
#include "rw/k8s/config/config.hpp"
#include "rw/k8s/devserver/server.hpp"
#include "rw/k8s/objects/base64.hpp"
#include "rw/tls/transport.hpp"

#include <boost/asio/co_spawn.hpp>
#include <boost/asio/use_future.hpp>
#include <boost/json/array.hpp>
#include <boost/json/object.hpp>
#include <boost/json/parse.hpp>
#include <boost/json/serialize.hpp>
#include <boost/test/unit_test.hpp>

#include "tests/unit/http/host.hpp"
#include "tests/unit/tls/pki.hpp"
#include <atomic>
#include <future>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

BOOST_AUTO_TEST_SUITE(server_webhooks)

// What the API server as a whole makes of webhooks, as far as a real one can't be asked: services
// of simulated clusters, and the end of it all. The rest is in tests/conformance.

namespace {

using namespace rw;
using namespace rw::http::test;
namespace asio = boost::asio;
namespace json = boost::json;
using written = k8s::result<json::value>;

const k8s::resource_type config_maps{{"", "v1", "ConfigMap"}, "configmaps", true};
const k8s::resource_type configurations{
    {"admissionregistration.k8s.io", "v1", "ValidatingWebhookConfiguration"},
    "validatingwebhookconfigurations",
    false};

/// A webhook that allows everything, or keeps silent.
class silent_webhook final : public http::handler {
 public:
  std::size_t body_limit(const http::request&) const override { return 1u << 20; }

  asio::awaitable<void> handle(http::request& from, http::response& into) override {
    ++calls;
    if (silent) return keep_silent();
    const auto asked = json::parse(from.body);
    into.status = 200;
    into.body = json::serialize(
        json::value{{"kind", "AdmissionReview"},
                    {"apiVersion", asked.at("apiVersion")},
                    {"response", {{"uid", asked.at("request").at("uid")}, {"allowed", true}}}});
    return {};
  }

  std::atomic<std::size_t> calls{0};
  std::atomic<bool> silent{false};

 private:
  static asio::awaitable<void> keep_silent() {
    const auto executor = co_await asio::this_coro::executor;
    core::wake never(executor);
    co_await never.wait();
  }
};

json::value config_map(const std::string& name) {
  return {{"apiVersion", "v1"},
          {"kind", "ConfigMap"},
          {"metadata", {{"name", name}, {"namespace", "default"}}}};
}

/// An API server with a cluster "c" whose Service default/hook is a webhook of this process.
struct fixture {
  fixture()
      : own(tls::test::good(tls::test::the_pki().ca.issue(
            {.common_name = "hook", .dns_names = {"hook.default.svc"}, .server_auth = true}))),
        transport(tls::test::good(tls::make_server_transport(tls::test::holding(own), {}))),
        hooks(here, *transport, answers) {
    here.on_thread([this] { start(); });
    configure();
  }

  ~fixture() {
    for (auto& one : clients) here.call(one->close());
    stop();
    here.on_thread([this] {
      clients.clear();
      server.reset();
    });
    here.stop();
  }

  void stop() {
    if (!tasks) return;
    here.on_thread([this] { tasks->cancel(); });
    here.call(tasks->join());
    here.on_thread([this] { tasks.reset(); });
  }

  /// Calls `hook` by its Service for each new ConfigMap.
  void configure() {
    const json::value hook = {
        {"name", "h.example.com"},
        {"admissionReviewVersions", boost::json::array{"v1"}},
        {"sideEffects", "None"},
        {"timeoutSeconds", 30},
        {"rules", boost::json::array{{{"apiGroups", boost::json::array{""}},
                                      {"apiVersions", boost::json::array{"v1"}},
                                      {"operations", boost::json::array{"CREATE"}},
                                      {"resources", boost::json::array{"configmaps"}}}}},
        {"clientConfig",
         {{"service", {{"namespace", "default"}, {"name", "hook"}, {"port", 8443}}},
          {"caBundle", k8s::base64_encode(tls::test::the_pki().ca.certificate_pem())}}}};
    const json::value configuration = {{"apiVersion", "admissionregistration.k8s.io/v1"},
                                       {"kind", "ValidatingWebhookConfiguration"},
                                       {"metadata", {{"name", "w"}}},
                                       {"webhooks", json::array{hook}}};
    const auto made = here.call(clients.front()->create(configurations, configuration));
    BOOST_REQUIRE_MESSAGE(made.has_value(), made.error().message);
  }

  written create(const std::string& name) {
    return here.call(clients.front()->create(config_maps, config_map(name)));
  }
  std::future<written> begin(const std::string& name) {
    auto& client = *clients[++turn % clients.size()];
    return asio::co_spawn(here.context, client.create(config_maps, config_map(name)),
                          asio::use_future);
  }

  /// Webhooks that are called from now on say nothing; `count` writes wait for them.
  std::vector<std::future<written>> wait_for_silence(std::size_t count) {
    answers.silent = true;
    std::vector<std::future<written>> pending;
    for (std::size_t i = 0; i < count; ++i) pending.push_back(begin("w" + std::to_string(i)));
    BOOST_REQUIRE(eventually([&] { return answers.calls == count; }));
    return pending;
  }

  /// The Service leads to another server from now on, and the one before ends in order. On the
  /// host's thread.
  void replace_hooks() {
    auto next = std::make_unique<running_server>(here, *transport, answers);
    (later.empty() ? hooks : *later.back()).get().drain();
    const std::lock_guard lock(guard);
    moved = next->address;
    later.push_back(std::move(next));
  }

  std::string service_asked() {
    const std::lock_guard lock(guard);
    return asked;
  }

  host here;
  silent_webhook answers;
  tls::key_pair own;
  std::unique_ptr<core::transport> transport;
  running_server hooks;
  std::mutex guard;
  std::string asked;
  std::atomic<bool> known{true};
  std::vector<std::unique_ptr<running_server>> later;  ///< webhooks that took the place of `hooks`
  std::optional<asio::ip::tcp::endpoint> moved;  ///< where the Service leads from now on; guarded
  std::unique_ptr<k8s::devserver::server> server;
  std::unique_ptr<core::task_group> tasks;
  /// More than one: each has a bound of its own for what is under way.
  std::vector<std::unique_ptr<k8s::client>> clients;
  std::size_t turn = 0;

 private:
  void start() {
    k8s::devserver::server_options options;
    options.services = [this](std::string_view cluster, std::string_view service) {
      const std::lock_guard lock(guard);
      asked = std::string(cluster) + " " + std::string(service);
      if (!known) return k8s::devserver::service_route();
      return k8s::devserver::service_route{true, moved ? *moved : hooks.address};
    };
    server = std::make_unique<k8s::devserver::server>(
        here.executor(), std::move(options),
        k8s::devserver::server_environment{here.clock, here.watchdog, here.log, here.metrics});
    server->add_cluster("c");
    tasks = std::make_unique<core::task_group>(here.executor());
    tasks->spawn(server->run());
    const auto how = k8s::parse_kubeconfig(server->kubeconfig("c"), "kubeconfig", ".").value();
    for (int i = 0; i < 5; ++i) {
      clients.push_back(std::make_unique<k8s::client>(
          here.executor(), how,
          k8s::client_options{.user_agent = "test", .field_manager = "test", .retries = 0},
          k8s::client_environment{here.clock, here.watchdog, here.log, here.metrics}));
    }
  }
};

/// That the write has ended, and was not made.
void check_failed(std::future<written>& pending) {
  BOOST_TEST_REQUIRE((pending.wait_for(patience) == std::future_status::ready));
  BOOST_TEST(pending.get().has_error());
}

}  // namespace

BOOST_FIXTURE_TEST_CASE(service_is_called_where_the_host_says, fixture) {
  const auto made = create("a");
  BOOST_TEST(made.has_value(), (made.has_value() ? "" : made.error().message));
  BOOST_TEST(answers.calls == 1u);
  BOOST_TEST(service_asked() == "c default/hook:8443");
}

BOOST_FIXTURE_TEST_CASE(service_that_the_host_does_not_know_is_not_found, fixture) {
  known = false;
  const auto made = create("a");
  BOOST_TEST_REQUIRE(made.has_error());
  BOOST_TEST(made.error().status == 500u);
  BOOST_TEST(made.error().message.find("service \"hook\" not found") != std::string::npos);
  BOOST_TEST(answers.calls == 0u);
}

BOOST_FIXTURE_TEST_CASE(end_of_the_server_is_the_end_of_its_calls, fixture) {
  auto pending = wait_for_silence(3);
  stop();
  for (auto& one : pending) check_failed(one);
  BOOST_TEST(hooks.is_left_alone());
}

BOOST_FIXTURE_TEST_CASE(cluster_that_is_removed_takes_its_calls_along, fixture) {
  auto pending = wait_for_silence(3);
  here.on_thread([this] { server->remove_cluster("c"); });
  for (auto& one : pending) check_failed(one);
  BOOST_TEST(hooks.is_left_alone());
}

BOOST_FIXTURE_TEST_CASE(client_that_leaves_takes_its_call_along, fixture) {
  auto pending = wait_for_silence(1);
  here.on_thread([this] { server->drop_connections(); });
  check_failed(pending.front());
  answers.silent = false;
  BOOST_TEST(create("w0").has_value());
}

/// Each time at another point of the connection's beginning, on which some calls then wait.
BOOST_FIXTURE_TEST_CASE(webhook_that_is_replaced_while_it_is_asked_misses_no_call, fixture) {
  constexpr std::size_t rounds = 20;
  constexpr std::size_t writes = 10;
  for (std::size_t round = 0; round < rounds; ++round) {
    const auto accepted = [&] { return here.metric("rw_http_connections_total{server=\"test\"}"); };
    const auto before = accepted();
    std::vector<std::future<written>> pending;
    for (std::size_t i = 0; i < writes; ++i) {
      pending.push_back(begin("w" + std::to_string(round) + "-" + std::to_string(i)));
    }
    BOOST_REQUIRE(eventually([&] { return accepted() > before; }));
    here.on_thread([&] { replace_hooks(); });
    for (auto& one : pending) {
      BOOST_TEST_REQUIRE((one.wait_for(patience) == std::future_status::ready));
      const auto made = one.get();
      BOOST_TEST(made.has_value(), (made.has_value() ? "" : made.error().message));
    }
    here.on_thread([&] { replace_hooks(); });  // nobody has a connection to that one yet
  }
  BOOST_TEST(answers.calls == rounds * writes);
}

BOOST_FIXTURE_TEST_CASE(no_more_writes_wait_than_a_real_server_lets, fixture) {
  auto pending = wait_for_silence(200);
  const auto more = create("more");
  BOOST_TEST_REQUIRE(more.has_error());
  BOOST_TEST(more.error().status == 429u);
  BOOST_TEST((more.error().retry_after == std::chrono::seconds(1)));
  BOOST_TEST(here.metric("rw_devserver_admission_refused_total") == 1);
  // What no webhook has to judge goes on.
  BOOST_TEST(here.call(clients.front()->get(config_maps, {"default", "w0"})).has_error());
  BOOST_TEST(here.call(clients.front()->list(config_maps, {})).has_value());
  stop();
  for (auto& one : pending) check_failed(one);
}

BOOST_AUTO_TEST_SUITE_END()
