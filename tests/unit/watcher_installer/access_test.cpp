#include "rw/reactors/watcher_installer/access.hpp"

#include "rw/k8s/objects/object.hpp"
#include "rw/reactors/runtime_controller/runtime_access.hpp"

#include <boost/test/unit_test.hpp>

#include <optional>
#include <string>
#include <vector>

namespace rw::watcher_installer_test {
BOOST_AUTO_TEST_SUITE(access)

using namespace rw::watcher_installer;
using k8s::object;

namespace {

object secret(const std::string& name, const std::string& data) {
  return object::from_text(R"({"metadata":{"name":")" + name + R"(","namespace":"kcp-system"},)" +
                           R"("data":)" + data + "}");
}

std::string kubeconfig(const std::vector<object>& from) {
  const auto got = kubeconfig_of("k1", from);
  return got ? *got : got.error().message;
}

object gateway(const std::string& spec) {
  return object::from_text(R"({"metadata":{"name":"klm-watcher"},"spec":)" + spec + "}");
}

std::string address(const object& from, std::optional<std::uint16_t> port = {}) {
  const auto got = address_of(from, "klm-watcher", port);
  return got ? got->host + " " + std::to_string(got->port) : got.error().message;
}

}  // namespace

BOOST_AUTO_TEST_CASE(secret_with_the_kymas_name_holds_the_kubeconfig) {
  BOOST_TEST(kubeconfig({secret("kubeconfig-1", R"({"config":"YWJj"})")}) == "abc");
}

BOOST_AUTO_TEST_CASE(secrets_must_be_one_or_the_error_says_so) {
  BOOST_TEST(kubeconfig({}) ==
             "no Secret with the label operator.kyma-project.io/kyma-name=k1 gives access to the "
             "runtime");
  BOOST_TEST(kubeconfig({secret("b", "{}"), secret("a", "{}")}) ==
             "there is more than one Secret with the label operator.kyma-project.io/kyma-name=k1: "
             "a, b");
  const auto* missing = "Secret kcp-system/a has no kubeconfig under the key config";
  BOOST_TEST(kubeconfig({secret("a", "{}")}) == missing);
  BOOST_TEST(kubeconfig({secret("a", R"({"config":"%"})")}) == missing);
  BOOST_TEST(kubeconfig({secret("a", R"({"config":""})")}) == missing);
}

BOOST_AUTO_TEST_CASE(address_is_host_and_port_of_the_one_server) {
  const auto one =
      gateway(R"({"servers":[{"hosts":["events.example.com"],"port":{"number":443}}]})");
  BOOST_TEST(address(one) == "events.example.com 443");
  BOOST_TEST(address(one, std::uint16_t{9443}) == "events.example.com 9443");
  BOOST_TEST(address(gateway(R"({"servers":[{"hosts":["ns/e.example.com"],
                                             "port":{"number":1}}]})")) == "e.example.com 1");
}

BOOST_AUTO_TEST_CASE(gateway_without_an_address_is_an_error_in_words) {
  BOOST_TEST(address({}) ==
             "Gateway klm-watcher is not there, so the address for events is not known");
  BOOST_TEST(address(gateway("{}")) == "Gateway klm-watcher has 0 servers, not one");
  BOOST_TEST(address(gateway(R"({"servers":[{},{}]})")) ==
             "Gateway klm-watcher has 2 servers, not one");
  BOOST_TEST(address(gateway(R"({"servers":[{"hosts":["a","b"],"port":{"number":1}}]})")) ==
             "Gateway klm-watcher has 2 hosts, not one");
  BOOST_TEST(address(gateway(R"({"servers":[{"hosts":["*.a"],"port":{"number":1}}]})")) ==
             "Gateway klm-watcher has the host \"*.a\", which is no address");
  BOOST_TEST(address(gateway(R"({"servers":[{"hosts":["a"]}]})")) ==
             "Gateway klm-watcher has a server without a port");
  BOOST_TEST(address(gateway(R"({"servers":[{"hosts":["a"],"port":{"number":70000}}]})")) ==
             "Gateway klm-watcher has a server without a port");
}

BOOST_AUTO_TEST_SUITE_END()
}  // namespace rw::watcher_installer_test
