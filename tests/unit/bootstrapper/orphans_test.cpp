// Deleted RuntimeBootstrappers while the mode is off.

#include "rw/reactors/bootstrapper/orphans.hpp"

#include "rw/core/task_group.hpp"
#include "rw/k8s/objects/types.hpp"
#include "rw/reactors/bootstrapper/resource.hpp"

#include <boost/json/array.hpp>
#include <boost/json/object.hpp>
#include <boost/test/unit_test.hpp>

#include "tests/unit/environment/environment.hpp"
#include "tests/unit/run.hpp"
#include <chrono>
#include <string>

namespace rw::bootstrapper_test {
BOOST_AUTO_TEST_SUITE(orphans)

namespace asio = boost::asio;
namespace json = boost::json;
using bootstrapper::finalizer;
using bootstrapper::runtime_bootstrappers_type;
using namespace std::chrono_literals;

namespace {

class off : public test::environment {
 public:
  off() { tasks_.spawn(released_.run()); }
  ~off() override {
    test::run(context, [](core::task_group* tasks) -> asio::awaitable<void> {
      tasks->cancel();
      co_await tasks->join();
    }(&tasks_));
    shut_down();
  }

  asio::awaitable<void> add(std::string name, json::array finalizers) {
    auto object = test::object_of(runtime_bootstrappers_type(), "kcp-system", name);
    object.at("metadata").as_object()["finalizers"] = std::move(finalizers);
    object.as_object()["spec"] = {{"runtimeRef", {{"name", name}}}};
    co_await create("kcp", std::move(object), runtime_bootstrappers_type());
  }

 private:
  bootstrapper::orphans released_{
      api("kcp"), {clock, watchdog, log, numbers, core::make_random_source()}, 10ms};
  core::task_group tasks_{context.get_executor()};
};

}  // namespace

RW_COROUTINE_TEST(deleted_bootstrapper_is_released_in_mode_off, off) {
  // The definition may come at any time.
  co_await env->define({"crds/operator.kyma-project.io_runtimebootstrappers.yaml"}, {"kcp-system"});
  co_await env->add("kept", json::array{json::string(finalizer)});
  co_await env->add("gone", json::array{json::string(finalizer)});
  co_await env->add("shared", json::array{json::string(finalizer), "example.com/other"});
  for (const auto* const name : {"gone", "shared"}) {
    co_await env->remove("kcp", runtime_bootstrappers_type(), {"kcp-system", name});
  }
  const auto gone = co_await env->until("kcp", runtime_bootstrappers_type(), {"kcp-system", "gone"},
                                        test::is_gone);
  BOOST_TEST(gone);
  const auto others = co_await env->until(
      "kcp", runtime_bootstrappers_type(), {"kcp-system", "shared"}, [](const json::value& one) {
        return one.is_object() && !k8s::has_finalizer(one, finalizer) &&
               k8s::has_finalizer(one, "example.com/other");
      });
  BOOST_TEST(others);
  const auto kept =
      co_await env->api("kcp").get(runtime_bootstrappers_type(), {"kcp-system", "kept"});
  BOOST_REQUIRE(kept.has_value());
  BOOST_TEST(k8s::has_finalizer(*kept, finalizer));
  BOOST_TEST(env->metric("rw_bootstrapper_released_total") == 2);
}

RW_COROUTINE_TEST(lack_of_the_right_to_patch_is_told_once_there_is_an_orphan, off) {
  int lists = 0;
  env->server.faults("kcp").decide = [&](const std::string& verb, const std::string& path) {
    const bool ours = path.find("/kcp-system/runtimebootstrappers") != std::string::npos;
    lists += ours && verb == "list" ? 1 : 0;
    return k8s::devserver::fault{.status = ours && verb == "patch" ? 403U : 0U};
  };
  co_await env->define({"crds/operator.kyma-project.io_runtimebootstrappers.yaml"}, {"kcp-system"});
  co_await env->add("kept", json::array{json::string(finalizer)});
  lists = 0;
  const auto looked = [&] { return lists > 2; };
  bool done = co_await test::eventually(looked);
  BOOST_TEST(done);
  BOOST_TEST(env->lines("can't be released") == 0);
  co_await env->add("gone", json::array{json::string(finalizer)});
  co_await env->remove("kcp", runtime_bootstrappers_type(), {"kcp-system", "gone"});
  const auto told = [&] { return env->lines("can't be released") > 0; };
  done = co_await test::eventually(told);
  BOOST_TEST(done);
  lists = 0;
  done = co_await test::eventually(looked);
  BOOST_TEST(done);
  BOOST_TEST(env->lines("can't be released") == 1);
  BOOST_TEST(env->lines("the manager may not patch runtimebootstrappers") == 1);
  env->server.faults("kcp").decide = {};
}

BOOST_AUTO_TEST_SUITE_END()
}  // namespace rw::bootstrapper_test
