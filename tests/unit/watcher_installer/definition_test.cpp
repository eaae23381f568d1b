// Whoever deletes a definition in KCP deletes all objects of its kind. That is no reason to take
// anything from the runtimes.

#include "rw/reactors/shared/definition.hpp"

#include "rw/k8s/objects/types.hpp"
#include "rw/reactors/shared/kyma_resources.hpp"

#include <boost/json/array.hpp>
#include <boost/json/object.hpp>
#include <boost/json/serialize.hpp>
#include <boost/test/unit_test.hpp>

#include "tests/unit/run.hpp"
#include "tests/unit/watcher_installer/world.hpp"
#include <chrono>
#include <memory>
#include <optional>
#include <string>
#include <utility>

namespace rw::watcher_installer_test {

BOOST_AUTO_TEST_SUITE(definition)

using namespace std::chrono_literals;
using test::definitions;
using test::eventually;
using watcher_installer::installer_options;
using state = runtime_state;

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

/// Times of an API server are whole seconds.
asio::awaitable<void> next_second() {
  const auto now = [] {
    return std::chrono::floor<std::chrono::seconds>(std::chrono::system_clock::now());
  };
  const bool later = co_await eventually([&now, since = now()] { return now() > since; });
  BOOST_REQUIRE(later);
}

/// From now on that object of KCP can't be read: its GETs, which are counted, get this status.
std::shared_ptr<int> refuse(world* w, const k8s::object_key& key, unsigned status) {
  auto out = std::make_shared<int>(0);
  w->server.faults("kcp").decide = [=](const std::string& verb, const std::string& path) {
    const bool is_asked = verb == "get" && path.ends_with("/" + key.name);
    if (is_asked) ++*out;
    return k8s::devserver::fault{.status = is_asked ? status : 0U};
  };
  return out;
}

/// Counts the requests for that object from now on.
std::shared_ptr<int> count_requests(world* w, const k8s::object_key& key) {
  auto out = std::make_shared<int>(0);
  w->server.faults("kcp").decide = [key, out](const std::string&, const std::string& path) {
    if (path.ends_with("/" + key.name)) ++*out;
    return k8s::devserver::fault{};
  };
  return out;
}

std::size_t webhooks_in(const json::value& configuration) {
  const auto* const all = k8s::find_array(configuration, {"webhooks"});
  return all == nullptr ? 0 : all->size();
}

asio::awaitable<bool> may_watch_nodes(world* w) {
  static const k8s::resource_type roles{
      {"rbac.authorization.k8s.io", "v1", "ClusterRole"}, "clusterroles", false};
  const bool there =
      co_await w->until("skr", roles, {{}, "skr-webhook"}, [](const json::value& one) {
        return json::serialize(one).find("\"nodes\"") != std::string::npos;
      });
  co_return there;
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
  bool good = co_await eventually([w] { return w->tracker.is_complete(); });
  BOOST_REQUIRE(good);
  const auto writes = w->metric("rw_watcher_installer_writes_total");
  auto definition = co_await withdraw(w, kymas_type());
  good = co_await w->until_event(
      "skr", "WatcherRemovalAbandoned",
      "The watcher may still be on the runtime: the definition of kymas is deleted");
  BOOST_TEST(good);
  BOOST_TEST(w->asked["skr"].writes > 0);
  BOOST_TEST(w->metric("rw_watcher_installer_writes_total") == writes);
  BOOST_TEST(w->certificates.removed.empty());
  BOOST_TEST(!w->tracker.is_complete(), "a rotation does not go on without it");
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
  BOOST_TEST(!w->tracker.is_complete(), "others may come back");
  good = co_await eventually([w] { return w->tracker.is_complete(); });
  BOOST_TEST(good);
}

BOOST_AUTO_TEST_CASE(runtimes_keep_the_watcher_when_the_definition_of_kymas_is_deleted) {
  auto with = quick_options();
  with.withdrawn_patience = 6s;
  with.input_patience = 100ms;
  world w(with);
  test::run(w.context, keeps_the_watcher(&w), 2 * test::patience);
}

/// A Kyma without the finalizer goes without a word.
asio::awaitable<void> waits_for_the_left_alone(world* w) {
  co_await w->begin();
  auto one = test::object_of(kymas_type(), kyma.ns, kyma.name);
  k8s::set_label(one, skip_label, "true");
  co_await w->create("kcp", std::move(one), kymas_type());
  bool good = co_await eventually([w] {
    const auto* const state = w->tracker.find(kyma);
    return w->tracker.is_complete() && state != nullptr && state->is_concerned();
  });
  BOOST_REQUIRE(good);
  co_await w->remove("kcp", kymas_type(), kyma);
  good = co_await eventually([w] { return w->tracker.find(kyma) == nullptr; });
  BOOST_TEST(good);
  good = co_await eventually([w] { return w->tracker.is_complete(); });
  BOOST_TEST(good, "it was deleted by itself");
  one = test::object_of(kymas_type(), kyma.ns, kyma.name);
  k8s::set_label(one, skip_label, "true");
  co_await w->create("kcp", std::move(one), kymas_type());
  good = co_await eventually([w] { return w->tracker.find(kyma) != nullptr; });
  BOOST_REQUIRE(good);
  co_await withdraw(w, kymas_type());
  good = co_await eventually([w] { return w->tracker.find(kyma) == nullptr; });
  BOOST_TEST(good);
  BOOST_TEST(!w->tracker.is_complete());
  const auto asked = count_requests(w, definition_of(kymas_type()));
  good = co_await eventually([asked] { return *asked >= 2; });
  BOOST_TEST(good);
  const auto refused = refuse(w, definition_of(kymas_type()), 403);
  good = co_await eventually([refused] { return *refused >= 3; });
  BOOST_TEST(good);
  BOOST_TEST(!w->tracker.is_complete(), "a right that is lost says nothing");
}

BOOST_AUTO_TEST_CASE(
    rotation_waits_for_runtimes_that_are_left_alone_when_their_kymas_are_withdrawn) {
  auto with = quick_options();
  with.input_patience = 100ms;
  world w(with);
  test::run(w.context, waits_for_the_left_alone(&w), 2 * test::patience);
}

/// The next leader knows of the Kymas by their certificates only.
asio::awaitable<void> waits_for_kymas_of_former_leaders(world* w) {
  w->watches_certificates = true;
  co_await w->begin_with_runtime();
  auto secret = test::object_of(secrets_type(), "istio-system", "skr-webhook-tls");
  k8s::set_label(secret, managed_by_label, "true");
  co_await w->create("kcp", std::move(secret), secrets_type());
  co_await w->stop();
  co_await w->merge(kymas_type(), kyma, {{"metadata", {{"finalizers", nullptr}}}});
  auto definition = co_await withdraw(w, kymas_type());
  co_await next_second();
  co_await w->create("kcp", std::move(definition), definitions);
  const auto asked = count_requests(w, definition_of(kymas_type()));
  auto with = quick_options();
  with.withdrawn_patience = 5s;
  with.input_patience = 100ms;
  co_await w->take_over(with);
  bool good = co_await eventually([&] { return *asked >= 3; });
  BOOST_TEST(good);
  BOOST_TEST(!w->tracker.is_complete());
  BOOST_TEST(w->certificates.removed.empty());
  good = co_await eventually([w] { return w->tracker.is_complete(); });
  BOOST_TEST(good);
  good = co_await eventually([w] { return !w->certificates.removed.empty(); });
  BOOST_TEST(good, "it has not come back");
}

BOOST_AUTO_TEST_CASE(next_leader_knows_of_withdrawn_kymas_by_their_certificates) {
  world w(quick_options());
  test::run(w.context, waits_for_kymas_of_former_leaders(&w), 2 * test::patience);
}

/// The definition can't be read, for as long as the deletion may take.
asio::awaitable<void> goes_without_an_answer(world* w) {
  co_await w->begin_with_runtime();
  refuse(w, definition_of(kymas_type()), 503);
  co_await w->remove("kcp", kymas_type(), kyma);
  const bool good = co_await w->until("kcp", kymas_type(), kyma, is_gone);
  BOOST_TEST(good);
  const bool told = co_await w->until_event("skr", "WatcherRemovalAbandoned");
  BOOST_TEST(told);
  BOOST_TEST(w->certificates.removed.empty(), "it may have gone with its definition");
}

BOOST_AUTO_TEST_CASE(kyma_does_not_stay_when_its_definition_can_not_be_read) {
  auto with = quick_options();
  with.removal_limit = 2s;
  world w(with);
  test::run(w.context, goes_without_an_answer(&w), 2 * test::patience);
}

/// Another Kyma claims the cluster; why the owner goes can't be found out.
asio::awaitable<void> goes_to_its_heir(world* w) {
  co_await w->begin_with_runtime();
  co_await w->add_kyma("heir", w->kubeconfig("skr"));
  bool good = co_await eventually([w] { return w->tracker.is_duplicate({"kcp-system", "heir"}); });
  BOOST_REQUIRE(good);
  refuse(w, definition_of(kymas_type()), 503);
  co_await w->remove("kcp", kymas_type(), kyma);
  good = co_await w->until("kcp", kymas_type(), kyma, is_gone);
  BOOST_TEST(good);
  good = co_await w->until_event("skr", "WatcherReleased");
  BOOST_TEST(good);
  BOOST_TEST(w->certificates.removed.empty(), "it may have gone with its definition");
}

BOOST_AUTO_TEST_CASE(kyma_with_an_heir_does_not_stay_when_its_definition_can_not_be_read) {
  world w(quick_options());
  test::run(w.context, goes_to_its_heir(&w), 2 * test::patience);
}

/// Of thousands of orphaned certificates none asks for its Kyma while there can be none.
asio::awaitable<void> asks_for_no_withdrawn_kyma(world* w) {
  w->watches_certificates = true;
  int reconciles = 0;
  w->on_reconcile = [&reconciles](const k8s::object_key&) { ++reconciles; };
  co_await w->begin_with_runtime();
  auto secret = test::object_of(secrets_type(), "istio-system", "skr-webhook-tls");
  k8s::set_label(secret, managed_by_label, "true");
  co_await w->create("kcp", std::move(secret), secrets_type());
  co_await withdraw(w, kymas_type());
  bool good = co_await eventually([w] { return w->tracker.find(kyma) == nullptr; });
  BOOST_TEST(good);
  const auto* const failed =
      "controller_runtime_reconcile_errors_total{controller=\"watcher-installer\"}";
  const auto failures = w->metric(failed);
  const auto before = reconciles;
  w->installer->requeue(kyma);
  good = co_await eventually([&] { return reconciles > before; });
  BOOST_TEST(good);
  good = co_await eventually([w] { return !w->tracker.is_complete(); });
  BOOST_TEST(good);
  BOOST_TEST(w->certificates.removed.empty());
  BOOST_TEST(w->metric(failed) == failures, "a list of Kymas is refused");
}

BOOST_AUTO_TEST_CASE(certificates_of_withdrawn_kymas_ask_for_none) {
  world w(quick_options());
  test::run(w.context, asks_for_no_withdrawn_kyma(&w), 2 * test::patience);
}

/// A leader that starts while there is no definition has seen no Watcher.
asio::awaitable<void> keeps_the_unknown(world* w) {
  co_await w->begin_with_runtime();
  co_await w->add_watcher("other", "other-manager", "spec");
  json::value nodes{{"group", ""}, {"version", "v1"}, {"resource", "nodes"}};
  co_await w->merge(watchers_type(), {"kcp-system", "other"},
                    {{"spec", {{"resourceToWatch", std::move(nodes)}}}});
  bool good = co_await until_webhooks(w, 2);
  BOOST_REQUIRE(good);
  good = co_await may_watch_nodes(w);
  BOOST_REQUIRE(good);
  co_await w->stop();
  auto definition = co_await withdraw(w, watchers_type());
  auto with = quick_options();
  with.withdrawn_patience = 6s;
  with.input_patience = 100ms;
  co_await w->take_over(with);
  const auto passes = w->passes();
  co_await w->create("kcp", std::move(definition), definitions);
  co_await w->add_watcher("kyma", "lifecycle-manager", "spec");
  good = co_await eventually(
      [&] { return w->passes() > passes && w->installer->count(state::installed) == 1; });
  BOOST_TEST(good);
  auto there = test::required(co_await w->api("skr").get(webhook_configurations, configuration));
  BOOST_TEST(webhooks_in(there) == 2U);
  good = co_await may_watch_nodes(w);
  BOOST_TEST(good);
  // What this leader has seen goes when it is deleted.
  co_await w->add_watcher("third", "third-manager", "spec");
  good = co_await until_webhooks(w, 3);
  BOOST_TEST(good);
  co_await w->remove("kcp", watchers_type(), {"kcp-system", "third"});
  good = co_await until_webhooks(w, 2);
  BOOST_TEST(good);
  good = co_await until_webhooks(w, 1);
  BOOST_TEST(good, "the other has not come back");
}

BOOST_AUTO_TEST_CASE(next_leader_keeps_webhooks_of_watchers_that_were_withdrawn_before_it) {
  world w(quick_options());
  test::run(w.context, keeps_the_unknown(&w), 2 * test::patience);
}

/// A runtime that is reconciled meanwhile has it in neither list.
asio::awaitable<void> is_unknown_for_those_that_began(world* w) {
  co_await w->begin();
  auto& watchers = w->inform(watchers_type(), {});
  auto& gateways = w->inform(gateways_type(), {.objects = {.ns = "kcp-system"}});
  auto& routes = w->inform(virtual_services_type(), {.objects = {.ns = "kcp-system"}});
  auto& secrets = w->inform(secrets_type(), {.objects = {.ns = "istio-system"}});
  watcher_installer::global_inputs inputs(gateways, secrets, watchers, routes, {}, {}, w->clock);
  const bool synced = co_await watchers.wait_synced();
  BOOST_REQUIRE(synced);
  inputs.refresh();
  const auto before = inputs.unknown_webhooks();
  BOOST_TEST_REQUIRE(static_cast<bool>(before));
  const std::string name = "kcp-system.kyma.operator.kyma-project.io";
  BOOST_TEST(before(name));
  BOOST_TEST(!before("mine.example.com"));
  co_await w->add_watcher("kyma", "lifecycle-manager", "spec");
  const bool seen = co_await eventually([&] {
    inputs.refresh();
    return inputs.watchers().size() == 1;
  });
  BOOST_TEST(seen);
  BOOST_TEST(before(name));
  BOOST_TEST(!inputs.unknown_webhooks()(name));
  inputs.end_unknown();
  BOOST_TEST(!inputs.unknown_webhooks());
}

BOOST_AUTO_TEST_CASE(watcher_that_returns_stays_unknown_for_reconciles_that_began_before) {
  world w(quick_options());
  test::run(w.context, is_unknown_for_those_that_began(&w));
}

/// It is deleted again before it is old.
asio::awaitable<void> keeps_the_unknown_longer(world* w) {
  co_await w->begin_with_runtime();
  co_await w->stop();
  const auto key = definition_of(watchers_type());
  co_await w->create("kcp", co_await withdraw(w, watchers_type()), definitions);
  auto with = quick_options();
  with.withdrawn_patience = 4s;
  with.input_patience = 100ms;
  co_await w->take_over(with);
  bool good = co_await eventually([w] { return w->installer->count(state::installed) == 1; });
  BOOST_TEST(good);
  auto definition = co_await withdraw(w, watchers_type());
  const auto asked = count_requests(w, key);
  // One each 100 ms.
  good = co_await eventually([asked] { return *asked >= 50; });
  BOOST_TEST(good);
  w->installer->requeue(kyma);
  const auto passes = w->passes();
  good = co_await eventually([w, passes] { return w->passes() > passes; });
  BOOST_TEST(good);
  const auto there =
      test::required(co_await w->api("skr").get(webhook_configurations, configuration));
  BOOST_TEST(webhooks_in(there) == 1U);
  co_await w->create("kcp", std::move(definition), definitions);
  good = co_await until_webhooks(w, 0);
  BOOST_TEST(good, "when it is old");
}

BOOST_AUTO_TEST_CASE(next_leader_keeps_webhooks_while_the_definition_goes_again) {
  world w(quick_options());
  test::run(w.context, keeps_the_unknown_longer(&w), 2 * test::patience);
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
  // A lost right says nothing new.
  const auto asked = refuse(w, definition_of(watchers_type()), 403);
  good = co_await eventually([asked] { return *asked >= 2; });
  BOOST_TEST(good);
  good = co_await missing("2 Watchers are gone");
  BOOST_TEST(good);
  w->server.faults("kcp").decide = nullptr;
  co_await w->create("kcp", std::move(definition), definitions);
  co_await w->add_watcher("kyma", "lifecycle-manager", "spec");
  good = co_await missing("1 Watcher is gone");
  BOOST_TEST(good, "the other is back");
  const auto there =
      test::required(co_await w->api("skr").get(webhook_configurations, configuration));
  BOOST_TEST(webhooks_in(there) == 2U);
}

BOOST_AUTO_TEST_CASE(runtimes_keep_webhooks_when_the_definition_of_watchers_is_deleted) {
  auto with = quick_options();
  with.input_patience = 100ms;
  world w(with);
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

asio::awaitable<void> tells_by_times(world* w) {
  co_await w->begin();
  const auto since = test::required(co_await find_definition_time(w->api("kcp"), kymas_type()));
  BOOST_TEST_REQUIRE(since.has_value());
  const auto state_of =
      [w, at = *since](
          std::chrono::seconds created,
          std::optional<std::chrono::seconds> deleted) -> asio::awaitable<definition_state> {
    object_times times{.created = at + created};
    if (deleted) times.deleted = at + *deleted;
    const auto got = co_await find_definition_state(w->api("kcp"), kymas_type(), times);
    co_return test::required(got);
  };
  using enum definition_state;
  BOOST_TEST((co_await state_of(5s, 9s) == in_force));
  BOOST_TEST((co_await state_of(0s, 0s) == in_force), "in one second with the definition");
  BOOST_TEST((co_await state_of(-60s, -30s) == renewed));
  BOOST_TEST((co_await state_of(-60s, 0s) == renewed));
  BOOST_TEST((co_await state_of(-60s, std::nullopt) == renewed));
  BOOST_TEST((co_await state_of(-60s, 5s) == in_force), "it outlived the definition before");
  refuse(w, definition_of(kymas_type()), 403);
  BOOST_TEST((co_await state_of(5s, 9s) == unknown));
  w->server.faults("kcp").decide = nullptr;
  co_await withdraw(w, kymas_type());
  BOOST_TEST((co_await state_of(5s, 9s) == withdrawn));
}

BOOST_AUTO_TEST_CASE(definition_decides_by_when_an_object_was_created_and_deleted) {
  world w(quick_options());
  test::run(w.context, tells_by_times(&w));
}

BOOST_AUTO_TEST_SUITE_END()
}  // namespace rw::watcher_installer_test
