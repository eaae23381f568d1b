#include "rw/reactors/watcher_controller/virtual_service.hpp"

#include <boost/json/parse.hpp>
#include <boost/json/serialize.hpp>
#include <boost/json/value.hpp>
#include <boost/test/unit_test.hpp>

#include "tests/unit/watcher_controller/samples.hpp"
#include <string>
#include <utility>
#include <vector>

BOOST_AUTO_TEST_SUITE(virtual_service)

namespace json = boost::json;
using rw::watcher_controller::is_as_desired;
using rw::watcher_controller::is_owned_by;
using rw::watcher_controller::virtual_service_for;
using rw::watcher_controller_test::valid_watcher;
using rw::watcher_controller_test::with;

namespace {

/// A Gateway of kcp-system that the valid Watcher selects.
json::value gateway(const std::string& name, const std::string& servers) {
  return json::parse(R"({"metadata": {"namespace": "kcp-system", "name": ")" + name +
                     R"(", "labels": {"gw": "default"}}, "spec": {"servers": )" + servers + "}}");
}

json::value example() {
  return gateway("watcher", R"([{"hosts": ["listener.example.com"]}])");
}

auto made_for(const json::value& watcher, std::vector<json::value> gateways) {
  const auto view = rw::read_watcher(watcher);
  BOOST_TEST_REQUIRE(view.has_value());
  return virtual_service_for(*view, std::move(gateways), "kcp-system");
}

json::value made(std::vector<json::value> gateways) {
  auto got = made_for(valid_watcher(), std::move(gateways));
  BOOST_TEST_REQUIRE(got.has_value());
  return std::move(*got);
}

}  // namespace

BOOST_AUTO_TEST_CASE(virtual_service_leads_the_managers_events_to_the_service) {
  const auto expected = json::parse(R"({
    "apiVersion": "networking.istio.io/v1beta1",
    "kind": "VirtualService",
    "metadata": {
      "name": "kyma", "namespace": "kcp-system",
      "ownerReferences": [{"apiVersion": "operator.kyma-project.io/v1beta2", "kind": "Watcher",
                           "name": "kyma", "uid": "u1"}]
    },
    "spec": {
      "gateways": ["kcp-system/watcher"],
      "hosts": ["listener.example.com"],
      "http": [{
        "name": "kcp-system/kyma",
        "match": [{"uri": {"prefix": "/v2/lifecycle-manager/event"}}],
        "route": [{"destination": {"host": "events.kcp-system.svc.cluster.local",
                                   "port": {"number": 8082}}}]
      }]
    }
  })");
  const auto got = made({example()});
  BOOST_TEST(got == expected, json::serialize(got));
}

BOOST_AUTO_TEST_CASE(virtual_service_has_each_host_of_the_selected_gateways_once_in_one_order) {
  const auto a = gateway("a", R"([{"hosts": ["x.com", "y.com"]}, {"hosts": ["z.com", "x.com"]}])");
  const auto b = gateway("b", R"([{"hosts": ["w.com", "y.com"]}])");
  auto other = gateway("c", R"([{"hosts": ["v.com"]}])");
  other.at("metadata").at("labels").as_object()["gw"] = "other";
  const auto got = made({b, other, a});
  BOOST_TEST(got == made({a, b, other}));
  BOOST_TEST((got.at("spec").at("gateways") == json::array{"kcp-system/a", "kcp-system/b"}));
  BOOST_TEST(json::serialize(got.at("spec").at("hosts")) == R"(["x.com","y.com","z.com","w.com"])");
}

BOOST_AUTO_TEST_CASE(namespaces_that_a_gateways_hosts_are_for_are_left_out) {
  const auto got =
      made({gateway("a", R"([{"hosts": ["*/x.com", "./*.y.com", "kcp-system/x.com", "*"]}])")});
  BOOST_TEST(json::serialize(got.at("spec").at("hosts")) == R"(["x.com","*.y.com","*"])");
}

BOOST_AUTO_TEST_CASE(match_expressions_select_gateways) {
  const auto watcher = with(valid_watcher(), "/spec/gateway/selector", R"({"matchExpressions": [
      {"key": "gw", "operator": "In", "values": ["default", "spare"]},
      {"key": "retired", "operator": "DoesNotExist"}]})");
  auto retired = gateway("b", R"([{"hosts": ["b.com"]}])");
  retired.at("metadata").at("labels").as_object()["retired"] = "";
  const auto got = made_for(watcher, {example(), retired});
  BOOST_TEST_REQUIRE(got.has_value());
  BOOST_TEST(got->at("spec").at("gateways").as_array().size() == 1U);
  BOOST_TEST(!made_for(watcher, {retired}).has_value());
}

BOOST_AUTO_TEST_CASE(without_a_gateway_there_is_none) {
  auto other = example();
  other.at("metadata").as_object().erase("labels");
  for (const auto& gateways : {std::vector<json::value>{}, std::vector<json::value>{other}}) {
    const auto got = made_for(valid_watcher(), gateways);
    BOOST_TEST_REQUIRE(got.has_error());
    BOOST_TEST(got.error().reason == "GatewayNotFound");
    BOOST_TEST(got.error().message ==
               "spec.gateway.selector selects no Gateway in the namespace kcp-system");
  }
}

BOOST_AUTO_TEST_CASE(with_a_gateway_without_hosts_there_is_none) {
  for (const auto* servers :
       {"[]", "null", "{}", "[1]", R"([{}])", R"([{"hosts": []}])", R"([{"hosts": [7, ""]}])"}) {
    const auto got = made_for(valid_watcher(), {example(), gateway("empty", servers)});
    BOOST_TEST_REQUIRE(got.has_error(), servers);
    BOOST_TEST(got.error().reason == "GatewayWithoutHosts");
    BOOST_TEST(got.error().message == "the Gateway kcp-system/empty has no hosts in spec.servers");
  }
}

BOOST_AUTO_TEST_CASE(virtual_service_keeps_what_others_add) {
  const auto desired = made({example()});
  BOOST_TEST(is_as_desired(desired, desired));
  auto live = desired;
  live.at("metadata").as_object()["labels"] = json::object{{"a", "b"}};
  live.at("metadata").as_object()["resourceVersion"] = "7";
  live.at("spec").as_object()["exportTo"] = json::array{"*"};
  live.at("metadata")
      .at("ownerReferences")
      .as_array()
      .push_back(
          json::parse(R"({"apiVersion": "v1", "kind": "ConfigMap", "name": "x", "uid": "y"})"));
  live.at("metadata").at("ownerReferences").at(0).as_object()["blockOwnerDeletion"] = true;
  BOOST_TEST(is_as_desired(live, desired));
}

BOOST_AUTO_TEST_CASE(difference_in_owned_fields_is_drift) {
  const auto desired = made({example()});
  for (const auto& [pointer, text] : std::vector<std::pair<const char*, const char*>>{
           {"/spec", "absent"},
           {"/spec", "7"},
           {"/spec/hosts", R"(["other.com"])"},
           {"/spec/hosts", R"(["listener.example.com", "more.com"])"},
           {"/spec/gateways", "absent"},
           {"/spec/http", "[]"},
           {"/spec/http/0/timeout", "\"1s\""},
           {"/spec/http/0/match/0/uri/prefix", "\"/\""},
           {"/spec/http/0/route/0/destination/port/number", "8083"},
           {"/metadata/ownerReferences", "absent"},
           {"/metadata/ownerReferences/0/uid", "\"other\""},
           {"/metadata/ownerReferences/0/name", "\"other\""}}) {
    BOOST_TEST(!is_as_desired(with(desired, pointer, text), desired), pointer << " " << text);
  }
}

BOOST_AUTO_TEST_CASE(owner_is_known_by_the_uid) {
  const auto desired = made({example()});
  BOOST_TEST(is_owned_by(desired, "u1"));
  BOOST_TEST(!is_owned_by(desired, "u2"));
  BOOST_TEST(!is_owned_by(json::parse(R"({"metadata": {}})"), "u1"));
}

BOOST_AUTO_TEST_SUITE_END()
