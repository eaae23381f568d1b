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

/// Of a Deployment with these conditions, whose ReplicaSet has these pods.
pod_state state_of(json::array conditions, const json::value& pods = {{"items", json::array()}}) {
  return inspect_pods({{"status", {{"conditions", std::move(conditions)}}}}, pods, "");
}

const json::value quota_exceeded = {
    {"type", "ReplicaFailure"},
    {"status", "True"},
    {"reason", "FailedCreate"},
    {"message", "pods \"skr-webhook-1-x\" is forbidden: exceeded quota: none"}};
const json::value given_up = {
    {"type", "Progressing"},
    {"status", "False"},
    {"reason", "ProgressDeadlineExceeded"},
    {"message", "ReplicaSet \"skr-webhook-1\" has timed out progressing."}};

BOOST_AUTO_TEST_CASE(pods_that_are_not_created_are_explained_by_the_deployment) {
  auto got = state_of({quota_exceeded});
  BOOST_TEST(got.reason == "FailedCreate");
  BOOST_TEST(got.message == "pods \"skr-webhook-1-x\" is forbidden: exceeded quota: none");
  BOOST_TEST(!got.lasting, "a quota, or a webhook that does not respond, may be passing");
  got = state_of({quota_exceeded, given_up});
  BOOST_TEST(got.reason == "FailedCreate");
  BOOST_TEST(got.error() ==
             "FailedCreate: pods \"skr-webhook-1-x\" is forbidden: exceeded quota: none");
  got = state_of({{{"type", "ReplicaFailure"}, {"status", "False"}, {"reason", "FailedCreate"}}});
  BOOST_TEST(got.reason == "NoPods");
}

BOOST_AUTO_TEST_CASE(deployment_that_gave_up_is_an_error_with_what_its_pods_wait_for) {
  auto got = state_of({given_up});
  BOOST_TEST(got.reason == "ProgressDeadlineExceeded");
  BOOST_TEST(got.error() ==
             "ProgressDeadlineExceeded: ReplicaSet \"skr-webhook-1\" has timed out progressing.");
  got = state_of({given_up}, pods({{"restartCount", 0}, {"ready", false}}));
  BOOST_TEST(got.reason == "ProgressDeadlineExceeded");
  BOOST_TEST(got.lasting);
  got = state_of({given_up}, pods(waiting("ContainerCreating")));
  BOOST_TEST(got.error() == "pod p, container manager: ContainerCreating: back-off");
  got = state_of({quota_exceeded}, pods(waiting("ImagePullBackOff")));
  BOOST_TEST(got.reason == "ImagePullBackOff", "the pod that is there is nearer to the cause");
}

BOOST_AUTO_TEST_CASE(crash_is_explained_by_how_the_container_ended) {
  auto container = waiting("CrashLoopBackOff");
  container.at("state").at("waiting").at("message") = "back-off 5m0s restarting failed container";
  container.as_object()["lastState"] = {
      {"terminated",
       {{"reason", "Error"}, {"exitCode", 2}, {"message", "KCP_ADDR is required\n"}}}};
  BOOST_TEST(pod_error(pods(container), "") ==
             "pod p, container manager: CrashLoopBackOff: it ended with code 2: KCP_ADDR is "
             "required; back-off 5m0s restarting failed container");
  container.at("lastState") = {{"terminated", {{"reason", "OOMKilled"}, {"exitCode", 137}}}};
  BOOST_TEST(pod_error(pods(container), "") ==
             "pod p, container manager: OOMKilled: it ended with code 137, in CrashLoopBackOff: "
             "back-off 5m0s restarting failed container");
  // It runs again, but is not ready.
  json::value running = {{"restartCount", 1}, {"ready", false}, {"state", {{"running", {}}}}};
  running.as_object()["lastState"] = container.at("lastState");
  BOOST_TEST(inspect_pods(pods(running), "").reason == "OOMKilled");
  // A text of a tenant is bounded, and shows its end, where a log says why.
  container.at("lastState") = {
      {"terminated",
       {{"reason", "Error"}, {"exitCode", 1}, {"message", std::string(2000, 'x') + "!"}}}};
  const auto text = pod_error(pods(container), "");
  BOOST_TEST(text.size() < 600u);
  BOOST_TEST(text.find("xxx!; back-off") != std::string::npos);
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
