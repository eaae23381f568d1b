// Another image comes to the runtimes in the order of a roll-out; all else waits for nobody.

#include "rw/k8s/objects/types.hpp"
#include "rw/reactors/runtime_rollout/runtime_rollout.hpp"
#include "rw/reactors/shared/kyma_resources.hpp"
#include "rw/reactors/shared/wire_version.hpp"
#include "rw/reactors/watcher_installer/render.hpp"

#include <boost/json/array.hpp>
#include <boost/json/object.hpp>
#include <boost/json/serialize.hpp>
#include <boost/test/unit_test.hpp>

#include "tests/unit/run.hpp"
#include "tests/unit/watcher_installer/world.hpp"
#include <algorithm>
#include <chrono>
#include <functional>
#include <memory>
#include <set>
#include <string>
#include <vector>

namespace rw::watcher_installer_test {
BOOST_AUTO_TEST_SUITE(rollout)

using namespace std::chrono_literals;
using runtime_rollout::runtime_rollouts_type;
using test::eventually;
using watcher_installer::installer_options;

namespace {

const k8s::object_key rollout_key{"kcp-system", "watcher"};

/// Enough for canaries to be a few of many.
#if defined(__has_feature)
#if __has_feature(address_sanitizer) || __has_feature(thread_sanitizer)
#define RW_IS_SLOW
#endif
#endif
#ifdef RW_IS_SLOW
constexpr int many = 12;
#else
constexpr int many = 100;
#endif

installer_options with_image(std::string image) {
  auto out = quick_options();
  out.drift_delay = 20ms;
  out.probe_timeout = 500ms;
  out.install.delays.propagation = 200ms;
  out.install.set.image = std::move(image);
  out.content_interval = out.unused_content_after = 50ms;
  return out;
}

const json::value& container_of(const json::value& of) {
  return of.at("spec").at("template").at("spec").at("containers").as_array().at(0);
}

std::string image_of(const json::value& of) {
  return of.is_object() ? std::string(k8s::find_string(container_of(of), {"image"})) : "";
}

/// Runtimes whose clusters run the watcher that is installed; one of the image "crash" crashes.
class landscape : public world {
 public:
  explicit landscape(int count) : world(with_image("good")) {
    for (int i = 0; i < count; ++i) names.push_back("skr-" + std::to_string(100 + i));
    on_request = [this](const std::string& cluster, const std::string& verb,
                        const std::string& path) {
      const bool written = !test::reads(verb) && path.ends_with("/deployments/skr-webhook");
      if (written) changing_.insert(cluster);
      return k8s::devserver::fault{.status = written && rejects ? 422U : 0U};
    };
  }
  ~landscape() override {
    test::run(context, end(this));
    on_request = {};
  }

  asio::awaitable<void> begin_all() {
    co_await begin();
    playing_.spawn(play());
    co_await add_watcher("kyma", "lifecycle-manager", "spec");
    for (const auto& name : names) co_await add(name);
    co_await until_all("good");
  }

  asio::awaitable<void> add(std::string name) {
    add_cluster(name);
    co_await add_kyma(name, kubeconfig(name));
  }

  /// Another manager begins, with another image.
  asio::awaitable<void> update(std::string image) {
    co_await stop_rollout();
    co_await take_over(with_image(std::move(image)));
  }

  asio::awaitable<void> until_rollout(std::function<bool(const json::value&)> good) {
    const bool came = co_await until(
        "kcp", runtime_rollouts_type(), rollout_key,
        [&](const auto& one) { return one.is_object() && good(one); }, 2 * test::patience);
    const auto last = co_await api("kcp").get(runtime_rollouts_type(), rollout_key);
    BOOST_REQUIRE_MESSAGE(came, json::serialize(last ? *last : json::value()));
  }
  asio::awaitable<void> until_phase(std::string phase, std::string reason = {}) {
    co_await until_rollout([&](const json::value& one) {
      return k8s::find_string(one, {"status", "phase"}) == phase &&
             k8s::find_string(one, {"status", "reason"}) == reason;
    });
  }
  /// All have it, and the roll-out says so.
  asio::awaitable<void> until_all(std::string image) {
    co_await until_rollout([&](const json::value& one) {
      return k8s::find_string(one, {"status", "phase"}) == "Completed" &&
             k8s::find_number(one, {"status", "ready"}) == static_cast<std::int64_t>(names.size());
    });
    const auto having = co_await with(image);
    BOOST_TEST(having.size() == names.size());
  }
  asio::awaitable<std::set<std::string>> with(std::string image) {
    std::set<std::string> out;
    for (const auto& name : names) {
      const auto got = co_await api(name).get(deployments, deployment);
      if (got && image_of(*got) == image) out.insert(name);
    }
    co_return out;
  }
  asio::awaitable<json::value> status() {
    const auto got = co_await must(api("kcp").get(runtime_rollouts_type(), rollout_key));
    co_return got.at("status");
  }
  /// Its pods fail until the Deployment changes.
  asio::awaitable<void> give_up(std::string name) {
    json::value failed{{"status",
                        {{"readyReplicas", 0},
                         {"conditions", json::array{{{"type", "Progressing"},
                                                     {"status", "False"},
                                                     {"reason", "ProgressDeadlineExceeded"}}}}}}};
    co_await must(api(name).patch(deployments, deployment, k8s::patch_type::merge,
                                  std::move(failed), {.subresource = "status"}));
  }

  /// A client of the runtime changes the Deployment.
  asio::awaitable<void> set_image(std::string name, std::string image) {
    json::array change{{{"op", "replace"},
                        {"path", "/spec/template/spec/containers/0/image"},
                        {"value", std::move(image)}}};
    co_await must(
        api(name).patch(deployments, deployment, k8s::patch_type::json, std::move(change)));
  }

  std::vector<std::string> names;
  bool rejects = false;  ///< the clusters reject every write of the Deployment

 private:
  static asio::awaitable<void> end(landscape* self) {
    self->playing_.cancel();
    co_await self->playing_.join();
    co_await self->stop_rollout();
    co_await self->stop();
  }

  void prepare(k8s::informer& kymas) override {
    runtime_rollout::rollout_options with{.component = "watcher", .settle = 10ms};
    with.usual.soak = 0ms;
    auto& rollouts = inform(runtime_rollouts_type(), {.objects = {.ns = "kcp-system"}});
    gate_ = std::make_unique<runtime_rollout::runtime_rollout>(
        context.get_executor(), with,
        runtime_rollout::rollout_environment{
            api("kcp"),
            rollouts,
            kymas,
            kymas,
            record_events("rollout"),
            {clock, watchdog, log, numbers, core::make_random_source()}});
    contents_ = std::make_unique<content_store>(api("kcp"), "kcp-system", "watcher-content-");
    installer->roll_out_by(*gate_, *contents_);
    rolling_ = std::make_unique<core::task_group>(context.get_executor());
    rolling_->spawn(gate_->run());
  }
  asio::awaitable<void> stop_rollout() {
    if (!rolling_) co_return;
    rolling_->cancel();
    co_await rolling_->join();
  }

  /// What the controllers of the clusters do.
  asio::awaitable<void> play() {
    const auto pause = clock.make_timer(context.get_executor());
    for (;;) {
      const auto all = changing_;
      for (const auto& name : all) co_await play_one(name);
      pause->expires_at(clock.now() + 20ms);
      const bool due = co_await pause->wait();
      if (!due) co_return;
    }
  }
  asio::awaitable<void> play_one(std::string name) {
    if (hanging[name]) co_return;
    const auto got = co_await api(name).get(deployments, deployment);
    if (!got) co_return;
    const auto generation = k8s::generation_of(*got);
    if (k8s::find_number(*got, {"status", "observedGeneration"}) == generation) co_return;
    changing_.erase(name);
    const bool crashes = image_of(*got) == "crash";
    // The former pod stays until the new one is ready.
    const bool had_one = k8s::find_number(*got, {"status", "readyReplicas"}) > 0;
    co_await set_crashing(name, deployment, "server", crashes);
    json::value status{{"status",
                        {{"observedGeneration", generation},
                         {"replicas", crashes && had_one ? 2 : 1},
                         {"updatedReplicas", 1},
                         {"readyReplicas", crashes ? (had_one ? 1 : 0) : 1},
                         {"conditions", json::array()}}}};
    co_await api(name).patch(deployments, deployment, k8s::patch_type::merge, std::move(status),
                             {.subresource = "status"});
  }

  std::set<std::string> changing_;  ///< clusters whose controllers have something to do
  core::task_group playing_{context.get_executor()};
  std::unique_ptr<runtime_rollout::runtime_rollout> gate_;
  std::unique_ptr<content_store> contents_;
  std::unique_ptr<core::task_group> rolling_;
};

}  // namespace

asio::awaitable<void> crash_stays_with_canaries(landscape* land) {
  const auto begin = land->clock.now();
  co_await land->update("crash");
  co_await land->until_phase("Paused", "CanaryFailed");
  BOOST_TEST((land->clock.now() - begin < 30s));
  const auto crashing = co_await land->with("crash");
  BOOST_TEST(crashing.size() >= 1U);
  BOOST_TEST(crashing.size() <= 2U);
  // A preview says what the others wait for.
  const auto waiting = std::ranges::find_if(
      land->names, [&](const std::string& name) { return !crashing.contains(name); });
  const auto preview = co_await land->installer->preview({"kcp-system", *waiting});
  BOOST_TEST(preview.error == "");
  BOOST_TEST(preview.writes.empty());
  BOOST_TEST_REQUIRE(preview.waits.size() == 1U);
  BOOST_TEST(preview.waits.front().starts_with("the roll-out has not admitted it: "));
  // Certificates, and webhooks of Watchers, go everywhere at once.
  land->certificates.use(land->first);
  co_await land->add_watcher("other", "warden", "status");
  for (const auto& name : land->names) land->installer->requeue({"kcp-system", name});
  for (const auto& name : land->names) {
    bool good = co_await land->until(name, secrets_type(), tls_secret, [&](const auto& one) {
      return k8s::secret_data(one, "tls.crt") == land->certificates.certificate(name);
    });
    BOOST_TEST(good, name);
    good = co_await land->until(
        name, test::webhook_configurations, configuration,
        [](const json::value& one) { return one.at("webhooks").as_array().size() == 2; });
    BOOST_TEST(good, name);
  }
  // Neither a new Kyma nor one whose Deployment was deleted, be it a canary, gets what fails.
  land->names.emplace_back("late");
  co_await land->add("late");
  const auto lost = *crashing.begin();
  co_await land->remove(lost, deployments, deployment);
  for (const auto& name : {lost, std::string("late")}) {
    const bool good = co_await land->until(name, deployments, deployment,
                                           [](const auto& one) { return image_of(one) == "good"; });
    BOOST_TEST(good, name);
  }
  const auto still = co_await land->with("crash");
  BOOST_TEST(still.size() + 1 == crashing.size());
  const bool told = co_await land->until_event("watcher", "RolloutPaused", "CrashLoopBackOff");
  BOOST_TEST(told);
}

asio::awaitable<void> newer_supersedes(landscape* land) {
  co_await land->update("better");
  co_await land->until_all("better");
}

BOOST_AUTO_TEST_CASE(crashing_image_reaches_the_canaries_only) {
  landscape land(many);
  test::run(land.context, land.begin_all());
  test::run(land.context, crash_stays_with_canaries(&land));
  test::run(land.context, newer_supersedes(&land));
}

asio::awaitable<void> rejection_stops_rollout(landscape* land) {
  co_await land->begin_all();
  land->rejects = true;
  const auto begin = land->clock.now();
  co_await land->update("unfit");
  co_await land->until_phase("Paused", "CanaryFailed");
  BOOST_TEST((land->clock.now() - begin < 1min));
  land->rejects = false;
  co_await land->update("better");
  co_await land->until_all("better");
}

BOOST_AUTO_TEST_CASE(deployment_that_canaries_reject_stops_the_rollout) {
  landscape land(6);
  test::run(land.context, rejection_stops_rollout(&land));
}

asio::awaitable<void> waits_for_person(landscape* land) {
  co_await land->begin_all();
  co_await land->update("crash");
  co_await land->until_phase("Paused", "CanaryFailed");
  const auto before = co_await land->with("crash");
  // Another manager of the same image goes on from there.
  co_await land->update("crash");
  const auto passes = [land] {
    return land->metric(
        "controller_runtime_reconcile_total{controller=\"rollout-watcher\",result=\"success\"}");
  };
  const auto done = passes();
  json::value seen{{"metadata", {{"labels", {{"seen", "yes"}}}}}};  // each change is decided upon
  co_await land->merge(runtime_rollouts_type(), rollout_key, std::move(seen));
  bool good = co_await eventually([&] { return passes() > done; });
  BOOST_TEST(good);
  co_await land->until_phase("Paused", "CanaryFailed");
  const auto after = co_await land->with("crash");
  BOOST_TEST(after == before);
  const json::value resume{{"resume", "1"}, {"failureBudget", "100%"}};
  co_await land->merge(runtime_rollouts_type(), rollout_key, {{"spec", resume}});
  co_await land->until_rollout([land](const json::value& one) {
    return k8s::find_number(one, {"status", "updated"}) ==
           static_cast<std::int64_t>(land->names.size());
  });
}

BOOST_AUTO_TEST_CASE(paused_update_outlives_the_manager_and_is_resumed_by_hand) {
  landscape land(6);
  test::run(land.context, waits_for_person(&land));
}

asio::awaitable<void> keeps_facts_current(landscape* land) {
  co_await land->begin_all();
  const json::value spec{{"paused", true}};
  co_await land->merge(runtime_rollouts_type(), rollout_key, {{"spec", spec}});
  co_await land->update("better");
  co_await land->until_phase("Paused", "ByHand");
  json::value change{{"spec",
                      {{"servers", json::array{{{"hosts", json::array{"new.example.com"}},
                                                {"port", {{"number", 8443}}}}}}}}};
  co_await land->merge(gateways_type(), {"kcp-system", "klm-watcher"}, std::move(change));
  for (const auto& name : land->names) {
    const bool good = co_await land->until(name, deployments, deployment, [](const auto& one) {
      return one.is_object() &&
             json::serialize(container_of(one)).find("new.example.com:8443") != std::string::npos;
    });
    BOOST_TEST(good, name);
  }
  auto having = co_await land->with("good");
  BOOST_TEST(having.size() == land->names.size());
  // One that is missing is made anew, with the content that was rolled out to the end.
  const auto lost = land->names.front();
  co_await land->remove(lost, deployments, deployment);
  bool good = co_await land->until(lost, deployments, deployment,
                                   [](const auto& one) { return image_of(one) == "good"; });
  BOOST_TEST(good);
  // So is the one of a new Kyma, which waits for its turn like the others.
  land->names.emplace_back("late");
  co_await land->add("late");
  good = co_await land->until("late", deployments, deployment,
                              [](const auto& one) { return image_of(one) == "good"; });
  BOOST_TEST(good);
  co_await land->until_rollout([land](const json::value& one) {
    return k8s::find_number(one, {"status", "total"}) ==
               static_cast<std::int64_t>(land->names.size()) &&
           k8s::find_number(one, {"status", "updated"}) == 0;
  });
  // What is changed on a runtime is repaired before its turn.
  const auto changed = land->names.back();
  co_await land->set_image(changed, "foreign");
  good = co_await land->until(changed, deployments, deployment,
                              [](const auto& one) { return image_of(one) == "good"; });
  BOOST_TEST(good);
  const json::value resumed{{"paused", false}};
  co_await land->merge(runtime_rollouts_type(), rollout_key, {{"spec", resumed}});
  co_await land->until_all("better");
}

BOOST_AUTO_TEST_CASE(waiting_runtime_gets_all_but_the_content) {
  landscape land(4);
  test::run(land.context, keeps_facts_current(&land));
}

asio::awaitable<void> leaves_some_out(landscape* land) {
  co_await land->begin_all();
  const auto first = co_await land->status();
  // One failed before, one is left alone, one does not answer.
  const auto ill = land->names[0];
  const auto alone = land->names[1];
  const auto silent = land->names[2];
  co_await land->give_up(ill);
  json::object labels;
  labels[skip_label] = "true";
  const json::value skip{{"labels", labels}};
  co_await land->merge(kymas_type(), {"kcp-system", alone}, {{"metadata", skip}});
  // A Deployment that has the newest content since it was made and does not run is not counted.
  co_await land->until_rollout(
      [](const json::value& one) { return k8s::find_number(one, {"status", "total"}) == 4; });
  land->hanging[silent] = true;
  co_await land->update("better");
  co_await land->until_rollout([&](const json::value& one) {
    return k8s::find_string(one, {"status", "completed"}) == first.at("content").as_string() &&
           k8s::find_string(one, {"status", "phase"}) == "Partial";
  });
  const auto status = co_await land->status();
  BOOST_TEST(status.at("total").as_int64() == 5);
  BOOST_TEST(status.at("failed").as_int64() == 0);
  land->hanging[silent] = false;
  bool good = co_await land->until(silent, deployments, deployment,
                                   [](const auto& one) { return image_of(one) == "better"; });
  BOOST_TEST(good);
  good = co_await land->until(ill, deployments, deployment,
                              [](const auto& one) { return image_of(one) == "better"; });
  BOOST_TEST(good);
  const auto having = co_await land->with("good");
  BOOST_TEST((having == std::set<std::string>{alone}));
}

BOOST_AUTO_TEST_CASE(runtimes_that_are_ill_silent_or_left_alone_hold_up_nobody) {
  landscape land(6);
  test::run(land.context, leaves_some_out(&land));
}

/// All have it, and then the roll-out says so: it may not have begun yet.
asio::awaitable<void> until_each(landscape* land, std::string image) {
  for (const auto& name : land->names) {
    const bool came = co_await land->until(name, deployments, deployment,
                                           [&](const auto& one) { return image_of(one) == image; });
    BOOST_TEST(came, name);
  }
  co_await land->until_all(image);
}

asio::awaitable<std::string> content_with(landscape* land, std::string image) {
  const auto got = co_await land->must(land->api(land->names.front()).get(deployments, deployment));
  BOOST_TEST(image_of(got) == image);
  co_return std::string(watcher_installer::content_of(got));
}

asio::awaitable<void> pin(landscape* land, std::string revision) {
  json::value change{
      {"spec", {{"revision", revision.empty() ? json::value() : json::value(revision)}}}};
  co_await land->merge(runtime_rollouts_type(), rollout_key, std::move(change));
}

asio::awaitable<void> until_pinned(landscape* land, std::string status, std::string reason) {
  co_await land->until_rollout([&](const json::value& one) {
    const auto found = k8s::find_condition(one, "Pinned");
    return found && found->status == status && found->reason == reason;
  });
}

asio::awaitable<void> undone_by_one_patch(landscape* land) {
  co_await land->begin_all();
  const auto good = co_await content_with(land, "good");
  co_await land->update("crash");
  co_await land->until_phase("Paused", "CanaryFailed");
  const auto crashing = co_await land->with("crash");
  BOOST_TEST(!crashing.empty());
  co_await pin(land, good);
  co_await land->until_all("good");
  co_await until_pinned(land, "True", "Revision");
  const auto status = co_await land->status();
  BOOST_TEST(status.at("content").as_string() == good);
  const auto text = json::serialize(status);
  BOOST_TEST(text.find("newer: Deployment/skr-webhook=") != std::string::npos, text);

  // Neither another manager nor another image ends that.
  co_await land->update("better");
  co_await land->add("late");
  land->names.emplace_back("late");
  co_await land->until_all("good");
  co_await until_pinned(land, "True", "Revision");
  // What a client of the runtime changes is repaired to it.
  co_await land->set_image("late", "foreign");
  const bool repaired = co_await land->until(
      "late", deployments, deployment, [](const auto& one) { return image_of(one) == "good"; });
  BOOST_TEST(repaired);

  co_await pin(land, "");
  co_await until_each(land, "better");
  co_await until_pinned(land, "False", "None");
}

BOOST_AUTO_TEST_CASE(crashing_image_is_undone_by_one_patch_until_that_is_taken_away) {
  landscape land(6);
  test::run(land.context, undone_by_one_patch(&land), 60s);
}

/// Other content is pinned while what comes before the Deployment is written.
RW_COROUTINE_TEST(deployment_stays_if_the_turn_ends_before_it_is_written, test::environment) {
  env->add_cluster("skr");
  const authority ca("klm-watcher");
  const auto own = ca.issue();
  auto options = with_image("good").install;
  watcher_installer::known_bundles known;
  const auto install = [&](std::function<bool(std::string)> may_update) {
    watcher_installer::order order{
        .trust = {tls::ca_bundle::parse(ca.pem()).value(), own.certificate, own.key},
        .address = {"kcp.example.com", 443},
        .watchers = {sample_watcher()},
        .may_update = std::move(may_update)};
    return watcher_installer::install(env->client("skr"), &options, &known, std::move(order),
                                      &env->clock);
  };
  auto done = co_await install({});
  BOOST_REQUIRE_MESSAGE(done.has_value(), done.error().message);
  options.set.image = "better";
  const k8s::object_key service{"kyma-system", "skr-webhook"};
  co_await env->remove("skr", services, service);
  int asked = 0;
  done = co_await install([&](const std::string&) { return ++asked == 1; });
  BOOST_TEST(done.has_error());
  BOOST_TEST(done.error().is(k8s::errc::fenced));
  BOOST_TEST(asked == 2);
  const auto again = co_await env->api("skr").get(services, service);
  BOOST_TEST(again.has_value());
  auto stands = co_await env->must(env->api("skr").get(deployments, deployment));
  BOOST_TEST(image_of(stands) == "good");
  done = co_await install([](const std::string&) { return true; });
  BOOST_TEST(done.has_value());
  stands = co_await env->must(env->api("skr").get(deployments, deployment));
  BOOST_TEST(image_of(stands) == "better");
}

asio::awaitable<void> refuses_other_formats(landscape* land) {
  co_await land->begin_all();
  const auto good = co_await content_with(land, "good");
  co_await land->update("better");
  co_await until_each(land, "better");
  // As a manager of a later version has recorded it.
  auto status = co_await land->status();
  for (auto& each : status.at("history").as_array()) {
    if (each.at("content").as_string() == good) each.as_object()["wireVersion"] = wire_version + 1;
  }
  json::object changed;
  changed["history"] = status.at("history");
  const json::value change{{"status", std::move(changed)}};
  co_await land->must(land->api("kcp").patch(runtime_rollouts_type(), rollout_key,
                                             k8s::patch_type::merge, change,
                                             {.subresource = "status"}));
  co_await pin(land, good);
  co_await until_pinned(land, "False", "UnsupportedWireVersion");
  const auto still = co_await land->with("better");
  BOOST_TEST(still.size() == land->names.size());
}

BOOST_AUTO_TEST_CASE(image_that_reads_other_formats_is_not_rolled_out_again) {
  landscape land(3);
  test::run(land.context, refuses_other_formats(&land));
}

/// The names of the Secrets that keep contents for a pin.
asio::awaitable<std::set<std::string>> kept(landscape* land) {
  const auto got = co_await land->must(land->api("kcp").list(secrets_type(), {.ns = "kcp-system"}));
  std::set<std::string> out;
  for (const auto& each : got.at("items").as_array()) {
    const auto text = json::serialize(k8s::find(each, {"metadata", "annotations"}) != nullptr
                                          ? each.at("metadata").at("annotations")
                                          : json::value());
    if (text.find("kept: watcher ") != std::string::npos) out.insert(k8s::key_of(each).name);
  }
  co_return out;
}

asio::awaitable<void> says_that_it_is_lost(landscape* land) {
  co_await land->begin_all();
  const auto good = co_await content_with(land, "good");
  const auto first = co_await kept(land);
  co_await land->update("better");
  co_await until_each(land, "better");
  co_await land->remove("kcp", secrets_type(), {"kcp-system", *first.begin()});
  co_await pin(land, good);
  co_await until_pinned(land, "False", "ContentLost");
  auto status = co_await land->status();
  BOOST_TEST(k8s::find_condition(json::value{{"status", status}}, "Stalled")->status == "True");
  // Nor is what the next manager brings.
  co_await land->update("best");
  co_await until_pinned(land, "False", "ContentLost");
  const auto still = co_await land->with("better");
  BOOST_TEST(still.size() == land->names.size());
  co_await pin(land, "");
  co_await until_each(land, "best");
  co_await until_pinned(land, "False", "None");
  status = co_await land->status();
  BOOST_TEST(k8s::find_condition(json::value{{"status", status}}, "Stalled")->status == "False");
}

BOOST_AUTO_TEST_CASE(pinned_content_that_is_lost_is_said_and_nothing_else_is_rolled_out) {
  landscape land(3);
  test::run(land.context, says_that_it_is_lost(&land));
}

asio::awaitable<void> keeps_what_can_be_pinned(landscape* land) {
  co_await land->begin_all();
  const auto good = co_await content_with(land, "good");
  const auto first = co_await kept(land);
  BOOST_TEST(first.size() == 1U);
  co_await land->update("better");
  co_await until_each(land, "better");
  auto all = co_await kept(land);
  BOOST_TEST(all.size() == 2U);
  // The present one comes back where a client deletes it; one of no history goes.
  const auto lost = *all.begin() == *first.begin() ? *all.rbegin() : *all.begin();
  co_await land->remove("kcp", secrets_type(), {"kcp-system", lost});
  bool good_again = co_await land->until("kcp", secrets_type(), {"kcp-system", lost},
                                         [](const auto& one) { return one.is_object(); });
  BOOST_TEST(good_again);
  auto status = co_await land->status();
  auto& history = status.at("history").as_array();
  history.erase(std::ranges::find_if(
      history, [&](const auto& each) { return each.at("content").as_string() == good; }));
  json::object changed;
  changed["history"] = history;
  const json::value change{{"status", std::move(changed)}};
  co_await land->must(land->api("kcp").patch(runtime_rollouts_type(), rollout_key,
                                             k8s::patch_type::merge, change,
                                             {.subresource = "status"}));
  good_again = co_await land->until("kcp", secrets_type(), {"kcp-system", *first.begin()},
                                    [](const auto& one) { return one.is_null(); });
  BOOST_TEST(good_again);
  all = co_await kept(land);
  BOOST_TEST((all == std::set<std::string>{lost}));
  // What is not kept is not pinned.
  co_await pin(land, good);
  co_await until_pinned(land, "False", "NotInHistory");
}

BOOST_AUTO_TEST_CASE(contents_are_kept_as_long_as_they_can_be_pinned) {
  landscape land(3);
  test::run(land.context, keeps_what_can_be_pinned(&land));
}

BOOST_AUTO_TEST_SUITE_END()
}  // namespace rw::watcher_installer_test
