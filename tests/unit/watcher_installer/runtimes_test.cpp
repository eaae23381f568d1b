#include "reactors/runtime_controller/workload.hpp"
#include "reactors/watcher_installer/installation.hpp"
#include "reactors/watcher_installer/pods.hpp"

#include <boost/json/parse.hpp>
#include <boost/test/unit_test.hpp>

#include <string>

namespace rw::watcher_installer_test {
BOOST_AUTO_TEST_SUITE(runtimes)

using namespace rw::watcher_installer;

namespace {

std::string why(const char* pods) {
  const auto got = waiting_of(boost::json::parse(pods));
  return got.reason + "|" + got.message;
}

std::string unwanted(const char* wanted, const char* present) {
  std::string out;
  for (const auto& one :
       unwanted_webhooks(boost::json::parse(wanted), boost::json::parse(present))) {
    out += one + " ";
  }
  return out;
}

}  // namespace

BOOST_AUTO_TEST_CASE(a_pod_says_what_it_waits_for) {
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

BOOST_AUTO_TEST_CASE(a_deployment_is_rolled_out_when_all_pods_are_of_its_newest_kind) {
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

BOOST_AUTO_TEST_CASE(only_webhooks_of_ours_are_unwanted) {
  const auto* wanted = R"({"webhooks":[{"name":"k.a.operator.kyma-project.io"}]})";
  BOOST_TEST(unwanted(wanted, R"({"webhooks":[{"name":"k.a.operator.kyma-project.io"},
    {"name":"k.b.operator.kyma-project.io"},{"name":"mine.example.com"}]})") ==
             "k.b.operator.kyma-project.io ");
  BOOST_TEST(unwanted(R"({"webhooks":[]})", "{}") == "");
}

BOOST_AUTO_TEST_SUITE_END()
}  // namespace rw::watcher_installer_test
