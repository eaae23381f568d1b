// Whoever deletes a definition in KCP deletes all objects of its kind. That is no reason to take
// anything from the runtimes.

#include "rw/k8s/objects/types.hpp"
#include "rw/reactors/shared/kyma_resources.hpp"

#include <boost/json/array.hpp>
#include <boost/json/object.hpp>
#include <boost/json/serialize.hpp>
#include <boost/test/unit_test.hpp>

#include "tests/unit/run.hpp"
#include "tests/unit/watcher_installer/world.hpp"
#include <chrono>
#include <string>
#include <utility>

namespace rw::watcher_installer_test {

BOOST_AUTO_TEST_SUITE(definition)

using namespace std::chrono_literals;
using test::definitions;
using test::eventually;
using watcher_installer::options;
using watcher_installer::state;

namespace {

const k8s::object_key kyma{"kcp-system", "skr"};
const k8s::object_key watcher_key{"kcp-system", "kyma"};

k8s::object_key definition_of(const k8s::resource_type& type) {
  return {{}, type.plural + "." + type.gvk.group};
}

/// Deletes the definition of a kind, with all objects, and returns it once it is gone.
asio::awaitable<json::value> withdraw(world* w, k8s::resource_type type) {
  const auto key = definition_of(type);
  auto out = test::required(co_await w->api("kcp").get(definitions, key));
  co_await w->remove("kcp", definitions, key);
  const bool gone = co_await w->until("kcp", definitions, key, is_gone);
  BOOST_REQUIRE(gone);
  for (const auto* const field : {"resourceVersion", "uid", "creationTimestamp", "managedFields"}) {
    out.at("metadata").as_object().erase(field);
  }
  out.as_object().erase("status");
  co_return out;
}

std::size_t webhooks_in(const json::value& configuration) {
  const auto* const all = k8s::find_array(configuration, {"webhooks"});
  return all == nullptr ? 0 : all->size();
}

asio::awaitable<bool> until_webhooks(world* w, std::size_t count) {
  const bool there =
      co_await w->until("skr", webhook_configurations, configuration,
                        [count](const json::value& one) { return webhooks_in(one) == count; });
  co_return there;
}

}  // namespace

asio::awaitable<void> keeps_the_watcher(world* w) {
  co_await w->begin_with_runtime();
  const auto writes = w->metric("rw_watcher_installer_writes_total");
  auto definition = co_await withdraw(w, kymas_type());
  bool good = co_await w->until_event(
      "skr", "WatcherRemovalAbandoned",
      "The watcher may still be on the runtime: the definition of kymas is deleted");
  BOOST_TEST(good);
  BOOST_TEST(w->asked["skr"].writes > 0);
  BOOST_TEST(w->metric("rw_watcher_installer_writes_total") == writes);
  for (const auto& [type, key] :
       {std::pair{deployments, deployment}, std::pair{webhook_configurations, configuration},
        std::pair{secrets_type(), tls_secret}}) {
    const auto there = co_await w->api("skr").get(type, key);
    BOOST_TEST(there.has_value(), type.plural);
  }
  co_await w->create("kcp", std::move(definition), definitions);
  auto again = test::object_of(kymas_type(), kyma.ns, kyma.name);
  k8s::set_label(again, runtime_id_label, "runtime-of-skr");
  co_await w->create("kcp", std::move(again), kymas_type());
  good = co_await eventually([w] { return w->installer->count(state::installed) == 1; });
  BOOST_TEST(good, "without a restart");
}

BOOST_AUTO_TEST_CASE(runtimes_keep_the_watcher_when_the_definition_of_kymas_is_deleted) {
  world w(quick_options());
  test::run(w.context, keeps_the_watcher(&w), 2 * test::patience);
}

asio::awaitable<void> keeps_the_webhooks(world* w) {
  co_await w->begin_with_runtime();
  co_await w->add_watcher("other", "other-manager", "spec");
  bool good = co_await until_webhooks(w, 2);
  BOOST_REQUIRE(good);
  auto definition = co_await withdraw(w, watchers_type());
  const auto missing = [w](std::string text) {
    return eventually([w, text] {
      const auto errors = w->installer->input_errors();
      return errors.size() == 1 && errors.front().has_value &&
             errors.front().reason == status_reason::watchers_withdrawn &&
             errors.front().message.starts_with(text);
    });
  };
  good = co_await missing("2 Watchers are gone");
  BOOST_TEST_REQUIRE(good);
  // What somebody deletes meanwhile comes back with both webhooks.
  co_await w->remove("skr", webhook_configurations, configuration);
  good = co_await until_webhooks(w, 2);
  BOOST_TEST(good);
  co_await w->create("kcp", std::move(definition), definitions);
  co_await w->add_watcher("kyma", "lifecycle-manager", "spec");
  good = co_await missing("1 Watcher is gone");
  BOOST_TEST(good, "the other is back");
  const auto there =
      test::required(co_await w->api("skr").get(webhook_configurations, configuration));
  BOOST_TEST(webhooks_in(there) == 2U);
}

BOOST_AUTO_TEST_CASE(runtimes_keep_webhooks_when_the_definition_of_watchers_is_deleted) {
  world w(quick_options());
  test::run(w.context, keeps_the_webhooks(&w), 2 * test::patience);
}

asio::awaitable<void> drops_them_later(world* w) {
  co_await w->begin_with_runtime();
  auto definition = co_await withdraw(w, watchers_type());
  bool good = co_await eventually([w] { return w->installer->input_errors().size() == 1; });
  BOOST_TEST_REQUIRE(good);
  co_await w->create("kcp", std::move(definition), definitions);
  good = co_await until_webhooks(w, 0);
  BOOST_TEST(good, "nobody has created it again");
  good = co_await eventually([w] { return w->installer->input_errors().empty(); });
  BOOST_TEST(good);
}

BOOST_AUTO_TEST_CASE(webhooks_go_a_while_after_the_definition_of_watchers_is_back) {
  auto with = quick_options();
  with.withdrawn_patience = 300ms;
  with.input_patience = 100ms;
  world w(with);
  test::run(w.context, drops_them_later(&w), 2 * test::patience);
}

asio::awaitable<void> removes_the_deleted(world* w) {
  co_await w->begin_with_runtime();
  co_await w->add_watcher("other", "other-manager", "spec");
  bool good = co_await until_webhooks(w, 2);
  BOOST_REQUIRE(good);
  co_await w->remove("kcp", watchers_type(), {"kcp-system", "other"});
  good = co_await until_webhooks(w, 1);
  BOOST_TEST(good);
  BOOST_TEST(w->installer->input_errors().empty());
}

BOOST_AUTO_TEST_CASE(webhook_goes_with_its_watcher) {
  world w(quick_options());
  test::run(w.context, removes_the_deleted(&w));
}

BOOST_AUTO_TEST_SUITE_END()
}  // namespace rw::watcher_installer_test
