#include "rw/reactors/dev/gateway/routes.hpp"

#include <boost/json/parse.hpp>
#include <boost/test/unit_test.hpp>

#include <string>
#include <string_view>

BOOST_AUTO_TEST_SUITE(routes)

using namespace rw::dev_gateway;

namespace {

boost::json::value virtual_service(std::string_view prefix, std::string_view service,
                                   std::string_view hosts = R"(["kcp.example.com"])") {
  return boost::json::parse(R"({"spec":{"hosts":)" + std::string(hosts) +
                            R"(,"http":[{"match":[{"uri":{"prefix":")" + std::string(prefix) +
                            R"("}}],"route":[{"destination":{"host":")" + std::string(service) +
                            R"(.kcp-system.svc.cluster.local","port":{"number":8082}}}]}]}})");
}

rw::k8s::object_key named(std::string name) {
  return {"kcp-system", std::move(name)};
}

std::string found(const route_table& in, std::string_view path,
                  std::string_view host = "kcp.example.com") {
  const auto* const to = in.find(host, path);
  return to == nullptr ? "" : to->name;
}

}  // namespace

BOOST_AUTO_TEST_CASE(destination_is_a_service_with_a_port) {
  const auto all = routes_of(virtual_service("/v2/klm/event", "events"));
  BOOST_TEST_REQUIRE(all.size() == 1u);
  BOOST_TEST((all.front().to == service_port{"events", "kcp-system", 8082}));
}

BOOST_AUTO_TEST_CASE(prefix_matches_the_batch_path_too) {
  route_table table;
  table.put(named("a"), virtual_service("/v2/klm/event", "events"));
  BOOST_TEST(found(table, "/v2/klm/event") == "events");
  BOOST_TEST(found(table, "/v2/klm/events") == "events");
  BOOST_TEST(found(table, "/v2/klm/event?x=/v2/other/event") == "events");
  BOOST_TEST(found(table, "/v2/klm/even") == "");
  BOOST_TEST(found(table, "/v2/other/event?/v2/klm/event") == "");
}

BOOST_AUTO_TEST_CASE(longest_prefix_wins_whatever_came_first) {
  route_table table;
  table.put(named("a"), virtual_service("/v2/klm", "short"));
  table.put(named("b"), virtual_service("/v2/klm/event", "long"));
  table.put(named("c"), virtual_service("/v2", "shortest"));
  BOOST_TEST(found(table, "/v2/klm/event") == "long");
  BOOST_TEST(found(table, "/v2/klm/x") == "short");
  BOOST_TEST(found(table, "/v2/x") == "shortest");
}

BOOST_AUTO_TEST_CASE(of_equal_prefixes_the_first_by_name_wins) {
  route_table table;
  table.put(named("b"), virtual_service("/v2/klm/event", "second"));
  table.put(named("a"), virtual_service("/v2/klm/event", "first"));
  BOOST_TEST(found(table, "/v2/klm/event") == "first");
}

BOOST_AUTO_TEST_CASE(hosts_decide_without_their_port) {
  route_table table;
  table.put(named("a"), virtual_service("/v2", "exact"));
  table.put(named("b"), virtual_service("/v2", "wild", R"(["*.example.org"])"));
  table.put(named("c"), virtual_service("/v2", "v6", R"(["::1"])"));
  BOOST_TEST(found(table, "/v2/x", "KCP.example.com:8443") == "exact");
  BOOST_TEST(found(table, "/v2/x", "a.example.org") == "wild");
  BOOST_TEST(found(table, "/v2/x", "example.org") == "");
  BOOST_TEST(found(table, "/v2/x", "[::1]:8443") == "v6");
  BOOST_TEST(found(table, "/v2/x", "") == "");
  table.put(named("d"), virtual_service("/v2", "any", R"(["*"])"));
  BOOST_TEST(found(table, "/v2/x", "") == "any");
}

BOOST_AUTO_TEST_CASE(later_state_takes_the_place_of_the_former) {
  route_table table;
  table.put(named("a"), virtual_service("/v2/klm/event", "events"));
  table.put(named("a"), virtual_service("/v2/other/event", "events"));
  BOOST_TEST(table.size() == 1u);
  BOOST_TEST(found(table, "/v2/klm/event") == "");
  BOOST_TEST(found(table, "/v2/other/event") == "events");
  table.erase(named("a"));
  table.erase(named("a"));
  BOOST_TEST(table.size() == 0u);
  BOOST_TEST(found(table, "/v2/other/event") == "");
}

BOOST_AUTO_TEST_CASE(route_without_a_service_and_port_is_ignored) {
  for (const auto* destination :
       {R"({"host":"events","port":{"number":1}})", R"({"host":".ns.svc","port":{"number":1}})",
        R"({"host":"a..svc","port":{"number":1}})", R"({"host":"a.b.example","port":{"number":1}})",
        R"({"host":"a.b.svc","port":{"number":0}})",
        R"({"host":"a.b.svc","port":{"number":65536}})", R"({"host":"a.b.svc"})", "{}"}) {
    const auto made = boost::json::parse(
        R"({"spec":{"hosts":["*"],"http":[{"match":[{"uri":{"prefix":"/"}}],"route":[{"destination":)" +
        std::string(destination) + "}]}]}}");
    BOOST_TEST(routes_of(made).empty(), destination);
  }
  BOOST_TEST(routes_of(nullptr).empty());
  BOOST_TEST(routes_of(boost::json::parse(R"({"spec":{"http":[{}]}})")).empty());
}

BOOST_AUTO_TEST_SUITE_END()
