#include "rw/k8s/objects/types.hpp"
#include "rw/reactors/dev/pod.hpp"
#include "rw/reactors/watcher_installer/templates.hpp"
#include "rw/tls/issuer.hpp"

#include <boost/json/array.hpp>
#include <boost/json/object.hpp>
#include <boost/json/value.hpp>
#include <boost/test/unit_test.hpp>

#include <algorithm>
#include <chrono>
#include <string>

BOOST_AUTO_TEST_SUITE(pod_spec)

namespace json = boost::json;
using rw::dev::mounted;
using rw::dev::read_pod_spec;

namespace {

/// As deploy/skr has it.
json::value object(std::string_view kind, std::string_view name) {
  const auto& all = rw::watcher_installer::templates::built_in().objects();
  return *std::ranges::find_if(
      all, [&](const json::value& one) { return rw::watcher_installer::is(one, kind, name); });
}

json::value deployment() {
  return object("Deployment", "skr-webhook");
}

json::array& environment_of(json::value& in) {
  return in.as_object()["spec"]
      .as_object()["template"]
      .as_object()["spec"]
      .as_object()["containers"]
      .as_array()
      .front()
      .as_object()["env"]
      .as_array();
}

void set(json::value& in, std::string_view name, std::string_view value) {
  auto& env = environment_of(in);
  const auto has_name = [&](const json::value& one) {
    return rw::k8s::find_string(one, {"name"}) == name;
  };
  env.erase(std::remove_if(env.begin(), env.end(), has_name), env.end());
  env.push_back({{"name", name}, {"value", value}});
}

std::string complaint_about(const json::value& in) {
  const auto read = read_pod_spec(in, "127.0.0.1");
  return read ? "none" : read.error().message;
}

/// The Secret that the installer makes.
json::value secret_with(const rw::tls::key_pair& pair, const std::string& ca) {
  auto out = object("Secret", "skr-webhook-tls");
  rw::k8s::set_secret_data(out, "ca.crt", ca);
  rw::k8s::set_secret_data(out, "tls.crt", pair.certificate);
  rw::k8s::set_secret_data(out, "tls.key", pair.key);
  return out;
}

}  // namespace

BOOST_AUTO_TEST_CASE(manifest_that_is_installed_says_all_that_is_needed) {
  const auto spec = read_pod_spec(deployment(), "127.0.0.2");
  BOOST_REQUIRE(spec.has_value());
  BOOST_TEST(spec->settings.address.address().to_string() == "127.0.0.2");
  BOOST_TEST(spec->settings.kcp.host == "kcp.example.com");
  BOOST_TEST(spec->settings.kcp.port == 443);
  BOOST_TEST(spec->settings.files.ca == "ca.crt");
  BOOST_TEST(spec->settings.files.certificate == "tls.crt");
  BOOST_TEST(spec->settings.files.key == "tls.key");
  BOOST_TEST(spec->settings.managers_file == "managers.json");
}

BOOST_AUTO_TEST_CASE(times_are_those_of_the_environment) {
  auto other = deployment();
  set(other, "DRAIN_TIMEOUT", "3s");
  set(other, "SETTLE", "250ms");
  const auto spec = read_pod_spec(other, "127.0.0.1");
  BOOST_REQUIRE(spec.has_value());
  BOOST_TEST((spec->settings.drain_timeout == std::chrono::seconds(3)));
  BOOST_TEST((spec->settings.settle == std::chrono::milliseconds(250)));
}

BOOST_AUTO_TEST_CASE(template_change_makes_another_pod_and_a_status_change_does_not) {
  const auto first = read_pod_spec(deployment(), "127.0.0.1");
  auto changed = deployment();
  changed.as_object()["status"] = {{"readyReplicas", 1}};
  const auto same = read_pod_spec(changed, "127.0.0.1");
  set(changed, "KCP_ADDR", "other.example.com:443");
  const auto other = read_pod_spec(changed, "127.0.0.1");
  BOOST_TEST(first->pod_template == same->pod_template);
  BOOST_TEST(first->pod_template != other->pod_template);
}

BOOST_AUTO_TEST_CASE(missing_setting_is_named) {
  auto wrong = deployment();
  set(wrong, "KCP_ADDR", "nowhere");
  BOOST_TEST(complaint_about(wrong) == "KCP_ADDR is not host:port: nowhere");
  wrong = deployment();
  set(wrong, "KCP_CONTRACT", "v3");
  BOOST_TEST(complaint_about(wrong) == "KCP_CONTRACT is not v2: v3");
  wrong = deployment();
  set(wrong, "TLS_KEY", "");
  BOOST_TEST(complaint_about(wrong) == "CA_CERT, TLS_CERT and TLS_KEY must be set");
  wrong = deployment();
  environment_of(wrong).clear();
  BOOST_TEST(complaint_about(wrong) == "no container of the Deployment has KCP_ADDR");
}

BOOST_AUTO_TEST_CASE(secret_is_used_whole_or_not_at_all) {
  const auto spec = read_pod_spec(deployment(), "127.0.0.1");
  const auto ca = rw::tls::issuer::create({.common_name = "ca"}).value();
  const auto pair = ca.issue({.common_name = "runtime-1", .server_auth = true}).value();
  const auto other = ca.issue({.common_name = "runtime-2", .server_auth = true}).value();
  const auto good = mounted(*spec, secret_with(pair, ca.certificate_pem()));
  BOOST_REQUIRE(good.has_value());
  BOOST_TEST(good->material.leaf().has_value());
  BOOST_TEST(!good->managers.has_value());

  const auto lacking = mounted(*spec, secret_with({pair.certificate, ""}, ca.certificate_pem()));
  BOOST_REQUIRE(lacking.has_error());
  BOOST_TEST(lacking.error().message == "the Secret lacks one of tls.crt, tls.key and ca.crt");
  const auto mixed =
      mounted(*spec, secret_with({pair.certificate, other.key}, ca.certificate_pem()));
  BOOST_REQUIRE(mixed.has_error());
  BOOST_TEST(mixed.error().message.starts_with("the Secret can't be used: "),
             mixed.error().message);
}

BOOST_AUTO_TEST_CASE(mounted_reads_the_managers_file_when_it_is_valid) {
  const auto spec = read_pod_spec(deployment(), "127.0.0.1");
  const auto ca = rw::tls::issuer::create({.common_name = "ca"}).value();
  const auto pair = ca.issue({.common_name = "runtime-1", .server_auth = true}).value();
  auto secret = secret_with(pair, ca.certificate_pem());
  const rw::known_managers managers({{.manager = "klm", .watched = {"", "v1", "pods"}}});
  rw::k8s::set_secret_data(secret, "managers.json", rw::render_managers(managers));
  const auto good = mounted(*spec, secret);
  BOOST_REQUIRE(good.has_value());
  BOOST_REQUIRE(good->managers.has_value());
  BOOST_TEST((*good->managers == managers));
}

BOOST_AUTO_TEST_SUITE_END()
