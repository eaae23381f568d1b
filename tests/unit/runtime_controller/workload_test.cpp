// What a Deployment and its pods say of each other.

#include "rw/reactors/runtime_controller/workload.hpp"

#include <boost/json/array.hpp>
#include <boost/json/object.hpp>
#include <boost/json/parse.hpp>
#include <boost/test/unit_test.hpp>

#include <string>
#include <utility>

namespace rw::runtime_controller_test {
BOOST_AUTO_TEST_SUITE(workload)

namespace json = boost::json;

namespace {

std::string why(const char* pods) {
  const auto got = inspect_pods(json::parse(pods), "");
  return got.reason + "|" + got.message;
}

json::value pods(json::value container, const char* hash = "h1") {
  container.as_object()["name"] = "manager";
  return {{"items",
           json::array{{{"metadata", {{"name", "p"}, {"labels", {{"pod-template-hash", hash}}}}},
                        {"status", {{"containerStatuses", json::array{std::move(container)}}}}}}}};
}

json::value waiting(const char* reason) {
  return {{"state", {{"waiting", {{"reason", reason}, {"message", "back-off"}}}}}};
}

std::string pod_error(const json::value& pods, std::string_view hash) {
  return inspect_pods(pods, hash).error();
}

}  // namespace

BOOST_AUTO_TEST_CASE(crashing_pod_is_an_error_at_once) {
  for (const auto* reason : {"CrashLoopBackOff", "ImagePullBackOff", "InvalidImageName"}) {
    BOOST_TEST(pod_error(pods(waiting(reason)), "h1") ==
               "pod p, container manager: " + std::string(reason) + ": back-off");
  }
  BOOST_TEST(pod_error(pods({{"restartCount", 1}, {"ready", false}}), "h1") ==
             "pod p, container manager: PodRestarted");
}

BOOST_AUTO_TEST_CASE(text_of_a_pod_controls_no_terminal) {
  BOOST_TEST(
      pod_error(
          pods({{"state", {{"waiting", {{"reason", "Crash\x1b[2J"}, {"message", "a\nb\x9b"}}}}}}),
          "h1") == "pod p, container manager: Crash?[2J: a b");
  BOOST_TEST(
      why(R"({"items":[{"metadata":{"name":"p"},"status":{"conditions":[{"type":"PodScheduled",)"
          R"("status":"False","reason":"No\u001b","message":"\nKyma r0: released"}]}}]})") ==
      "No?| Kyma r0: released");
}

BOOST_AUTO_TEST_CASE(pod_on_its_way_is_no_error) {
  for (const auto* reason : {"ContainerCreating", "PodInitializing", "ErrImagePull"}) {
    BOOST_TEST(pod_error(pods(waiting(reason)), "h1") == "");
  }
  BOOST_TEST(pod_error(pods({{"restartCount", 1}, {"ready", true}}), "h1") == "");
  BOOST_TEST(pod_error(pods({{"restartCount", 0}, {"ready", false}}), "h1") == "");
  BOOST_TEST(pod_error(nullptr, "") == "");
}

BOOST_AUTO_TEST_CASE(pods_of_an_earlier_template_do_not_count) {
  BOOST_TEST(pod_error(pods(waiting("CrashLoopBackOff"), "old"), "new") == "");
  BOOST_TEST(!pod_error(pods(waiting("CrashLoopBackOff"), "old"), "").empty());
}

BOOST_AUTO_TEST_CASE(pod_says_what_it_waits_for) {
  BOOST_TEST(why(R"({"items":[]})") == "NoPods|there is no pod yet");
  BOOST_TEST(why(R"({"items":[{"status":{"containerStatuses":[{"state":{"running":{}}}]}}]})") ==
             "PodNotReady|no pod is ready yet");
  BOOST_TEST(why(R"({"items":[
    {"status":{"containerStatuses":[{"state":{"waiting":{"reason":"ContainerCreating"}}}]}},
    {"status":{"containerStatuses":[{"state":{"waiting":{"reason":"ImagePullBackOff",
      "message":"no such image"}}}]}}]})") == "ImagePullBackOff|no such image");
  BOOST_TEST(why(R"({"items":[{"status":{"conditions":[{"type":"PodScheduled","status":"False",
    "reason":"Unschedulable","message":"0/1 nodes"}]}}]})") == "Unschedulable|0/1 nodes");
}

BOOST_AUTO_TEST_CASE(deployment_is_rolled_out_when_all_pods_are_of_its_newest_kind) {
  const auto rolled_out = [](const char* text) { return is_rolled_out(boost::json::parse(text)); };
  BOOST_TEST(rolled_out(R"({"metadata":{"generation":2},"status":{"observedGeneration":2,
    "replicas":1,"updatedReplicas":1,"readyReplicas":1}})"));
  BOOST_TEST(!rolled_out(R"({"metadata":{"generation":3},"status":{"observedGeneration":2,
    "replicas":1,"updatedReplicas":1,"readyReplicas":1}})"));
  BOOST_TEST(!rolled_out(R"({"metadata":{"generation":2},"status":{"observedGeneration":2,
    "replicas":2,"updatedReplicas":1,"readyReplicas":2}})"));
  BOOST_TEST(!rolled_out(R"({"metadata":{"generation":2},"status":{"observedGeneration":2}})"));
  BOOST_TEST(rolled_out(R"({"metadata":{"generation":2},"status":{"readyReplicas":1}})"));
}

BOOST_AUTO_TEST_SUITE_END()
}  // namespace rw::runtime_controller_test
