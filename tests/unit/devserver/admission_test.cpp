#include "rw/k8s/devserver/admission.hpp"

#include "rw/core/wake.hpp"
#include "rw/k8s/devserver/webhook_client.hpp"
#include "rw/k8s/objects/base64.hpp"
#include "rw/tls/transport.hpp"

#include <boost/asio/bind_cancellation_slot.hpp>
#include <boost/asio/cancellation_signal.hpp>
#include <boost/asio/co_spawn.hpp>
#include <boost/asio/use_future.hpp>
#include <boost/json/array.hpp>
#include <boost/json/object.hpp>
#include <boost/json/parse.hpp>
#include <boost/json/serialize.hpp>
#include <boost/test/unit_test.hpp>

#include "tests/unit/devserver/admission_samples.hpp"
#include "tests/unit/http/host.hpp"
#include "tests/unit/tls/pki.hpp"
#include <atomic>
#include <functional>
#include <future>
#include <memory>
#include <mutex>
#include <string>
#include <string_view>
#include <vector>

BOOST_AUTO_TEST_SUITE(admission)

namespace {

using namespace rw::k8s::devserver;
using namespace rw::k8s::devserver::test;
using namespace rw::http::test;
using rw::k8s::object_key;
namespace asio = boost::asio;
namespace json = boost::json;

/// Webhooks for real: what they are asked is kept, and the test says what they answer.
class reviewer final : public rw::http::handler {
 public:
  std::size_t body_limit(const rw::http::request&) const override { return 1u << 20; }

  asio::awaitable<void> handle(rw::http::request& from, rw::http::response& into) override {
    const auto asked = json::parse(from.body);
    ++calls;
    {
      const std::lock_guard lock(guard_);
      last_ = asked;
      target_ = from.target;
    }
    if (from.target.starts_with("/hang")) return hang();
    if (from.target.starts_with("/loop")) {
      into.status = 307;
      into.headers.add("location", "/loop");
      return {};
    }
    json::object response = {{"uid", asked.at("request").at("uid")}, {"allowed", true}};
    if (from.target.starts_with("/deny")) {
      response["allowed"] = false;
      response["status"] = {{"message", "no way"}, {"code", 409}, {"reason", "Conflict"}};
    }
    if (from.target.starts_with("/warn")) response["warnings"] = json::array{"careful"};
    into.status = from.target.starts_with("/break") ? 500 : 200;
    into.body = json::serialize(json::value{{"kind", "AdmissionReview"},
                                            {"apiVersion", asked.at("apiVersion")},
                                            {"response", std::move(response)}});
    return {};
  }

  json::value last() const {
    const std::lock_guard lock(guard_);
    return last_;
  }
  std::string target() const {
    const std::lock_guard lock(guard_);
    return target_;
  }

  std::atomic<int> calls{0};

 private:
  static asio::awaitable<void> hang() {
    const auto executor = co_await asio::this_coro::executor;
    rw::core::wake never(executor);
    co_await never.wait();
  }

  mutable std::mutex guard_;
  json::value last_;
  std::string target_;
};

/// A cluster's webhooks on a host, and a server that they call.
struct fixture {
  explicit fixture(std::vector<std::string> alpn = {"h2", "http/1.1"})
      : transport(rw::tls::test::good(rw::tls::make_server_transport(
            rw::tls::test::holding(rw::tls::test::the_pki().server), {.alpn = std::move(alpn)}))),
        server(here, *transport, answers),
        hooks(std::make_unique<webhooks>(
            here.executor(),
            webhooks::environment{here.clock, here.watchdog, here.log, here.metrics})) {}
  ~fixture() {
    here.call(hooks->close());
    here.stop();
  }

  std::string url(std::string_view path) const {
    return "https://127.0.0.1:" + std::to_string(server.address.port()) + std::string(path);
  }
  json::object client_config(std::string_view path) const {
    return {{"url", url(path)},
            {"caBundle", rw::k8s::base64_encode(rw::tls::test::the_pki().ca.certificate_pem())}};
  }

  /// A configuration with one webhook that is called at `path`.
  void configure(std::string_view path, json::object more = {}, const char* name = "t") {
    more["clientConfig"] = client_config(path);
    configure_as(std::move(more), name);
  }
  void configure_as(json::object more, const char* name = "t") {
    const json::value configuration = {{"webhooks", json::array{hook(std::move(more))}}};
    here.on_thread([&] { hooks->set_configuration(name, configuration); });
  }

  outcome<void> admit(admission_attributes write = config_map()) {
    return here.call(hooks->admit(std::move(write)));
  }

  void check_refused(const std::string& message, unsigned code = 500,
                     admission_attributes write = config_map()) {
    const auto got = admit(std::move(write));
    BOOST_TEST_REQUIRE(got.has_error());
    BOOST_TEST(got.error().message == message);
    BOOST_TEST(got.error().code == code);
  }

  double connections() {
    return here.metric("rw_http_client_connections_total{client=\"webhook\"}");
  }
  double counted(const std::string& result) {
    return here.metric("rw_devserver_webhook_calls_total{result=\"" + result + "\"}");
  }

  host here;
  reviewer answers;
  std::unique_ptr<rw::core::transport> transport;
  running_server server;
  std::unique_ptr<webhooks> hooks;
};

}  // namespace

BOOST_AUTO_TEST_CASE(webhook_is_called_over_http2_and_its_connection_kept) {
  fixture here;
  here.configure("/x", {{"timeoutSeconds", 5}});
  for (int i = 0; i < 5; ++i) {
    auto write = config_map();
    BOOST_TEST_REQUIRE(here.admit(write).has_value());
    BOOST_TEST(write.warnings->empty());
  }
  BOOST_TEST(here.answers.target() == "/x?timeout=5s");
  BOOST_TEST(here.answers.last().at("request").at("name") == "w1");
  BOOST_TEST(here.answers.last().at("request").at("uid").as_string().size() == 36u);
  BOOST_TEST(here.connections() == 1);
  BOOST_TEST(here.server.requests("h2") == 5);
  BOOST_TEST(here.counted("allowed") == 5);
}

BOOST_AUTO_TEST_CASE(webhook_is_called_over_http1_where_it_speaks_no_other) {
  fixture here({"http/1.1"});
  here.configure("/x");
  for (int i = 0; i < 5; ++i) BOOST_TEST(here.admit().has_value());
  BOOST_TEST(here.connections() == 1);
  BOOST_TEST(here.server.requests("http/1.1") == 5);
}

BOOST_AUTO_TEST_CASE(no_webhook_is_called_where_none_is_concerned) {
  fixture here;
  BOOST_TEST(here.hooks->empty());
  BOOST_TEST(here.admit().has_value());
  here.configure("/deny", {{"objectSelector", {{"matchLabels", {{"w", "2"}}}}}});
  BOOST_TEST(!here.hooks->empty());
  BOOST_TEST(here.admit().has_value());
  BOOST_TEST(here.answers.calls == 0);
  here.here.on_thread([&] { here.hooks->set_configuration("t", nullptr); });
  BOOST_TEST(here.hooks->empty());
}

BOOST_AUTO_TEST_CASE(single_denial_denies_the_write) {
  fixture here;
  here.configure("/x", {{"name", "a.example.com"}}, "a");
  here.configure("/deny", {{"name", "b.example.com"}}, "b");
  here.check_refused(R"(admission webhook "b.example.com" denied the request: no way)", 409);
  BOOST_TEST(here.answers.calls == 2);
  BOOST_TEST(here.counted("allowed") == 1);
  BOOST_TEST(here.counted("denied") == 1);
  here.here.on_thread([&] { here.hooks->set_configuration("b", nullptr); });
  BOOST_TEST(here.admit().has_value());
}

BOOST_AUTO_TEST_CASE(warnings_reach_the_writer_in_the_order_of_the_webhooks) {
  fixture here;
  here.configure("/warn", {{"name", "a.example.com"}}, "a");
  here.configure("/warn", {{"name", "b.example.com"}}, "b");
  auto write = config_map();
  BOOST_TEST_REQUIRE(here.admit(write).has_value());
  BOOST_TEST(*write.warnings == (std::vector<std::string>{"careful", "careful"}),
             boost::test_tools::per_element());
}

BOOST_AUTO_TEST_CASE(webhook_that_redirects_in_a_circle_fails_after_ten_times) {
  fixture here;
  here.configure("/loop");
  here.check_refused(R"(Internal error occurred: failed calling webhook "h.example.com": Post ")" +
                     here.url("/loop") + R"(": stopped after 10 redirects)");
  BOOST_TEST(here.answers.calls == 10);
  BOOST_TEST(here.connections() == 1);
}

BOOST_AUTO_TEST_CASE(webhook_address_follows_a_redirect) {
  webhook called{.name = "h"};
  called.url = "https://a.example:8443//v/../w%20x/";
  std::string reason;
  const auto from = webhook_address::of(called, nullptr, reason);
  BOOST_TEST_REQUIRE(from.has_value());
  BOOST_TEST(from->target == "/w%20x?timeout=10s");
  const auto to = [&](std::string_view location) {
    const auto found = from->redirected(location, reason);
    if (!found) return std::string();
    return found->server_name + " " + found->host + ":" + std::to_string(found->port) + " " +
           found->target;
  };
  BOOST_TEST(to("/moved?x=1#part") == "a.example a.example:8443 /moved?x=1");
  BOOST_TEST(to("/end?next=https://b.example/x") ==
             "a.example a.example:8443 /end?next=https://b.example/x");
  BOOST_TEST(to("../end/") == "a.example a.example:8443 /end/");
  BOOST_TEST(to("/a b") == "a.example a.example:8443 /a%20b");
  BOOST_TEST(to("beside") == "a.example a.example:8443 /beside");
  BOOST_TEST(to("https://b.example/y") == "b.example b.example:443 /y");
  BOOST_TEST(to("//b.example:1") == "b.example b.example:1 /");
  BOOST_TEST(to("http://b.example/y").empty());
  called.url = "https://a.example/%zz";
  BOOST_TEST(!webhook_address::of(called, nullptr, reason).has_value());
}

BOOST_AUTO_TEST_CASE(webhook_that_fails_refuses_the_write_unless_it_may_fail) {
  fixture here;
  here.configure("/break");
  const auto got = here.admit();
  BOOST_TEST_REQUIRE(got.has_error());
  BOOST_TEST(got.error().code == 500u);
  BOOST_TEST(got.error().reason == "InternalError");
  BOOST_TEST(got.error().message.starts_with(
      R"(Internal error occurred: failed calling webhook "h.example.com": an error on the server)"));
  BOOST_TEST_REQUIRE(got.error().causes.size() == 1u);
  BOOST_TEST("Internal error occurred: " + got.error().causes[0].message == got.error().message);
  here.configure("/break", {{"failurePolicy", "Ignore"}});
  BOOST_TEST(here.admit().has_value());
  BOOST_TEST(here.counted("failed") == 1);
  BOOST_TEST(here.counted("ignored") == 1);
}

BOOST_AUTO_TEST_CASE(webhook_has_its_timeout_and_no_more) {
  fixture here;
  here.configure("/hang", {{"timeoutSeconds", 1}});
  here.check_refused(R"(Internal error occurred: failed calling webhook "h.example.com": Post ")" +
                     here.url("/hang?timeout=1s") + R"(": context deadline exceeded)");
}

BOOST_AUTO_TEST_CASE(webhook_that_cannot_be_reached_is_named_with_its_url) {
  fixture here;
  auto config = here.client_config("/x");
  config["url"] = "https://127.0.0.1:1/x";
  here.configure_as({{"clientConfig", config}});
  here.check_refused(
      R"(Internal error occurred: failed calling webhook "h.example.com": )"
      R"(Post "https://127.0.0.1:1/x?timeout=10s": dial tcp 127.0.0.1:1: connect: connection refused)");
}

BOOST_AUTO_TEST_CASE(webhook_with_an_untrusted_certificate_is_not_called) {
  fixture here;
  for (const auto& authorities :
       {rw::k8s::base64_encode(rw::tls::test::the_pki().stranger.certificate_pem()),
        std::string()}) {
    auto config = here.client_config("/x");
    config["caBundle"] = authorities;
    here.configure_as({{"clientConfig", config}});
    const auto got = here.admit();
    BOOST_TEST_REQUIRE(got.has_error());
    BOOST_TEST(got.error().message.find("tls: ") != std::string::npos, got.error().message);
    BOOST_TEST(here.answers.calls == 0);
  }
  auto config = here.client_config("/x");
  config["caBundle"] = rw::k8s::base64_encode("no certificate");
  here.configure_as({{"clientConfig", config}});
  const auto got = here.admit();
  BOOST_TEST_REQUIRE(got.has_error());
  BOOST_TEST(got.error().message.find("unable to load root certificates") != std::string::npos);
}

BOOST_AUTO_TEST_CASE(malformed_url_is_a_failure) {
  fixture here;
  for (const auto* url : {"http://127.0.0.1/x", "https://", "x", "https://a b/"}) {
    here.configure_as({{"clientConfig", {{"url", url}}}});
    const auto got = here.admit();
    BOOST_TEST_REQUIRE(got.has_error(), url);
    BOOST_TEST(got.error().code == 500u);
  }
}

BOOST_AUTO_TEST_CASE(dry_run_is_rejected_by_side_effects) {
  fixture here;
  auto dry = config_map();
  dry.dry_run = true;
  here.configure("/x", {{"sideEffects", "NoneOnDryRun"}});
  BOOST_TEST(here.admit(dry).has_value());
  BOOST_TEST(here.answers.last().at("request").at("dryRun").as_bool());
  for (const auto* effects : {"Some", "Unknown"}) {
    here.configure("/x", {{"sideEffects", effects}, {"failurePolicy", "Ignore"}});
    here.check_refused(R"(admission webhook "h.example.com" does not support dry run)", 400, dry);
    BOOST_TEST(here.admit().has_value());
  }
}

BOOST_AUTO_TEST_CASE(service_is_reached_where_the_resolver_says) {
  fixture here;
  object_key asked;
  unsigned asked_port = 0;
  rw::k8s::devserver::service_route route;
  here.here.on_thread([&] {
    here.hooks->resolve_services_by([&](const object_key& service, unsigned port) {
      asked = service;
      asked_port = port;
      return route;
    });
  });
  auto config = here.client_config("/x");
  config.erase("url");
  config["service"] = {{"namespace", "n"}, {"name", "s"}, {"path", "/p"}, {"port", 8443}};
  here.configure_as({{"clientConfig", config}});
  here.check_refused(R"(Internal error occurred: failed calling webhook "h.example.com": )"
                     R"(Post "https://s.n.svc:8443/p?timeout=10s": service "s" not found)");
  BOOST_TEST((asked == object_key{"n", "s"}));
  BOOST_TEST(asked_port == 8443u);
  route.exists = true;
  here.check_refused(
      R"(Internal error occurred: failed calling webhook "h.example.com": )"
      R"(Post "https://s.n.svc:8443/p?timeout=10s": no endpoints available for service "s")");
  // The server's certificate is not for the name of a service, so the handshake says no.
  route.endpoint = here.server.address;
  const auto got = here.admit();
  BOOST_TEST_REQUIRE(got.has_error());
  BOOST_TEST(got.error().message.find("https://s.n.svc:8443/p?timeout=10s\": tls: ") !=
             std::string::npos);
}

BOOST_AUTO_TEST_CASE(configuration_that_changes_replaces_its_connections) {
  fixture here;
  here.configure("/x");
  BOOST_TEST(here.admit().has_value());
  here.configure("/x");
  BOOST_TEST(here.admit().has_value());
  BOOST_TEST(here.connections() == 1);
  here.configure("/y");
  BOOST_TEST(here.admit().has_value());
  BOOST_TEST(here.answers.target() == "/y?timeout=10s");
  BOOST_TEST(here.connections() == 2);
  here.here.on_thread([&] { here.hooks->set_configuration("t", nullptr); });
  BOOST_TEST(here.server.is_left_alone());
}

BOOST_AUTO_TEST_CASE(configuration_may_change_under_a_call) {
  fixture here;
  here.configure("/hang", {{"timeoutSeconds", 1}});
  auto pending =
      asio::co_spawn(here.here.context, here.hooks->admit(config_map()), asio::use_future);
  BOOST_TEST(eventually([&] { return here.answers.calls == 1; }));
  here.here.on_thread([&] { here.hooks->set_configuration("t", nullptr); });
  BOOST_TEST(here.admit().has_value());
  BOOST_TEST_REQUIRE((pending.wait_for(patience) == std::future_status::ready));
  BOOST_TEST(pending.get().has_error());
  BOOST_TEST(here.server.is_left_alone());
}

BOOST_AUTO_TEST_CASE(writer_that_gives_up_takes_its_calls_along) {
  fixture here;
  here.configure("/hang", {{"timeoutSeconds", 30}});
  asio::cancellation_signal give_up;
  auto pending = asio::co_spawn(here.here.context, here.hooks->admit(config_map()),
                                asio::bind_cancellation_slot(give_up.slot(), asio::use_future));
  BOOST_TEST(eventually([&] { return here.answers.calls == 1; }));
  here.here.on_thread([&] { give_up.emit(asio::cancellation_type::terminal); });
  BOOST_TEST_REQUIRE((pending.wait_for(patience) == std::future_status::ready));
  BOOST_CHECK_THROW(pending.get(), boost::system::system_error);
  here.configure("/x");
  BOOST_TEST(here.admit().has_value());
}

BOOST_AUTO_TEST_CASE(closing_ends_calls_under_way) {
  std::future<outcome<void>> pending;
  {
    fixture here;
    here.configure("/hang", {{"timeoutSeconds", 30}});
    pending = asio::co_spawn(here.here.context, here.hooks->admit(config_map()), asio::use_future);
    BOOST_TEST(eventually([&] { return here.answers.calls == 1; }));
  }
  BOOST_TEST_REQUIRE((pending.wait_for(patience) == std::future_status::ready));
  BOOST_TEST(pending.get().has_error());
}

BOOST_AUTO_TEST_CASE(many_writes_share_a_connection) {
  fixture here;
  here.configure("/x");
  std::vector<std::future<outcome<void>>> pending;
  for (int i = 0; i < 200; ++i) {
    pending.push_back(
        asio::co_spawn(here.here.context, here.hooks->admit(config_map()), asio::use_future));
  }
  for (auto& one : pending) {
    BOOST_TEST_REQUIRE((one.wait_for(patience) == std::future_status::ready));
    BOOST_TEST(one.get().has_value());
  }
  BOOST_TEST(here.connections() == 1);
}

BOOST_AUTO_TEST_SUITE_END()
