#include "rw/reactors/runtime_controller/permits.hpp"

#include "rw/core/metrics.hpp"

#include <boost/test/unit_test.hpp>

#include <string>

namespace rw::runtime_controller_test {
BOOST_AUTO_TEST_SUITE(permits)

namespace {

k8s::object_key key(const char* name) {
  return {"kcp-system", name};
}

/// One permit, and which keys were enqueued.
struct fixture {
  core::metrics numbers;
  std::string enqueued;
  std::string absent;
  rw::permits all{numbers, "rw_test", 1, [this](const k8s::object_key& one) {
                    enqueued += one.name;
                    return absent.find(one.name) == absent.npos;
                  }};
};

}  // namespace

BOOST_FIXTURE_TEST_CASE(permits_are_acquired_and_released, fixture) {
  {
    const auto one = all.acquire(key("a"));
    BOOST_TEST(static_cast<bool>(one));
  }
  auto one = all.acquire(key("b"));
  BOOST_TEST(static_cast<bool>(one));
  one = {};
  BOOST_TEST(static_cast<bool>(all.acquire(key("c"))));
  BOOST_TEST(enqueued.empty());
}

BOOST_FIXTURE_TEST_CASE(waiting_key_is_enqueued_in_turn_with_a_reserved_permit, fixture) {
  auto first = all.acquire(key("a"));
  for (const auto* name : {"b", "c", "b"}) BOOST_TEST(!all.acquire(key(name)));
  BOOST_TEST(all.waiting() == 2U);
  BOOST_TEST(core::expose(numbers).find("rw_test_unhealthy_waiting 2") != std::string::npos);
  first = {};
  BOOST_TEST(enqueued == "b");
  BOOST_TEST(!all.acquire(key("c")), "it is reserved for b");
  BOOST_TEST(!all.claim(key("c")));
  auto second = all.claim(key("b"));
  BOOST_TEST(static_cast<bool>(second));
  second = {};
  BOOST_TEST(enqueued == "bc");
  // It claims the permit even if it no longer needs it.
  all.claim(key("c"));
  BOOST_TEST(static_cast<bool>(all.acquire(key("d"))));
  BOOST_TEST(all.waiting() == 0U);
}

BOOST_FIXTURE_TEST_CASE(key_that_cannot_be_enqueued_loses_its_turn, fixture) {
  absent = "bc";
  auto first = all.acquire(key("a"));
  for (const auto* name : {"b", "c", "d"}) BOOST_TEST(!all.acquire(key(name)));
  first = {};
  BOOST_TEST(enqueued == "bcd");
  BOOST_TEST(static_cast<bool>(all.claim(key("d"))));
  absent = "bcd";
  first = all.acquire(key("a"));
  BOOST_TEST(!all.acquire(key("d")));
  first = {};
  BOOST_TEST(static_cast<bool>(all.acquire(key("e"))), "it is reserved for nobody");
}

BOOST_FIXTURE_TEST_CASE(request_enqueues_the_key_as_soon_as_there_is_a_permit, fixture) {
  all.request(key("a"));
  BOOST_TEST(enqueued == "a");
  all.request(key("a"));
  all.request(key("b"));
  BOOST_TEST(enqueued == "a");
  all.claim(key("a"));
  BOOST_TEST(enqueued == "ab");
  BOOST_TEST(static_cast<bool>(all.acquire(key("b"))), "a reserved one is acquired, too");
  absent = "c";
  all.request(key("c"));
  BOOST_TEST(static_cast<bool>(all.acquire(key("d"))));
}

BOOST_AUTO_TEST_SUITE_END()
}  // namespace rw::runtime_controller_test
