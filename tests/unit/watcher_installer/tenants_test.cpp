// Of a hundred runtimes some are always ill.

#include "rw/k8s/objects/types.hpp"
#include "rw/reactors/gateway_secret/rotation.hpp"
#include "rw/reactors/shared/kyma_resources.hpp"
#include "rw/tls/certificate.hpp"

#include <boost/json/object.hpp>
#include <boost/test/unit_test.hpp>

#include "tests/unit/run.hpp"
#include "tests/unit/watcher_installer/world.hpp"
#include <algorithm>
#include <chrono>
#include <memory>
#include <string>
#include <vector>

namespace rw::watcher_installer_test {
BOOST_AUTO_TEST_SUITE(tenants)

using namespace std::chrono_literals;
using test::eventually;
using watcher_installer::installer_options;
using state = runtime_state;

namespace {

constexpr int well_ones = 97;

std::string well(int i) {
  return "well-" + std::to_string(i);
}

installer_options quick() {
  auto out = quick_options();
  out.runtime_limit = 2s;
  out.unhealthy_probe = 300ms;
  out.removal_limit = 1s;
  return out;
}

/// "revoked" rejects the credentials, "denied" all writes, and "gone" ends each connection.
k8s::devserver::fault illness(const std::string& cluster, const std::string& verb,
                              const std::string&) {
  if (cluster == "revoked") return {.status = 401};
  if (cluster == "denied" && !test::reads(verb)) return {.status = 403};
  return {.drop = cluster == "gone"};
}

}  // namespace

asio::awaitable<void> three_of_a_hundred(world* w) {
  co_await w->begin();
  co_await w->add_watcher("kyma", "lifecycle-manager", "spec");
  w->on_request = illness;
  const std::vector<std::string> ill{"revoked", "denied", "gone"};
  std::vector<std::string> all = ill;
  for (int i = 0; i < well_ones; ++i) all.push_back(well(i));
  for (const auto& name : all) {
    w->add_cluster(name);
    co_await w->add_kyma(name, w->kubeconfig(name));
  }
  for (int i = 0; i < well_ones; ++i) co_await w->set_ready(well(i));
  bool good =
      co_await eventually([w] { return w->installer->count(state::installed) == well_ones; });
  BOOST_REQUIRE(good);
  const auto shows = [w](const std::string& name, state is, status_reason why) {
    const auto* const found = w->installer->runtimes().find({"kcp-system", name});
    return found != nullptr && found->state == is && found->reason == why;
  };
  good = co_await eventually([&] {
    return shows("revoked", state::unreachable, status_reason::access_rejected) &&
           shows("denied", state::failed, status_reason::access_denied) &&
           shows("gone", state::unreachable, status_reason::runtime_unreachable);
  });
  BOOST_TEST(good, "each has the reason of its own");
  const auto writes = w->metric("rw_watcher_installer_writes_total");
  json::value skip{{"metadata", {{"labels", {{skip_label, "true"}}}}}};
  co_await w->merge(kymas_type(), {"kcp-system", "denied"}, std::move(skip));
  for (const auto& name : ill) {
    const auto removed = co_await w->api("kcp").remove(kymas_type(), {"kcp-system", name});
    BOOST_TEST(removed.has_value());
  }
  for (const auto& name : ill) {
    good = co_await w->until("kcp", kymas_type(), {"kcp-system", name}, test::is_gone);
    BOOST_TEST(good, name << " keeps no Kyma for ever");
  }
  BOOST_TEST(w->installer->count(state::installed) == std::size_t{well_ones});
  BOOST_TEST(w->metric("rw_watcher_installer_writes_total") == writes);
  w->on_request = {};
}

BOOST_AUTO_TEST_CASE(ill_ones_are_named_and_released_and_the_others_are_installed) {
  world w(quick());
  test::run(w.context, three_of_a_hundred(&w), 3 * test::patience);
}

namespace {

/// From the rotation on: "hangs", "revoked" (401), "denied" (403), "policy" (rejects each write).
k8s::devserver::fault illness_in_rotation(const std::string& cluster, const std::string& verb,
                                          const std::string& path) {
  if (cluster == "hangs") return {.latency = std::chrono::minutes(1)};
  if (cluster == "policy" && !test::reads(verb)) return {.status = 422};
  return illness(cluster, verb, path);
}

/// A tenant's client writes a webhook configuration in the name of lifecycle-manager.
asio::awaitable<void> forge(world* w, std::string cluster) {
  const k8s::object_key key{{}, "skr-webhook"};
  const auto present = co_await w->api(cluster).get(webhook_configurations, key);
  BOOST_REQUIRE(present.has_value());
  json::value forged = test::object_of(webhook_configurations, {}, "skr-webhook");
  auto webhooks = present->at("webhooks");
  for (auto& each : webhooks.as_array()) each.as_object()["timeoutSeconds"] = 11;
  forged.as_object()["webhooks"] = std::move(webhooks);
  const auto done =
      co_await w->api(cluster).apply(webhook_configurations, std::move(forged),
                                     {.field_manager = "lifecycle-manager", .force = true});
  BOOST_REQUIRE(done.has_value());
}

/// Whether each runtime trusts the first authority, which the gateway serves with, and the one that
/// its own certificate is of.
bool all_trust(world* w, const std::vector<std::string>& all) {
  const auto first = tls::certificate::from_pem(w->first.pem()).value().fingerprint();
  return std::ranges::all_of(all, [&](const auto& name) {
    const auto& observed = w->tracker.find({"kcp-system", name})->observed;
    return observed && observed->trusts(first) && observed->trusts(observed->client_issuer);
  });
}

}  // namespace

/// Installs the watcher on a hundred runtimes, those of these names and others; returns all names.
asio::awaitable<std::vector<std::string>> begin_with_hundred(world* w,
                                                             std::vector<std::string> names) {
  co_await w->begin();
  co_await w->add_watcher("kyma", "lifecycle-manager", "spec");
  for (int i = 0; names.size() < 100; ++i) names.push_back(well(i));
  for (const auto& name : names) {
    w->add_cluster(name);
    co_await w->add_kyma(name, w->kubeconfig(name));
  }
  for (const auto& name : names) co_await w->set_ready(name);
  const bool good =
      co_await eventually([&] { return w->installer->count(state::installed) == 100; });
  BOOST_REQUIRE(good);
  co_return names;
}

/// One of each fault holds up a rotation for as long as it is not excused, and no longer.
asio::awaitable<void> rotates_with_five_ill(world* w) {
  const std::vector<std::string> ill{"hangs", "revoked", "denied", "policy"};
  std::vector<std::string> named = ill;
  named.emplace_back("forged");
  const auto all = co_await begin_with_hundred(w, std::move(named));
  bool good = false;

  w->on_request = illness_in_rotation;
  co_await forge(w, "forged");
  w->certificates.use(w->second);
  co_await w->set_bundle(w->second.pem() + w->first.pem());
  const auto authority = tls::certificate::from_pem(w->second.pem()).value().fingerprint();
  const gateway_secret::trust_demand demand{
      .authority = authority, .newest = authority, .since = w->clock.wall()};
  const gateway_secret::rotation_options options{.propagation = 0s};
  const auto lack = [&](const std::string& name, std::chrono::hours later) {
    const auto* const known = w->tracker.find({"kcp-system", name});
    BOOST_REQUIRE(known != nullptr);
    return gateway_secret::lacks(*known, demand, options, w->clock.wall() + later);
  };
  const auto names = [&](std::chrono::hours later, bool excused) {
    std::vector<std::string> out;
    for (const auto& name : all) {
      const auto found = lack(name, later);
      if (!found.reason.empty() && found.excused == excused) out.push_back(name);
    }
    return out;
  };
  bool trust_holds = true;
  good = co_await eventually([&] {
    trust_holds = trust_holds && all_trust(w, all);
    return names(0h, false) == ill;
  });
  BOOST_TEST(trust_holds, "at each moment");
  BOOST_TEST(good, "96 have the new authority and certificates of it, the forged one among them");
  const auto shows = [w](const std::string& name, status_reason why) {
    const auto& error = w->tracker.find({"kcp-system", name})->error;
    return error && error->reason == why && error->fault == cluster_fault::tenant;
  };
  good = co_await eventually([&] {
    return shows("hangs", status_reason::runtime_unreachable) &&
           shows("revoked", status_reason::access_rejected) &&
           shows("denied", status_reason::access_denied) &&
           shows("policy", status_reason::write_rejected);
  });
  BOOST_TEST(good);
  BOOST_TEST(names(23h, false) == ill, boost::test_tools::per_element());
  BOOST_TEST(names(25h, false).empty());
  BOOST_TEST(names(25h, true) == ill, boost::test_tools::per_element());
  for (const auto& name : ill) {
    const auto& observed = w->tracker.find({"kcp-system", name})->observed;
    BOOST_TEST((observed && observed->authorities.size() == 1U), name << " is as it was");
  }
  w->on_request = {};
}

BOOST_AUTO_TEST_CASE(rotation_of_a_hundred_ends_after_the_excuse_of_those_that_are_ill) {
  auto with = quick();
  with.install.former_runs = std::make_shared<bool>(false);
  with.install.delays.propagation = 1s;
  world w(with);
  test::run(w.context, rotates_with_five_ill(&w), 4 * test::patience);
}

/// The issuer makes no certificate of the new authority, and three runtimes are ill by themselves.
asio::awaitable<void> rotates_without_issuer(world* w) {
  const std::vector<std::string> ill{"hangs", "revoked", "denied"};
  const auto all = co_await begin_with_hundred(w, ill);
  bool good = false;

  w->on_request = illness_in_rotation;
  co_await w->set_bundle(w->second.pem() + w->first.pem());
  const auto second = tls::certificate::from_pem(w->second.pem()).value().fingerprint();
  bool trust_holds = true;
  good = co_await eventually([&] {
    trust_holds = trust_holds && all_trust(w, all);
    return std::ranges::count_if(all, [&](const auto& name) {
             return w->tracker.find({"kcp-system", name})->observed->trusts(second);
           }) == 97;
  });
  BOOST_TEST(good, "those that are well trust the new authority");
  BOOST_TEST(trust_holds, "at each moment");
  const auto is_told = [&](const std::string& name) {
    return w->tracker.find({"kcp-system", name})->own_fault_since().has_value();
  };
  good = co_await eventually([&] { return std::ranges::all_of(ill, is_told); });
  BOOST_TEST(good);
  const gateway_secret::trust_demand demand{
      .authority = second, .newest = second, .since = w->clock.wall()};
  const gateway_secret::rotation_options options{.propagation = 0s};
  const auto waited_for = [&](const std::string& name) {
    const auto& known = *w->tracker.find({"kcp-system", name});
    const auto found = gateway_secret::lacks(known, demand, options, w->clock.wall() + 25h * 20);
    return !found.reason.empty() && !found.excused;
  };
  BOOST_TEST(std::ranges::count_if(all, waited_for) == 97, "the issuer's fault excuses nobody");
  w->on_request = {};
}

BOOST_AUTO_TEST_CASE(rotation_of_a_hundred_never_ends_while_the_issuer_is_down) {
  auto with = quick();
  with.install.delays.propagation = 1s;
  world w(with);
  test::run(w.context, rotates_without_issuer(&w), 4 * test::patience);
}

BOOST_AUTO_TEST_SUITE_END()
}  // namespace rw::watcher_installer_test
