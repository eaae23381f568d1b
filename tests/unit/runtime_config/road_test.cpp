// The road from signal over shadow to direct and back, gone at random moments while the sources
// change and managers come and go: config_sync and direct_sync side by side, with a simulated KIM.
// Afterwards the API server's own history is audited: who wrote what, and when.
// RW_ROAD_SEEDS says how many stories there are, RW_ROAD_FIRST which is the first.

#include "k8s/types.hpp"
#include "reactors/bootstrapper/resource.hpp"
#include "reactors/kyma_resources.hpp"

#include <boost/json/object.hpp>
#include <boost/test/unit_test.hpp>

#include "tests/unit/k8s/journal.hpp"
#include "tests/unit/run.hpp"
#include "tests/unit/runtime_config/audit.hpp"
#include "tests/unit/runtime_config/kim.hpp"
#include "tests/unit/runtime_config/land.hpp"
#include <array>
#include <utility>

namespace rw::runtime_config_test {
BOOST_AUTO_TEST_SUITE(road)

using namespace std::chrono_literals;
using mode = bootstrapper_mode;

namespace {

constexpr std::array stations{mode::signal, mode::shadow, mode::direct};

class story {
 public:
  explicit story(std::uint64_t seed) : land_(seed), kim_(land_) {}

  /// KIM has installed everything once; a manager signals.
  asio::awaitable<void> begin() {
    co_await land_.make({"a", "b", "c", "d"});
    for (const auto& each : land_.runtimes) {
      co_await land_.annotate(each, {{force_reconciliation_mark, "true"}});
    }
    co_await settle();
    land_.begin(mode::signal);
    const bool recorded = co_await land_.until_recorded();
    BOOST_REQUIRE(recorded);
  }

  /// Things happen at random moments, then nothing changes until all runtimes have it all.
  asio::awaitable<void> chapter() {
    for (int events = 14; events > 0; --events) {
      co_await happen();
      co_await land_.pause(land_.chance.up_to(land_.chance.likely(0.2) ? 250ms : 60ms));
    }
    co_await settle();
  }

  asio::awaitable<void> audit() {
    co_await land_.end();
    core::task_group reading(land_.context.get_executor());
    for (const auto& each : land_.runtimes) reading.spawn(audit_runtime(&land_, each, &found));
    reading.spawn(audit_marks(&land_, &found));
    co_await reading.join();
  }

  asio::io_context& context() { return land_.context; }
  std::string journal() const { return journal_.tail(); }

  findings found;
  int restarts = 0;
  int steps = 0;

 private:
  asio::awaitable<void> happen() {
    const auto what = land_.chance.draw(100);
    if (what < 50) {
      co_await change();
    } else if (what < 92) {
      const auto& all = land_.runtimes;
      co_await step(all.at(land_.chance.draw(all.size())));
    } else {
      co_await restart();
    }
  }

  asio::awaitable<void> change() {
    constexpr std::array parts{&versions::config, &versions::config, &versions::pull_secret,
                               &versions::trust_bundle, &versions::manifests};
    journal_.note("a source changes");
    co_await land_.change(parts.at(land_.chance.draw(parts.size())));
  }

  /// Onward, or now and then back; or it is as the manager's default says.
  asio::awaitable<void> step(std::string runtime) {
    const auto is = std::ranges::find(stations, land_.mode_of(runtime)) - stations.begin();
    const auto onward = land_.chance.likely(0.8) ? 1 : 2;
    std::optional<mode> to = stations.at(static_cast<std::size_t>(is + onward) % stations.size());
    if (land_.chance.likely(0.15)) to.reset();
    journal_.note(runtime + " becomes " + (to ? std::string(to_string(*to)) : "the default"));
    ++steps;
    co_await land_.set_mode(std::move(runtime), to);
  }

  asio::awaitable<void> restart() {
    ++restarts;
    journal_.note("the manager ends");
    co_await land_.end();
    if (land_.chance.likely(0.5)) co_await change();
    land_.by_default = stations.at(land_.chance.draw(stations.size()));
    journal_.note("another begins, by default " + std::string(to_string(land_.by_default)));
    for (const auto& each : land_.runtimes) {
      // Said before it is so.
      if (!land_.intents.at(each).annotation) co_await land_.set_mode(each, std::nullopt);
    }
    land_.begin(land_.by_default);
  }

  asio::awaitable<void> settle() {
    const auto lacking = co_await land_.settled();
    if (!lacking.empty()) found.wrong += lacking + "\n";
    journal_.note("all have what there is");
  }

  land land_;
  kim kim_;
  k8s::test::journal journal_{land_.all.clock};
};

}  // namespace

BOOST_AUTO_TEST_CASE(no_change_is_missed_and_no_two_write_whatever_is_switched_when) {
  const auto first = k8s::test::from_environment("RW_ROAD_FIRST", 1);
  const auto seeds = k8s::test::from_environment("RW_ROAD_SEEDS", k8s::test::sanitized ? 1 : 4);
  findings all;
  int restarts = 0;
  int steps = 0;
  for (auto seed = first; seed < first + seeds; ++seed) {
    story one(seed);
    test::run(one.context(), one.begin());
    for (int chapters = 4; chapters > 0 && one.found.wrong.empty(); --chapters) {
      test::run(one.context(), one.chapter());
    }
    test::run(one.context(), one.audit());
    BOOST_CHECK_MESSAGE(one.found.wrong.empty(),
                        "RW_ROAD_SEEDS=1 RW_ROAD_FIRST=" << seed << " went wrong\n"
                                                         << one.found.wrong << "what happened:\n"
                                                         << one.journal());
    all.ours += one.found.ours;
    all.kims += one.found.kims;
    all.marks += one.found.marks;
    all.handovers += one.found.handovers;
    restarts += one.restarts;
    steps += one.steps;
  }
  BOOST_TEST_MESSAGE(seeds << " stories: " << all.ours << " writes of ours, " << all.kims
                           << " of KIM's, " << all.marks << " marks, " << all.handovers
                           << " handovers, " << steps << " steps, " << restarts << " restarts");
  BOOST_TEST(all.ours > 20 * seeds);
  BOOST_TEST(all.kims > 20 * seeds);
  BOOST_TEST(all.handovers > seeds);
}

BOOST_AUTO_TEST_SUITE_END()
}  // namespace rw::runtime_config_test
