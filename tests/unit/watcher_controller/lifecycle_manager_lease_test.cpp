// Whether lifecycle-manager runs, by its Lease; time is given.

#include "rw/reactors/watcher_installer/lifecycle_manager_lease.hpp"

#include "rw/k8s/objects/types.hpp"

#include <boost/asio/co_spawn.hpp>
#include <boost/test/unit_test.hpp>

#include "tests/unit/environment/environment.hpp"
#include "tests/unit/manual_clock.hpp"
#include "tests/unit/run.hpp"
#include <optional>
#include <string>

namespace rw::lifecycle_manager_test {
BOOST_AUTO_TEST_SUITE(lifecycle_manager_lease)

namespace asio = boost::asio;
namespace json = boost::json;
using namespace std::chrono_literals;

namespace {

const k8s::resource_type leases{{"coordination.k8s.io", "v1", "Lease"}, "leases", true};
const k8s::object_key name{"default", "klm"};

struct world : test::environment {
  ~world() override { shut_down(); }

  /// Renewed so long ago.
  asio::awaitable<void> renew(std::string holder, std::chrono::seconds ago) {
    json::value lease = {
        {"apiVersion", "coordination.k8s.io/v1"},
        {"kind", "Lease"},
        {"metadata", {{"name", name.name}, {"namespace", name.ns}}},
        {"spec",
         {{"holderIdentity", holder}, {"renewTime", k8s::format_micro_time(time.wall() - ago)}}}};
    co_await apply(std::move(lease), leases);
  }
  /// What is found out; none: nothing within three minutes.
  asio::awaitable<std::optional<bool>> asked() {
    std::optional<bool> out;
    asio::co_spawn(context, klm.runs(), [&](std::exception_ptr, bool runs) { out = runs; });
    for (std::chrono::seconds left = 3min; !out && left > 0s;) {
      const bool waits = co_await test::eventually(
          [&] { return out || time.next_alarm() != core::time_point::max(); });
      BOOST_REQUIRE(waits);
      if (out) break;
      time.advance(15s);
      took += 15s;
      left -= 15s;
      co_await asio::post(context, asio::use_awaitable);
    }
    co_return out;
  }

  core::manual_clock time;
  core::duration took{0};
  rw::lifecycle_manager_lease klm{api("kcp"), {.lease = name}, time, log};
};

asio::awaitable<void> told(world* w) {
  auto runs = co_await w->asked();
  BOOST_TEST((runs == false), "there is no Lease");
  co_await w->renew("klm-1", 100s);
  runs = co_await w->asked();
  BOOST_TEST((runs == true));
  BOOST_TEST((w->took == 0s));
  co_await w->renew("klm-1", 48h);
  runs = co_await w->asked();
  BOOST_TEST((runs == false));
  BOOST_TEST((w->took == 0s), "from long ago");
  // The API server was down, or it was given up for a restart: it may be renewed again.
  co_await w->renew("klm-1", 1h);
  runs = co_await w->asked();
  BOOST_TEST((runs == false));
  BOOST_TEST((w->took >= 2min));
  BOOST_TEST(!w->klm.waits(), "it is known");
  // Its holder has released it.
  w->took = 0s;
  co_await w->renew("", 0s);
  runs = co_await w->asked();
  BOOST_TEST((runs == false));
  BOOST_TEST((w->took == 0s));
}

asio::awaitable<void> waits(world* w) {
  co_await w->renew("klm-1", 1h);
  const auto began = w->time.wall();
  std::optional<bool> known;
  core::task_group asking(w->context.get_executor());
  const auto ask = [](world* of, std::optional<bool>* into) -> asio::awaitable<void> {
    *into = co_await of->klm.runs();
  };
  asking.spawn(ask(w, &known));
  const bool waiting = co_await test::eventually([w] { return w->klm.waits().has_value(); });
  BOOST_REQUIRE(waiting);
  const auto& wait = *w->klm.waits();
  BOOST_TEST(wait.reason == "LeaseNotAbandoned");
  BOOST_TEST((wait.since == began));
  BOOST_TEST(wait.message.find("before " + k8s::format_time(began + 2min)) != std::string::npos,
             wait.message);
  asking.cancel();
  co_await asking.join();
}

}  // namespace

BOOST_AUTO_TEST_CASE(lease_that_nobody_renews_is_looked_at_before_it_counts_as_given_up) {
  world w;
  test::run(w.context, told(&w));
}

BOOST_AUTO_TEST_CASE(wait_for_a_lease_is_explained_with_its_end) {
  world w;
  test::run(w.context, waits(&w));
}

BOOST_AUTO_TEST_SUITE_END()
}  // namespace rw::lifecycle_manager_test
