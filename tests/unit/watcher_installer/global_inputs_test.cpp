// What KCP says for all runtimes alike is damaged or deleted: they keep the last valid value.

#include "rw/k8s/objects/types.hpp"
#include "rw/reactors/shared/kyma_resources.hpp"

#include <boost/json/array.hpp>
#include <boost/json/object.hpp>
#include <boost/json/serialize.hpp>
#include <boost/test/unit_test.hpp>

#include "tests/unit/run.hpp"
#include "tests/unit/watcher_installer/world.hpp"
#include <chrono>
#include <optional>
#include <string>
#include <utility>

namespace rw::watcher_installer_test {
BOOST_AUTO_TEST_SUITE(global_inputs)

using namespace std::chrono_literals;
using test::eventually;
using watcher_installer::installer_options;
using state = runtime_state;

namespace {

const k8s::object_key gateway{"kcp-system", "klm-watcher"};
const k8s::object_key gateway_secret{"istio-system", "klm-istio-gateway"};

installer_options quick() {
  auto out = quick_options();
  out.input_patience = 100ms;
  return out;
}

asio::awaitable<void> set_hosts(world* w, json::array hosts) {
  json::value change = {
      {"spec",
       {{"servers", json::array{{{"hosts", std::move(hosts)}, {"port", {{"number", 443}}}}}}}}};
  co_await w->merge(gateways_type(), gateway, std::move(change));
}

/// What somebody on the runtime deletes comes back, with the last valid inputs.
asio::awaitable<void> check_repairs(world* w, std::string with) {
  for (const auto* const type : {&webhook_configurations, &deployments}) {
    const auto& key = type == &deployments ? deployment : configuration;
    co_await w->remove("skr", *type, key);
    const bool back = co_await w->until("skr", *type, key, is_there);
    BOOST_TEST(back);
  }
  const bool same = co_await w->until("skr", deployments, deployment, [&](const json::value& one) {
    return json::serialize(one).find(with) != std::string::npos;
  });
  BOOST_TEST(same, "the address is " << with);
  co_await w->set_ready("skr");
  w->installer->requeue({"kcp-system", "skr"});
  const bool ready =
      co_await eventually([w] { return w->installer->count(state::installed) == 1; });
  BOOST_TEST(ready);
}

asio::awaitable<void> until_error(world* w, status_reason reason, std::string text) {
  const bool told = co_await w->until_event("manager", "InputInvalid", text);
  BOOST_TEST(told, text);
  const auto errors = w->installer->input_errors();
  BOOST_TEST_REQUIRE(errors.size() == 1U);
  BOOST_TEST(errors.front().reason == reason);
  BOOST_TEST(errors.front().has_value);
  BOOST_TEST(w->metric("rw_watcher_installer_invalid_inputs") == 1);
  const bool installed =
      co_await eventually([w] { return w->installer->count(state::installed) == 1; });
  BOOST_TEST(installed);
  const auto* const known = w->tracker.find({"kcp-system", "skr"});
  BOOST_TEST((known != nullptr && !known->error));
}

asio::awaitable<void> until_valid(world* w) {
  const bool good =
      co_await eventually([w] { return w->metric("rw_watcher_installer_invalid_inputs") == 0; });
  BOOST_TEST(good);
  BOOST_TEST(w->installer->input_errors().empty());
}

}  // namespace

asio::awaitable<void> keeps_the_address(world* w) {
  co_await w->begin_with_runtime();
  json::array two{"one.example.com", "two.example.com"};
  co_await set_hosts(w, std::move(two));
  co_await until_error(
      w, status_reason::gateway_invalid,
      "Gateway klm-watcher has 2 hosts, not one; runtimes keep the last valid one");
  co_await check_repairs(w, "events.kcp.example.com:443");
  const auto kept = co_await w->api("kcp").get(gateways_type(), gateway);
  co_await w->remove("kcp", gateways_type(), gateway);
  co_await until_error(w, status_reason::gateway_invalid, "2 hosts");  // no second event
  co_await check_repairs(w, "events.kcp.example.com:443");
  // A valid one counts at once.
  auto again = test::object_of(gateways_type(), gateway.ns, gateway.name);
  again.as_object()["spec"] = kept->at("spec");
  again.at_pointer("/spec/servers/0").as_object()["hosts"] = json::array{"new.example.com"};
  co_await w->create("kcp", std::move(again), gateways_type());
  co_await until_valid(w);
  co_await check_repairs(w, "new.example.com:443");
}

BOOST_AUTO_TEST_CASE(runtimes_keep_the_address_when_its_gateway_is_damaged_or_deleted) {
  world w(quick());
  test::run(w.context, keeps_the_address(&w), 2 * test::patience);
}

/// As a manager with --shadow makes no Secret.
asio::awaitable<void> foresees_the_bundle(world* w) {
  co_await w->begin();
  auto& watchers = w->inform(watchers_type(), {});
  auto& gateways = w->inform(gateways_type(), {.objects = {.ns = "kcp-system"}});
  auto& routes = w->inform(virtual_services_type(), {.objects = {.ns = "kcp-system"}});
  auto& secrets = w->inform(secrets_type(), {.objects = {.ns = "istio-system"}});
  std::optional<tls::ca_bundle> planned;
  const auto foreseen = [&planned] { return planned; };
  const auto of_namespace = [&](const char* name) {
    return watcher_installer::global_inputs(gateways, secrets, watchers, routes, foreseen,
                                            {.gateway = "klm-watcher", .istio_namespace = name},
                                            w->clock);
  };
  for (auto* const each : {&watchers, &gateways, &routes, &secrets}) {
    const bool synced = co_await each->wait_synced();
    BOOST_REQUIRE(synced);
  }
  auto absent = of_namespace("nowhere");
  const auto before = absent.refresh();
  BOOST_TEST(!absent.trust());
  BOOST_TEST((absent.errors().front().reason == status_reason::ca_bundle_invalid));
  planned = tls::ca_bundle::parse(w->second.pem()).value();
  BOOST_TEST(absent.refresh() > before);
  BOOST_TEST((absent.trust() == planned));
  BOOST_TEST(absent.errors().empty());
  auto present = of_namespace("istio-system");
  present.refresh();
  BOOST_TEST((present.trust() == tls::ca_bundle::parse(w->first.pem()).value()));
}

BOOST_AUTO_TEST_CASE(bundle_that_a_dry_run_plans_is_in_force_until_there_is_one) {
  world w(quick());
  test::run(w.context, foresees_the_bundle(&w));
}

asio::awaitable<void> keeps_the_bundle(world* w) {
  co_await w->begin_with_runtime();
  const auto trusted = [w](std::string pem) {
    return w->until("skr", secrets_type(), {"kyma-system", "skr-webhook-tls"},
                    [pem](const json::value& one) {
                      return one.is_object() && k8s::secret_data(one, "ca.crt") == pem;
                    });
  };
  bool good = co_await trusted(w->first.pem());
  BOOST_TEST(good);
  // Somebody takes out the authority of what the gateway serves.
  co_await w->set_bundle(w->second.pem());
  co_await until_error(w, status_reason::ca_bundle_invalid,
                       "ca.crt lacks the authority of tls.crt");
  co_await check_repairs(w, "events.kcp.example.com");
  co_await w->set_bundle(w->first.pem());
  co_await until_valid(w);
  co_await w->set_bundle(w->first.pem() + "-----BEGIN CERTIFICATE-----\nAAAA\n");
  co_await until_error(w, status_reason::ca_bundle_invalid, "ca.crt is damaged");
  co_await check_repairs(w, "events.kcp.example.com");
  co_await w->remove("kcp", secrets_type(), gateway_secret);
  co_await check_repairs(w, "events.kcp.example.com");
  good = co_await trusted(w->first.pem());
  BOOST_TEST(good);
  co_await w->create("kcp", test::object_of(secrets_type(), gateway_secret.ns, gateway_secret.name),
                     secrets_type());
  co_await w->set_bundle(w->second.pem() + w->first.pem());
  co_await until_valid(w);
  good = co_await trusted(w->second.pem() + w->first.pem());
  BOOST_TEST(good);
}

BOOST_AUTO_TEST_CASE(runtimes_keep_the_bundle_when_it_is_damaged_or_deleted) {
  world w(quick());
  test::run(w.context, keeps_the_bundle(&w), 2 * test::patience);
}

/// A leader that has never seen a valid value holds still, and removes nothing.
asio::awaitable<void> holds_still(world* w) {
  co_await w->begin_with_runtime();
  const auto kept = co_await w->api("kcp").get(gateways_type(), gateway);
  co_await w->stop();
  co_await w->remove("kcp", gateways_type(), gateway);
  const auto writes = w->metric("rw_watcher_installer_writes_total");
  co_await w->take_over(quick());
  bool good = co_await w->until_event("skr", "WatcherFailed",
                                      "Gateway klm-watcher is not there, so the address for events "
                                      "is not known; until it is valid");
  BOOST_TEST(good);
  const auto errors = w->installer->input_errors();
  BOOST_TEST_REQUIRE(errors.size() == 1U);
  BOOST_TEST(!errors.front().has_value);
  const auto there = co_await w->api("skr").get(webhook_configurations, configuration);
  BOOST_TEST(there.has_value());
  BOOST_TEST(w->metric("rw_watcher_installer_writes_total") == writes);
  auto again = test::object_of(gateways_type(), gateway.ns, gateway.name);
  again.as_object()["spec"] = kept->at("spec");
  co_await w->create("kcp", std::move(again), gateways_type());
  good = co_await eventually([w] { return w->installer->count(state::installed) == 1; });
  BOOST_TEST(good);
  co_await until_valid(w);
}

BOOST_AUTO_TEST_CASE(leader_without_a_last_valid_address_holds_still_until_there_is_one) {
  world w(quick());
  test::run(w.context, holds_still(&w));
}

BOOST_AUTO_TEST_SUITE_END()
}  // namespace rw::watcher_installer_test
