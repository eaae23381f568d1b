// A controller that is made and does not run yet, as on a replica that does not lead.

#include "rw/core/watchdog.hpp"
#include "rw/k8s/controller/controller.hpp"

#include <boost/test/unit_test.hpp>

#include "tests/unit/k8s/scripted_source.hpp"
#include <set>
#include <string>
#include <vector>

BOOST_AUTO_TEST_SUITE(controller_waiting)

namespace asio = boost::asio;
using namespace rw;
using namespace rw::k8s::test;

namespace {

class noting final : public k8s::reconciler {
 public:
  asio::awaitable<k8s::reconcile_result> reconcile(k8s::object_key key) override {
    names.insert(key.name);
    co_return k8s::reconcile_result::done();
  }

  std::set<std::string> names;
};

struct fixture : informer_world {
  asio::awaitable<void> waits_and_runs() {
    controller.watch(*under_test);
    std::vector<std::string> objects;
    for (int i = 0; i < 100; ++i) objects.push_back(configmap("c" + std::to_string(i), "1"));
    co_await expect("list 500");
    source->answer(list("10", objects));
    co_await expect("watch 10");
    BOOST_TEST(metric("rw_informer_pending_deltas") == 0);

    core::task_group leading(context.get_executor());
    leading.spawn(controller.run());
    const bool all = co_await test::eventually([this] { return target.names.size() == 100; });
    BOOST_TEST(all);
    source->send(event("ADDED", configmap("late", "11")));
    const bool late = co_await test::eventually([this] { return target.names.contains("late"); });
    BOOST_TEST(late);
    leading.cancel();
    co_await leading.join();
  }

  noting target;
  core::watchdog watchdog{clock, context.get_executor()};
  k8s::controller controller{context.get_executor(),
                             {.name = "waiting"},
                             target,
                             {clock, watchdog, log, metrics, [] { return std::uint64_t{0}; }}};
};

}  // namespace

BOOST_FIXTURE_TEST_CASE(waiting_controller_holds_no_changes_and_finds_all_objects_when_it_runs,
                        fixture) {
  run([this] { return waits_and_runs(); });
}

BOOST_AUTO_TEST_SUITE_END()
