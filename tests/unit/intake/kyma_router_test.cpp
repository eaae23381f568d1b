#include "rw/reactors/intake/kyma_router.hpp"

#include <boost/test/unit_test.hpp>

#include "tests/unit/k8s/scripted_source.hpp"
#include <string>
#include <vector>

BOOST_AUTO_TEST_SUITE(kyma_router)

namespace asio = boost::asio;
namespace core = rw::core;
using namespace rw::k8s::test;
using namespace rw::kyma_router;
using namespace std::chrono_literals;

namespace {

std::string kyma(const std::string& name, const std::string& version, const std::string& runtime) {
  return R"({"kind":"ConfigMap","apiVersion":"v1","metadata":{"name":")" + name +
         R"(","namespace":"kcp-system","uid":"u-)" + name + R"(","resourceVersion":")" + version +
         R"(","labels":{"kyma-project.io/runtime-id":")" + runtime + R"("}}})";
}

/// Kymas behind an informer, and a router. What they are of is no matter to it.
class routed_world : public informer_world {
 public:
  void begin(std::function<asio::awaitable<void>(router&)> body) {
    run([this, body = std::move(body)] { return with_router(body); });
  }

  double events(const std::string& outcome) const {
    const auto text = core::expose(metrics);
    const auto line = "\nrw_kyma_router_events_total{outcome=\"" + outcome + "\"} ";
    const auto at = text.find(line);
    return at == std::string::npos ? -1 : std::stod(text.substr(at + line.size()));
  }

  std::vector<std::string> kymas{kyma("a", "1", "runtime-a"), kyma("b", "2", "runtime-b")};
  std::string led;  ///< to whom, such as "a b "

 private:
  asio::awaitable<void> with_router(std::function<asio::awaitable<void>(router&)> body) {
    index_by_runtime(*under_test);
    router tested(*under_test,
                  [this](const rw::k8s::object_key& to, core::duration after) {
                    led += to.name + " ";
                    if (after > 0ns) led += "in " + std::to_string(after / 1ms) + " ms ";
                  },
                  {}, {clock, log, metrics});
    co_await expect("list 500");
    source->answer(list("10", kymas));
    co_await expect("watch 10");
    co_await body(tested);
  }
};

}  // namespace

BOOST_AUTO_TEST_CASE(event_is_led_to_the_kyma_with_its_runtime_id) {
  routed_world w;
  w.begin([&](router& tested) -> asio::awaitable<void> {
    tested.on_event("runtime-b");
    tested.on_event("runtime-a");
    BOOST_TEST(w.led == "b a ");
    BOOST_TEST(w.events("routed") == 2);
    co_return;
  });
}

/// What is remembered of one is not forgotten for the others.
BOOST_AUTO_TEST_CASE(kyma_is_requeued_with_a_delay_in_a_fleet_of_25000) {
  routed_world w;
  constexpr int fleet = 25'000;
  const auto runtime = [](int number) { return "runtime-" + std::to_string(number); };
  w.kymas.clear();
  for (int i = 0; i < fleet; ++i) w.kymas.push_back(kyma(runtime(i), "1", runtime(i)));
  w.begin([&](router& tested) -> asio::awaitable<void> {
    for (int round = 0; round < 2; ++round) {
      for (int i = 0; i < fleet; ++i) tested.on_event(runtime(i));
    }
    BOOST_TEST(w.events("routed") == fleet);
    BOOST_TEST(w.events("held") == fleet);
    co_return;
  });
}

BOOST_AUTO_TEST_CASE(kyma_is_requeued_with_a_delay_when_its_runtime_changes_without_end) {
  routed_world w;
  w.begin([&](router& tested) -> asio::awaitable<void> {
    tested.on_event("runtime-a");
    tested.on_event("runtime-b");
    w.clock.advance(400ms);
    tested.on_event("runtime-a");
    BOOST_TEST(w.led == "a b a in 600 ms ");
    BOOST_TEST(w.events("routed") == 2);
    BOOST_TEST(w.events("held") == 1);
    w.led.clear();
    w.clock.advance(600ms);
    tested.on_event("runtime-a");
    tested.on_event("runtime-a");
    BOOST_TEST(w.led == "a a in 1000 ms ");
    co_return;
  });
}

BOOST_AUTO_TEST_CASE(event_of_an_unknown_runtime_is_counted_and_logged) {
  routed_world w;
  w.begin([&](router& tested) -> asio::awaitable<void> {
    tested.on_event("runtime-c");
    BOOST_TEST(w.led == "");
    BOOST_TEST(w.events("unknown") == 1);
    BOOST_TEST(w.log_text.find("\"runtimeId\":\"runtime-c\"") != std::string::npos);
    co_return;
  });
}

BOOST_AUTO_TEST_CASE(kyma_is_found_by_the_runtime_id_that_it_has_now) {
  routed_world w;
  w.begin([&](router& tested) -> asio::awaitable<void> {
    BOOST_TEST(w.source->send(event("MODIFIED", kyma("a", "11", "runtime-new"))));
    co_await w.turns();
    tested.on_event("runtime-new");
    BOOST_TEST(w.led == "a ");
    tested.on_event("runtime-a");
    BOOST_TEST(w.led == "a ");
    BOOST_TEST(w.events("unknown") == 1);
  });
}

BOOST_AUTO_TEST_SUITE_END()
