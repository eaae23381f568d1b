// Two Kymas that claim one cluster.

#include "rw/k8s/objects/types.hpp"
#include "rw/reactors/shared/kyma_resources.hpp"

#include <boost/json/object.hpp>
#include <boost/test/unit_test.hpp>

#include "tests/unit/run.hpp"
#include "tests/unit/watcher_installer/world.hpp"
#include <chrono>
#include <string>

namespace rw::watcher_installer_test {
BOOST_AUTO_TEST_SUITE(duplicates)

using namespace std::chrono_literals;
using test::eventually;
using watcher_installer::installer_options;
using state = runtime_state;

namespace {

const k8s::object_key owner{"kcp-system", "skr"};
const k8s::object_key intruder{"kcp-system", "intruder"};

asio::awaitable<bool> until_identity(world* w, std::string cluster, std::string kyma) {
  const auto found = co_await w->until(
      std::move(cluster), secrets_type(), tls_secret, [w, kyma](const json::value& one) {
        return k8s::secret_data(one, "tls.crt") == w->certificates.certificate(kyma);
      });
  co_return found;
}

/// The version of the Secret with the identity.
asio::awaitable<std::string> identity_version(world* w) {
  const auto got = co_await w->api("skr").get(secrets_type(), tls_secret);
  co_return std::string(k8s::resource_version_of(got.value()));
}

/// Both Kymas are reconciled again, to the end.
asio::awaitable<void> reconcile_both(world* w) {
  for (int i = 0; i < 5; ++i) {
    const auto before = w->metric(
        "controller_runtime_reconcile_total{controller=\"watcher-installer\",result=\"success\"}");
    const auto passes = w->passes();
    w->installer->requeue(owner);
    w->installer->requeue(intruder);
    const bool done = co_await eventually([w, before, passes] {
      return w->passes() > passes &&
             w->metric(
                 "controller_runtime_reconcile_total{controller=\"watcher-installer\","
                 "result=\"success\"}") > before;
    });
    BOOST_REQUIRE(done);
  }
}

}  // namespace

asio::awaitable<void> leaves_the_owner(world* w) {
  co_await w->begin_with_runtime();
  co_await w->add_kyma("intruder", w->kubeconfig("skr"));
  bool good = co_await w->until_event("intruder", "WatcherFailed", "also Kyma skr");
  BOOST_TEST(good);
  const auto version = co_await identity_version(w);
  co_await reconcile_both(w);
  const auto after = co_await identity_version(w);
  BOOST_TEST(after == version, "the certificate alternates");
  BOOST_TEST(w->installer->count(state::installed) == 1U);
  BOOST_TEST(w->installer->runtimes().find(intruder)->reason == "DuplicateRuntime");
  BOOST_TEST(w->tracker.is_duplicate(intruder));
  BOOST_TEST(!w->tracker.is_duplicate(owner));

  // The duplicate is deleted: the owner's watcher stays.
  test::required(co_await w->api("kcp").remove(kymas_type(), intruder));
  good = co_await w->until("kcp", kymas_type(), intruder, is_gone);
  BOOST_TEST(good);
  const auto passes = w->passes();
  w->installer->requeue(owner);
  good = co_await eventually([w, passes] { return w->passes() > passes; });
  BOOST_TEST(good);
  const auto left = co_await identity_version(w);
  BOOST_TEST(left == version);
}

BOOST_AUTO_TEST_CASE(second_kyma_of_a_cluster_installs_and_removes_nothing) {
  world w(quick_options());
  test::run(w.context, leaves_the_owner(&w));
}

asio::awaitable<void> takes_over_after_deletion(world* w) {
  co_await w->begin_with_runtime();
  co_await w->add_kyma("intruder", w->kubeconfig("skr"));
  bool good = co_await w->until_event("intruder", "WatcherFailed", "also Kyma skr");
  BOOST_TEST(good);
  const auto got = co_await w->api("skr").get(deployments, deployment);
  const std::string uid(k8s::uid_of(got.value()));
  test::required(co_await w->api("kcp").remove(kymas_type(), owner));
  good = co_await w->until("kcp", kymas_type(), owner, is_gone);
  BOOST_TEST(good);
  good = co_await w->until_event("skr", "WatcherReleased", "Kyma intruder");
  BOOST_TEST(good);
  good = co_await until_identity(w, "skr", "intruder");
  BOOST_TEST(good);
  const auto now = co_await w->api("skr").get(deployments, deployment);
  BOOST_TEST(std::string(k8s::uid_of(now.value())) == uid, "the watcher was removed meanwhile");
  BOOST_TEST(!w->tracker.is_duplicate(intruder));
}

BOOST_AUTO_TEST_CASE(second_kyma_takes_over_when_the_owner_is_deleted) {
  world w(quick_options());
  test::run(w.context, takes_over_after_deletion(&w));
}

asio::awaitable<void> takes_over_after_a_move(world* w) {
  co_await w->begin_with_runtime();
  w->add_cluster("other");
  co_await w->add_kyma("intruder", w->kubeconfig("skr"));
  bool good = co_await w->until_event("intruder", "WatcherFailed", "also Kyma skr");
  BOOST_TEST(good);
  co_await w->set_kubeconfig("skr", "skr", w->kubeconfig("other"));
  good = co_await until_identity(w, "other", "skr");
  BOOST_TEST(good);
  good = co_await until_identity(w, "skr", "intruder");
  BOOST_TEST(good);
}

BOOST_AUTO_TEST_CASE(second_kyma_takes_over_when_the_owner_names_another_cluster) {
  world w(quick_options());
  test::run(w.context, takes_over_after_a_move(&w));
}

asio::awaitable<void> counts_the_runtime_id(world* w) {
  co_await w->begin_with_runtime();
  w->add_cluster("other");
  co_await w->set_kubeconfig("intruder", "intruder", w->kubeconfig("other"));
  auto kyma = test::object_of(kymas_type(), "kcp-system", "intruder");
  k8s::set_label(kyma, runtime_id_label, "runtime-of-skr");
  co_await w->create("kcp", std::move(kyma), kymas_type());
  bool good = co_await w->until_event("intruder", "WatcherFailed", "also Kyma skr");
  BOOST_TEST(good);
  const auto got = co_await w->api("other").get(deployments, deployment);
  BOOST_TEST(got.has_error());
  json::value change{{"metadata", {{"labels", {{runtime_id_label, "its-own"}}}}}};
  co_await w->merge(kymas_type(), intruder, std::move(change));
  good = co_await until_identity(w, "other", "intruder");
  BOOST_TEST(good);
}

BOOST_AUTO_TEST_CASE(second_kyma_of_a_runtime_id_installs_nothing_until_it_has_its_own) {
  world w(quick_options());
  test::run(w.context, counts_the_runtime_id(&w));
}

asio::awaitable<void> counts_kymas_out_of_scope(world* w) {
  co_await w->begin_with_runtime();
  auto with = quick_options();
  with.only = *k8s::label_selector::parse("canary=yes");
  co_await w->take_over(std::move(with));  // "skr" is out of scope now
  co_await w->set_kubeconfig("intruder", "intruder", w->kubeconfig("skr"));
  auto kyma = test::object_of(kymas_type(), "kcp-system", "intruder");
  k8s::set_label(kyma, runtime_id_label, "its-own");
  k8s::set_label(kyma, "canary", "yes");
  // The creation time, which decides without a record, has whole seconds.
  const auto second = std::chrono::floor<std::chrono::seconds>(std::chrono::system_clock::now());
  const bool later =
      co_await eventually([second] { return std::chrono::system_clock::now() >= second + 1s; });
  BOOST_TEST(later);
  co_await w->create("kcp", std::move(kyma), kymas_type());
  const bool good = co_await w->until_event("intruder", "WatcherFailed", "also Kyma skr");
  BOOST_TEST(good);
}

BOOST_AUTO_TEST_CASE(kyma_out_of_scope_keeps_its_cluster) {
  world w(quick_options());
  test::run(w.context, counts_kymas_out_of_scope(&w));
}

BOOST_AUTO_TEST_SUITE_END()
}  // namespace rw::watcher_installer_test
