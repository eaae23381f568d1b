// A new leader goes on where the former one stopped.

#include "rw/k8s/objects/types.hpp"
#include "rw/reactors/runtime_rollout/runtime_rollout.hpp"
#include "rw/reactors/shared/kyma_resources.hpp"

#include <boost/json/array.hpp>
#include <boost/json/object.hpp>
#include <boost/json/serialize.hpp>
#include <boost/test/unit_test.hpp>

#include "tests/unit/environment/environment.hpp"
#include "tests/unit/run.hpp"
#include <chrono>
#include <memory>
#include <set>
#include <string>

namespace rw::runtime_rollout_test {
BOOST_AUTO_TEST_SUITE(restart)

namespace asio = boost::asio;
namespace json = boost::json;
using namespace std::chrono_literals;
using runtime_rollout::runtime_rollouts_type;
using test::eventually;

namespace {

const k8s::object_key rollout_key{"kcp-system", "watcher"};

/// Three Kymas, and a leader that begins while the canaries r1 and r2 have not taken content b.
class new_leader : public test::environment {
 public:
  ~new_leader() override { shut_down(); }

  asio::awaitable<void> begin() {
    co_await define({"dev/operator.kyma-project.io_kymas.yaml",
                     "crds/operator.kyma-project.io_runtimerollouts.yaml"},
                    {"kcp-system"});
    for (const auto* name : {"r0", "r1", "r2"}) {
      co_await create("kcp", test::object_of(kymas_type(), "kcp-system", name), kymas_type());
    }
    co_await create("kcp", runtime_rollout::make_rollout("watcher"), runtime_rollouts_type());
    json::value status{{"phase", "Canary"},
                       {"content", "b"},
                       {"completed", "a"},
                       {"canaries", json::array{"r1", "r2"}}};
    co_await must(api("kcp").patch(runtime_rollouts_type(), rollout_key, k8s::patch_type::merge,
                                   {{"status", std::move(status)}}, {.subresource = "status"}));
    auto& kymas = inform(kymas_type(), {.what = {.ns = "kcp-system"}});
    auto& rollouts = inform(runtime_rollouts_type(), {.what = {.ns = "kcp-system"}});
    gate_ = std::make_unique<runtime_rollout::runtime_rollout>(
        context.get_executor(), runtime_rollout::options{.component = "watcher", .settle = 1ms},
        runtime_rollout::environment{api("kcp"),
                                     rollouts,
                                     kymas,
                                     kymas,
                                     record_events("rollout"),
                                     {clock, watchdog, log, numbers, core::make_random_source()}});
    gate_->attach(
        {[this](const k8s::object_key& key) { admitted.insert(key.name); },
         [](std::string) -> asio::awaitable<k8s::result<void>> { co_return k8s::result<void>(); }});
    tasks.spawn(gate_->run());
  }

  void admit(const std::string& name) {
    gate_->admit({"kcp-system", name}, {.digest = "b"}, {.newest = "b", .completed = "a"},
                 {.in_place = "a"});
  }
  void observe(const std::string& name) {
    gate_->observe({"kcp-system", name}, {.in_place = "a", .health = content_health::ready});
  }
  double passes() const {
    double out = 0;
    for (const auto* result : {"success", "requeue_after"}) {
      out += metric("controller_runtime_reconcile_total{controller=\"rollout-watcher\",result=\"" +
                    std::string(result) + "\"}");
    }
    return out;
  }

  std::set<std::string> admitted;

 private:
  std::unique_ptr<runtime_rollout::runtime_rollout> gate_;
};

asio::awaitable<void> keeps_canaries(new_leader* self) {
  co_await self->begin();
  for (const auto* name : {"r0", "r1", "r2"}) self->admit(name);
  self->observe("r0");
  const auto before = self->passes();
  bool done = co_await eventually([&] { return self->passes() > before + 2; });
  BOOST_TEST(done);
  BOOST_TEST(self->admitted.empty());
  self->observe("r1");
  self->observe("r2");
  done = co_await eventually([&] { return self->admitted.size() >= 2U; });
  BOOST_TEST(done);
  BOOST_TEST((self->admitted == std::set<std::string>{"r1", "r2"}));
  const auto object =
      co_await self->must(self->api("kcp").get(runtime_rollouts_type(), rollout_key));
  BOOST_TEST(json::serialize(object.at("status").at("canaries")) == R"(["r1","r2"])");
}

}  // namespace

BOOST_AUTO_TEST_CASE(new_leader_keeps_canaries_until_their_health_is_known) {
  new_leader self;
  test::run(self.context, keeps_canaries(&self));
}

BOOST_AUTO_TEST_SUITE_END()
}  // namespace rw::runtime_rollout_test
