#pragma once

#include "rw/k8s/objects/types.hpp"
#include "rw/reactors/runtime_rollout/runtime_rollout.hpp"
#include "rw/reactors/shared/kyma_resources.hpp"

#include <boost/json/array.hpp>
#include <boost/json/object.hpp>
#include <boost/test/unit_test.hpp>

#include "tests/unit/bootstrapper/test_env.hpp"
#include "tests/unit/run.hpp"
#include <chrono>
#include <functional>
#include <map>
#include <memory>
#include <string>
#include <utility>
#include <vector>

namespace rw::bootstrapper_test {

using runtime_rollout::runtime_rollouts_type;
using namespace std::chrono_literals;

inline const k8s::object_key rollout_key{"kcp-system", "bootstrapper"};

/// "1.0.0" of an image "example.com/rt-bootstrapper:1.0.0".
inline std::string version_of(const json::value& deployment) {
  if (!deployment.is_object()) return {};
  const auto& container =
      deployment.at("spec").at("template").at("spec").at("containers").as_array().at(0);
  const auto image = k8s::find_string(container, {"image"});
  return std::string(image.substr(image.rfind(':') + 1));
}

/// Runtimes whose clusters run what is installed there; images of the version "crash" crash.
class landscape : public test_env {
 public:
  explicit landscape(std::size_t count, bootstrapper::direct_sync_options with = quick_options())
      : test_env(std::move(with)) {
    for (std::size_t i = 1; i <= count; ++i) names.push_back("skr-" + std::to_string(i));
  }
  ~landscape() override {
    end_faults();
    test::run(context, [](landscape* self) -> asio::awaitable<void> {
      self->playing_.cancel();
      co_await self->playing_.join();
      co_await self->stop_rollout();
      co_await self->stop();
    }(this));
  }

  asio::awaitable<void> begin() {
    const auto of_kcp = [this](const k8s::resource_type& type) {
      return &inform(type, {.objects = {.ns = "kcp-system"}});
    };
    rollouts_ = of_kcp(runtime_rollouts_type());
    resources_ = of_kcp(bootstrapper::runtime_bootstrappers_type());
    runtimes_ = of_kcp(runtimes_type());
    rollout_events_ = &record_events("rollout");
    make_rollout();
    co_await test_env::begin();
    rolling_->spawn(gate_->run());
    playing_.spawn(play());
    for (const auto& name : names) {
      co_await add_runtime(name);
      co_await add_bootstrapper(name);
    }
    co_await until_rollout([this](const json::value& object) {
      return phase(object) == "Completed" && ready(object) == names.size();
    });
  }

  /// Another process takes over, after something else.
  asio::awaitable<void> take_over(std::function<asio::awaitable<void>()> meanwhile = {}) {
    co_await stop_rollout();
    co_await stop();
    if (meanwhile) co_await meanwhile();
    make_rollout();
    co_await restart();
    rolling_->spawn(gate_->run());
  }

  static std::string phase(const json::value& object) {
    return std::string(k8s::find_string(object, {"status", "phase"}));
  }
  static std::string reason(const json::value& object) {
    return std::string(k8s::find_string(object, {"status", "reason"}));
  }
  static std::size_t ready(const json::value& object) {
    return static_cast<std::size_t>(k8s::find_number(object, {"status", "ready"}));
  }

  asio::awaitable<void> until_rollout(std::function<bool(const json::value&)> good,
                                      place where = place::current()) {
    co_await until(
        "kcp", runtime_rollouts_type(), rollout_key,
        [&](const json::value& one) { return one.is_object() && good(one); }, where);
  }
  asio::awaitable<void> change_rollout(json::value spec) {
    const auto done = co_await api("kcp").patch(
        runtime_rollouts_type(), rollout_key, k8s::patch_type::merge, {{"spec", std::move(spec)}});
    BOOST_REQUIRE_MESSAGE(done.has_value(), done.error().message);
  }
  asio::awaitable<void> set_version(std::string version) {
    const auto source = manifests_source(manifests(version));
    co_await set_source(source);
  }
  asio::awaitable<std::string> version_on(std::string runtime) {
    const auto got = co_await api(runtime).get(deployments, deployment_key);
    co_return got ? version_of(*got) : std::string();
  }
  asio::awaitable<std::size_t> count(std::string version) {
    std::size_t out = 0;
    for (const auto& name : names) {
      const auto is = co_await version_on(name);
      out += is == version ? 1 : 0;
    }
    co_return out;
  }

  /// A runtime with this version; empty: none has it.
  asio::awaitable<std::string> runtime_with(std::string version) {
    for (const auto& name : names) {
      const auto is = co_await version_on(name);
      if (is == version) co_return name;
    }
    co_return std::string();
  }

  std::vector<std::string> names;

 private:
  void make_rollout() {
    runtime_rollout::rollout_options with;
    with.settle = 10ms;
    with.usual.soak = 0ms;
    gate_ = std::make_unique<runtime_rollout::runtime_rollout>(
        context.get_executor(), with,
        runtime_rollout::rollout_environment{
            api("kcp"),
            *rollouts_,
            *resources_,
            *runtimes_,
            *rollout_events_,
            {clock, watchdog, log, numbers, core::make_random_source()}});
    gate = gate_.get();
    rolling_ = std::make_unique<core::task_group>(context.get_executor());
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
      const auto all = names;  // the test adds some
      for (const auto& name : all) co_await play_one(name);
      pause->expires_at(clock.now() + 20ms);
      const bool due = co_await pause->wait();
      if (!due) co_return;
    }
  }
  asio::awaitable<void> play_one(std::string name) {
    if (hanging[name] || !asked.contains(name)) co_return;
    const auto got = co_await api(name).get(deployments, deployment_key);
    if (!got) co_return;
    const auto crashes = version_of(*got) == "crash";
    const auto generation = k8s::generation_of(*got);
    const auto ready = crashes ? 0 : 1;
    if (k8s::find_number(*got, {"status", "observedGeneration"}) == generation &&
        k8s::find_number(*got, {"status", "readyReplicas"}) == ready) {
      co_return;
    }
    co_await set_crashing(name, deployment_key, "manager", crashes);
    json::value status{{"status",
                        {{"observedGeneration", generation},
                         {"replicas", 1},
                         {"updatedReplicas", 1},
                         {"readyReplicas", ready}}}};
    co_await api(name).patch(deployments, deployment_key, k8s::patch_type::merge, std::move(status),
                             {.subresource = "status"});
  }

  core::task_group playing_{context.get_executor()};
  k8s::informer* rollouts_ = nullptr;
  k8s::informer* resources_ = nullptr;
  k8s::informer* runtimes_ = nullptr;
  k8s::event_recorder* rollout_events_ = nullptr;
  std::unique_ptr<runtime_rollout::runtime_rollout> gate_;
  std::unique_ptr<core::task_group> rolling_;
};

}  // namespace rw::bootstrapper_test
