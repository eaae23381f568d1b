#include "rw/reactors/cli/leader_settings.hpp"

#include "rw/k8s/objects/types.hpp"

#include <boost/test/unit_test.hpp>

#include <string>

namespace rw::leader_settings_test {
BOOST_AUTO_TEST_SUITE(leader_settings)

using namespace rw::cli;
using watcher_installer::templates;

BOOST_AUTO_TEST_CASE(settings_are_read_as_the_leader_renders_them) {
  manager_settings of;
  of.runtime_config.mode = bootstrapper_mode::direct;
  of.gardener_certificates = true;
  of.shadow = true;
  of.local_runtimes = k8s::local_servers::allowed;
  of.events_service = "events";
  of.field_manager = "other-watcher";
  of.former_field_manager = "klm";
  of.gateway_name = "gw";
  of.gateway_namespace = "gw-ns";
  of.istio_namespace = "istio";
  of.only = "canary=yes";
  of.heartbeat_timeout = std::chrono::seconds(70);
  of.probe_interval = std::chrono::milliseconds(0);
  of.skr_manifests = "/manifests";
  of.runtime_config.rollout_none = true;
  of.runtime_config.direct.state_namespace = "states";
  of.runtime_config.direct.defaults = {"c", "m", "", "t"};
  const auto read = parse_leader_settings(render_leader_settings(of, templates::built_in()));
  BOOST_TEST(read.known);
  BOOST_TEST((read.usual == of.runtime_config.direct.defaults));
  BOOST_TEST((read.bootstrapper == bootstrapper_mode::direct));
  BOOST_TEST(read.gardener_certificates);
  BOOST_TEST(read.shadow);
  BOOST_TEST((read.local_runtimes == k8s::local_servers::allowed));
  BOOST_TEST(read.rollout_none);
  BOOST_TEST(read.state_namespace == "states");
  BOOST_TEST(read.events_service == "events");
  BOOST_TEST(read.field_manager == "other-watcher");
  BOOST_TEST(read.former_field_manager == "klm");
  BOOST_TEST(read.gateway_name == "gw");
  BOOST_TEST(read.gateway_namespace == "gw-ns");
  BOOST_TEST(read.istio_namespace == "istio");
  BOOST_TEST(read.only == "canary=yes");
  BOOST_TEST(read.has_heartbeats());
  BOOST_TEST(!read.has_probes());
  // What it installs is named, so that it can be removed without its manifests.
  const auto& objects = templates::built_in().objects();
  BOOST_TEST_REQUIRE(read.skr_objects.size() == objects.size());
  const auto named = templates::named(read.skr_objects);
  for (std::size_t i = 0; i < objects.size(); ++i) {
    BOOST_TEST((k8s::key_of(named.objects()[i]) == k8s::key_of(objects[i])));
    BOOST_TEST(k8s::find_string(named.objects()[i], {"kind"}) ==
               k8s::find_string(objects[i], {"kind"}));
  }
}

BOOST_AUTO_TEST_CASE(no_file_and_no_address_of_the_manager_is_rendered) {
  manager_settings of;
  of.admin_token_file = "token-file";
  of.kcp.kubeconfig = "kubeconfig-file";
  of.listening.tls_key = "key-file";
  of.skr_pull_secrets = {"pull-secret"};
  const auto text = render_leader_settings(of, templates::built_in());
  for (const auto* one : {"token-file", "kubeconfig-file", "key-file", "pull-secret"}) {
    BOOST_TEST(text.find(one) == std::string::npos, text);
  }
}

BOOST_AUTO_TEST_CASE(unreadable_setting_has_the_default) {
  for (const auto* damaged : {"", "null", "[]", "{\"only\""}) {
    const auto read = parse_leader_settings(damaged);
    BOOST_TEST(!read.known, damaged);
    BOOST_TEST(!read.unknown_because.empty(), damaged);
    BOOST_TEST(read.istio_namespace == "istio-system");
  }
  const auto odd = parse_leader_settings(
      R"({"only":"=","istio-namespace":7,"probe-interval-ms":"x","skr-objects":[{"kind":"Odd"}]})");
  BOOST_TEST(odd.known);
  BOOST_TEST(odd.only.empty());
  BOOST_TEST(odd.istio_namespace == "istio-system");
  BOOST_TEST(odd.has_probes());
  BOOST_TEST(odd.skr_objects.empty());
}

BOOST_AUTO_TEST_SUITE_END()
}  // namespace rw::leader_settings_test
