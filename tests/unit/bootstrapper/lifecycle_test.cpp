// Whose a runtime is: modes, opt-out, deletion, and runtimes that do not answer.

#include "rw/k8s/objects/types.hpp"
#include "rw/reactors/shared/kyma_resources.hpp"

#include <boost/json/object.hpp>
#include <boost/json/parse.hpp>
#include <boost/test/unit_test.hpp>

#include "tests/unit/bootstrapper/test_env.hpp"
#include "tests/unit/run.hpp"
#include <memory>
#include <string>

namespace rw::bootstrapper_test {
BOOST_AUTO_TEST_SUITE(lifecycle)

using bootstrapper::direct_sync_options;
using test::eventually;
using namespace std::chrono_literals;

namespace {

const std::string mode_annotation(bootstrapper_mode_annotation);
const std::string opt_out(bootstrapper::opt_out_annotation);

direct_sync_options quick(bootstrapper_mode mode = bootstrapper_mode::direct) {
  auto out = quick_options();
  out.mode = mode;
  out.unhealthy_probe = 200ms;
  out.probe_timeout = 300ms;
  return out;
}

asio::awaitable<void> delete_resource(test_env* env, std::string name) {
  co_await env->remove("kcp", bootstrapper::runtime_bootstrappers_type(), {"kcp-system", name});
}

/// As Gardener does, whose finalizer keeps it for a while.
asio::awaitable<void> begin_deletion(test_env* env, std::string runtime) {
  const json::value change =
      json::parse(R"({"metadata": {"finalizers": ["example.com/gardener"]}})");
  co_await env->merge(runtimes_type(), {"kcp-system", runtime}, change);
  co_await env->remove("kcp", runtimes_type(), {"kcp-system", runtime});
}

}  // namespace

RW_COROUTINE_TEST(runtime_migrates_from_signal_over_shadow_to_direct_and_back, test_env,
                  quick(bootstrapper_mode::signal)) {
  co_await env->begin();
  co_await env->add_runtime("skr");
  co_await env->add_bootstrapper("skr");
  // signal: nothing is ours.
  co_await env->until_condition("skr", "Ready", "Unknown", "NotInCharge");
  BOOST_TEST(env->asked["skr"].writes == 0);
  // shadow: dry runs, which the counter has as writes.
  co_await env->annotate_runtime("skr", mode_annotation, "shadow");
  co_await env->until_condition("skr", "InStep", "False", "WouldWrite");
  co_await env->until("skr", deployments, deployment_key, is_gone);
  BOOST_TEST(env->asked["skr"].writes > 0);
  BOOST_TEST(env->metric("rw_bootstrapper_writes_total") == 0);
  BOOST_TEST(env->metric("rw_bootstrapper_content_runtimes{state=\"differing\"}") == 1);
  auto object = co_await env->status("skr");
  BOOST_TEST(!k8s::has_finalizer(object, bootstrapper::finalizer));
  co_await env->until_condition("skr", "Ready", "Unknown", "Shadow");
  // direct, though the Runtime carries a mark: nobody is locked out.
  co_await env->annotate_runtime("skr", std::string(force_reconciliation_mark), "true");
  co_await env->annotate_runtime("skr", mode_annotation, "direct");
  co_await env->until_condition("skr", "ConfigurationSynced", "True", "Synced");
  object = co_await env->status("skr");
  BOOST_TEST(!k8s::find_condition(object, "InStep").has_value());
  // And back.
  co_await env->annotate_runtime("skr", mode_annotation, "signal");
  co_await env->until_condition("skr", "ConfigurationSynced", "Unknown", "NotInCharge");
  BOOST_TEST(env->reactor->contents().state({"kcp-system", "skr"}) == "");
  for (const auto each : {runtime_state::installed, runtime_state::not_ready, runtime_state::failed,
                          runtime_state::unreachable}) {
    BOOST_TEST(env->reactor->count(each) == 0U);
  }
  const auto before = env->asked["skr"].writes;
  co_await env->set_source(pull_secret("for another"));
  env->reactor->requeue({"kcp-system", "skr"});
  // It goes without touching the runtime.
  co_await delete_resource(env, "skr");
  co_await env->until_resource("skr", is_gone);
  BOOST_TEST(env->asked["skr"].writes == before);
  co_await env->until("skr", deployments, deployment_key, is_there);
}

RW_COROUTINE_TEST(shadow_finds_what_a_runtime_would_reject, test_env,
                  quick(bootstrapper_mode::shadow)) {
  env->now.at(source_kind::manifests).object = manifests_source(manifests("1.0.0", R"(---
apiVersion: apps/v1
kind: Deployment
metadata: {name: broken, namespace: kyma-system}
spec: {replicas: many}
)"));
  co_await env->begin();
  co_await env->add_runtime("skr");
  co_await env->add_bootstrapper("skr");
  co_await env->until_condition("skr", "Compatible", "False", "RejectedByRuntime");
}

asio::awaitable<void> opts_out(test_env* env) {
  co_await env->begin();
  co_await env->add_runtime("skr");
  co_await env->add_runtime("other", "signal");
  co_await env->until_condition("skr", "ConfigurationSynced", "True", "Synced");
  const auto made = co_await env->status("skr");
  const auto owners = k8s::owners_of(made);
  BOOST_TEST_REQUIRE(owners.size() == 1U);
  BOOST_TEST(owners.front().kind == "Runtime");
  BOOST_TEST(owners.front().name == "skr");
  co_await env->until_resource("other", is_gone);
  co_await delete_resource(env, "skr");
  co_await env->until("skr", deployments, deployment_key, is_gone);
  co_await env->until("kcp", runtimes_type(), {"kcp-system", "skr"}, [](const json::value& object) {
    return k8s::annotation(object, opt_out) == "true";
  });
  // It stays away, also with the next process, until the annotation is removed.
  co_await env->restart();
  co_await env->annotate_runtime("other", mode_annotation, "direct");
  co_await env->until_condition("other", "ConfigurationSynced", "True", "Synced");
  co_await env->until_resource("skr", is_gone);
  co_await env->annotate_runtime("skr", opt_out, nullptr);
  co_await env->until_condition("skr", "ConfigurationSynced", "True", "Synced");
}

BOOST_AUTO_TEST_CASE(deleting_an_auto_created_resource_is_a_lasting_opt_out) {
  auto with = quick();
  with.create_for_runtimes = true;
  test_env env(with);
  test::run(env.context, opts_out(&env));
}

/// Nobody has decided about a runtime whose resource goes with the definition of its kind.
asio::awaitable<void> keeps_everything(test_env* env) {
  co_await env->begin();
  co_await env->add_runtime("skr");
  co_await env->until_condition("skr", "ConfigurationSynced", "True", "Synced");
  const k8s::object_key key{{}, "runtimebootstrappers.operator.kyma-project.io"};
  auto definition = test::required(co_await env->api("kcp").get(test::definitions, key));
  co_await env->remove("kcp", test::definitions, key);
  co_await env->until("kcp", test::definitions, key, is_gone);
  co_await env->until("skr", deployments, deployment_key, is_there);
  const auto runtime =
      test::required(co_await env->api("kcp").get(runtimes_type(), {"kcp-system", "skr"}));
  BOOST_TEST(!k8s::has_annotation(runtime, opt_out));
  for (const auto* const field : {"resourceVersion", "uid", "creationTimestamp", "managedFields"}) {
    definition.at("metadata").as_object().erase(field);
  }
  definition.as_object().erase("status");
  co_await env->create("kcp", std::move(definition), test::definitions);
  env->reactor->requeue({"kcp-system", "skr"});
  co_await env->until_condition("skr", "ConfigurationSynced", "True", "Synced");
}

BOOST_AUTO_TEST_CASE(runtimes_keep_the_bootstrapper_when_its_definition_is_deleted) {
  auto with = quick();
  with.create_for_runtimes = true;
  test_env env(with);
  test::run(env.context, keeps_everything(&env), 2 * test::patience);
}

/// The definition can't be read, for as long as the deletion may take.
asio::awaitable<void> goes_without_an_answer(test_env* env) {
  co_await env->begin();
  co_await env->add_runtime("skr");
  co_await env->until_condition("skr", "ConfigurationSynced", "True", "Synced");
  env->server.faults("kcp").decide = [](const std::string& verb, const std::string& path) {
    const bool is_asked =
        verb == "get" && path.ends_with("/runtimebootstrappers.operator.kyma-project.io");
    return k8s::devserver::fault{.status = is_asked ? 503U : 0U};
  };
  const auto before = std::string(k8s::uid_of(co_await env->status("skr")));
  co_await delete_resource(env, "skr");
  co_await env->until_resource("skr", [before](const json::value& object) {
    return !object.is_object() || k8s::uid_of(object) != before;
  });
  const auto runtime =
      test::required(co_await env->api("kcp").get(runtimes_type(), {"kcp-system", "skr"}));
  BOOST_TEST(!k8s::has_annotation(runtime, opt_out));
}

BOOST_AUTO_TEST_CASE(bootstrapper_does_not_stay_when_its_definition_can_not_be_read) {
  auto with = quick();
  with.create_for_runtimes = true;
  with.removal_limit = 2s;
  test_env env(with);
  test::run(env.context, goes_without_an_answer(&env), 2 * test::patience);
}

RW_COROUTINE_TEST(resource_of_another_name_than_its_runtime_is_rejected, test_env, quick()) {
  co_await env->begin_with({"skr"});
  json::value second{{"apiVersion", "operator.kyma-project.io/v1alpha1"},
                     {"kind", "RuntimeBootstrapper"},
                     {"metadata", {{"name", "earlier"}, {"namespace", "kcp-system"}}},
                     {"spec", {{"runtimeRef", {{"name", "skr"}}}}}};
  const auto made = co_await env->api("kcp").create(bootstrapper::runtime_bootstrappers_type(),
                                                    std::move(second));
  BOOST_REQUIRE(made.has_value());
  co_await env->until_condition("earlier", "Ready", "False", "Invalid");
  const auto earlier = co_await env->status("earlier");
  BOOST_TEST(k8s::find_string(earlier, {"status", "lastError"}) ==
             "spec.runtimeRef.name: is \"skr\", but a RuntimeBootstrapper has the name of its "
             "Runtime");
  const auto before = env->asked["skr"].writes;
  co_await delete_resource(env, "earlier");
  co_await env->until_resource("earlier", is_gone);
  BOOST_TEST(env->asked["skr"].writes == before);
  co_await env->until_condition("skr", "ConfigurationSynced", "True", "Synced");
}

RW_COROUTINE_TEST(runtime_that_is_being_deleted_is_not_repaired, test_env, quick()) {
  co_await env->begin_with({"skr"});
  co_await begin_deletion(env, "skr");
  co_await env->until_condition("skr", "Ready", "Unknown", "RuntimeDeleting");
  const auto before = env->asked["skr"].writes;
  // What is deleted on it now stays away.
  co_await env->remove("skr", deployments, deployment_key);
  const auto removing = env->asked["skr"].writes;
  BOOST_TEST(removing == before + 1);
  env->reactor->requeue({"kcp-system", "skr"});
  co_await delete_resource(env, "skr");
  co_await env->until_resource("skr", is_gone);
  BOOST_TEST(env->asked["skr"].writes == removing);
}

/// A runtime whose resource was created, and how often that is done, counted until the server's
/// end.
asio::awaitable<std::shared_ptr<int>> one_creation(test_env* env) {
  auto created = std::make_shared<int>();
  env->server.faults("kcp").decide = [created](const std::string& verb, const std::string& path) {
    if (verb == "create" && path.ends_with("/runtimebootstrappers")) ++*created;
    return k8s::devserver::fault();
  };
  co_await env->begin();
  co_await env->add_runtime("skr");
  co_await env->until_condition("skr", "ConfigurationSynced", "True", "Synced");
  BOOST_TEST(*created == 1);
  co_return created;
}

asio::awaitable<void> pass_three_times(test_env* env) {
  const std::string passes =
      "controller_runtime_reconcile_total{controller=\"runtime-bootstrapper\",result=\"success\"}";
  for (int i = 0; i < 3; ++i) {
    const auto before = env->metric(passes);
    env->reactor->requeue({"kcp-system", "skr"});
    co_await env->until_metric(passes, before + 1);
  }
}

/// The garbage collector takes what is created for it, at once.
asio::awaitable<void> is_deleted_unheard(test_env* env) {
  const auto created = co_await one_creation(env);
  co_await env->stop_observing_runtimes();
  co_await env->remove("kcp", runtimes_type(), {"kcp-system", "skr"});
  co_await env->until_event("skr", "BootstrapperRemoved");
  co_await pass_three_times(env);
  BOOST_TEST(*created == 1);
}

BOOST_AUTO_TEST_CASE(runtime_whose_deletion_is_not_heard_of_gets_no_resource_again) {
  auto with = quick();
  with.create_for_runtimes = true;
  test_env env(with);
  test::run(env.context, is_deleted_unheard(&env));
}

RW_COROUTINE_TEST(inline_manifests_without_the_flag_are_rejected, test_env, quick()) {
  co_await env->begin_with({"skr"});
  co_await env->change("skr", {{"manifests", {{"inline", manifests("9.0.0")}}}});
  co_await env->until_condition("skr", "Compatible", "False", "Invalid");
}

asio::awaitable<void> survives_replacement(test_env* env) {
  co_await env->begin();
  co_await env->add_runtime("skr");
  co_await env->until_condition("skr", "ConfigurationSynced", "True", "Synced");
  const auto writes = env->metric("rw_bootstrapper_writes_total");
  // As after a restore: the owner is a Runtime of this name that is gone.
  const auto made = co_await env->status("skr");
  auto owners = made.at("metadata").at("ownerReferences");
  owners.at(0).as_object()["uid"] = "former";
  json::value change{{"metadata", {{"ownerReferences", std::move(owners)}}}};
  const auto changed = co_await env->api("kcp").patch(bootstrapper::runtime_bootstrappers_type(),
                                                      {"kcp-system", "skr"}, k8s::patch_type::merge,
                                                      std::move(change));
  BOOST_REQUIRE(changed.has_value());
  const auto before = std::string(k8s::uid_of(*changed));
  co_await delete_resource(env, "skr");
  co_await env->until_resource("skr", [before](const json::value& object) {
    return object.is_object() && k8s::uid_of(object) != before;
  });
  co_await env->until_condition("skr", "ConfigurationSynced", "True", "Synced");
  BOOST_TEST(env->metric("rw_bootstrapper_writes_total") == writes);
}

BOOST_AUTO_TEST_CASE(replaced_runtime_is_not_undeployed_and_has_not_opted_out) {
  auto with = quick();
  with.create_for_runtimes = true;
  test_env env(with);
  test::run(env.context, survives_replacement(&env));
}

RW_COROUTINE_TEST(undeploying_waits_until_the_runtime_may_be_written_to, test_env, quick()) {
  co_await env->begin_with({"skr"});
  const std::string suspended(suspend_reconciliation_annotation);
  co_await env->annotate_runtime("skr", suspended, "true");
  co_await env->until_condition("skr", "Ready", "Unknown", "RuntimeSuspended");
  const auto before = env->asked["skr"].writes;
  co_await delete_resource(env, "skr");
  co_await env->until_state("skr", "Deleting");
  BOOST_TEST(env->asked["skr"].writes == before);
  co_await env->annotate_runtime("skr", suspended, nullptr);
  co_await env->until_resource("skr", is_gone);
  co_await env->until("skr", deployments, deployment_key, is_gone);
}

asio::awaitable<void> survives_silence(test_env* env) {
  co_await env->begin_with({"a", "b", "c"});
  env->hanging["b"] = true;
  const auto rotated = pull_secret("rotated");
  co_await env->set_source(rotated);
  for (const auto* name : {"a", "c"}) {
    co_await env->until(name, secrets_type(), credentials, has_data(rotated));
  }
  co_await env->until_condition("b", "ConfigurationSynced", "Unknown", "RuntimeUnreachable");
  BOOST_TEST(
      env->metric("rw_bootstrapper_content_state_since_timestamp_seconds{state=\"outdated\"}") > 0);
  env->hanging["b"] = false;
  co_await env->until("b", secrets_type(), credentials, has_data(rotated));
  co_await soon([&] { return env->reactor->contents().count("current") == 3; });
}

BOOST_AUTO_TEST_CASE(runtime_that_hangs_holds_up_no_other_and_is_synced_later) {
  auto with = quick();
  with.runtime_limit = 1s;
  test_env env(with);
  test::run(env.context, survives_silence(&env));
}

asio::awaitable<void> abandons_removal(test_env* env) {
  co_await env->begin_with({"skr"});
  env->hanging["skr"] = true;
  co_await delete_resource(env, "skr");
  co_await env->until_state("skr", "Deleting");
  co_await env->until_resource("skr", is_gone);
}

BOOST_AUTO_TEST_CASE(unreachable_runtime_does_not_keep_its_resource) {
  auto with = quick();
  with.runtime_limit = 500ms;
  with.removal_limit = 3s;
  test_env env(with);
  test::run(env.context, abandons_removal(&env));
}

asio::awaitable<void> remembers_the_opt_out(test_env* env) {
  const auto created = co_await one_creation(env);
  // The informer of Runtimes never shows the annotation.
  co_await env->stop_observing_runtimes();
  co_await delete_resource(env, "skr");
  co_await env->until_resource("skr", is_gone);
  co_await pass_three_times(env);
  BOOST_TEST(*created == 1);
}

BOOST_AUTO_TEST_CASE(opt_out_holds_while_the_informer_does_not_show_it) {
  auto with = quick();
  with.create_for_runtimes = true;
  test_env env(with);
  test::run(env.context, remembers_the_opt_out(&env));
}

RW_COROUTINE_TEST(runtime_in_mode_direct_without_a_working_resource_is_reported, test_env,
                  quick()) {
  const std::string unmanaged = "rw_bootstrapper_content_runtimes";
  co_await env->begin();
  co_await env->add_runtime("skr");
  co_await env->until_metric(unmanaged + "{state=\"NoResource\"}", 1);
  co_await env->until_event("skr", "BootstrapperUnmanaged", "has no RuntimeBootstrapper");
  co_await env->add_bootstrapper("skr");
  co_await env->until_condition("skr", "ConfigurationSynced", "True", "Synced");
  BOOST_TEST(env->metric(unmanaged + "{state=\"NoResource\"}") == 0);
  co_await env->change("skr", {{"runtimeRef", {{"name", "another"}}}});
  co_await env->until_metric(unmanaged + "{state=\"Invalid\"}", 1);
  co_await env->until_condition("skr", "RuntimeBootstrapperReady", "False",
                                "RuntimeBootstrapperConfigurationFailed");
  co_await env->annotate_runtime("skr", mode_annotation, "off");
  co_await soon([&] { return env->metric(unmanaged + "{state=\"Invalid\"}") == 0; });
}

asio::awaitable<void> keeps_the_condition(test_env* env) {
  const auto type = runtimes_type();
  const k8s::object_key key{"kcp-system", "skr"};
  const auto set = [&](const char* condition) {
    const json::value other{{"type", condition}, {"status", "True"}, {"reason", "R"}};
    return env->api("kcp").patch(
        type, key, k8s::patch_type::merge,
        {{"status", {{"state", "Ready"}, {"conditions", json::array{other}}}}},
        {.subresource = "status"});
  };
  int conflicts = 0;
  env->server.faults("kcp").decide = [&](const std::string& verb, const std::string& path) {
    k8s::devserver::fault out;
    if (verb == "patch" && path.find("/runtimes/skr/status") != path.npos && ++conflicts == 2) {
      out.status = 409;
    }
    return out;
  };
  co_await env->begin();
  co_await env->add_runtime("skr", "signal");
  co_await env->must(set("Provisioned"));
  co_await env->add_bootstrapper("skr");
  co_await env->until_condition("skr", "Ready", "Unknown", "NotInCharge");
  co_await env->annotate_runtime("skr", mode_annotation, "direct");
  const auto until = [&](const char* status, const char* reason) {
    return env->until("kcp", type, key, [=](const json::value& runtime) {
      const auto found = k8s::find_condition(runtime, "RuntimeBootstrapperReady");
      return found && found->status == status && found->reason == reason;
    });
  };
  co_await until("False", "RuntimeBootstrapperInstallationInProgress");
  BOOST_TEST(conflicts > 2);
  co_await env->set_ready("skr");
  co_await until("True", "RuntimeBootstrapperConfigured");
  const auto runtime = co_await env->must(env->api("kcp").get(type, key));
  const auto& all = runtime.at("status").at("conditions").as_array();
  BOOST_TEST_REQUIRE(all.size() == 2U);
  BOOST_TEST(k8s::find_string(all[0], {"type"}) == "Provisioned");
}

BOOST_AUTO_TEST_CASE(condition_of_a_runtime_is_kept_in_mode_direct_beside_those_of_others) {
  auto with = quick();
  with.runtime_condition = true;
  test_env env(with);
  test::run(env.context, keeps_the_condition(&env));
}

BOOST_AUTO_TEST_SUITE_END()
}  // namespace rw::bootstrapper_test
