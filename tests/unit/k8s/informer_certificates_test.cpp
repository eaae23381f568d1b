// Certificates that expire while a watch is under way: its connection lives on, the next one is
// refused until there is a successor, and nothing is lost.

#include "rw/k8s/client/client.hpp"
#include "rw/k8s/devserver/server.hpp"
#include "rw/tls/issuer.hpp"

#include <boost/json/value.hpp>
#include <boost/test/unit_test.hpp>

#include "tests/unit/k8s/informing.hpp"
#include "tests/unit/k8s/samples.hpp"
#include "tests/unit/k8s/scripted_server.hpp"
#include "tests/unit/tls/scratch.hpp"
#include <chrono>
#include <functional>
#include <memory>
#include <string>
#include <utility>

BOOST_AUTO_TEST_SUITE(informer_certificates)

namespace http = rw::http;
namespace json = boost::json;
namespace tls = rw::tls;
using namespace rw::k8s;
using namespace rw::k8s::test;
using tls::test::good;

namespace {

constexpr auto one_list = R"(rw_informer_lists_total{resource="configmaps"})";

/// A certificate that is good for some seconds from now on.
class short_lived {
 public:
  short_lived(const tls::issuer& from, tls::certificate_request what) {
    what.not_before = std::chrono::system_clock::now() - std::chrono::seconds(1);
    what.validity = std::chrono::seconds(6);
    end_ = *what.not_before + what.validity;
    pair = good(from.issue(what));
  }

  /// Waits for its end; a certificate's times are whole seconds.
  bool eventually_expired() const {
    return http::test::eventually(
        [this] { return std::chrono::system_clock::now() > end_ + std::chrono::seconds(1); });
  }

  tls::key_pair pair;

 private:
  std::chrono::system_clock::time_point end_;
};

/// What goes down a watch, when the test says so. On the host's thread.
struct feed {
  void push(const std::string& more) {
    bytes += more;
    if (ready) ready();
  }
  std::string bytes;
  std::function<void()> ready;
};

class fed final : public http::body_source {
 public:
  explicit fed(std::shared_ptr<feed> from) : from_(std::move(from)) {}
  ~fed() override { from_->ready = nullptr; }

  state read(std::string& into, std::size_t) override {
    if (from_->bytes.empty()) return state::pending;
    into += std::exchange(from_->bytes, {});
    return state::more;
  }
  void on_ready(std::function<void()> ready) override { from_->ready = std::move(ready); }

 private:
  const std::shared_ptr<feed> from_;
};

/// Ends a host before what was made earlier goes, and after what was made later has gone.
class stopped_first {
 public:
  explicit stopped_first(http::test::host& here) : here_(here) {}
  ~stopped_first() { here_.stop(); }
  stopped_first(const stopped_first&) = delete;
  stopped_first& operator=(const stopped_first&) = delete;

 private:
  http::test::host& here_;
};

/// A client on a host's thread.
class client_of {
 public:
  client_of(http::test::host& here, const config& how, const std::string& name) : here_(here) {
    here_.on_thread([&] {
      api_ = std::make_unique<client>(
          here_.executor(), how,
          client_options{.name = name, .user_agent = "test", .field_manager = "test"},
          client_environment{here_.clock, here_.watchdog, here_.log, here_.metrics});
    });
  }
  ~client_of() {
    here_.call(api_->close());
    here_.on_thread([this] { api_.reset(); });
  }
  client_of(const client_of&) = delete;
  client_of& operator=(const client_of&) = delete;

  client& operator*() { return *api_; }
  client* operator->() { return api_.get(); }

 private:
  http::test::host& here_;
  std::unique_ptr<client> api_;
};

/// The embedded server with one cluster, on a host.
struct embedded {
  embedded() {
    here.on_thread([this] {
      api = std::make_unique<devserver::server>(
          here.executor(), devserver::server_options{},
          devserver::server_environment{here.clock, here.watchdog, here.log, here.metrics});
      api->add_cluster("kcp");
      administrator = good(parse_kubeconfig(api->kubeconfig("kcp"), "test", ""));
    });
    here.spawn(api->run());
  }
  ~embedded() { here.stop(); }

  template <class T>
  static T good(result<T> from) {
    BOOST_REQUIRE_MESSAGE(from.has_value(), from.error().message);
    return std::move(*from);
  }

  http::test::host here;
  std::unique_ptr<devserver::server> api;
  config administrator;
};

json::value named(const std::string& name) {
  return {{"apiVersion", "v1"}, {"kind", "ConfigMap"}, {"metadata", {{"name", name}}}};
}

}  // namespace

BOOST_AUTO_TEST_CASE(watch_outlives_the_servers_certificate_and_goes_on_with_its_successor) {
  const auto& pki = tls::test::the_pki();
  http::test::host here;
  script answers(here.executor());
  const auto first = std::make_shared<feed>();
  answers.answers([first](const seen_request& from, http::response& into) {
    if (from.target.find("watch=true") == std::string::npos) {
      return reply(into, 200, list("10", {configmap("a", "10")}));
    }
    const bool begins = from.target.find("resourceVersion=10") != std::string::npos;
    const auto next = begins ? first : std::make_shared<feed>();
    if (!begins) next->push(event("MODIFIED", configmap("a", "13")));
    into.headers.add("content-type", "application/json");
    into.source = std::make_unique<fed>(next);
  });
  const auto holding = [&](const tls::key_pair& own) {
    return good(tls::material::from_text(
        {.certificate = own.certificate, .key = own.key, .ca = pki.ca.certificate_pem()}));
  };
  const short_lived own(pki.ca,
                        {.common_name = "server", .ips = {"127.0.0.1"}, .server_auth = true});
  const auto shown = tls::test::holding(own.pair, pki.ca.certificate_pem());
  const auto transport = good(tls::make_server_transport(shown));
  {
    http::test::running_server server(here, *transport, answers);
    const stopped_first order(here);
    config how;
    how.server = "https://127.0.0.1:" + std::to_string(server.address.port());
    how.ca = pki.ca.certificate_pem();
    client_of api(here, how, "watching");
    informing seen(here, *api);
    BOOST_TEST(seen.eventually_has("a", "10"));
    here.on_thread([&] { first->push(event("MODIFIED", configmap("a", "11"))); });
    BOOST_TEST(seen.eventually_has("a", "11"));
    BOOST_TEST(own.eventually_expired());
    here.on_thread([&] { first->push(event("MODIFIED", configmap("a", "12"))); });
    BOOST_TEST(seen.eventually_has("a", "12"));
    BOOST_TEST(here.metric(R"(rw_http_client_connections_total{client="watching"})") == 1);

    here.on_thread([&] { server.get().drop_connections(); });
    BOOST_TEST(seen.eventually_said("certificate has expired"));
    BOOST_TEST(seen.eventually_has("a", "12"));
    here.on_thread([&] { shown->replace(holding(pki.server)); });
    BOOST_TEST(seen.eventually_has("a", "13"));
    BOOST_TEST(here.metric(one_list) == 1);
  }
  here.stop();
}

BOOST_AUTO_TEST_CASE(watch_outlives_the_clients_certificate_and_goes_on_with_the_renewed_file) {
  embedded f;
  client_of writer(f.here, f.administrator, "writer");
  const auto create = [&](const std::string& name) {
    return f.here.call(writer->create(configmaps(), named(name)));
  };
  BOOST_TEST(create("before").has_value());

  const tls::certificate_request as_admin{
      .common_name = "admin", .organizations = {"system:masters"}, .client_auth = true};
  const tls::test::scratch dir;
  const short_lived own(f.api->ca(), as_admin);
  BOOST_REQUIRE(tls::write_files(dir.path(), "client", own.pair).has_value());
  auto how = f.administrator;
  how.token.clear();
  how.client_certificate = own.pair.certificate;
  how.client_key = own.pair.key;
  how.client_certificate_file = dir.in("client.crt");
  how.client_key_file = dir.in("client.key");
  client_of api(f.here, how, "watching");
  {
    informing seen(f.here, *api);
    BOOST_TEST(seen.eventually_has("before"));
    BOOST_TEST(own.eventually_expired());
    BOOST_TEST(create("after").has_value());
    BOOST_TEST(seen.eventually_has("after"));
    BOOST_TEST(f.here.metric(R"(rw_http_client_connections_total{client="watching"})") == 1);

    f.here.on_thread([&] { f.api->drop_connections(); });
    BOOST_TEST(seen.eventually_said("the client certificate has expired"), seen.said());
    BOOST_TEST(create("meanwhile").has_value());
    const auto renewed = good(f.api->ca().issue(as_admin));
    BOOST_REQUIRE(tls::write_files(dir.path(), "client", renewed).has_value());
    BOOST_TEST(seen.eventually_has("meanwhile"));
    BOOST_TEST(f.here.metric(one_list) == 1);
  }
}

BOOST_AUTO_TEST_SUITE_END()
