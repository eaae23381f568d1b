// The whole reactor on an API server: the embedded one, or a real kube-apiserver
// (control_plane.hpp).

#include "rw/reactors/watcher_controller/watcher_controller.hpp"

#include "rw/k8s/objects/types.hpp"
#include "rw/reactors/shared/kyma_resources.hpp"

#include <boost/json/parse.hpp>
#include <boost/json/serialize.hpp>
#include <boost/json/value.hpp>
#include <boost/test/unit_test.hpp>

#include "tests/unit/watcher_controller/control_plane.hpp"
#include "tests/unit/watcher_controller/samples.hpp"
#include <chrono>
#include <string>

BOOST_AUTO_TEST_SUITE(watcher_controller)

namespace json = boost::json;
using namespace rw;
using namespace rw::watcher_controller_test;

namespace {

/// "status reason" of the condition.
std::string condition_of(const json::value& watcher) {
  const auto found = k8s::find_condition(watcher, "VirtualService");
  return found ? found->status + " " + found->reason : std::string("none");
}

std::string hosts_of(const json::value& virtual_service) {
  return json::serialize(virtual_service.at("spec").at("hosts"));
}

std::string prefix_of(const json::value& virtual_service) {
  return std::string(virtual_service.at_pointer("/spec/http/0/match/0/uri/prefix").as_string());
}

boost::test_tools::assertion_result if_embedded(boost::unit_test::test_unit_id) {
  return control_plane::embedded();
}

k8s::devserver::fault refusal_if(bool it_is) {
  k8s::devserver::fault what;
  if (it_is) what.status = 403;
  return what;
}

struct ready_watcher : control_plane {
  explicit ready_watcher(schema which = schema::ours) : control_plane(which) {
    create(gateways_type(), gateway("gw", "a.example.com"));
    create(watchers_type(), watcher("kyma"));
    await_state("kyma", "Ready");
  }
  json::value virtual_service() { return get(virtual_services_type(), "kyma"); }
};

struct lenient_ready_watcher : ready_watcher {
  lenient_ready_watcher() : ready_watcher(schema::without_bounds) {}
};

struct lenient_control_plane : control_plane {
  lenient_control_plane() : control_plane(schema::without_bounds) {}
};

}  // namespace

BOOST_FIXTURE_TEST_CASE(watcher_gets_its_virtual_service_and_is_ready, ready_watcher) {
  const auto seen = get(watchers_type(), "kyma");
  BOOST_TEST(condition_of(seen) == "True Ready");
  BOOST_TEST(message_of(seen) == "VirtualService is configured");
  BOOST_TEST(k8s::has_finalizer(seen, watcher_finalizer));
  const auto made = virtual_service();
  BOOST_TEST(json::serialize(made.at("spec").at("gateways").at(0)) ==
             json::serialize(json::value(ns() + "/gw")));
  BOOST_TEST(hosts_of(made) == R"(["a.example.com"])");
  BOOST_TEST(prefix_of(made) == "/v2/kyma/event");
  const auto owners = k8s::owners_of(made);
  BOOST_TEST_REQUIRE(owners.size() == 1U);
  BOOST_TEST(owners.front().uid == k8s::uid_of(seen));
  BOOST_TEST(!owners.front().controller);
}

BOOST_FIXTURE_TEST_CASE(settled_watcher_costs_no_request, ready_watcher) {
  settle();
  BOOST_TEST_MESSAGE(requests() << " requests in " << reconciles() << " reconciles until Ready");
  BOOST_TEST(conflicts() == 0);
  const auto requests_before = requests();
  const auto reconciles_before = reconciles();
  merge(watchers_type(), "kyma", R"({"metadata": {"annotations": {"looked-at": "1"}}})");
  merge(gateways_type(), "gw", R"({"metadata": {"annotations": {"looked-at": "1"}}})");
  merge(virtual_services_type(), "kyma", R"({"metadata": {"annotations": {"looked-at": "1"}}})");
  eventually([&] { return reconciles() > reconciles_before; }, "it is reconciled");
  settle();
  BOOST_TEST(requests() == requests_before);
}

BOOST_FIXTURE_TEST_CASE(new_leader_writes_nothing_where_all_is_well, ready_watcher) {
  settle();
  stop();
  const auto requests_before = requests();
  const auto reconciles_before = reconciles();
  start();
  eventually([&] { return reconciles() > reconciles_before; }, "it is reconciled");
  settle();
  BOOST_TEST(requests() == requests_before);
}

BOOST_FIXTURE_TEST_CASE(drift_is_repaired, ready_watcher) {
  const auto good = virtual_service();
  merge(virtual_services_type(), "kyma",
        R"({"spec": {"hosts": ["evil.example.com"], "http": [], "exportTo": ["*"]}})");
  eventually([&] { return hosts_of(virtual_service()) == hosts_of(good); }, "hosts come back");
  const auto repaired = virtual_service();
  BOOST_TEST(repaired.at("spec").at("http") == good.at("spec").at("http"));
  BOOST_TEST(json::serialize(repaired.at("spec").at("exportTo")) == R"(["*"])");  // not ours

  merge(virtual_services_type(), "kyma", R"({"metadata": {"ownerReferences": null}})");
  eventually([&] { return k8s::owners_of(virtual_service()).size() == 1; }, "the owner comes back");

  remove(virtual_services_type(), "kyma");
  eventually([&] { return there(virtual_services_type(), "kyma"); }, "it is made anew");
}

BOOST_FIXTURE_TEST_CASE(edited_watcher_changes_its_virtual_service, ready_watcher) {
  merge(watchers_type(), "kyma", R"({"spec": {"manager": "warden", "serviceInfo": {"port": 9}}})");
  await_state("kyma", "Ready");
  eventually([&] { return prefix_of(virtual_service()) == "/v2/warden/event"; }, "another path");
  BOOST_TEST(virtual_service().at_pointer("/spec/http/0/route/0/destination/port/number") == 9);
}

BOOST_FIXTURE_TEST_CASE(gateway_that_comes_later_is_noticed, control_plane) {
  create(watchers_type(), watcher("kyma"));
  const auto waiting = await_state("kyma", "Error");
  BOOST_TEST(condition_of(waiting) == "False GatewayNotFound");
  BOOST_TEST(message_of(waiting) ==
             "spec.gateway.selector selects no Gateway in the namespace " + ns());
  BOOST_TEST(!there(virtual_services_type(), "kyma"));
  eventually([&] { return has_event("kyma", "WatcherGatewayNotFound"); }, "an event");
  const auto since = std::chrono::steady_clock::now();
  create(gateways_type(), gateway("gw", "a.example.com"));
  await_state("kyma", "Ready");
  const std::chrono::duration<double, std::milli> took = std::chrono::steady_clock::now() - since;
  BOOST_TEST_MESSAGE("Ready " << took.count() << " ms after the Gateway came");
  BOOST_TEST(there(virtual_services_type(), "kyma"));
}

// Nothing but the watch tells of these changes: a Ready Watcher is looked at again after an hour.
BOOST_FIXTURE_TEST_CASE(gateway_that_changes_or_goes_is_noticed, ready_watcher) {
  settle();
  auto since = std::chrono::steady_clock::now();
  merge(gateways_type(), "gw", R"({"spec": {"servers": [{"hosts": ["b.example.com"],
        "port": {"number": 443, "name": "https", "protocol": "HTTPS"}}]}})");
  eventually([&] { return hosts_of(virtual_service()) == R"(["b.example.com"])"; }, "new hosts");
  const std::chrono::duration<double, std::milli> took = std::chrono::steady_clock::now() - since;
  BOOST_TEST_MESSAGE("written " << took.count() << " ms after the Gateway changed");

  create(gateways_type(), gateway("more", "c.example.com"));
  eventually([&] { return hosts_of(virtual_service()) == R"(["b.example.com","c.example.com"])"; },
             "hosts of both");

  merge(gateways_type(), "more", R"({"metadata": {"labels": {"gw": "other"}}})");
  eventually([&] { return hosts_of(virtual_service()) == R"(["b.example.com"])"; }, "of one again");

  remove(gateways_type(), "gw");
  const auto left = await_state("kyma", "Error");
  BOOST_TEST(condition_of(left) == "False GatewayNotFound");
  BOOST_TEST(hosts_of(virtual_service()) == R"(["b.example.com"])");  // stays as it was
}

BOOST_FIXTURE_TEST_CASE(gateway_without_hosts_is_an_error, lenient_control_plane) {
  auto empty = gateway("gw", "a.example.com");
  empty.at("spec").as_object()["servers"] = json::array();
  create(gateways_type(), empty);
  create(watchers_type(), watcher("kyma"));
  const auto seen = await_state("kyma", "Error");
  BOOST_TEST(condition_of(seen) == "False GatewayWithoutHosts");
  BOOST_TEST(message_of(seen) == "the Gateway " + ns() + "/gw has no hosts in spec.servers");
  eventually([&] { return has_event("kyma", "WatcherGatewayWithoutHosts"); }, "an event");
}

BOOST_FIXTURE_TEST_CASE(match_expressions_select_gateways, control_plane) {
  create(gateways_type(), gateway("gw", "a.example.com"));
  auto retired = gateway("retired", "b.example.com");
  retired.at("metadata").at("labels").as_object()["retired"] = "yes";
  create(gateways_type(), retired);
  auto choosy = watcher("kyma");
  choosy.at("spec").at("gateway").as_object()["selector"] = json::parse(R"({"matchExpressions": [
      {"key": "gw", "operator": "In", "values": ["default", "spare"]},
      {"key": "gw", "operator": "Exists"},
      {"key": "tier", "operator": "NotIn", "values": ["test"]},
      {"key": "retired", "operator": "DoesNotExist"}]})");
  create(watchers_type(), choosy);
  await_state("kyma", "Ready");
  BOOST_TEST(hosts_of(get(virtual_services_type(), "kyma")) == R"(["a.example.com"])");
}

BOOST_FIXTURE_TEST_CASE(invalid_field_is_reported_and_nothing_is_written, lenient_control_plane) {
  create(gateways_type(), gateway("gw", "a.example.com"));
  const struct {
    const char* pointer;
    const char* value;
    const char* says;
  } cases[] = {
      {"/spec/serviceInfo/port", "0", "spec.serviceInfo.port is 0, but must be a port"},
      {"/spec/serviceInfo/port", "65536", "spec.serviceInfo.port is 65536"},
      {"/spec/serviceInfo/name", "\"-a\"", "spec.serviceInfo.name is \"-a\""},
      {"/spec/serviceInfo/name", "\"Big\"", "spec.serviceInfo.name is \"Big\""},
      {"/spec/serviceInfo/namespace", "\"a.b\"", "spec.serviceInfo.namespace is \"a.b\""},
      {"/spec/manager", "\"a/b\"", "spec.manager is \"a/b\""},
      {"/spec/manager", "absent", "spec.manager is missing"},
      {"/spec/resourceToWatch/group", "\"A\"", "spec.resourceToWatch.group is \"A\""},
      {"/spec/resourceToWatch/version", "\"V1\"", "spec.resourceToWatch.version is \"V1\""},
      {"/spec/resourceToWatch/resource", "\"*/*\"", "spec.resourceToWatch.resource is \"*/*\""},
      {"/spec/labelsToWatch", R"({"-": "b"})", "spec.labelsToWatch[\"-\"] is no label"},
      {"/spec/gateway/selector", R"({"matchLabels": {"gw": "-"}})",
       "spec.gateway.selector.matchLabels[\"gw\"] can't be used"},
      {"/spec/gateway/selector", R"({"matchExpressions": [{"key": "a", "operator": "Like"}]})",
       "spec.gateway.selector.matchExpressions[0].operator is \"Like\", but must be In"},
      {"/spec/gateway/selector", R"({"matchExpressions": [{"key": "a", "operator": "In"}]})",
       "spec.gateway.selector.matchExpressions[0] can't be used"},
  };
  int number = 0;
  for (const auto& one : cases) {
    const auto name = "w" + std::to_string(number++);
    create(watchers_type(), with(watcher(name), one.pointer, one.value));
    const auto seen = await_state(name, "Error");
    BOOST_TEST(condition_of(seen) == "False Invalid");
    BOOST_TEST(message_of(seen).starts_with(one.says), message_of(seen));
    BOOST_TEST(message_of(seen).find("; ") == std::string::npos, message_of(seen));
    BOOST_TEST(!there(virtual_services_type(), name));
    eventually([&] { return has_event(name, "WatcherInvalid"); }, "an event");
    BOOST_TEST(fault_of(name) == "Invalid");
  }
  merge(watchers_type(), "w0", R"({"spec": {"serviceInfo": {"port": 8080}}})");
  remove(watchers_type(), "w1");
  eventually([&] { return fault_of("w0") != "Invalid" && fault_of("w1").empty(); },
             "one that is corrected, or deleted, has no such fault");
}

BOOST_FIXTURE_TEST_CASE(field_must_be_spec_or_status, control_plane) {
  const auto why = refused_creation(watchers_type(), with(watcher("a"), "/spec/field", "\"x\""));
  BOOST_TEST(why.is(k8s::errc::invalid));
  BOOST_TEST(why.message.find("spec.field") != std::string::npos, why.message);
}

BOOST_FIXTURE_TEST_CASE(watcher_that_becomes_invalid_keeps_its_virtual_service,
                        lenient_ready_watcher) {
  const auto before = virtual_service();
  merge(watchers_type(), "kyma", R"({"spec": {"manager": "a/b", "serviceInfo": {"port": 70000}}})");
  const auto broken = await_state("kyma", "Error");
  BOOST_TEST(message_of(broken).find("spec.manager") != std::string::npos);
  BOOST_TEST(message_of(broken).find("; spec.serviceInfo.port") != std::string::npos);
  settle();
  BOOST_TEST(virtual_service() == before);
  merge(watchers_type(), "kyma", R"({"spec": {"manager": "ok", "serviceInfo": {"port": 70}}})");
  await_state("kyma", "Ready");
  BOOST_TEST(prefix_of(virtual_service()) == "/v2/ok/event");
}

BOOST_FIXTURE_TEST_CASE(watchers_for_one_manager_and_one_resource_work_side_by_side,
                        ready_watcher) {
  create(watchers_type(), with(watcher("other"), "/spec/manager", "\"kyma\""));
  create(watchers_type(), watcher("third"));
  await_state("other", "Ready");
  await_state("third", "Ready");
  BOOST_TEST(prefix_of(get(virtual_services_type(), "other")) == prefix_of(virtual_service()));
  remove(watchers_type(), "other");
  eventually([&] { return !there(watchers_type(), "other"); }, "the Watcher goes");
  BOOST_TEST(!there(virtual_services_type(), "other"));
  settle();
  BOOST_TEST(there(virtual_services_type(), "kyma"));
  BOOST_TEST(there(virtual_services_type(), "third"));
}

BOOST_FIXTURE_TEST_CASE(deleted_watcher_takes_its_virtual_service_along, ready_watcher) {
  // Something else keeps the Watcher, so that its last state can be seen.
  auto finalizers = get(watchers_type(), "kyma").at("metadata").at("finalizers");
  finalizers.as_array().emplace_back("example.com/keeps");
  merge(watchers_type(), "kyma",
        json::serialize(json::value{{"metadata", {{"finalizers", finalizers}}}}));
  remove(watchers_type(), "kyma");
  eventually([&] { return !k8s::has_finalizer(get(watchers_type(), "kyma"), watcher_finalizer); },
             "it is released");
  BOOST_TEST(k8s::find_string(get(watchers_type(), "kyma"), {"status", "state"}) == "Deleting");
  BOOST_TEST(!there(virtual_services_type(), "kyma"));
  BOOST_TEST(k8s::has_finalizer(get(watchers_type(), "kyma"), "example.com/keeps"));
  merge(watchers_type(), "kyma", R"({"metadata": {"finalizers": null}})");
  BOOST_TEST(!there(watchers_type(), "kyma"));
}

BOOST_FIXTURE_TEST_CASE(invalid_watcher_can_be_deleted, control_plane) {
  create(watchers_type(), with(watcher("kyma"), "/spec/manager", "\"a/b\""));
  await_state("kyma", "Error");
  remove(watchers_type(), "kyma");
  eventually([&] { return !there(watchers_type(), "kyma"); }, "the Watcher goes");
}

BOOST_FIXTURE_TEST_CASE(virtual_service_of_another_owner_is_not_deleted, control_plane) {
  create(watchers_type(), with(watcher("kyma"), "/spec/manager", "\"a/b\""));
  await_state("kyma", "Error");
  create(virtual_services_type(), {{"apiVersion", "networking.istio.io/v1beta1"},
                                   {"kind", "VirtualService"},
                                   {"metadata", {{"name", "kyma"}, {"namespace", ns()}}},
                                   {"spec", {{"hosts", json::array{"theirs.example.com"}}}}});
  remove(watchers_type(), "kyma");
  eventually([&] { return !there(watchers_type(), "kyma"); }, "the Watcher goes");
  BOOST_TEST(there(virtual_services_type(), "kyma"));
}

BOOST_FIXTURE_TEST_CASE(watcher_deleted_while_no_controller_runs_is_released_later, ready_watcher) {
  stop();
  remove(watchers_type(), "kyma");
  BOOST_TEST(there(watchers_type(), "kyma"));
  start();
  eventually([&] { return !there(watchers_type(), "kyma"); }, "the Watcher goes");
  BOOST_TEST(!there(virtual_services_type(), "kyma"));
}

BOOST_AUTO_TEST_CASE(virtual_service_that_is_fought_for_is_not_written_without_end) {
  control_plane plane(schema::ours, {.repairs = 2, .repair_pause = std::chrono::seconds(3)});
  plane.create(gateways_type(), plane.gateway("gw", "good.example.com"));
  plane.create(watchers_type(), plane.watcher("kyma"));
  plane.await_state("kyma", "Ready");
  int lost = 0;
  plane.eventually(
      [&] {
        const auto hosts = hosts_of(plane.get(virtual_services_type(), "kyma"));
        if (hosts != R"(["evil.example.com"])") {
          plane.merge(virtual_services_type(), "kyma",
                      R"({"spec": {"hosts": ["evil.example.com"]}})");
          ++lost;
        }
        return plane.has_event("kyma", "WatcherVirtualServiceContested");
      },
      "it gives in");
  BOOST_TEST(lost >= 2);
  plane.eventually(
      [&] {
        return hosts_of(plane.get(virtual_services_type(), "kyma")) == R"(["good.example.com"])";
      },
      "it is repaired after a pause");
}

// What follows makes requests fail, which a real API server can't be asked for.

BOOST_FIXTURE_TEST_CASE(virtual_service_that_is_rejected_is_reported_and_tried_again, control_plane,
                        *boost::unit_test::precondition(if_embedded)) {
  fail([](const std::string& verb, const std::string& path) {
    return refusal_if(verb == "patch" && path.find("/virtualservices/") != std::string::npos);
  });
  create(gateways_type(), gateway("gw", "a.example.com"));
  create(watchers_type(), watcher("kyma"));
  const auto refused = await_state("kyma", "Error");
  BOOST_TEST(condition_of(refused) == "False VirtualServiceNotApplied");
  BOOST_TEST(message_of(refused).find("virtualservices " + ns() + "/kyma") != std::string::npos,
             message_of(refused));
  eventually([&] { return has_event("kyma", "WatcherVirtualServiceNotApplied"); }, "an event");
  fail({});
  await_state("kyma", "Ready");
}

BOOST_FIXTURE_TEST_CASE(status_that_cannot_be_written_is_tried_again, control_plane,
                        *boost::unit_test::precondition(if_embedded)) {
  fail([](const std::string& verb, const std::string& path) {
    return refusal_if(verb == "patch" && path.ends_with("/status"));
  });
  create(gateways_type(), gateway("gw", "a.example.com"));
  create(watchers_type(), watcher("kyma"));
  eventually([&] { return has_event("kyma", "WatcherStatusUpdate"); }, "an event");
  fail({});
  await_state("kyma", "Ready");
}

BOOST_FIXTURE_TEST_CASE(watcher_stays_until_its_virtual_service_is_gone, ready_watcher,
                        *boost::unit_test::precondition(if_embedded)) {
  fail([](const std::string& verb, const std::string& path) {
    return refusal_if(verb == "delete" && path.find("/virtualservices/") != std::string::npos);
  });
  remove(watchers_type(), "kyma");
  eventually(
      [&] {
        return condition_of(get(watchers_type(), "kyma")) == "False VirtualServiceNotDeleted";
      },
      "the reason");
  BOOST_TEST(k8s::find_string(get(watchers_type(), "kyma"), {"status", "state"}) == "Deleting");
  eventually([&] { return has_event("kyma", "WatcherVirtualServiceNotDeleted"); }, "an event");
  BOOST_TEST(k8s::has_finalizer(get(watchers_type(), "kyma"), watcher_finalizer));
  fail({});
  eventually([&] { return !there(watchers_type(), "kyma"); }, "the Watcher goes");
  BOOST_TEST(!there(virtual_services_type(), "kyma"));
}

namespace {

struct control_plane_with_component : control_plane {
  control_plane_with_component() : control_plane(schema::ours, options()) {}
  static rw::watcher_controller::watcher_controller_options options() {
    rw::watcher_controller::watcher_controller_options out;
    out.own = {.key = {"", "heartbeats"},
               .name = "runtime-watcher",
               .service = {.ns = "kcp-system", .name = "events", .port = 8082},
               .gateway = "gw"};
    return out;
  }
  json::value virtual_service() { return get(virtual_services_type(), "heartbeats"); }
};

}  // namespace

BOOST_FIXTURE_TEST_CASE(own_component_gets_its_virtual_service_without_a_watcher,
                        control_plane_with_component) {
  create(gateways_type(), gateway("other", "b.example.com"));
  settle();
  BOOST_TEST(!there(virtual_services_type(), "heartbeats"));
  create(gateways_type(), gateway("gw", "a.example.com"));
  eventually([&] { return there(virtual_services_type(), "heartbeats"); }, "the VirtualService");
  BOOST_TEST(hosts_of(virtual_service()) == R"(["a.example.com"])");
  BOOST_TEST(prefix_of(virtual_service()) == "/v2/runtime-watcher/event");
  const auto route = virtual_service().at("spec").at("http").at(0).at("route").at(0);
  BOOST_TEST(route.at("destination").at("host") == "events.kcp-system.svc.cluster.local");
  BOOST_TEST(route.at("destination").at("port").at("number") == 8082);
  BOOST_TEST(k8s::owners_of(virtual_service()).empty());
  settle();
  const auto before = requests();
  merge(gateways_type(), "other", R"({"metadata":{"labels":{"a":"b"}}})");
  settle();
  BOOST_TEST(requests() == before);
}

BOOST_FIXTURE_TEST_CASE(own_virtual_service_is_repaired, control_plane_with_component) {
  create(gateways_type(), gateway("gw", "a.example.com"));
  eventually([&] { return there(virtual_services_type(), "heartbeats"); }, "the VirtualService");
  remove(virtual_services_type(), "heartbeats");
  eventually([&] { return there(virtual_services_type(), "heartbeats"); }, "it comes back");
  merge(virtual_services_type(), "heartbeats", R"({"spec":{"hosts":["other.example.com"]}})");
  eventually([&] { return hosts_of(virtual_service()) == R"(["a.example.com"])"; }, "its hosts");
}

BOOST_AUTO_TEST_SUITE_END()
