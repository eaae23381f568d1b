#include "rw/reactors/runtime_controller/runtimes.hpp"

#include "rw/core/metrics.hpp"

#include <boost/test/unit_test.hpp>

#include <chrono>
#include <string>

namespace rw::runtime_controller_test {
BOOST_AUTO_TEST_SUITE(runtimes)

namespace {

using enum status_reason;

const k8s::object_key a{"kcp-system", "a"};
const k8s::object_key b{"kcp-system", "b"};

}  // namespace

BOOST_AUTO_TEST_CASE(state_is_reported_when_it_or_its_reason_changes) {
  core::metrics numbers;
  rw::runtimes all(numbers, "rw_test", "watcher");
  BOOST_TEST(all.set(a, {runtime_state::failed, contested}, false));
  BOOST_TEST(!all.set(a, {runtime_state::failed, contested}, true));
  BOOST_TEST(all.set(a, {runtime_state::failed, write_rejected}, false));
  // Of the same reason, but not the same.
  BOOST_TEST(all.set(a, {runtime_state::failed, write_rejected, "m", "cause"}, false));
  BOOST_TEST(!all.set(a, {runtime_state::failed, write_rejected, "other m", "cause"}, false));
  BOOST_TEST(all.find(a)->message == "other m");
  BOOST_TEST(all.set(a, {runtime_state::installed}, false));
  BOOST_TEST(!all.set(a, {runtime_state::installed}, true));
}

BOOST_AUTO_TEST_CASE(installation_before_this_process_began_is_not_reported) {
  core::metrics numbers;
  rw::runtimes all(numbers, "rw_test", "watcher");
  BOOST_TEST(!all.set(a, {runtime_state::installed}, false));
  BOOST_TEST(all.set(b, {runtime_state::installed}, true));
}

BOOST_AUTO_TEST_CASE(unhealthy_runtimes_have_turns_that_grow_with_their_number) {
  using namespace std::chrono_literals;
  core::metrics numbers;
  rw::runtimes all(numbers, "rw_test", "watcher");
  BOOST_TEST((all.turn(8, 10min) == 0s));
  for (int i = 0; i < 4000; ++i) {
    all.set_unhealthy({"kcp-system", "kyma-" + std::to_string(i)}, "refused");
  }
  BOOST_TEST((all.turn(8, 10min) == 500s));
  BOOST_TEST((all.turn(2, 10min) == 10min));
  BOOST_TEST((all.turn(0, 10min) == 10min));
  for (int i = 4; i < 4000; ++i) all.set_healthy({"kcp-system", "kyma-" + std::to_string(i)});
  BOOST_TEST((all.turn(8, 10min) == 500ms));
}

BOOST_AUTO_TEST_CASE(inspections_of_starting_pods_are_counted_until_they_run) {
  core::metrics numbers;
  rw::runtimes all(numbers, "rw_test", "watcher");
  BOOST_TEST(all.inspected(a, true) == 0U);
  BOOST_TEST(all.inspected(a, true) == 1U);
  BOOST_TEST(all.inspected(b, true) == 0U);
  BOOST_TEST(all.inspected(a, false) == 2U);
  BOOST_TEST(all.inspected(a, true) == 0U);
}

BOOST_AUTO_TEST_CASE(reason_why_no_pod_began_is_over_when_one_does) {
  for (const auto reason : {failed_create, progress_deadline_exceeded, unschedulable}) {
    core::metrics numbers;
    rw::runtimes all(numbers, "rw_test", "watcher");
    all.set(a, {runtime_state::not_ready, reason}, false);
    BOOST_TEST(!all.set(a, {runtime_state::not_ready, container_creating}, false));
    BOOST_TEST(all.find(a)->reason == container_creating);
  }
}

BOOST_AUTO_TEST_CASE(pod_that_crashes_again_and_again_is_reported_once) {
  core::metrics numbers;
  rw::runtimes all(numbers, "rw_test", "watcher");
  BOOST_TEST(all.set(a, {runtime_state::not_ready, no_pods}, true));
  BOOST_TEST(!all.set(a, {runtime_state::not_ready, container_creating}, false));
  BOOST_TEST(all.find(a)->reason == container_creating);
  BOOST_TEST(all.set(a, {runtime_state::not_ready, crash_loop_back_off}, false));
  BOOST_TEST(!all.set(a, {runtime_state::not_ready, pod_not_ready}, false));
  BOOST_TEST(all.find(a)->reason == crash_loop_back_off);
  BOOST_TEST(!all.set(a, {runtime_state::not_ready, crash_loop_back_off}, false));
  BOOST_TEST(all.set(a, {runtime_state::installed}, false));
  BOOST_TEST(all.set(a, {runtime_state::not_ready, pod_not_ready}, false));
}

BOOST_AUTO_TEST_CASE(runtimes_are_counted_by_state) {
  core::metrics numbers;
  rw::runtimes all(numbers, "rw_test", "watcher");
  all.set(a, {runtime_state::installed}, true);
  all.set(b, {runtime_state::not_ready, crash_loop_back_off}, true);
  BOOST_TEST(all.count(runtime_state::installed) == 1U);
  BOOST_TEST(core::expose(numbers).find("rw_test_runtimes{state=\"not_ready\"} 1") !=
             std::string::npos);
  all.set(b, {runtime_state::installed}, true);
  BOOST_TEST(all.count(runtime_state::installed) == 2U);
  all.forget(a);
  all.forget(a);
  BOOST_TEST(all.count(runtime_state::installed) == 1U);
}

BOOST_AUTO_TEST_CASE(unhealthy_runtime_has_an_error_until_it_is_healthy) {
  core::metrics numbers;
  rw::runtimes all(numbers, "rw_test", "watcher");
  all.set_unhealthy(a, "refused");
  BOOST_TEST(all.unhealthy(a));
  BOOST_TEST(!all.unhealthy(b));
  BOOST_TEST(all.error(a) == "refused");
  all.set_healthy(a);
  BOOST_TEST(!all.unhealthy(a));
}

BOOST_AUTO_TEST_CASE(probe_timeout_doubles_until_the_runtime_responds) {
  core::metrics numbers;
  rw::runtimes all(numbers, "rw_test", "watcher");
  const auto timeout = [&] {
    return all.probe_timeout(a, std::chrono::seconds(3), std::chrono::seconds(10));
  };
  for (const int expected : {3, 6, 10, 10}) {
    all.set_unhealthy(a, "silent");
    BOOST_TEST((timeout() == std::chrono::seconds(expected)));
  }
  all.set_healthy(a);
  all.set_unhealthy(a, "silent");
  BOOST_TEST((timeout() == std::chrono::seconds(3)));
}

BOOST_AUTO_TEST_SUITE_END()
}  // namespace rw::runtime_controller_test
