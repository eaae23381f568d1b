// What a client's calls and watches have to do with connections: how many there are, what becomes
// of those that end, and what may be sent again.

#include "rw/k8s/cache/informer.hpp"
#include "rw/k8s/client/call.hpp"
#include "rw/k8s/client/client.hpp"
#include "rw/k8s/config/kubeconfig.hpp"
#include "rw/k8s/devserver/server.hpp"

#include <boost/asio/bind_cancellation_slot.hpp>
#include <boost/asio/cancellation_signal.hpp>
#include <boost/asio/co_spawn.hpp>
#include <boost/json/parse.hpp>
#include <boost/test/unit_test.hpp>

#include "tests/unit/http/frames.hpp"
#include "tests/unit/k8s/samples.hpp"
#include "tests/unit/k8s/scripted_server.hpp"
#include <atomic>
#include <cstdlib>
#include <future>
#include <memory>
#include <string>
#include <utility>
#include <vector>

BOOST_AUTO_TEST_SUITE(connections)

using namespace rw::k8s;
using namespace rw::k8s::test;
namespace asio = boost::asio;
namespace http = rw::http;
namespace core = rw::core;
using http::test::eventually;
using std::chrono::milliseconds;

namespace {

constexpr std::string_view config_map = R"({"kind":"ConfigMap","metadata":{"name":"a"}})";

/// Gives its text, and no end.
class open_end final : public http::body_source {
 public:
  state read(std::string& into, std::size_t) override {
    if (std::exchange(given_, true)) return state::pending;
    into += "{}\n";
    return state::more;
  }
  void on_ready(std::function<void()>) override {}

 private:
  bool given_ = false;
};

struct counting_sink final : watch_sink {
  bool take(std::string_view) override {
    ++pieces;
    return true;
  }
  int pieces = 0;
};

void watches_or_object(const seen_request& from, http::response& into) {
  if (from.target.find("watch=true") != std::string::npos) {
    into.source = std::make_unique<open_end>();
  } else {
    reply(into, 200, std::string(config_map));
  }
}

/// A transport of a server, which notes what clients send first.
class listening_transport final : public core::transport {
 public:
  std::unique_ptr<core::stream> wrap(asio::ip::tcp::socket socket) override {
    return std::make_unique<noting_stream>(inner_->wrap(std::move(socket)), first);
  }

  std::string first;

 private:
  class noting_stream final : public core::stream {
   public:
    noting_stream(std::unique_ptr<core::stream> inner, std::string& first)
        : inner_(std::move(inner)), first_(first) {}
    asio::ip::tcp::socket& socket() noexcept override { return inner_->socket(); }
    core::io_result handshake() override { return inner_->handshake(); }
    core::io_result read(std::span<char> into) override {
      const auto got = inner_->read(into);
      if (first_.size() < 1024) first_.append(into.data(), got.bytes);
      return got;
    }
    core::io_result write(std::span<const char> from) override { return inner_->write(from); }
    core::io_result shutdown() override { return inner_->shutdown(); }
    std::string_view protocol() const noexcept override { return inner_->protocol(); }
    bool encrypted() const noexcept override { return inner_->encrypted(); }
    std::string_view peer_certificate() const noexcept override {
      return inner_->peer_certificate();
    }

   private:
    std::unique_ptr<core::stream> inner_;
    std::string& first_;
  };

  std::unique_ptr<core::transport> inner_ = server_transport(protocol::h2);
};

boost::json::value object() {
  return boost::json::parse(R"({"kind":"ConfigMap","metadata":{"name":"a","namespace":"team"}})");
}

}  // namespace

BOOST_AUTO_TEST_CASE(client_feeds_a_thousand_watches_and_still_answers_requests) {
  for (const auto& [which, number] :
       {std::pair{protocol::h2, std::size_t{1000}}, std::pair{protocol::http1, std::size_t{200}}}) {
    api_fixture f(which);
    auto options = api_fixture::quick();
    options.connections = 2;
    auto& api = f.use(f.config(), options);
    f.script.answers(watches_or_object);
    std::vector<counting_sink> sinks(number);
    std::vector<std::future<result<void>>> watches;
    for (auto& sink : sinks) {
      watches.push_back(asio::co_spawn(f.here.context, watch_to_end(api, config_maps, {}, {}, sink),
                                       asio::use_future));
    }
    BOOST_TEST(eventually([&] {
      std::size_t fed = 0;
      f.here.on_thread([&] {
        for (const auto& sink : sinks) fed += sink.pieces > 0 ? 1 : 0;
      });
      return fed == number;
    }));
    for (int i = 0; i < 10; ++i)
      BOOST_TEST(f.call(api.get(config_maps, {"team", "a"})).has_value());
    const auto open = f.metric("rw_http_client_open_connections{client=\"test\"}");
    BOOST_TEST(open <= (which == protocol::h2 ? 8 : 202));
    f.close();
    std::size_t shut_down = 0;
    for (auto& watch : watches) shut_down += watch.get().error().is(errc::shut_down) ? 1 : 0;
    BOOST_TEST(shut_down == number);
  }
}

// Of thousands of API servers, each of which names another request and the time in each answer.
BOOST_AUTO_TEST_CASE(client_keeps_no_fields_of_what_an_api_server_answered) {
  api_fixture f;
  listening_transport transport;
  http::test::running_server server(f.here, transport, f.script);
  auto config = f.config();
  config.server = "https://127.0.0.1:" + std::to_string(server.address.port());
  auto& api = f.use(std::move(config));
  for (int i = 0; i < 3; ++i) BOOST_TEST(f.call(api.get(config_maps, {"team", "a"})).has_value());
  f.close();
  f.here.stop();  // its tasks refer to the server and the transport
  BOOST_TEST(http::test::header_table_of(transport.first) == 0u);
}

BOOST_AUTO_TEST_CASE(write_is_not_repeated_after_its_connection_broke) {
  for (const auto which : {protocol::h2, protocol::http1}) {
    api_fixture f(which);
    auto& api = f.api();
    f.script.answers([](const seen_request& from, http::response& into) {
      reply(into, from.method == "GET" ? 200 : 0, std::string(config_map));
    });
    const auto sent = [&](auto call) {
      BOOST_TEST(f.call(api.get(config_maps, {"team", "a"})).has_value());  // a kept connection
      const auto before = f.script.count();
      const auto got = f.call(std::move(call));
      BOOST_TEST(got.has_error());
      BOOST_TEST(got.error().is(errc::unreachable), got.error().message);
      BOOST_TEST(f.script.count() == before + 1);
    };
    sent(api.create(config_maps, object()));
    sent(api.update(config_maps, object()));
    sent(api.patch(config_maps, {"team", "a"}, patch_type::merge, object()));
    sent(api.apply(config_maps, object()));
    sent(api.remove(config_maps, {"team", "a"}));
    sent(api.raw("POST", "/x", "text/plain", "y"));
  }
}

BOOST_AUTO_TEST_CASE(read_is_repeated_when_its_kept_connection_closes) {
  for (const auto which : {protocol::h2, protocol::http1}) {
    api_fixture f(which);
    auto& api = f.api();
    const script::answer good = [](const seen_request&, http::response& into) {
      reply(into, 200, std::string(config_map));
    };
    const script::answer none = [](const seen_request&, http::response& into) { into.status = 0; };
    f.script.answers_in_turn({good, none, none, good});
    BOOST_TEST(f.call(api.get(config_maps, {"team", "a"})).has_value());
    BOOST_TEST(f.call(api.get(config_maps, {"team", "a"})).has_value());
    BOOST_TEST(f.script.count() == 4u);
  }
}

BOOST_AUTO_TEST_CASE(call_that_is_cancelled_while_it_waits_for_a_connection_is_not_counted) {
  api_fixture f(protocol::http1);
  auto options = api_fixture::quick();
  options.connections = 1;
  auto& api = f.use(f.config(), options);
  f.script.answers({});
  auto first =
      asio::co_spawn(f.here.context, api.get(config_maps, {"team", "a"}), asio::use_future);
  BOOST_TEST(eventually([&] { return f.script.count() == 1; }));
  asio::cancellation_signal stop;
  auto waiting = asio::co_spawn(f.here.context, api.get(config_maps, {"team", "b"}),
                                asio::bind_cancellation_slot(stop.slot(), asio::use_future));
  f.here.on_thread([] {});
  f.here.on_thread([&] { stop.emit(asio::cancellation_type::terminal); });
  BOOST_CHECK_THROW(waiting.get(), boost::system::system_error);
  const std::string series = "rw_kube_requests_total{client=\"test\",code=\"unreachable\",";
  BOOST_TEST(f.metric(series + "verb=\"get\"}") == -1);
  f.close();
  BOOST_TEST(first.get().has_error());
}

BOOST_AUTO_TEST_CASE(call_ends_by_its_deadline_over_all_attempts) {
  for (const bool own : {false, true}) {
    api_fixture f;
    auto options = api_fixture::quick();
    options.retries = 1'000'000;
    options.retry_base = milliseconds(20);
    options.retry_limit = milliseconds(40);
    if (!own) options.deadline = milliseconds(300);
    auto& api = f.use(f.config(), options);
    const auto bounds = own ? call_options{.deadline = milliseconds(300)} : call_options{};
    for (const bool answers : {true, false}) {
      if (answers) {
        f.script.answers(503, "not now");
      } else {
        f.script.answers({});
      }
      const auto began = std::chrono::steady_clock::now();
      const auto got = f.call(api.get(config_maps, {"team", "a"}, false, bounds));
      const auto took = std::chrono::steady_clock::now() - began;
      BOOST_REQUIRE(got.has_error());
      // The deadline strikes in a pause, after an answer, or in the midst of a further attempt.
      const bool answered = answers && got.error().is(errc::unavailable);
      BOOST_TEST((answered || got.error().is(errc::timed_out)), got.error().message);
      BOOST_TEST((took < std::chrono::seconds(10)));
      if (answers) BOOST_TEST(f.script.count() > 2u);
    }
  }
}

BOOST_AUTO_TEST_CASE(watch_over_http1_on_which_nothing_comes_is_broken) {
  api_fixture f(protocol::http1);
  auto options = api_fixture::quick();
  options.watch_silence = milliseconds(100);
  auto& api = f.use(f.config(), options);
  f.script.answers(watches_or_object);
  counting_sink sink;
  const auto ended = f.call(watch_to_end(api, config_maps, {}, {}, sink));
  BOOST_REQUIRE(ended.has_error());
  BOOST_TEST(ended.error().is(errc::timed_out));
  BOOST_TEST(sink.pieces == 1);
}

BOOST_AUTO_TEST_CASE(watch_may_outlast_its_own_timeout_by_five_seconds) {
  counting_sink sink;
  const auto asked = watch_call(config_maps, {}, {.timeout = std::chrono::seconds(60)}, sink);
  BOOST_TEST((asked.limit == std::chrono::seconds(65)));
}

BOOST_AUTO_TEST_CASE(watch_without_response_ends_at_the_limit_of_an_attempt) {
  for (const auto which : {protocol::h2, protocol::http1}) {
    api_fixture f(which);
    auto options = api_fixture::quick();
    options.request = milliseconds(100);
    auto& api = f.use(f.config(), options);
    f.script.answers({});
    counting_sink sink;
    const auto ended = f.call(watch_to_end(api, config_maps, {}, {}, sink));
    BOOST_REQUIRE(ended.has_error());
    BOOST_TEST(ended.error().is(errc::timed_out));
  }
}

BOOST_AUTO_TEST_CASE(callers_with_a_backoff_of_their_own_get_one_attempt) {
  api_fixture f;
  auto& api = f.api();
  f.script.answers([](const seen_request&, http::response& into) {
    into.headers.add("retry-after", "0");
    reply(into, 503, "not now");
  });
  counting_sink sink;
  BOOST_TEST(f.call(watch_to_end(api, config_maps, {}, {}, sink)).has_error());
  BOOST_TEST(f.script.count() == 1u);
  const auto source = source_of(api);
  BOOST_TEST(f.call(source->list_text(config_maps, {}, {})).has_error());
  BOOST_TEST(f.script.count() == 2u);
  BOOST_TEST(f.call(source->server_version()).has_error());
  BOOST_TEST(f.script.count() == 3u);
}

BOOST_AUTO_TEST_CASE(warnings_of_the_server_are_logged_once_for_each_text) {
  api_fixture f;
  std::atomic<int> warned = 0;
  core::logger log{core::log_level::info, [&](std::string_view line) {
                     if (line.find("is deprecated") != std::string_view::npos) ++warned;
                   }};
  f.script.answers([](const seen_request& from, http::response& into) {
    into.headers.add("warning", "299 - \"v1beta1 " + from.target + " is deprecated\"");
    reply(into, 200, std::string(config_map));
  });
  std::unique_ptr<rw::k8s::client> api;
  f.here.on_thread([&] {
    api = std::make_unique<rw::k8s::client>(
        f.here.executor(), f.config(), api_fixture::quick(),
        client_environment{f.here.clock, f.here.watchdog, log, f.here.metrics});
  });
  for (int i = 0; i < 3; ++i) BOOST_TEST(f.call(api->get(config_maps, {"team", "a"})).has_value());
  BOOST_TEST(warned == 1);
  BOOST_TEST(f.call(api->get(config_maps, {"team", "b"})).has_value());
  BOOST_TEST(warned == 2);
  f.call(api->close());
  f.here.on_thread([&] { api.reset(); });
}

BOOST_AUTO_TEST_CASE(causes_of_a_status_are_kept) {
  api_fixture f;
  f.script.answers(422,
                   status_text(422, "Invalid", "m",
                               R"(,"details":{"causes":[{"reason":"FieldValueInvalid",)"
                               R"("message":"must be positive","field":"spec.replicas"},7]})"));
  const auto got = f.call(f.api().update(config_maps, object()));
  BOOST_REQUIRE(got.has_error());
  BOOST_REQUIRE(got.error().causes.size() == 1u);
  BOOST_TEST(got.error().causes[0].reason == "FieldValueInvalid");
  BOOST_TEST(got.error().causes[0].message == "must be positive");
  BOOST_TEST(got.error().causes[0].field == "spec.replicas");
}

namespace {

/// An embedded API server that says goodbye on every 20th answer, watches of one client, and calls.
struct restless_server {
  restless_server() {
    here.on_thread([&] {
      server = std::make_unique<devserver::server>(
          here.executor(), devserver::server_options{},
          devserver::server_environment{here.clock, here.watchdog, here.log, here.metrics});
      server->add_cluster("kcp");
      server->faults("kcp").decide = [this](const std::string&, const std::string&) {
        return devserver::fault{.last = ++requests % 20 == 0};
      };
      api = std::make_unique<rw::k8s::client>(
          here.executor(), *parse_kubeconfig(server->kubeconfig("kcp"), "kcp", ""),
          client_options{.name = "test", .user_agent = "test", .field_manager = "test"},
          client_environment{here.clock, here.watchdog, here.log, here.metrics});
      tasks.spawn(server->run());
      for (int i = 0; i < 30; ++i) {
        informers.push_back(std::make_unique<informer>(
            *api, configmaps(), informer_options{.watch_timeout = std::chrono::seconds(60)},
            informer_environment{here.clock, here.log, here.metrics, core::make_random_source()}));
        tasks.spawn(informers.back()->run());
      }
    });
  }
  ~restless_server() {
    here.call(api->close());
    tasks.cancel();
    here.call(tasks.join());
    here.on_thread([&] {
      informers.clear();
      api.reset();
      server.reset();
    });
    here.stop();
  }

  /// 50 calls a second, of each kind.
  asio::awaitable<void> calls(core::duration length) {
    const auto end = here.clock.now() + length;
    const auto timer = here.clock.make_timer(here.executor());
    auto next = here.clock.now();
    for (int i = 0; next < end; ++i) {
      tasks.spawn(call(i));
      next += milliseconds(20);
      timer->expires_at(next);
      co_await timer->wait();
    }
  }

  asio::awaitable<void> call(int i) {
    ++under_way;
    boost::json::value map = {{"apiVersion", "v1"}, {"kind", "ConfigMap"}};
    map.as_object()["metadata"] = {{"name", "m" + std::to_string(i % 10)},
                                   {"namespace", "default"}};
    map.as_object()["data"] = {{"i", std::to_string(i)}};
    std::string failed;
    if (i % 3 == 0) {
      auto got = co_await api->apply(config_maps, map, {.field_manager = "test", .force = true});
      if (got) written = std::string(got->at("metadata").at("resourceVersion").as_string());
      if (!got) failed = got.error().message;
    } else if (i % 3 == 1) {
      auto got = co_await api->list(config_maps, {.ns = "default"});
      if (!got) failed = got.error().message;
    } else {
      auto got = co_await api->get(namespaces, {"", "default"});
      if (!got) failed = got.error().message;
    }
    if (!failed.empty()) failures += failed + "; ";
    --under_way;
  }

  /// True if each store has what was written last.
  bool level() {
    bool all = true;
    here.on_thread([&] {
      for (const auto& each : informers) {
        bool has = false;
        each->objects().for_each(
            [&](const rw::k8s::object& one) { has = has || one.resource_version() == written; });
        all = all && has;
      }
    });
    return all;
  }

  double ended(const std::string& how) const {
    return here.metric("rw_informer_watches_total{end=\"" + how + "\",resource=\"configmaps\"}");
  }

  http::test::host here;
  std::unique_ptr<devserver::server> server;
  std::unique_ptr<rw::k8s::client> api;
  std::vector<std::unique_ptr<informer>> informers;
  core::task_group tasks{here.executor()};
  int requests = 0;
  int under_way = 0;
  std::string failures;
  std::string written;
};

}  // namespace

BOOST_AUTO_TEST_CASE(calls_and_watches_survive_a_server_that_says_goodbye_at_every_20th_request) {
  // As long as RW_GOODBYE_SECONDS says; 60 where time is no object.
  const auto* const text = std::getenv("RW_GOODBYE_SECONDS");
  const auto length = std::chrono::seconds(text != nullptr ? std::atoi(text) : 5);
  restless_server f;
  BOOST_TEST(eventually(
      [&] { return f.here.metric(R"(rw_informer_lists_total{resource="configmaps"})") == 30; }));
  auto done = asio::co_spawn(f.here.context, f.calls(length), asio::use_future);
  done.get();
  BOOST_TEST(eventually([&] {
    bool none = false;
    f.here.on_thread([&] { none = f.under_way == 0; });
    return none;
  }));
  BOOST_TEST(f.failures == "");
  BOOST_TEST(eventually([&] { return f.level(); }));
  // No watch broke off, and none began again with a list.
  BOOST_TEST(f.here.metric(R"(rw_informer_lists_total{resource="configmaps"})") == 30);
  for (const auto* how : {"broken", "refused", "expired", "silent"}) BOOST_TEST(f.ended(how) <= 0);
  const auto opened = f.here.metric("rw_http_client_connections_total{client=\"test\"}");
  BOOST_TEST(opened >= static_cast<double>(length.count()) * 50 / 20);
}

BOOST_AUTO_TEST_SUITE_END()
