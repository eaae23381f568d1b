// What the pods of a runtime say, and what they are told.

#include "rw/k8s/objects/manifests.hpp"
#include "rw/k8s/objects/types.hpp"

#include <boost/json/array.hpp>
#include <boost/json/object.hpp>
#include <boost/test/unit_test.hpp>

#include "tests/unit/run.hpp"
#include "tests/unit/watcher_installer/world.hpp"
#include <chrono>
#include <optional>
#include <string>
#include <utility>

namespace rw::watcher_installer_test {
BOOST_AUTO_TEST_SUITE(pods)

using namespace std::chrono_literals;
using test::eventually;

namespace {

const auto pods_type = *k8s::well_known_type("v1", "Pod");
const k8s::object_key pod{"kyma-system", "skr-webhook-1"};
const k8s::object_key kyma{"kcp-system", "skr"};

asio::awaitable<void> add_pod(world* w, std::string name, std::string phase) {
  const k8s::object_key key{pod.ns, std::move(name)};
  json::object labels{{"app", "skr-webhook"}};
  json::object metadata{{"name", key.name}, {"namespace", key.ns}, {"labels", std::move(labels)}};
  json::value container{{"name", "server"}, {"image", "i"}};
  json::value object = json::object{{"apiVersion", "v1"},
                                    {"kind", "Pod"},
                                    {"metadata", std::move(metadata)},
                                    {"spec", {{"containers", json::array{std::move(container)}}}}};
  co_await w->create("skr", std::move(object), pods_type);
  json::value change{{"status", {{"phase", phase}}}};
  co_await w->must(w->api("skr").patch(pods_type, key, k8s::patch_type::merge, std::move(change),
                                       {.subresource = "status"}));
}

asio::awaitable<void> begin_with_pod(world* w) {
  co_await w->begin_with_runtime();
  co_await add_pod(w, pod.name, "Running");
}

bool has_two_webhooks(const json::value& one) {
  const auto* webhooks = k8s::find(one, {"webhooks"});
  return webhooks != nullptr && webhooks->as_array().size() == 2;
}

std::string version_of(const json::value& one) {
  const auto told = k8s::annotation(one, watcher_installer::secret_version_annotation);
  return std::string(told);
}

/// What the pod says if it has loaded what is in the Secret.
pod_report report_of(const json::value& secret, std::string name) {
  const auto file = k8s::secret_data(secret, watcher_installer::managers_entry).value_or("");
  return {.pod = std::move(name),
          .managers_digest = managers_digest(file),
          .heard = std::chrono::system_clock::now() + 1min};
}

bool knows_warden(const json::value& secret) {
  const auto file = k8s::secret_data(secret, watcher_installer::managers_entry).value_or("");
  return file.find("warden") != std::string::npos;
}

}  // namespace

asio::awaitable<void> tells_pods(world* w) {
  co_await begin_with_pod(w);
  co_await w->add_watcher("other", "warden", "status");
  bool good = co_await w->until("skr", secrets_type(), tls_secret, knows_warden);
  BOOST_REQUIRE(good);
  const auto secret = co_await w->must(w->api("skr").get(secrets_type(), tls_secret));
  const auto newest = std::string(k8s::resource_version_of(secret));
  good = co_await w->until("skr", pods_type, pod,
                           [&](const json::value& one) { return version_of(one) == newest; });
  BOOST_TEST(good);
}

BOOST_AUTO_TEST_CASE(pods_are_told_of_a_changed_secret) {
  world w(quick_options());
  test::run(w.context, tells_pods(&w));
}

/// The review of the right is answered that there is none.
asio::awaitable<void> tells_nothing(world* w) {
  co_await begin_with_pod(w);
  int reviews = 0;
  int patches = 0;
  w->on_request = [&](const std::string& cluster, const std::string& verb,
                      const std::string& path) -> k8s::devserver::fault {
    if (cluster != "skr") return {};
    const bool review = path.find("selfsubjectaccessreviews") != std::string::npos;
    if (review) ++reviews;
    if (verb == "patch" && path.find("/pods/") != std::string::npos) ++patches;
    return review ? k8s::devserver::fault{.status = 403} : k8s::devserver::fault{};
  };
  co_await w->add_watcher("other", "warden", "status");
  // Nothing depends on it.
  const bool good =
      co_await w->until("skr", webhook_configurations, configuration, has_two_webhooks);
  BOOST_TEST(good);
  BOOST_TEST(reviews > 0);
  BOOST_TEST(patches == 0);
}

BOOST_AUTO_TEST_CASE(pods_are_left_alone_without_the_right_to_patch_them) {
  world w(quick_options());
  test::run(w.context, tells_nothing(&w));
}

/// An admission webhook of the runtime's owner hangs for pods.
asio::awaitable<void> tells_in_vain(world* w) {
  bool was_unhealthy = false;
  w->on_reconcile = [&](const k8s::object_key&) {
    was_unhealthy = was_unhealthy || w->installer->runtimes().unhealthy(kyma);
  };
  co_await begin_with_pod(w);
  int patches = 0;
  w->on_request = [&](const std::string&, const std::string& verb, const std::string& path) {
    const bool hangs = verb == "patch" && path.find("/pods/") != std::string::npos;
    if (hangs) ++patches;
    return k8s::devserver::fault{.latency = hangs ? 15s : 0s};
  };
  co_await w->add_watcher("other", "warden", "status");
  const bool good =
      co_await w->until("skr", webhook_configurations, configuration, has_two_webhooks);
  BOOST_TEST(good);
  BOOST_TEST(patches > 0);
  BOOST_TEST(!was_unhealthy);
  w->on_request = {};
}

BOOST_AUTO_TEST_CASE(pods_that_hang_when_they_are_told_fail_no_reconcile) {
  auto with = quick_options();
  with.prompt_limit = 4s;
  world w(with);
  test::run(w.context, tells_in_vain(&w));
}

/// The write of the Secret, before that of the webhook configuration, takes its time.
asio::awaitable<void> grows_slowly(world* w) {
  co_await w->begin_with_runtime();
  std::chrono::system_clock::time_point written = {};
  w->on_request = [&](const std::string&, const std::string& verb, const std::string& path) {
    const bool slow = verb == "patch" && path.ends_with("/secrets/skr-webhook-tls");
    if (slow) written = std::chrono::system_clock::now();
    return k8s::devserver::fault{.latency = slow ? 700ms : 0ms};
  };
  const auto since = [](const json::value& one) {
    return k8s::parse_rfc3339(k8s::annotation(one, watcher_installer::bundle_since_annotation));
  };
  const auto before = co_await w->must(w->api("skr").get(webhook_configurations, configuration));
  co_await w->set_bundle(w->second.pem() + w->first.pem());
  std::optional<std::chrono::system_clock::time_point> stamped;
  const bool good =
      co_await w->until("skr", webhook_configurations, configuration, [&](const json::value& one) {
        stamped = since(one);
        return stamped != since(before);
      });
  BOOST_REQUIRE(good);
  BOOST_TEST((*stamped >= written + 700ms), "the replicas have their time from the write on");
  w->on_request = {};
}

BOOST_AUTO_TEST_CASE(bundle_counts_from_its_write_on) {
  world w(quick_options());
  test::run(w.context, grows_slowly(&w));
}

/// The running pod says that it has loaded what is new; another one, if any, says nothing. The
/// webhooks follow, `at_least` after the Watcher.
asio::awaitable<void> hears(world* w, std::string phase_of_other, core::duration at_least = {}) {
  co_await begin_with_pod(w);
  if (!phase_of_other.empty()) co_await add_pod(w, "skr-webhook-2", std::move(phase_of_other));
  const auto begun = std::chrono::steady_clock::now();
  co_await w->add_watcher("other", "warden", "status");
  bool good = co_await w->until("skr", secrets_type(), tls_secret, knows_warden);
  BOOST_REQUIRE(good);
  const auto secret = co_await w->must(w->api("skr").get(secrets_type(), tls_secret));
  w->reports = {report_of(secret, pod.name)};
  w->installer->on_reloaded(kyma);
  good = co_await w->until("skr", webhook_configurations, configuration, has_two_webhooks);
  BOOST_TEST(good);
  BOOST_TEST((std::chrono::steady_clock::now() - begun >= at_least));
}

watcher_installer::installer_options waits_for(std::chrono::seconds propagation) {
  auto out = quick_options();
  out.install.delays.propagation = propagation;
  return out;
}

/// Longer than any test: only the word of pods ends the wait.
constexpr std::chrono::seconds forever = 1h;

BOOST_AUTO_TEST_CASE(word_of_the_only_pod_ends_the_wait) {
  world w(waits_for(forever));
  test::run(w.context, hears(&w, ""));
}

BOOST_AUTO_TEST_CASE(pod_that_is_starting_has_to_speak_too) {
  world w(waits_for(5s));
  test::run(w.context, hears(&w, "Pending", 4s));
}

BOOST_AUTO_TEST_CASE(pod_that_has_ended_is_not_waited_for) {
  world w(waits_for(forever));
  test::run(w.context, hears(&w, "Failed"));
}

asio::awaitable<void> hears_often(world* w) {
  int reconciled = 0;
  w->on_reconcile = [&](const k8s::object_key&) { ++reconciled; };
  co_await begin_with_pod(w);
  co_await w->add_watcher("other", "warden", "status");
  bool good = co_await w->until("skr", secrets_type(), tls_secret, knows_warden);
  BOOST_REQUIRE(good);
  good = co_await eventually([w] {
    return w->metric("controller_runtime_active_workers{controller=\"watcher-installer\"}") == 0;
  });
  BOOST_REQUIRE(good);
  const auto before = reconciled;
  for (int i = 0; i < 100; ++i) w->installer->on_reloaded(kyma);
  good = co_await eventually([&] { return reconciled > before + 1; });
  BOOST_TEST(good);  // at once, and for all the others half a second later
  BOOST_TEST(reconciled == before + 2);
}

BOOST_AUTO_TEST_CASE(words_of_a_hostile_runtime_cause_two_reconciles_a_second) {
  world w(waits_for(forever));
  test::run(w.context, hears_often(&w));
}

BOOST_AUTO_TEST_SUITE_END()
}  // namespace rw::watcher_installer_test
