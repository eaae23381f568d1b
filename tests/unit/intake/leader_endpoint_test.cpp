#include "rw/reactors/intake/leader_endpoint.hpp"

#include "rw/k8s/objects/types.hpp"

#include <boost/test/unit_test.hpp>

#include "tests/unit/environment/environment.hpp"
#include "tests/unit/run.hpp"
#include <string>
#include <vector>

BOOST_AUTO_TEST_SUITE(leader_endpoint)

namespace json = boost::json;
using namespace rw::test;
using namespace std::chrono_literals;
namespace k8s = rw::k8s;
namespace asio = boost::asio;

namespace {

const k8s::resource_type slices{{"discovery.k8s.io", "v1", "EndpointSlice"}, "endpointslices"};
const k8s::object_key service{"kcp-system", "runtime-watcher-manager-events"};

struct test_env : environment {
  test_env() { run(context, define({}, {"kcp-system"})); }
  ~test_env() override { shut_down(); }

  /// A replica that leads, with a client of its own.
  struct replica {
    replica(test_env& in, std::string at)
        : address(std::move(at)),
          fence(in.clock),
          api(in.connect("kcp", {.name = "replica"})),
          under_test(fenced,
                     {.service = service, .address = address, .port = 8082, .interval = 20ms},
                     {in.clock, in.log, rw::core::make_random_source()}),
          tasks(in.context.get_executor()) {
      fence.open_until(rw::core::time_point::max());
    }
    asio::awaitable<void> start(test_env& in) {
      tasks.spawn(under_test.run());
      co_await in.until_on(address);
    }
    asio::awaitable<void> stop() {
      tasks.cancel();
      co_await tasks.join();
      co_await api->close();
    }

    const std::string address;
    k8s::fence fence;
    std::unique_ptr<k8s::client> api;
    k8s::client fenced = api->fenced({std::shared_ptr<void>(), &fence});
    rw::listener::leader_endpoint under_test;
    rw::core::task_group tasks;
  };

  /// Until the Service leads there.
  asio::awaitable<void> until_on(std::string address) {
    const bool led = co_await until("kcp", slices, service, [address](const json::value& slice) {
      const auto* const endpoints = k8s::find_array(slice, {"endpoints"});  // null: there are none
      return endpoints != nullptr && endpoints->size() == 1 &&
             endpoints->at(0).at("addresses") == json::array{address};
    });
    BOOST_TEST(led, address);
  }
};

}  // namespace

BOOST_AUTO_TEST_CASE(leader_makes_the_slice_that_only_it_manages) {
  test_env t;
  test_env::replica one(t, "10.1.2.3");
  run(t.context, [](test_env* t, test_env::replica* one) -> asio::awaitable<void> {
    co_await one->start(*t);
    const auto slice = required(co_await t->api("kcp").get(slices, service));
    BOOST_TEST(k8s::label(slice, "kubernetes.io/service-name") == service.name);
    BOOST_TEST(k8s::label(slice, "endpointslice.kubernetes.io/managed-by") ==
               "runtime-watcher.operator.kyma-project.io");
    BOOST_TEST(slice.at("addressType") == "IPv4");
    BOOST_TEST(slice.at("ports").at(0).at("name") == "http-events");
    BOOST_TEST(slice.at("ports").at(0).at("port") == 8082);
    co_await one->stop();
  }(&t, &one));
}

BOOST_AUTO_TEST_CASE(leader_takes_the_slice_over_and_puts_it_back) {
  test_env t;
  test_env::replica first(t, "10.1.2.3");
  test_env::replica next(t, "10.1.2.4");
  run(t.context,
      [](test_env* t, test_env::replica* first, test_env::replica* next) -> asio::awaitable<void> {
        co_await first->start(*t);
        co_await first->stop();
        co_await next->start(*t);
        co_await t->merge(slices, service, {{"endpoints", json::array()}});
        co_await t->until_on("10.1.2.4");
        co_await next->stop();
      }(&t, &first, &next));
}

BOOST_AUTO_TEST_CASE(former_leader_that_overlaps_does_not_take_the_slice_back) {
  test_env t;
  test_env::replica former(t, "10.1.2.3");
  test_env::replica next(t, "10.1.2.4");
  run(t.context,
      [](test_env* t, test_env::replica* former, test_env::replica* next) -> asio::awaitable<void> {
        co_await former->start(*t);
        former->fence.shut();  // its lease is over, and it goes on running
        co_await next->start(*t);
        // It has tried once more at least, and was held back.
        const auto held_back = [t] {
          return t->lines("events are not led to this replica yet") > 0;
        };
        const bool tried = co_await eventually(held_back);
        BOOST_TEST(tried);
        co_await t->until_on("10.1.2.4");
        co_await former->stop();
        co_await next->stop();
      }(&t, &former, &next));
}

BOOST_AUTO_TEST_CASE(slice_of_the_other_address_family_is_replaced) {
  test_env t;
  test_env::replica first(t, "10.1.2.3");
  test_env::replica next(t, "fd00::7");
  run(t.context,
      [](test_env* t, test_env::replica* first, test_env::replica* next) -> asio::awaitable<void> {
        co_await first->start(*t);
        co_await first->stop();
        co_await next->start(*t);
        const auto slice = required(co_await t->api("kcp").get(slices, service));
        BOOST_TEST(slice.at("addressType") == "IPv6");
        co_await next->stop();
      }(&t, &first, &next));
}

BOOST_AUTO_TEST_CASE(addresses_that_no_slice_may_hold_are_rejected) {
  using rw::listener::endpoint_address_error;
  for (const auto* good : {"10.1.2.3", "fd00::7", "192.0.2.1"}) {
    BOOST_TEST(endpoint_address_error(good) == "", good);
  }
  for (const auto* bad : {"", "pod-1", "10.1.2", "127.0.0.1", "0.0.0.0", "169.254.1.1", "224.0.0.1",
                          "::1", "::", "fe80::1", "ff02::1"}) {
    BOOST_TEST(endpoint_address_error(bad) != "", bad);
  }
}

BOOST_AUTO_TEST_SUITE_END()
