// Roll-outs across a calendar that is set back.

#include "rw/k8s/objects/types.hpp"
#include "rw/reactors/runtime_rollout/resource.hpp"
#include "rw/reactors/shared/kyma_resources.hpp"

#include <boost/json/serialize.hpp>
#include <boost/test/unit_test.hpp>

#include "tests/unit/bootstrapper/samples.hpp"
#include "tests/unit/runtime_config/land.hpp"
#include <chrono>
#include <string>
#include <string_view>

namespace rw::runtime_config_test {
BOOST_AUTO_TEST_SUITE(calendar)

using namespace std::chrono_literals;

namespace {

/// A control plane with two runtimes, of which one is the canary.
struct two_runtimes : land {
  explicit two_runtimes(std::chrono::seconds soak = 10s) : land(1) {
    settings.rollout.canaries = "1";
    settings.rollout.soak = soak;
    for (const auto* name : {"r1", "r2"}) add_runtime(name);
    begin(bootstrapper_mode::direct);
    go_on(soak + 1min);
    BOOST_TEST(status("phase") == "Completed");
  }
  ~two_runtimes() override { end(); }
  two_runtimes(const two_runtimes&) = delete;
  two_runtimes& operator=(const two_runtimes&) = delete;

  void roll_out() {
    ++now.manifests;
    put(&versions::manifests);
  }
  /// Pods start, or crash, some seconds after each change.
  void go_on(std::chrono::seconds time) {
    for (auto left = time; left > 0s; left -= 5s) {
      pass(5s);
      for (const auto* name : {"r1", "r2"}) run_pods(name);
    }
  }
  /// A field of the roll-out's.
  std::string status(std::string_view field) {
    const auto got = ok(api("kcp").get(runtime_rollout::runtime_rollouts_type(),
                                       {std::string(kcp_namespace), "bootstrapper"}));
    const auto* const found = k8s::find(got, {"status", field});
    if (found == nullptr) return {};
    return found->is_string() ? std::string(found->get_string()) : json::serialize(*found);
  }
};

struct long_bake : two_runtimes {
  long_bake() : two_runtimes(10min) {}
};

}  // namespace

/// The status has when it began to crash, which is in the future.
BOOST_FIXTURE_TEST_CASE(canary_that_crashed_has_its_time_with_new_content_after_the_clock_goes_back,
                        two_runtimes) {
  bad.insert(now.manifests + 1);
  roll_out();
  go_on(30s);
  step_wall(-1h);
  go_on(6min);
  BOOST_TEST(status("phase") == "Paused");
  roll_out();
  pass(3s);
  BOOST_TEST(status("phase") == "Canary");
  go_on(1min);
  BOOST_TEST(status("phase") == "Completed");
}

/// The status has when it got the content, which is in the future.
BOOST_FIXTURE_TEST_CASE(runtime_that_restarts_is_not_set_aside_at_once_after_the_clock_goes_back,
                        long_bake) {
  roll_out();
  go_on(1min);
  step_wall(-1h);
  // Any change lets the roll-out be decided again.
  finish(merge(runtime_rollout::runtime_rollouts_type(),
               {std::string(kcp_namespace), "bootstrapper"},
               {{"metadata", {{"labels", {{"seen", "yes"}}}}}}));
  go_on(6min);
  BOOST_TEST(status("phase") == "Canary");
  for (const auto* name : {"r1", "r2"}) {
    const auto patched = call(api(name).patch(
        test::deployments, bootstrapper_test::deployment_key, k8s::patch_type::merge,
        {{"status", {{"readyReplicas", 0}}}}, {.subresource = "status"}));
    BOOST_REQUIRE(patched.has_value());
  }
  pass(1min);
  BOOST_TEST(status("phase") == "Canary");
  BOOST_TEST(status("aside") == "0");
}

BOOST_AUTO_TEST_SUITE_END()
}  // namespace rw::runtime_config_test
