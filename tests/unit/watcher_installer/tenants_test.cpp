// Of a hundred runtimes some are always ill.

#include "rw/k8s/objects/types.hpp"
#include "rw/reactors/shared/kyma_resources.hpp"

#include <boost/json/object.hpp>
#include <boost/test/unit_test.hpp>

#include "tests/unit/run.hpp"
#include "tests/unit/watcher_installer/world.hpp"
#include <chrono>
#include <string>
#include <vector>

namespace rw::watcher_installer_test {
BOOST_AUTO_TEST_SUITE(tenants)

using namespace std::chrono_literals;
using test::eventually;
using watcher_installer::options;
using watcher_installer::state;

namespace {

constexpr int well_ones = 97;

std::string well(int i) {
  return "well-" + std::to_string(i);
}

options quick() {
  options out;
  out.ready_interval = 50ms;
  out.ready_interval_limit = 200ms;
  out.backoff_base = 50ms;
  out.backoff_limit = 500ms;
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

BOOST_AUTO_TEST_SUITE_END()
}  // namespace rw::watcher_installer_test
