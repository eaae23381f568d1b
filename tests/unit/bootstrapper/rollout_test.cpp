// New content comes to runtimes in the order of a roll-out.

#include "rw/k8s/objects/manifests.hpp"
#include "rw/k8s/objects/types.hpp"
#include "rw/reactors/runtime_rollout/runtime_rollout.hpp"
#include "rw/reactors/shared/fleet_verdict.hpp"
#include "rw/reactors/shared/kyma_resources.hpp"

#include <boost/json/array.hpp>
#include <boost/json/object.hpp>
#include <boost/json/parse.hpp>
#include <boost/json/serialize.hpp>
#include <boost/test/unit_test.hpp>

#include "tests/unit/bootstrapper/landscape.hpp"
#include "tests/unit/run.hpp"
#include <functional>
#include <memory>
#include <optional>
#include <set>
#include <string>
#include <vector>

namespace rw::bootstrapper_test {
BOOST_AUTO_TEST_SUITE(rollout)

using namespace std::chrono_literals;

asio::awaitable<void> crash_stays_with_canaries(landscape* land) {
  co_await land->begin();
  const auto begin = land->clock.now();
  co_await land->set_version("crash");
  co_await land->until_rollout([](const json::value& one) {
    return landscape::phase(one) == "Paused" && landscape::reason(one) == "CanaryFailed";
  });
  BOOST_TEST((land->clock.now() - begin < 30s));
  // Credentials go everywhere at once, whatever is paused.
  const auto rotated = pull_secret("rotated");
  co_await land->set_source(rotated);
  for (const auto& name : land->names) {
    co_await land->until(name, secrets_type(), credentials, [&](const json::value& one) {
      return one.is_object() && one.at("data") == rotated.at("data");
    });
  }
  auto crashing = co_await land->count("crash");
  BOOST_TEST(crashing >= 1U);
  BOOST_TEST(crashing <= 2U);
  // Runtimes that wait keep what they have, also where it is changed by hand.
  const auto waiting = co_await land->runtime_with("1.0.0");
  BOOST_TEST_REQUIRE(!waiting.empty());
  co_await land->remove(waiting, config_maps_type(), settings);
  co_await land->until(waiting, config_maps_type(), settings,
                       [](const json::value& one) { return one.is_object(); });
  auto version = co_await land->version_on(waiting);
  BOOST_TEST(version == "1.0.0");
  co_await land->until_condition(waiting, "ConfigurationSynced", "False", "WaitingForRollout");
  co_await land->until_condition(waiting, "Ready", "True", "Ready");
  // A new runtime gets what was rolled out last.
  co_await land->add_runtime("late");
  co_await land->add_bootstrapper("late");
  co_await land->until("late", deployments, deployment_key,
                       [](const json::value& one) { return one.is_object(); });
  version = co_await land->version_on("late");
  BOOST_TEST(version == "1.0.0");
  // Newer content supersedes it.
  land->names.emplace_back("late");
  co_await land->set_version("2.0.0");
  co_await land->until_rollout([&](const json::value& one) {
    return landscape::phase(one) == "Completed" && landscape::ready(one) == land->names.size();
  });
  const auto updated = co_await land->count("2.0.0");
  BOOST_TEST(updated == land->names.size());
}

BOOST_AUTO_TEST_CASE(crashing_manifest_reaches_the_canaries_only) {
  landscape land(8);
  test::run(land.context, crash_stays_with_canaries(&land));
}

asio::awaitable<void> unapplied_stays_with_canaries(landscape* land) {
  co_await land->begin();
  auto text = manifests("2.0.0");
  const std::string other = "pods/eviction";
  text.replace(text.find(other), other.size(), "pods");  // nothing serves the webhook
  const auto source = manifests_source(text);
  co_await land->set_source(source);
  co_await land->until_rollout([](const json::value& one) {
    return landscape::phase(one) == "Canary" && k8s::find_number(one, {"status", "updated"}) >= 1;
  });
  const auto canary = co_await land->runtime_with("2.0.0");
  BOOST_TEST_REQUIRE(!canary.empty());
  co_await land->until_condition(canary, "Installed", "False", "NotMutating");
  co_await land->until_condition(canary, "ConfigurationSynced", "True", "Synced");
  // It is ready by its Deployment, and tried again.
  co_await land->until_metric(R"(rw_bootstrapper_syncs_total{result="unchanged"})",
                              static_cast<double>(3 * land->names.size()));
  const auto updated = co_await land->count("2.0.0");
  BOOST_TEST(updated <= 2U);
  co_await land->set_version("3.0.0");
  co_await land->until_rollout([land](const json::value& one) {
    return landscape::phase(one) == "Completed" && landscape::ready(one) == land->names.size();
  });
  const auto newest = co_await land->count("3.0.0");
  BOOST_TEST(newest == land->names.size());
}

BOOST_AUTO_TEST_CASE(configuration_that_no_webhook_applies_reaches_the_canaries_only) {
  landscape land(8);
  test::run(land.context, unapplied_stays_with_canaries(&land));
}

bootstrapper::direct_sync_options removing() {
  auto with = quick_options();
  with.removal = {.enabled = true, .delay = 0s};
  return with;
}

asio::awaitable<void> removes_by_turns(landscape* land) {
  co_await land->begin();
  co_await land->set_source(config_map(R"({"overrides": {}})"));
  const auto completed = [land](std::int64_t generation) {
    return [land, generation](const json::value& one) {
      return landscape::phase(one) == "Completed" && landscape::ready(one) == land->names.size() &&
             k8s::find_number(one, {"status", "observedGeneration"}) >= generation;
    };
  };
  for (const auto& name : land->names) {
    co_await land->until(name, config_maps_type(), settings,
                         has_data(config_map(R"({"overrides": {}})")));
  }
  co_await land->until_rollout(completed(1));
  const json::value pause{{"paused", true}};
  co_await land->change_rollout(pause);
  co_await land->remove_source(secrets_type(), "registry-credentials");
  co_await land->until_rollout(
      [](const json::value& one) { return landscape::reason(one) == "ByHand"; });
  for (const auto& name : land->names) {
    co_await land->until_condition(name, "Compatible", "False", "SourceMissing");
    co_await land->until_condition(name, "ConfigurationSynced", "False", "WaitingForRollout");
    co_await land->until(name, secrets_type(), credentials, has_data(pull_secret()));
  }
  co_await land->take_over();
  const json::value go_on{{"paused", false}};
  co_await land->change_rollout(go_on);
  for (const auto& name : land->names) {
    co_await land->until(name, secrets_type(), credentials, is_gone);
    co_await land->until_condition(name, "ConfigurationSynced", "True", "Synced");
  }
  co_await land->until_rollout(completed(3));
  // The next content finds it so.
  co_await land->set_version("2.0.0");
  co_await land->until_rollout([](const json::value& one) {
    return landscape::phase(one) == "Canary" || landscape::phase(one) == "Waves";
  });
  co_await land->until_rollout(completed(3));
  const auto updated = co_await land->count("2.0.0");
  BOOST_TEST(updated == land->names.size());
}

BOOST_AUTO_TEST_CASE(deleted_pull_secret_is_removed_in_the_steps_of_a_rollout) {
  landscape land(4, removing());
  test::run(land.context, removes_by_turns(&land));
}

asio::awaitable<void> undoes_a_rollout(landscape* land) {
  co_await land->begin();
  const auto rolled_out = [land](std::string content) {
    return [land, content](const json::value& one) {
      return landscape::phase(one) == "Completed" && landscape::ready(one) == land->names.size() &&
             k8s::find_string(one, {"status", "content"}) == content;
    };
  };
  const auto rollout = [land]() -> asio::awaitable<json::value> {
    auto got = co_await land->api("kcp").get(runtime_rollouts_type(), rollout_key);
    BOOST_REQUIRE(got.has_value());
    co_return std::move(*got);
  };
  const auto before = co_await rollout();
  const std::string first(k8s::find_string(before, {"status", "content"}));
  // It crashes; the canaries get back what they had.
  co_await land->set_version("crash");
  co_await land->until_rollout(
      [](const json::value& one) { return landscape::reason(one) == "CanaryFailed"; });
  const json::value pin{{"revision", first}};
  co_await land->change_rollout(pin);
  co_await land->until_rollout(rolled_out(first));
  auto count = co_await land->count("1.0.0");
  BOOST_TEST(count == land->names.size());
  co_await land->until_rollout([](const json::value& one) {
    const auto pinned = k8s::find_condition(one, "Pinned");
    return pinned && pinned->status == "True" &&
           pinned->message.find("newer: ConfigMap/runtime-bootstrapper-manifests=") !=
               pinned->message.npos;
  });
  // Newer content waits, and a new leader keeps to the pinned one, also where it is changed by
  // hand.
  co_await land->set_version("2.0.0");
  co_await land->take_over();
  const auto name = land->names.back();
  co_await land->remove(name, config_maps_type(), settings);
  co_await land->until(name, config_maps_type(), settings, is_there);
  co_await land->until_condition(name, "ConfigurationSynced", "True", "Synced");
  count = co_await land->count("1.0.0");
  BOOST_TEST(count == land->names.size());
  co_await land->until_rollout(rolled_out(first));
  // Taken away, the sources count again.
  const json::value none{{"revision", nullptr}};
  co_await land->change_rollout(none);
  co_await land->until_rollout([land, first](const json::value& one) {
    return landscape::phase(one) == "Completed" && landscape::ready(one) == land->names.size() &&
           k8s::find_string(one, {"status", "content"}) != first;
  });
  count = co_await land->count("2.0.0");
  BOOST_TEST(count == land->names.size());
  const auto after = co_await rollout();
  const auto& history = after.at("status").at("history").as_array();
  BOOST_REQUIRE_MESSAGE(history.size() == 4U, json::serialize(history));
  BOOST_TEST(k8s::find_string(history[1], {"outcome"}) == "Superseded");
  BOOST_TEST(k8s::find_string(history[2], {"content"}) == first);
}

/// Nobody takes part in the roll-out of what is invalid.
asio::awaitable<void> undoes_what_is_invalid(landscape* land) {
  co_await land->begin();
  const auto before =
      co_await land->must(land->api("kcp").get(runtime_rollouts_type(), rollout_key));
  const std::string first(k8s::find_string(before, {"status", "content"}));
  const auto broken = manifests_source("kind: [");
  co_await land->set_source(broken);
  co_await land->until_rollout([](const json::value& one) {
    return k8s::find_string(one, {"status", "message"}).ends_with("no runtime takes part");
  });
  const json::value pin{{"revision", first}};
  co_await land->change_rollout(pin);
  co_await land->until_rollout([land, first](const json::value& one) {
    return landscape::phase(one) == "Completed" && landscape::ready(one) == land->names.size() &&
           k8s::find_string(one, {"status", "content"}) == first;
  });
}

BOOST_AUTO_TEST_CASE(rollout_that_is_invalid_everywhere_is_undone) {
  landscape land(3);
  test::run(land.context, undoes_what_is_invalid(&land));
}

asio::awaitable<void> says_that_it_is_lost(landscape* land) {
  co_await land->begin();
  const auto before =
      co_await land->must(land->api("kcp").get(runtime_rollouts_type(), rollout_key));
  const std::string first(k8s::find_string(before, {"status", "content"}));
  co_await land->set_version("2.0.0");
  co_await land->until_rollout([land, first](const json::value& one) {
    return landscape::phase(one) == "Completed" && landscape::ready(one) == land->names.size() &&
           k8s::find_string(one, {"status", "content"}) != first;
  });
  const auto stored =
      co_await land->must(land->api("kcp").list(secrets_type(), {.ns = "runtime-watcher-system"}));
  bool lost = false;
  for (const auto& each : stored.at("items").as_array()) {
    const auto about = k8s::find(each, {"metadata", "annotations"});
    if (about == nullptr || json::serialize(*about).find(first) == std::string::npos) continue;
    co_await land->remove("kcp", secrets_type(), k8s::key_of(each));
    lost = true;
  }
  BOOST_TEST(lost);
  co_await land->take_over();
  const json::value pin{{"revision", first}};
  co_await land->change_rollout(pin);
  co_await land->until_rollout([](const json::value& one) {
    const auto pinned = k8s::find_condition(one, "Pinned");
    const auto stalled = k8s::find_condition(one, "Stalled");
    const auto fault = fault_of_rollout(one);
    return pinned && pinned->reason == "ContentLost" && stalled && stalled->status == "True" &&
           fault && fault->message.find("can't be read") != std::string::npos;
  });
  const auto count = co_await land->count("2.0.0");
  BOOST_TEST(count == land->names.size());
  const json::value none{{"revision", nullptr}};
  co_await land->change_rollout(none);
  co_await land->until_rollout([](const json::value& one) {
    const auto ready = k8s::find_condition(one, "Ready");
    return ready && ready->status == "True";
  });
}

BOOST_AUTO_TEST_CASE(pinned_content_that_is_lost_is_said_and_nothing_else_is_rolled_out) {
  landscape land(3);
  test::run(land.context, says_that_it_is_lost(&land));
}

BOOST_AUTO_TEST_CASE(rollout_is_undone_by_its_revision) {
  landscape land(5);
  test::run(land.context, undoes_a_rollout(&land));
}

/// The digests of contents that are kept.
asio::awaitable<std::set<std::string>> kept_contents(landscape* land) {
  const auto list =
      co_await land->must(land->api("kcp").list(secrets_type(), {.ns = "runtime-watcher-system"}));
  std::set<std::string> out;
  for (const auto& each : list.at("items").as_array()) {
    const auto source = k8s::annotation(each, "operator.kyma-project.io/source");
    if (source.starts_with("revision ")) out.emplace(source.substr(9));
  }
  co_return out;
}

asio::awaitable<void> collects_kept_contents(landscape* land) {
  co_await land->begin();
  const auto first =
      co_await land->must(land->api("kcp").get(runtime_rollouts_type(), rollout_key));
  // One that is superseded before its turn need not be kept.
  std::set<std::string> known{std::string(k8s::find_string(first, {"status", "content"}))};
  for (int i = 1; i <= 12; ++i) {
    co_await land->set_version("1." + std::to_string(i));
    co_await land->until_rollout([&](const json::value& one) {
      return known.insert(std::string(k8s::find_string(one, {"status", "content"}))).second;
    });
  }
  const auto end = land->clock.now() + 10s;
  std::set<std::string> kept;
  std::set<std::string> wanted{"none"};
  while (kept != wanted && land->clock.now() < end) {
    const auto got = co_await land->api("kcp").get(runtime_rollouts_type(), rollout_key);
    BOOST_REQUIRE(got.has_value());
    wanted.clear();
    for (const auto& each : got->at("status").at("history").as_array()) {
      wanted.emplace(k8s::find_string(each, {"content"}));
    }
    kept = co_await kept_contents(land);
  }
  BOOST_TEST((kept == wanted));
  BOOST_TEST(kept.size() == 10U);
}

BOOST_AUTO_TEST_CASE(contents_that_left_the_history_are_deleted) {
  auto with = quick_options();
  with.resync_period = 200ms;
  landscape land(2, with);
  test::run(land.context, collects_kept_contents(&land));
}

/// As a manager of the previous release, which leads for a while, leaves what is stored: lists with
/// contents alone, whose digests are as the roll-out's status has them, and statuses that do not
/// name contents.
asio::awaitable<void> lead_as_previous_release(landscape* land, std::string completed) {
  const auto list =
      co_await land->must(land->api("kcp").list(secrets_type(), {.ns = "runtime-watcher-system"}));
  std::size_t read = 0;
  for (auto each : list.at("items").as_array()) {
    const auto source = k8s::annotation(each, "operator.kyma-project.io/source");
    if (source.empty()) {
      co_await land->remove("kcp", secrets_type(), k8s::key_of(each));
      continue;
    }
    const auto digest = source.starts_with("revision ")      ? std::string(source.substr(9))
                        : source.starts_with("rolled out: ") ? completed
                                                             : std::string();
    const auto newest = json::parse(k8s::secret_data(each, "newest").value());
    if (!digest.empty()) BOOST_TEST(digest_of(newest) == digest);
    read += digest.empty() ? 0 : 1;
    auto& annotations = each.at("metadata").at("annotations").as_object();
    annotations.erase("operator.kyma-project.io/contents");
    co_await land->must(land->api("kcp").update(secrets_type(), std::move(each)));
  }
  BOOST_TEST(read == 3U);  // completed, and both of the history
  for (const auto& name : land->names) {
    const auto object = co_await land->status(name);
    auto units = object.at("status").at("units");
    for (auto& each : units.as_array()) {
      BOOST_TEST(each.as_object().erase("contents") == 1U);
      each.as_object().erase("desiredContents");
    }
    json::value change{{"status", {{"units", std::move(units)}}}};
    co_await land->must(land->api("kcp").patch(bootstrapper::runtime_bootstrappers_type(),
                                               {"kcp-system", name}, k8s::patch_type::merge,
                                               std::move(change), {.subresource = "status"}));
  }
}

asio::awaitable<void> changes_managers_half_way(landscape* land) {
  co_await land->begin();
  auto rollout = co_await land->must(land->api("kcp").get(runtime_rollouts_type(), rollout_key));
  const std::string first(k8s::find_string(rollout, {"status", "content"}));
  co_await land->set_version("crash");
  const auto paused = [](const json::value& one) {
    return landscape::reason(one) == "CanaryFailed";
  };
  co_await land->until_rollout(paused);
  const auto crashing = co_await land->count("crash");
  co_await land->take_over([&] { return lead_as_previous_release(land, first); });
  // Those that wait keep what they have, also where it is changed by hand; a new one gets it, too.
  const auto waiting = co_await land->runtime_with("1.0.0");
  BOOST_TEST_REQUIRE(!waiting.empty());
  co_await land->remove(waiting, deployments, deployment_key);
  co_await land->add_runtime("late");
  co_await land->add_bootstrapper("late");
  for (const auto& name : {waiting, std::string("late")}) {
    co_await land->until(name, deployments, deployment_key, is_there);
    const auto version = co_await land->version_on(name);
    BOOST_TEST(version == "1.0.0");
  }
  co_await land->until_condition(waiting, "ConfigurationSynced", "False", "WaitingForRollout");
  co_await land->until_rollout(paused);
  const auto still = co_await land->count("crash");
  BOOST_TEST(still == crashing);
  // It can be undone by what the previous release has kept.
  land->names.emplace_back("late");
  const json::value pin{{"revision", first}};
  co_await land->change_rollout(pin);
  co_await land->until_rollout([&](const json::value& one) {
    return landscape::phase(one) == "Completed" && landscape::ready(one) == land->names.size() &&
           k8s::find_string(one, {"status", "content"}) == first;
  });
  const auto undone = co_await land->count("1.0.0");
  BOOST_TEST(undone == land->names.size());
}

BOOST_AUTO_TEST_CASE(paused_rollout_outlives_a_manager_of_the_previous_release) {
  landscape land(5);
  test::run(land.context, changes_managers_half_way(&land));
}

asio::awaitable<void> goes_on_after_a_restart(landscape* land) {
  co_await land->begin();
  co_await land->set_version("crash");
  const auto paused = [](const json::value& one) {
    return landscape::reason(one) == "CanaryFailed";
  };
  co_await land->until_rollout(paused);
  const auto before = co_await land->count("crash");
  co_await land->take_over();
  const auto passes = [land] {
    return land->metric(
        "controller_runtime_reconcile_total{controller=\"rollout-bootstrapper\","
        "result=\"success\"}");
  };
  const auto done = passes();
  json::value seen{{"metadata", {{"labels", {{"seen", "yes"}}}}}};  // each change is decided upon
  co_await land->merge(runtime_rollouts_type(), rollout_key, std::move(seen));
  co_await soon([&] { return passes() > done; });
  co_await land->until_rollout(paused);
  const auto after = co_await land->count("crash");
  BOOST_TEST(after == before);
  // A person may go on all the same.
  const json::value resume{{"resume", "1"}, {"failureBudget", "100%"}};
  co_await land->change_rollout(resume);
  co_await land->until_rollout([land](const json::value& one) {
    return k8s::find_number(one, {"status", "updated"}) ==
           static_cast<std::int64_t>(land->names.size());
  });
}

BOOST_AUTO_TEST_CASE(paused_rollout_outlives_the_process_and_is_resumed_by_hand) {
  landscape land(5);
  test::run(land.context, goes_on_after_a_restart(&land));
}

asio::awaitable<void> keeps_what_kim_brings(landscape* land) {
  co_await land->begin();
  const json::value pause{{"paused", true}};
  co_await land->change_rollout(pause);
  co_await land->set_version("2.0.0");
  co_await land->until_rollout(
      [](const json::value& one) { return landscape::reason(one) == "ByHand"; });
  const auto name = land->names.back();
  co_await land->until_condition(name, "ConfigurationSynced", "False", "WaitingForRollout");
  // Kyma Infrastructure Manager writes what is in KCP.
  const auto parsed = k8s::parse_manifests(manifests("2.0.0"));
  BOOST_REQUIRE(parsed.has_value());
  for (const auto& each : *parsed) {
    if (k8s::find_string(each, {"kind"}) != "Deployment") continue;
    const auto done = co_await land->api(name).apply(
        deployments, each, {.field_manager = "kim-bootstrapper", .force = true});
    BOOST_REQUIRE_MESSAGE(done.has_value(), done.error().message);
  }
  // Only a part of it: the rest follows, in a pause as well, so that the runtime is whole.
  co_await land->until_rollout([](const json::value& one) {
    const auto bypassed = k8s::find_condition(one, "WavesBypassed");
    return k8s::find_number(one, {"status", "ahead"}) == 1 && bypassed &&
           bypassed->status == "True";
  });
  auto version = co_await land->version_on(name);
  BOOST_TEST(version == "2.0.0");
  const auto updated = co_await land->count("2.0.0");
  BOOST_TEST(updated == 1U);
  co_await land->until_condition(name, "ConfigurationSynced", "True", "Synced");
  const json::value resumed{{"paused", false}};
  co_await land->change_rollout(resumed);
  co_await land->until_rollout([land](const json::value& one) {
    return landscape::phase(one) == "Completed" && landscape::ready(one) == land->names.size();
  });
  version = co_await land->version_on(name);
  BOOST_TEST(version == "2.0.0");
}

BOOST_AUTO_TEST_CASE(newer_content_of_another_writer_is_kept_and_counted) {
  landscape land(4);
  test::run(land.context, keeps_what_kim_brings(&land));
}

asio::awaitable<void> leaves_own_sources_out(landscape* land) {
  co_await land->begin();
  co_await land->add_runtime("own");
  auto source = manifests_source(manifests("1.0.0"));
  source.as_object()["metadata"].as_object()["name"] = "own-manifests";
  k8s::set_label(source, bootstrapper::manifests_label, "true");
  co_await land->set_source(source);
  json::value object{{"apiVersion", "operator.kyma-project.io/v1alpha1"},
                     {"kind", "RuntimeBootstrapper"},
                     {"metadata", {{"name", "own"}, {"namespace", "kcp-system"}}},
                     {"spec", {{"manifests", {{"configMapRef", {{"name", "own-manifests"}}}}}}}};
  const auto made = co_await land->api("kcp").create(bootstrapper::runtime_bootstrappers_type(),
                                                     std::move(object));
  BOOST_REQUIRE_MESSAGE(made.has_value(), made.error().message);
  const json::value pause{{"paused", true}};
  co_await land->change_rollout(pause);
  source = manifests_source(manifests("3.0.0"));
  source.as_object()["metadata"].as_object()["name"] = "own-manifests";
  k8s::set_label(source, bootstrapper::manifests_label, "true");
  co_await land->set_source(source);
  co_await land->until("own", deployments, deployment_key,
                       [](const json::value& one) { return version_of(one) == "3.0.0"; });
  const auto now = co_await land->api("kcp").get(runtime_rollouts_type(), rollout_key);
  BOOST_REQUIRE(now.has_value());
  BOOST_TEST(k8s::find_number(*now, {"status", "total"}) == 2);
}

BOOST_AUTO_TEST_CASE(runtime_with_sources_of_its_own_is_no_part_of_waves) {
  landscape land(2);
  test::run(land.context, leaves_own_sources_out(&land));
}

asio::awaitable<void> trust_waits_for_nobody(landscape* land) {
  co_await land->begin();
  const auto canary_phases = [land] { return land->lines("\"phase\":\"Canary\""); };
  const auto before = canary_phases();
  const auto bundle = trust_bundle(ca_pem("another"));
  co_await land->set_source(bundle);
  const auto is_new = [&](const json::value& one) {
    return one.is_object() && one.at("spec") == bundle.at("spec");
  };
  for (const auto& name : land->names) {
    co_await land->until(name, bundles, {"", bundle_name}, is_new);
  }
  BOOST_TEST(canary_phases() == before);
  co_await land->set_version("2.0.0");
  co_await soon([&] { return canary_phases() > before; });
}

BOOST_AUTO_TEST_CASE(trust_bundle_alone_may_go_to_all_at_once) {
  auto with = quick_options();
  with.trust_at_once = true;
  landscape land(4, with);
  test::run(land.context, trust_waits_for_nobody(&land));
}

namespace {

/// The turn to get the next content ends while the pass is under way: with the first such request
/// to the runtime for the object, whose response takes its time.
void end_turn(test_env* env, gate_by_hand* gate, std::string verb, std::string object) {
  env->on_request = [=, before = gate->admitted](const std::string& cluster,
                                                 const std::string& with, const std::string& path) {
    const bool ends = gate->admitted != before && cluster == "skr" && with == verb &&
                      path.ends_with("/" + object);
    BOOST_TEST((gate->open || cluster != "skr" || with != "delete"), with + path);
    if (ends) gate->open = false;
    return k8s::devserver::fault{.latency = ends ? 50ms : 0ms};
  };
}

asio::awaitable<void> next_turn(test_env* env, gate_by_hand* gate) {
  co_await env->until_condition("skr", "ConfigurationSynced", "False", "WaitingForRollout");
  env->on_request = {};
  gate->open = true;
}

}  // namespace

/// Other content has come while its pass was under way: it is another runtime's turn.
RW_COROUTINE_TEST(runtime_whose_turn_has_ended_before_the_first_write_keeps_what_it_has, test_env,
                  removing()) {
  static gate_by_hand gate;
  gate.open = true;
  env->gate = &gate;
  const k8s::object_key runtime{"kcp-system", "skr"};
  co_await one_ready_runtime(env);
  end_turn(env, &gate, "patch", deployment_key.name);
  const auto newer = manifests_source(manifests("2.0.0"));
  co_await env->set_source(newer);
  co_await next_turn(env, &gate);
  auto got = co_await env->must(env->api("skr").get(deployments, deployment_key));
  BOOST_TEST(version_of(got) == "1.0.0");
  gate.to.requeue(runtime);
  co_await env->until_condition("skr", "ConfigurationSynced", "True", "Synced");
  got = co_await env->must(env->api("skr").get(deployments, deployment_key));
  BOOST_TEST(version_of(got) == "2.0.0");
  // The pull Secret is removed in the same steps.
  const auto without = config_map(R"({"overrides": {}})");
  co_await env->set_source(without);
  co_await env->until("skr", config_maps_type(), settings, has_data(without));
  end_turn(env, &gate, "get", "kyma-system");
  co_await env->remove_source(secrets_type(), "registry-credentials");
  co_await next_turn(env, &gate);
  co_await env->until("skr", secrets_type(), credentials, has_data(pull_secret()));
  gate.to.requeue(runtime);
  co_await env->until("skr", secrets_type(), credentials, is_gone);
}

/// Nobody has told the roll-out yet.
RW_COROUTINE_TEST(content_that_was_replaced_while_a_pass_was_under_way_is_not_written, test_env,
                  quick_options()) {
  static gate_by_hand gate;
  gate.open = true;
  env->gate = &gate;
  co_await one_ready_runtime(env);
  auto got = co_await env->must(env->api("skr").get(deployments, deployment_key));
  const auto generation = k8s::generation_of(got);
  bool asked = false;
  env->on_request = [&, before = gate.admitted](const std::string& cluster, const std::string& verb,
                                                const std::string& path) {
    const bool first = !asked && gate.admitted != before && cluster == "skr" && verb == "patch" &&
                       path.ends_with("/" + deployment_key.name);
    asked = asked || first;
    return k8s::devserver::fault{.latency = first ? 1s : 0s};
  };
  auto source = manifests_source(manifests("2.0.0"));
  co_await env->set_source(source);
  co_await soon([&] { return asked; });
  source = manifests_source(manifests("3.0.0"));
  co_await env->set_source(source);
  co_await env->until("skr", deployments, deployment_key,
                      [](const json::value& one) { return version_of(one) == "3.0.0"; });
  got = co_await env->must(env->api("skr").get(deployments, deployment_key));
  BOOST_TEST(k8s::generation_of(got) == generation + 1);
  env->on_request = {};
}

BOOST_AUTO_TEST_SUITE_END()
}  // namespace rw::bootstrapper_test
