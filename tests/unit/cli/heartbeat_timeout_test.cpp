// When a runtime counts as silent, by the manager's flag and the manifests.

#include "rw/reactors/cli/manager_options.hpp"
#include "rw/reactors/cli/skr_manifests.hpp"

#include <boost/test/unit_test.hpp>

#include <chrono>
#include <string>

BOOST_AUTO_TEST_SUITE(heartbeat_timeout)

using namespace rw;
using namespace std::chrono_literals;
using watcher_installer::templates;

namespace {

std::chrono::milliseconds timeout(std::chrono::milliseconds flag, const templates& installed) {
  cli::manager_settings settings;
  settings.heartbeat_timeout = flag;
  return cli::heartbeat_timeout(settings, installed);
}

templates with_interval(const std::string& interval) {
  const auto read = templates::parse(R"(
apiVersion: apps/v1
kind: Deployment
metadata: {name: skr-webhook, namespace: kyma-system}
spec:
  template:
    spec:
      containers:
        - {name: proxy}
        - {name: server, env: [{name: KCP_ADDR, value: a}, {name: HEARTBEAT_INTERVAL, value: )" +
                                         interval + R"(}]}
---
apiVersion: v1
kind: Secret
metadata: {name: skr-webhook-tls, namespace: kyma-system}
---
apiVersion: admissionregistration.k8s.io/v1
kind: ValidatingWebhookConfiguration
metadata: {name: skr-webhook}
webhooks: [{name: pattern}]
)",
                                     "manifests");
  BOOST_REQUIRE_MESSAGE(read, read.error().message);
  return *read;
}

}  // namespace

BOOST_AUTO_TEST_CASE(short_timeout_is_raised_to_two_and_a_half_intervals) {
  BOOST_TEST((timeout(50s, templates::built_in()) == 150s));
  BOOST_TEST((timeout(3min, templates::built_in()) == 3min));
  BOOST_TEST((cli::manager_settings().heartbeat_timeout == 150s));
}

BOOST_AUTO_TEST_CASE(interval_of_the_manifests_counts) {
  BOOST_TEST((timeout(1s, with_interval("2s")) == 5s));
  BOOST_TEST((timeout(7s, with_interval("2s")) == 7s));
  BOOST_TEST((timeout(1s, with_interval("soon")) == 150s), "the webhook has its default then");
}

BOOST_AUTO_TEST_SUITE_END()
