// A new leader goes on where the former one stopped, and nothing goes on where it can't be kept.

#include "rw/k8s/objects/types.hpp"
#include "rw/reactors/runtime_rollout/runtime_rollout.hpp"
#include "rw/reactors/shared/kyma_resources.hpp"

#include <boost/json/array.hpp>
#include <boost/json/object.hpp>
#include <boost/test/unit_test.hpp>

#include "tests/unit/environment/environment.hpp"
#include "tests/unit/http/upstream.hpp"
#include "tests/unit/run.hpp"
#include <chrono>
#include <cstdint>
#include <future>
#include <iterator>
#include <map>
#include <memory>
#include <set>
#include <string>
#include <utility>
#include <vector>

namespace rw::runtime_rollout_test {
BOOST_AUTO_TEST_SUITE(restart)

namespace asio = boost::asio;
namespace json = boost::json;
using namespace std::chrono_literals;
using runtime_rollout::runtime_rollouts_type;
using test::eventually;

namespace {

const k8s::object_key rollout_key{"kcp-system", "watcher"};

/// A Prometheus whose only response, 0, waits until the test says so.
struct held_prometheus {
  explicit held_prometheus(test::environment& in)
      : server([this](asio::ip::tcp::socket& socket, int) { respond(socket); }),
        client(in.context.get_executor(),
               {.url = "http://127.0.0.1:" + std::to_string(server.port())}, in.clock, in.watchdog,
               in.log, in.numbers) {}

  bool is_asked() const { return was_asked.wait_for(0s) == std::future_status::ready; }

  void respond(asio::ip::tcp::socket& socket) {
    using http::test::upstream;
    upstream::read_some(socket);
    asked.set_value();
    goes_on.wait_for(10s);
    const std::string body =
        R"({"status":"success","data":{"resultType":"scalar","result":[1,"0"]}})";
    upstream::write(socket, "HTTP/1.1 200 OK\r\ncontent-length: " + std::to_string(body.size()) +
                                "\r\n\r\n" + body);
    upstream::read_rest(socket);
  }

  std::promise<void> asked;
  std::promise<void> go_on;
  std::future<void> was_asked = asked.get_future();
  std::future<void> goes_on = go_on.get_future();
  http::test::upstream server;
  runtime_rollout::prometheus_client client;
};

/// Three Kymas, and a leader that begins while two canaries have not taken content b.
class new_leader : public test::environment {
 public:
  ~new_leader() override { shut_down(); }

  asio::awaitable<void> begin() {
    co_await define_all();
    co_await begin_rollout();
    start();
  }

  asio::awaitable<void> define_kymas() {
    co_await define({"dev/operator.kyma-project.io_kymas.yaml"}, {"kcp-system"});
    for (const auto* name : {"r0", "r1", "r2"}) {
      co_await create("kcp", test::object_of(kymas_type(), "kcp-system", name), kymas_type());
    }
  }
  asio::awaitable<void> define_rollouts() {
    co_await define({"crds/operator.kyma-project.io_runtimerollouts.yaml"}, {});
  }
  asio::awaitable<void> define_all() {
    co_await define_kymas();
    co_await define_rollouts();
  }

  asio::awaitable<void> begin_rollout() {
    co_await create("kcp", runtime_rollout::make_rollout("watcher"), runtime_rollouts_type());
    for (const auto* name : {"r0", "r1", "r2"}) {
      const k8s::object_key key{"kcp-system", name};
      const auto kyma = co_await must(api("kcp").get(kymas_type(), key));
      by_position.emplace(runtime_rollout::position_of(k8s::uid_of(kyma)), name);
    }
    below_ = std::next(by_position.begin())->first + 1;
    json::value status{
        {"phase", "Canary"},
        {"content", "b"},
        {"completed", "a"},
        {"step", 1},
        {"steps", json::array{{{"runtimes", "1%"}, {"bake", "20ms"}, {"positionsBelow", below_}}}}};
    co_await must(api("kcp").patch(runtime_rollouts_type(), rollout_key, k8s::patch_type::merge,
                                   {{"status", std::move(status)}}, {.subresource = "status"}));
  }

  void start(runtime_rollout::prometheus_client* by = nullptr) {
    auto& kymas = inform(kymas_type(), {.objects = {.ns = "kcp-system"}});
    auto& rollouts = inform(runtime_rollouts_type(), {.objects = {.ns = "kcp-system"}});
    gate_ = std::make_unique<runtime_rollout::runtime_rollout>(
        context.get_executor(),
        runtime_rollout::rollout_options{.component = "watcher",
                                         .usual = {.soak = 20ms},
                                         .settle = 1ms,
                                         .settle_each = settle_each,
                                         .access_interval = 20ms,
                                         .longest_unpin = longest_unpin},
        runtime_rollout::rollout_environment{
            api("kcp"),
            rollouts,
            kymas,
            kymas,
            record_events("rollout"),
            {clock, watchdog, log, numbers, core::make_random_source()},
            {{"apiVersion", "coordination.k8s.io/v1"},
             {"kind", "Lease"},
             {"metadata", {{"name", "lease"}, {"namespace", "kcp-system"}}}},
            by});
    kymas_ = &kymas.objects();
    gate_->attach({[this](const k8s::object_key& key) { admitted.insert(key.name); },
                   [this](std::string) -> asio::awaitable<k8s::result<void>> {
                     if (store_error.empty()) co_return k8s::result<void>();
                     co_return k8s::failure{.code = k8s::errc::not_found, .message = store_error};
                   },
                   [this](std::string) -> asio::awaitable<k8s::result<void>> {
                     if (keep_failures == 0) co_return k8s::result<void>();
                     --keep_failures;
                     co_return k8s::failure{.code = k8s::errc::timed_out};
                   }});
    tasks.spawn(gate_->run());
  }

  void admit(const std::string& name) {
    gate_->admit({"kcp-system", name}, {.digest = "b"}, {.newest = "b", .completed = "a"},
                 {.in_place = "a"});
  }
  void refuse(const std::string& name, std::chrono::system_clock::time_point since) {
    gate_->admit({"kcp-system", name}, {.digest = "b"}, {.newest = "b", .completed = "a"},
                 {.in_place = "a",
                  .health = content_health::ready,
                  .since = since,
                  .rejected = "b",
                  .error = "refused"});
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

  bool knows(const std::string& name) const { return bool(kymas_->get("kcp-system", name)); }

  /// As passes find it: each has the newest content, and is well since then.
  void take_all(std::chrono::system_clock::time_point since) {
    for (const auto* name : {"r0", "r1", "r2"}) take(name, since);
  }
  void take(const std::string& name, std::chrono::system_clock::time_point since) {
    const content_facts now{.in_place = "b", .health = content_health::ready, .since = since};
    const k8s::object_key key{"kcp-system", name};
    gate_->admit(key, {.digest = "b"}, {.newest = "b", .completed = "a"}, now);
    gate_->observe(key, now);
  }
  void fail(const std::string& name, std::string error) {
    gate_->observe({"kcp-system", name},
                   {.in_place = "b", .health = content_health::failed, .error = std::move(error)});
    has_failed = true;
  }
  void observe_all() {
    for (const auto* name : {"r0", "r1", "r2"}) {
      admit(name);
      observe(name);
    }
  }
  asio::awaitable<bool> until_rollout(test::object_check good) {
    return until("kcp", runtime_rollouts_type(), rollout_key, std::move(good));
  }
  const std::string& closed() const { return gate_->closed(); }
  /// The runtimes that may still get content b.
  std::set<std::string> still_admitted() const {
    std::set<std::string> out;
    for (const auto* name : {"r0", "r1", "r2"}) {
      if (gate_->still_admits({"kcp-system", name}, "b")) out.insert(name);
    }
    return out;
  }
  /// Other content has come.
  void admit_to_another(const std::string& name) {
    gate_->admit({"kcp-system", name}, {.digest = "c"}, {.newest = "c", .completed = "a"},
                 {.in_place = "a"});
  }
  void leave(const std::string& name) { gate_->leave({"kcp-system", name}); }

  std::int64_t below() const { return below_; }

  std::map<std::int64_t, std::string> by_position;  ///< the canaries come first
  std::set<std::string> admitted;
  bool has_failed = false;
  std::string store_error;  ///< of the store; empty: it works
  int keep_failures = 0;    ///< times that a content can't be kept
  core::duration settle_each{};
  core::duration longest_unpin = 1h;
  std::unique_ptr<held_prometheus> prometheus;

 private:
  std::unique_ptr<runtime_rollout::runtime_rollout> gate_;
  const k8s::store* kymas_ = nullptr;
  std::int64_t below_ = 0;  ///< positions below it are canaries
};

asio::awaitable<void> keeps_canaries(new_leader* self) {
  co_await self->begin();
  for (const auto* name : {"r0", "r1", "r2"}) self->admit(name);
  std::vector<std::string> names;
  for (const auto& [position, name] : self->by_position) names.push_back(name);
  self->observe(names[2]);
  const auto before = self->passes();
  bool done = co_await eventually([&] { return self->passes() > before + 2; });
  BOOST_TEST(done);
  BOOST_TEST(self->admitted.empty());
  self->observe(names[0]);
  self->observe(names[1]);
  done = co_await eventually([&] { return self->admitted.size() >= 2U; });
  BOOST_TEST(done);
  BOOST_TEST((self->admitted == std::set<std::string>{names[0], names[1]}));
  const auto object =
      co_await self->must(self->api("kcp").get(runtime_rollouts_type(), rollout_key));
  BOOST_TEST(object.at("status").at("steps").at(0).at("positionsBelow").get_int64() ==
             self->below());
}

/// Their reports come one after another, and each decision would look at all.
asio::awaitable<void> decides_seldom(new_leader* self) {
  self->settle_each = 200ms;
  co_await self->begin();
  self->take_all(self->clock.wall());
  const auto begin = self->passes();
  const auto pause = self->clock.make_timer(self->context.get_executor());
  for (int i = 0; i < 150; ++i) {
    self->take(i % 2 == 0 ? "r0" : "r1", self->clock.wall());
    pause->expires_at(self->clock.now() + 10ms);
    co_await pause->wait();
  }
  BOOST_TEST(self->passes() - begin >= 1);
  BOOST_TEST(self->passes() - begin <= 5);
}

/// Each decision finds something else to say, and hears of what it said.
asio::awaitable<void> decides_seldom_on_its_own_status(new_leader* self) {
  self->settle_each = 200ms;
  co_await self->begin();
  self->take_all(self->clock.wall());
  const auto begin = self->passes();
  const auto end = self->clock.now() + 1500ms;
  for (int i = 0; self->clock.now() < end; ++i) {
    self->fail("r0", std::to_string(i));
    co_await asio::post(self->context, asio::use_awaitable);
  }
  BOOST_TEST(self->passes() - begin >= 1);
  BOOST_TEST(self->passes() - begin <= 5);
}

/// However far apart decisions are.
asio::awaitable<void> obeys_at_once(new_leader* self) {
  self->settle_each = 1h;
  co_await self->begin();
  self->take_all(self->clock.wall());
  for (const auto* resume : {"first", "second", "third"}) {
    co_await self->merge(runtime_rollouts_type(), rollout_key, {{"spec", {{"resume", resume}}}});
    const bool done = co_await self->until_rollout([&](const json::value& one) {
      return k8s::find_string(one, {"status", "resumed"}) == resume;
    });
    BOOST_TEST(done, resume);
  }
}

/// Passes over many runtimes report the same again and again, and a decision looks at all of them.
asio::awaitable<void> decides_where_something_changed(new_leader* self) {
  co_await self->begin();
  const auto since = self->clock.wall();
  bool done = co_await self->until_rollout([&](const json::value& one) {
    self->take_all(since);
    return k8s::find_string(one, {"status", "phase"}) == "Completed";
  });
  BOOST_TEST(done);
  const auto pause = self->clock.make_timer(self->context.get_executor());
  const auto rest = [&]() -> asio::awaitable<void> {
    pause->expires_at(self->clock.now() + 100ms);
    co_await pause->wait();
  };
  co_await rest();
  const auto before = self->passes();
  for (int i = 0; i < 5; ++i) {
    self->take_all(since);
    co_await rest();
  }
  BOOST_TEST(self->passes() <= before + 1);  // the status' last change may be heard of late
  const auto quiet = self->passes();
  self->take("r1", since + 1s);
  done = co_await eventually([&] { return self->passes() > quiet; });
  BOOST_TEST(done);
  json::value steps{
      {"spec", {{"steps", json::array{{{"runtimes", "early=yes"}, {"bake", "0s"}}}}}}};
  co_await self->merge(runtime_rollouts_type(), rollout_key, std::move(steps));
  done = co_await self->until_rollout([](const json::value& one) {
    const auto* const first = k8s::find(one, {"status", "steps"});
    return first && first->as_array().at(0).at("runtimes") == "early=yes";
  });
  BOOST_TEST(done);
  co_await rest();
  self->take_all(since);
  co_await rest();
  const auto unlabelled = self->passes();
  json::value labels{{"metadata", {{"labels", {{"early", "yes"}}}}}};
  co_await self->merge(kymas_type(), {"kcp-system", "r2"}, std::move(labels));
  done = co_await eventually([&] {
    self->take("r2", since);
    return self->passes() > unlabelled;
  });
  BOOST_TEST(done);
}

/// Their passes may still be under way.
asio::awaitable<void> ends_turns_with_the_content(new_leader* self) {
  co_await self->begin();
  self->observe_all();
  bool done = co_await eventually([&] { return self->admitted.size() >= 2U; });
  BOOST_TEST(done);
  auto expected = self->admitted;
  BOOST_TEST((self->still_admitted() == expected));
  self->leave(*expected.begin());
  expected.erase(expected.begin());
  BOOST_TEST((self->still_admitted() == expected));
  self->admitted.clear();
  self->admit_to_another(self->by_position.rbegin()->second);
  BOOST_TEST(self->still_admitted().empty());
  // Nor when it is their turn again, to get that.
  for (const auto* name : {"r0", "r1", "r2"}) {
    self->admit_to_another(name);
    self->observe(name);
  }
  done = co_await eventually([&] { return !self->admitted.empty(); });
  BOOST_TEST(done);
  BOOST_TEST(self->still_admitted().empty());
}

/// No pass has given what is pinned yet.
asio::awaitable<void> ends_turns_with_a_pin(new_leader* self) {
  co_await self->begin();
  self->observe_all();
  bool done = co_await eventually([&] { return self->admitted.size() >= 2U; });
  BOOST_TEST(done);
  BOOST_TEST(!self->still_admitted().empty());
  const json::value record{{"content", "a"},
                           {"began", "2026-01-01T00:00:00Z"},
                           {"outcome", "Completed"},
                           {"kept", true}};
  const json::value known{{"status", {{"history", json::array{record}}}}};
  co_await self->must(self->api("kcp").patch(runtime_rollouts_type(), rollout_key,
                                             k8s::patch_type::merge, json::value(known),
                                             {.subresource = "status"}));
  json::value pin{{"spec", {{"revision", "a"}}}};
  co_await self->merge(runtime_rollouts_type(), rollout_key, std::move(pin));
  done = co_await eventually([&] { return self->still_admitted().empty(); });
  BOOST_TEST(done);
}

/// Returns true once the latest spec is observed; false after 300 ms.
asio::awaitable<bool> is_observed(new_leader* self) {
  const auto until = self->clock.now() + 300ms;
  bool observed = false;
  while (!observed && self->clock.now() < until) {
    const auto one =
        co_await self->must(self->api("kcp").get(runtime_rollouts_type(), rollout_key));
    observed = k8s::find_number(one, {"status", "observedGeneration"}) == k8s::generation_of(one);
  }
  co_return observed;
}

asio::awaitable<void> takes_a_pin_away(new_leader* self) {
  json::value free{{"spec", {{"revision", nullptr}}}};
  co_await self->merge(runtime_rollouts_type(), rollout_key, std::move(free));
}

asio::awaitable<void> waits_for_the_sources(new_leader* self) {
  co_await ends_turns_with_a_pin(self);
  co_await takes_a_pin_away(self);
  bool observed = co_await is_observed(self);
  BOOST_TEST(!observed);
  self->observe_all();
  const bool done = co_await self->until_rollout([](const json::value& one) {
    return k8s::find_number(one, {"status", "observedGeneration"}) == k8s::generation_of(one);
  });
  BOOST_TEST(done);
}

asio::awaitable<void> waits_for_the_sources_no_longer(new_leader* self) {
  self->longest_unpin = 400ms;
  co_await ends_turns_with_a_pin(self);
  co_await takes_a_pin_away(self);
  const bool done = co_await self->until_rollout([](const json::value& one) {
    return k8s::find_number(one, {"status", "observedGeneration"}) == k8s::generation_of(one);
  });
  BOOST_TEST(done);
}

/// At the end of a canary's bake its health is read again; what comes then is waited for.
asio::awaitable<void> goes_on_when_what_it_asked_for_comes(new_leader* self) {
  co_await self->begin();
  const auto since = self->clock.wall();
  for (const auto& [position, name] : self->by_position) {
    if (position < self->below()) self->take(name, since);
    if (position >= self->below()) self->admit(name), self->observe(name);
  }
  const auto begin = self->clock.now();
  const auto canary = self->by_position.begin()->second;
  bool done = co_await eventually([&] { return self->admitted.contains(canary); });
  BOOST_TEST(done);
  for (const auto& [position, name] : self->by_position) {
    if (position < self->below()) self->take(name, since);
  }
  const auto last = self->by_position.rbegin()->second;
  done = co_await eventually([&] { return self->admitted.contains(last); });
  BOOST_TEST(done);
  BOOST_TEST((self->clock.now() - begin < 10s));  // when it would have asked again
}

/// Nothing but the admission changes: what it rejects it rejected before.
asio::awaitable<void> notices_what_fails_when_it_is_admitted(new_leader* self) {
  co_await self->begin();
  std::vector<std::string> names;
  for (const auto& [position, name] : self->by_position) names.push_back(name);
  json::value steps{
      {"spec", {{"steps", json::array{{{"runtimes", "early=yes"}, {"bake", "3600s"}}}}}}};
  json::value early{{"metadata", {{"labels", {{"early", "yes"}}}}}};
  co_await self->merge(runtime_rollouts_type(), rollout_key, std::move(steps));
  co_await self->merge(kymas_type(), {"kcp-system", names[0]}, json::value(early));
  const auto since = self->clock.wall();
  bool done = co_await self->until_rollout([&](const json::value& one) {
    self->take(names[0], since);
    self->refuse(names[1], since);
    self->admit(names[2]);
    self->observe(names[2]);
    return k8s::find_number(one, {"status", "ready"}) == 1 &&
           k8s::find_number(one, {"status", "waiting"}) == 2;
  });
  BOOST_TEST(done);
  const auto begin = self->clock.now();
  self->admitted.clear();
  co_await self->merge(kymas_type(), {"kcp-system", names[1]}, std::move(early));
  done = co_await eventually([&] {
    self->refuse(names[1], since);
    return self->admitted.contains(names[1]);
  });
  BOOST_TEST(done);
  self->refuse(names[1], since);
  done = co_await self->until_rollout([](const json::value& one) {
    return k8s::find_string(one, {"status", "reason"}) == "CanaryFailed";
  });
  BOOST_TEST(done);
  BOOST_TEST((self->clock.now() - begin < 10s));  // when it would have looked again
}

/// It can be pinned later only if it is kept, which fails for passing reasons.
asio::awaitable<void> keeps_it_later(new_leader* self) {
  self->keep_failures = 20;
  co_await self->begin();
  const auto since = self->clock.wall();
  const bool done = co_await self->until_rollout([&](const json::value& one) {
    self->take_all(since);
    const auto* const all = k8s::find(one, {"status", "history"});
    return all && k8s::find_string(one, {"status", "phase"}) == "Completed" &&
           k8s::find(all->as_array().back(), {"kept"}) != nullptr;
  });
  BOOST_TEST(done);
  BOOST_TEST(self->keep_failures == 0);
}

asio::awaitable<void> closes_without_definition(new_leader* self) {
  co_await self->define_kymas();
  self->start();
  self->observe_all();
  bool done = co_await eventually([&] { return !self->closed().empty(); });
  BOOST_TEST(done);
  BOOST_TEST(self->metric("rw_rollout_closed{component=\"watcher\"}") == 1);
  done = co_await self->until_event("lease", "RolloutClosed", "no definition");
  BOOST_TEST(done);
  BOOST_TEST(self->admitted.empty());
  co_await self->define_rollouts();
  done = co_await eventually([&] { return self->admitted.size() >= 2U; });
  BOOST_TEST(done);
  done = co_await eventually([&] { return self->closed().empty(); });
  BOOST_TEST(done);
  BOOST_TEST(self->metric("rw_rollout_closed{component=\"watcher\"}") == 0);
}

/// A definition of an earlier version drops a part of the status.
asio::awaitable<void> closes_with_outdated_definition(new_leader* self) {
  co_await self->define_all();
  const k8s::resource_type definitions{{"apiextensions.k8s.io", "v1", "CustomResourceDefinition"},
                                       "customresourcedefinitions",
                                       false};
  const k8s::object_key key{{}, "runtimerollouts.operator.kyma-project.io"};
  auto definition = co_await self->must(self->api("kcp").get(definitions, key));
  const auto whole = definition;
  definition.at_pointer("/spec/versions/0/schema/openAPIV3Schema/properties/status/properties")
      .as_object()
      .erase("steps");
  co_await self->must(self->api("kcp").update(definitions, std::move(definition)));
  self->start();
  self->observe_all();
  bool done = co_await eventually([&] { return !self->closed().empty(); });
  BOOST_TEST(done);
  done = co_await self->until_event("lease", "RolloutClosed", "older");
  BOOST_TEST(done);
  BOOST_TEST(self->admitted.empty());
  json::value change{{"spec", whole.at("spec")}};
  co_await self->merge(definitions, key, std::move(change));
  done = co_await eventually([&] { return self->admitted.size() >= 2U; });
  BOOST_TEST(done);
  BOOST_TEST(self->closed() == "");
}

asio::awaitable<void> says_what_completion_waits_for(new_leader* self) {
  self->store_error = "namespaces \"runtime-watcher-system\" not found";
  co_await self->begin();
  const auto since = self->clock.wall();
  bool done = co_await self->until_rollout([&](const json::value& one) {
    self->take_all(since);
    return k8s::find_string(one, {"status", "phase"}) == "Waves" &&
           k8s::find_string(one, {"status", "message"}).find("can't be stored") !=
               std::string::npos;
  });
  BOOST_TEST(done);
  self->store_error.clear();
  done = co_await self->until_rollout([&](const json::value& one) {
    self->take_all(since);
    return k8s::find_string(one, {"status", "phase"}) == "Completed" &&
           k8s::find_string(one, {"status", "message"}).empty();
  });
  BOOST_TEST(done);
}

/// Times that are in the future, since the clock was set back, delay nothing by as much.
asio::awaitable<void> outlives_a_clock_that_is_set_back(new_leader* self) {
  co_await self->begin();
  const auto future = self->clock.wall() + 1h;
  const bool done = co_await self->until_rollout([&](const json::value& one) {
    self->take_all(future);
    return k8s::find_string(one, {"status", "phase"}) == "Completed";
  });
  BOOST_TEST(done);
}

/// Of two steps the first, whose only runtime is ready, is verified while another runtime appears.
asio::awaitable<void> places_what_appears_during_a_verification(new_leader* self) {
  co_await self->define_all();
  co_await self->begin_rollout();
  std::vector<std::string> names;
  json::array steps{
      {{"runtimes", "1"}, {"bake", "0s"}, {"verify", {{"query", "up"}, {"threshold", 1}}}},
      {{"runtimes", "2"}, {"bake", "3600s"}}};
  json::value spec{{"spec", {{"steps", steps}}}};
  for (const auto& [position, name] : self->by_position) {
    if (names.size() < 2) steps[names.size()].as_object()["positionsBelow"] = position + 1;
    names.push_back(name);
  }
  json::value status{{"status", {{"steps", steps}}}};
  co_await self->merge(runtime_rollouts_type(), rollout_key, std::move(spec));
  co_await self->must(self->api("kcp").patch(runtime_rollouts_type(), rollout_key,
                                             k8s::patch_type::merge, std::move(status),
                                             {.subresource = "status"}));
  self->prometheus = std::make_unique<held_prometheus>(*self);
  self->start(&self->prometheus->client);
  self->observe_all();
  self->take(names[0], self->clock.wall());
  bool done = co_await eventually([&] { return self->prometheus->is_asked(); });
  BOOST_TEST(done);
  std::string late;
  for (int i = 3; late.empty(); ++i) {
    const auto name = "r" + std::to_string(i);
    const auto kyma = co_await self->must(
        self->api("kcp").create(kymas_type(), test::object_of(kymas_type(), "kcp-system", name)));
    if (runtime_rollout::position_of(k8s::uid_of(kyma)) >
        std::next(self->by_position.begin())->first)
      late = name;
    done = co_await eventually([&] { return self->knows(name); });
    BOOST_TEST(done);
  }
  self->admitted.clear();
  self->admit(late);
  self->observe(late);
  self->prometheus->go_on.set_value();
  done = co_await eventually([&] { return !self->admitted.empty(); });
  BOOST_TEST(done);
  BOOST_TEST(self->admitted.contains(names[1]));
  BOOST_TEST(!self->admitted.contains(late));
}

}  // namespace

BOOST_AUTO_TEST_CASE(decisions_on_many_runtimes_are_further_apart) {
  new_leader self;
  test::run(self.context, decides_seldom(&self));
}

BOOST_AUTO_TEST_CASE(decisions_do_not_follow_each_other_by_their_own_status) {
  new_leader self;
  test::run(self.context, decides_seldom_on_its_own_status(&self));
}

BOOST_AUTO_TEST_CASE(change_of_the_spec_is_decided_on_at_once) {
  new_leader self;
  test::run(self.context, obeys_at_once(&self));
}

BOOST_AUTO_TEST_CASE(reports_without_a_change_make_no_decision) {
  new_leader self;
  test::run(self.context, decides_where_something_changed(&self));
}

BOOST_AUTO_TEST_CASE(canary_that_was_read_again_ends_its_bake) {
  new_leader self;
  test::run(self.context, goes_on_when_what_it_asked_for_comes(&self));
}

BOOST_AUTO_TEST_CASE(turns_that_have_not_begun_end_with_other_content) {
  new_leader self;
  test::run(self.context, ends_turns_with_the_content(&self));
}

BOOST_AUTO_TEST_CASE(turns_that_have_not_begun_end_with_a_pin) {
  new_leader self;
  test::run(self.context, ends_turns_with_a_pin(&self));
}

BOOST_AUTO_TEST_CASE(pin_that_is_taken_away_is_observed_with_a_pass_of_the_sources) {
  new_leader self;
  test::run(self.context, waits_for_the_sources(&self));
}

BOOST_AUTO_TEST_CASE(pin_that_is_taken_away_is_observed_in_the_end_without_a_pass) {
  new_leader self;
  test::run(self.context, waits_for_the_sources_no_longer(&self));
}

BOOST_AUTO_TEST_CASE(runtime_that_is_admitted_and_rejects_as_before_fails) {
  new_leader self;
  test::run(self.context, notices_what_fails_when_it_is_admitted(&self));
}

BOOST_AUTO_TEST_CASE(content_that_could_not_be_kept_is_kept_later) {
  new_leader self;
  test::run(self.context, keeps_it_later(&self));
}

BOOST_AUTO_TEST_CASE(runtime_that_appears_during_a_verification_has_its_own_place) {
  new_leader self;
  test::run(self.context, places_what_appears_during_a_verification(&self));
}

BOOST_AUTO_TEST_CASE(new_leader_keeps_canaries_until_their_health_is_known) {
  new_leader self;
  test::run(self.context, keeps_canaries(&self));
}

BOOST_AUTO_TEST_CASE(runtimes_are_not_admitted_without_the_definition) {
  new_leader self;
  test::run(self.context, closes_without_definition(&self));
}

BOOST_AUTO_TEST_CASE(runtimes_are_not_admitted_where_the_definition_drops_a_part_of_the_status) {
  new_leader self;
  test::run(self.context, closes_with_outdated_definition(&self));
}

BOOST_AUTO_TEST_CASE(rollout_that_cannot_be_stored_says_so_and_is_not_completed) {
  new_leader self;
  test::run(self.context, says_what_completion_waits_for(&self));
}

BOOST_AUTO_TEST_CASE(rollout_goes_on_after_the_clock_was_set_back) {
  new_leader self;
  test::run(self.context, outlives_a_clock_that_is_set_back(&self));
}

/// Its Deployment is deleted, and written again with the content before, while the pause that
/// another canary has caused is being written.
RW_COROUTINE_TEST(canary_that_loses_the_content_while_a_pause_is_decided_does_not_get_it_again,
                  new_leader) {
  co_await env->begin();
  const auto canary = env->by_position.begin()->second;
  const auto failing = std::next(env->by_position.begin())->second;
  bool lost = false;
  env->server.faults("kcp").decide = [&](const std::string& verb, const std::string& path) {
    const bool decided = path.ends_with("/runtimerollouts/watcher/status") && !test::reads(verb);
    if (decided && env->has_failed && !std::exchange(lost, true)) env->observe(canary);
    return k8s::devserver::fault{};
  };
  env->take_all(env->clock.wall());
  env->fail(failing, "CrashLoopBackOff");
  const bool paused = co_await env->until_rollout([](const json::value& one) {
    return k8s::find_string(one, {"status", "phase"}) == "Paused";
  });
  BOOST_TEST(paused);
  const auto before = env->passes();
  const bool again = co_await eventually([&] { return env->passes() > before; });
  env->server.faults("kcp").decide = nullptr;
  BOOST_TEST(again);
  BOOST_TEST(lost);
  BOOST_TEST(!env->still_admitted().contains(canary));
  BOOST_TEST(!env->admitted.contains(canary));
}

RW_COROUTINE_TEST(rollout_without_runtimes_says_so, new_leader) {
  co_await env->define({"dev/operator.kyma-project.io_kymas.yaml"}, {"kcp-system"});
  co_await env->define_rollouts();
  env->start();
  const auto idle =
      co_await env->until("kcp", runtime_rollouts_type(), rollout_key, [](const json::value& one) {
        const auto ready = k8s::find_condition(one, "Ready");
        return ready && ready->status == "True" &&
               k8s::find_string(one, {"status", "phase"}) == "Completed" &&
               k8s::find_string(one, {"status", "message"}) == "no runtime takes part";
      });
  BOOST_TEST(idle);
}

BOOST_AUTO_TEST_SUITE_END()
}  // namespace rw::runtime_rollout_test
