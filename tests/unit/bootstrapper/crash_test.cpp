// A sync is cut short, or rejected, at each of its writes in turn. The one that follows must leave
// each unit as the new revision or as the old one, as a whole.

#include "rw/k8s/objects/difference.hpp"

#include <boost/test/unit_test.hpp>

#include "tests/unit/bootstrapper/sync_env.hpp"
#include "tests/unit/run.hpp"
#include <algorithm>
#include <string>

namespace rw::bootstrapper_test {
BOOST_AUTO_TEST_SUITE(crash)

using bootstrapper::all_units;
using bootstrapper::render_input;
using bootstrapper::unit;

namespace {

const std::string extra = R"(---
apiVersion: v1
kind: ConfigMap
metadata: {name: NAME, namespace: kyma-system}
data: {a: b}
---
apiVersion: rbac.authorization.k8s.io/v1
kind: ClusterRole
metadata: {name: NAME}
rules: []
)";

std::string extra_named(const std::string& name) {
  auto text = extra;
  for (auto at = text.find("NAME"); at != text.npos; at = text.find("NAME")) {
    text.replace(at, 4, name);
  }
  return text;
}

/// Everything differs from one to the next: each object's content, and which there are.
render_input generation(const std::string& pem, const std::string& version,
                        const std::string& extra_name) {
  auto out = good_sources(pem, version);
  // An object that differs in nothing but a field that the first one lacks.
  const auto grown =
      "---\napiVersion: v1\nkind: ConfigMap\nmetadata: {name: grown, namespace: "
      "kyma-system}\ndata: {a: b" +
      (version == "1.0.0" ? std::string() : ", of-" + version + ": x") + "}\n";
  out.at(source_kind::manifests).object =
      manifests_source(manifests(version, grown + extra_named(extra_name)));
  out.at(source_kind::pull_secret).object = pull_secret("password of " + version);
  auto& config = out.at(source_kind::config).object;
  config = config_map(good_configuration("registry-" + version + ".example.com"));
  // A field that the others do not have.
  config.as_object()["data"].as_object()["of-" + version] = "x";
  return out;
}

struct generations {
  render_input first = generation(ca_pem("first"), "1.0.0", "old");
  render_input second = generation(ca_pem("second"), "2.0.0", "new");
  render_input third = generation(ca_pem("third"), "3.0.0", "newest");
};

/// The sync of the second generation stops after `k` writes; true if it did not get to them.
asio::awaitable<bool> stop_after(sync_env* env, std::string name, int k, const generations* all) {
  env->faults[name] = {.stop_after = k};
  const auto report = co_await env->sync(name, {all->second});
  env->faults[name] = {};
  co_return report.has_value();
}

/// Checks each unit of a runtime for itself; how many have the second generation.
asio::awaitable<int> check_units(sync_env* env, std::string name, const generations* all) {
  int out = 0;
  for (const auto of : all_units) {
    const bool first = co_await env->has(name, of, all->first, all->second);
    const bool second = co_await env->has(name, of, all->second, all->first);
    BOOST_TEST((first || second), "a mixture of " << to_string(of) << " on " << name);
    out += second ? 1 : 0;
  }
  co_return out;
}

}  // namespace

asio::awaitable<void> completes(sync_env* env, const generations* all) {
  bool complete = false;
  int k = 0;
  for (; !complete && k < 60; ++k) {
    const auto name = "skr-" + std::to_string(k);
    co_await env->add_synced(name, all->first);
    complete = co_await stop_after(env, name, k, all);
    const auto report = co_await env->must_sync(name, {all->second});
    for (const auto of : all_units) BOOST_TEST(!report.at(of).rejected.has_value());
    const bool good = co_await env->has_all(name, all->second, all->first);
    BOOST_TEST(good, "stopped after " << k << " writes");
    const auto again = co_await env->must_sync(name, {all->second});
    BOOST_TEST(again.writes == 0U);
  }
  BOOST_TEST(complete);
  BOOST_TEST(k > 14);  // dry runs, objects, removals
}

BOOST_AUTO_TEST_CASE(sync_completes_new_revisions_after_crash_at_any_write) {
  sync_env env;
  const generations all;
  test::run(env.context, completes(&env, &all));
}

/// The sources have become invalid meanwhile: what is stored is the first generation, or, where
/// another runtime had it in place already, the second.
asio::awaitable<void> falls_back(sync_env* env, const generations* all, render_input stored,
                                 int expected) {
  bool complete = false;
  for (int k = 0; !complete && k < 60; ++k) {
    const auto name = "skr-" + std::to_string(k);
    co_await env->add_synced(name, all->first);
    complete = co_await stop_after(env, name, k, all);
    co_await env->must_sync(name, {stored});
    const int second = co_await check_units(env, name, all);
    BOOST_TEST(second == expected, "after " << k << " writes");
  }
  BOOST_TEST(complete);
}

BOOST_AUTO_TEST_CASE(sync_restores_the_old_revisions_after_crash_when_sources_became_invalid) {
  sync_env env;
  const generations all;
  test::run(env.context, falls_back(&env, &all, all.first, 0));
}

BOOST_AUTO_TEST_CASE(sync_completes_stored_revisions_after_crash_when_sources_became_invalid) {
  sync_env env;
  const generations all;
  test::run(env.context, falls_back(&env, &all, all.second, 2));
}

asio::awaitable<void> supersedes(sync_env* env, const generations* all) {
  bool complete = false;
  for (int k = 0; !complete && k < 60; k += 2) {
    const auto name = "skr-" + std::to_string(k);
    co_await env->add_synced(name, all->first);
    complete = co_await stop_after(env, name, k, all);
    co_await env->must_sync(name, {all->third});
    for (const auto& other : {all->first, all->second}) {
      const bool good = co_await env->has_all(name, all->third, other);
      BOOST_TEST(good, "stopped after " << k << " writes");
    }
  }
  BOOST_TEST(complete);
}

BOOST_AUTO_TEST_CASE(sync_supersedes_a_revision_that_was_cut_short) {
  sync_env env;
  const generations all;
  test::run(env.context, supersedes(&env, &all));
}

asio::awaitable<void> installs(sync_env* env, const generations* all) {
  bool complete = false;
  for (int k = 0; !complete && k < 60; ++k) {
    const auto name = "skr-" + std::to_string(k);
    co_await env->add(name, true);
    complete = co_await stop_after(env, name, k, all);
    co_await env->must_sync(name, {all->second});
    const bool good = co_await env->has_all(name, all->second, all->second);
    BOOST_TEST(good, "stopped after " << k << " writes");
  }
  BOOST_TEST(complete);
}

BOOST_AUTO_TEST_CASE(sync_completes_a_first_installation_after_crash_at_any_write) {
  sync_env env;
  const generations all;
  test::run(env.context, installs(&env, &all));
}

asio::awaitable<void> restores(sync_env* env, const generations* all) {
  int restored = 0;
  for (int k = 1; k < 60; ++k) {
    const auto name = "skr-" + std::to_string(k);
    co_await env->add_synced(name, all->first);
    env->faults[name] = {.refuse = k};
    const auto report = co_await env->must_sync(name, {all->second, all->first});
    const bool reached = env->faults[name].seen >= k;
    env->faults[name] = {};
    if (!reached) break;
    const int second = co_await check_units(env, name, all);
    int rejected = 0;
    for (const auto& each : report.units) rejected += each.rejected ? 1 : 0;
    BOOST_TEST(second + rejected == 2, "after the refusal of write " << k);
    restored += rejected;
    co_await env->must_sync(name, {all->second, all->first});
    const bool good = co_await env->has_all(name, all->second, all->first);
    BOOST_TEST(good, "after the refusal of write " << k);
  }
  BOOST_TEST(restored > 12);
}

BOOST_AUTO_TEST_CASE(sync_applies_the_last_good_revision_when_any_write_is_refused) {
  sync_env env;
  const generations all;
  test::run(env.context, restores(&env, &all));
}

/// The runtime is not admitted to the second generation any more, or no roll-out goes on.
asio::awaitable<void> waits(sync_env* env, const generations* all) {
  bool complete = false;
  for (int k = 0; !complete && k < 60; ++k) {
    const auto name = "skr-" + std::to_string(k);
    env->withheld.reset();
    co_await env->add_synced(name, all->first);
    complete = co_await stop_after(env, name, k, all);
    if (complete) break;
    env->withheld = all->second;
    const auto report = co_await env->must_sync(name, {all->first});
    const bool good = co_await env->has_all(name, all->first, all->second);
    BOOST_TEST(good, "stopped after " << k << " writes");
    for (const auto& each : report.units) {
      BOOST_TEST(!each.ahead);
      BOOST_TEST((each.withheld != nullptr));
    }
  }
  BOOST_TEST(complete);
}

BOOST_AUTO_TEST_CASE(waiting_runtime_gets_its_old_revisions_back_after_crash_at_any_write) {
  sync_env env;
  const generations all;
  test::run(env.context, waits(&env, &all));
}

/// Applies the objects of a generation as Kyma Infrastructure Manager does, but only `count` of
/// them.
asio::awaitable<void> write_as_kim(sync_env* env, std::string name, render_input from,
                                   std::size_t count) {
  for (auto& each : objects_of(unit::bootstrapper, from)) {
    if (count-- == 0) break;
    auto& labels = each.object.at("metadata").at("labels").as_object();
    labels.erase(bootstrapper::digest_label);
    labels.erase(bootstrapper::synced_by_label);
    const auto done = co_await env->api(name)->apply(
        each.type, std::move(each.object), {.field_manager = "kim-bootstrapper", .force = true});
    BOOST_REQUIRE_MESSAGE(done.has_value(), done.error().message);
  }
}

asio::awaitable<void> follows(sync_env* env, const generations* all) {
  const auto count = objects_of(unit::bootstrapper, all->second).size();
  for (std::size_t k = 1; k <= count; ++k) {
    const auto name = "skr-" + std::to_string(k);
    env->withheld.reset();
    co_await env->add_synced(name, all->first);
    co_await write_as_kim(env, name, all->second, k);
    env->withheld = all->second;
    auto report = co_await env->must_sync(name, {all->first});
    const auto& unit_now = report.at(unit::bootstrapper);
    const bool whole = co_await env->has(name, unit::bootstrapper, all->second, all->first);
    BOOST_TEST(whole, "after " << k << " objects");
    BOOST_TEST(unit_now.ahead);
    BOOST_TEST((unit_now.withheld == nullptr));
    BOOST_TEST(unit_now.is_applied() == true);
    // It was not admitted to the newest credentials, and nobody wrote them.
    const bool old = co_await env->has(name, unit::credentials, all->first, all->second);
    BOOST_TEST(old);
    report = co_await env->must_sync(name, {all->second});
    BOOST_TEST(report.at(unit::bootstrapper).changed == false);
    BOOST_TEST(report.at(unit::bootstrapper).ahead == false);
  }
}

BOOST_AUTO_TEST_CASE(waiting_runtime_gets_all_of_what_kim_has_begun) {
  sync_env env;
  const generations all;
  test::run(env.context, follows(&env, &all));
}

/// What no source has is drift, whoever wrote it.
RW_COROUTINE_TEST(waiting_runtime_loses_what_kim_has_from_elsewhere, sync_env) {
  const generations all;
  co_await env->add_synced("skr", all.first);
  co_await write_as_kim(env, "skr", all.third, 99);
  env->withheld = all.second;
  const auto report = co_await env->must_sync("skr", {all.first});
  BOOST_TEST(!report.at(unit::bootstrapper).ahead);
  for (const auto& each : objects_of(unit::bootstrapper, all.first)) {
    const auto got = co_await env->api("skr")->get(each.type, k8s::key_of(each.object));
    BOOST_REQUIRE(got.has_value());
    BOOST_TEST(!k8s::find_difference(each.object, *got).has_value());
  }
}

/// Many objects, and time for some of them only in each pass.
RW_COROUTINE_TEST(sync_completes_step_by_step_when_each_pass_is_cut_short, sync_env) {
  co_await env->add("skr");
  auto from = good_sources(ca_pem());
  std::string many;
  for (int i = 0; i < 30; ++i) many += extra_named("large-" + std::to_string(i));
  from.at(source_kind::manifests).object = manifests_source(manifests("1.0.0", many));
  bool complete = false;
  int passes = 0;
  for (; !complete && passes < 10; ++passes) {
    env->faults["skr"] = {.stop_after = 100};
    const auto report = co_await env->sync("skr", {from});
    complete = report.has_value();
  }
  BOOST_TEST(complete);
  BOOST_TEST(passes > 1);
  env->faults["skr"] = {};
  const bool good = co_await env->has_all("skr", from, from);
  BOOST_TEST(good);
}

/// Nothing was in place before, and nothing is there to fall back to.
asio::awaitable<void> leaves_nothing(sync_env* env, const generations* all) {
  int rejections = 0;
  for (int k = 1; k < 60; ++k) {
    const auto name = "skr-" + std::to_string(k);
    co_await env->add(name);
    env->faults[name] = {.refuse = k};
    const auto report = co_await env->must_sync(name, {all->second});
    const bool reached = env->faults[name].seen >= k;
    env->faults[name] = {};
    if (!reached) break;
    for (const auto of : all_units) {
      if (!report.at(of).rejected) continue;
      ++rejections;
      const auto left = std::ranges::count(env->states[name].objects, of,
                                           [](const auto& each) { return each.of; });
      BOOST_TEST(left == 0, "after the refusal of write " << k);
      for (const auto& each : objects_of(of, all->second)) {
        const auto got = co_await env->api(name)->get(each.type, k8s::key_of(each.object));
        BOOST_TEST(got.has_error(), each.type.gvk.kind << " after the refusal of write " << k);
      }
    }
    co_await env->must_sync(name, {all->second});
    const bool good = co_await env->has_all(name, all->second, all->second);
    BOOST_TEST(good, "after the refusal of write " << k);
  }
  BOOST_TEST(rejections > 12);
}

BOOST_AUTO_TEST_CASE(refused_first_installation_leaves_nothing) {
  sync_env env;
  const generations all;
  test::run(env.context, leaves_nothing(&env, &all));
}

BOOST_AUTO_TEST_SUITE_END()
}  // namespace rw::bootstrapper_test
