#include "rw/k8s/devserver/server_memory.hpp"
#include "rw/k8s/objects/types.hpp"

#include <boost/asio/awaitable.hpp>
#include <boost/json/value.hpp>
#include <boost/test/unit_test.hpp>

#include "tests/unit/environment/environment.hpp"
#include "tests/unit/run.hpp"
#include <cstdint>
#include <string>
#include <utility>

namespace rw::devserver_test {
BOOST_AUTO_TEST_SUITE(running_deployments)

namespace {

namespace asio = boost::asio;
namespace json = boost::json;
using namespace k8s;
namespace test = rw::test;

const object_key web{"default", "web"};

json::value deployment(std::int64_t replicas) {
  return json::parse(R"({"apiVersion": "apps/v1", "kind": "Deployment",
    "metadata": {"name": "web", "namespace": "default"},
    "spec": {"replicas": )" +
                     std::to_string(replicas) + R"(,
             "selector": {"matchLabels": {"app": "web"}},
             "template": {"metadata": {"labels": {"app": "web"}},
                          "spec": {"containers": [{"name": "web", "image": "web:1"}]}}}})");
}

bool runs(const json::value& object, std::int64_t replicas) {
  return object.is_object() &&
         find_number(object, {"status", "observedGeneration"}) == generation_of(object) &&
         find_number(object, {"status", "replicas"}) == replicas &&
         find_number(object, {"status", "readyReplicas"}) == replicas &&
         find_condition(object, "Available").value_or(condition()).status == "True";
}

asio::awaitable<void> gives_status(test::environment* env) {
  for (const auto* name : {"runs", "waits"}) env->add_cluster(name);
  auto& running = *env->server.memory()->clusters.at("runs");
  running.running_deployments = true;
  running.controllers = false;  // that is another matter
  for (const std::int64_t replicas : {1, 3, 2}) {
    for (const auto* name : {"runs", "waits"}) {
      const auto made = co_await env->api(name).apply(test::deployments, deployment(replicas),
                                                      {.field_manager = "test"});
      BOOST_REQUIRE(made.has_value());
    }
    const auto good =
        co_await env->until("runs", test::deployments, web,
                            [&](const json::value& object) { return runs(object, replicas); });
    BOOST_TEST(good);
  }
  const auto idle = co_await env->api("waits").get(test::deployments, web);
  BOOST_REQUIRE(idle.has_value());
  BOOST_TEST(find_number(*idle, {"status", "observedGeneration"}) == 0);
}

}  // namespace

BOOST_AUTO_TEST_CASE(deployments_run_where_that_is_asked_for) {
  test::environment env;
  test::run(env.context, gives_status(&env));
}

BOOST_AUTO_TEST_SUITE_END()
}  // namespace rw::devserver_test
