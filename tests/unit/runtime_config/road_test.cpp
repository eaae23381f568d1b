// The way from signal over shadow to direct and back, gone at random moments while the sources
// change, managers come and go, and a simulated KIM works in its real order, fails, and runs its
// own watcher or not. KIM and we may write to a runtime at the same time; in the end every runtime
// has the newest content. RW_ROAD_SEEDS is the number of stories, RW_ROAD_FIRST the first seed.

#include <boost/test/unit_test.hpp>

#include "tests/unit/k8s/journal.hpp"
#include "tests/unit/run.hpp"
#include "tests/unit/runtime_config/land.hpp"
#include <array>
#include <iostream>
#include <utility>

namespace rw::runtime_config_test {
BOOST_AUTO_TEST_SUITE(road)

using namespace std::chrono_literals;
using cli::dev::kim_outcome;
using mode = bootstrapper_mode;

namespace {

constexpr std::array stations{mode::signal, mode::shadow, mode::direct};

class story {
 public:
  explicit story(std::uint64_t seed) : land_(seed) {}

  /// KIM has configured everything once; a manager signals.
  asio::awaitable<void> begin() {
    co_await land_.make({"a", "b", "c", "d"});
    co_await settle();
    auto& kim = land_.kim().options();
    kim.outcome = [this](const std::string&) { return outcome(); };
    land_.begin(mode::signal);
    const bool recorded = co_await land_.until_recorded();
    BOOST_REQUIRE(recorded);
  }

  /// Things happen at random moments, then nothing changes until all runtimes have it all.
  asio::awaitable<void> chapter() {
    failing_ = true;
    land_.kim().options().config_watcher = land_.chance.likely(0.5);
    for (int events = 14; events > 0; --events) {
      const auto drawn = land_.chance.draw(100);
      const auto& all = land_.runtimes;
      if (drawn < 50) co_await change();
      if (drawn >= 50 && drawn < 92) co_await step(all.at(land_.chance.draw(all.size())));
      if (drawn >= 92) co_await restart();
      co_await land_.pause(land_.chance.up_to(land_.chance.likely(0.2) ? 250ms : 60ms));
    }
    failing_ = false;
    co_await settle();
  }

  asio::awaitable<void> end() { co_await land_.end(); }

  asio::io_context& context() { return land_.context; }
  std::string journal() const { return journal_.tail(); }
  std::size_t reconciles() { return land_.kim().reconciles(); }

  std::string wrong;
  int changes = 0;
  int steps = 0;

 private:
  kim_outcome outcome() {
    if (land_.chance.likely(0.3)) return kim_outcome::changed;
    return failing_ && land_.chance.likely(0.15) ? kim_outcome::fails_after
                                                 : kim_outcome::unchanged;
  }

  asio::awaitable<void> change() {
    constexpr std::array parts{&versions::config, &versions::config, &versions::pull_secret,
                               &versions::trust_bundle, &versions::manifests};
    journal_.note("a source changes");
    ++changes;
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
    journal_.note("the manager ends");
    co_await land_.end();
    if (land_.chance.likely(0.5)) co_await change();
    const auto by_default = stations.at(land_.chance.draw(stations.size()));
    journal_.note("another begins, by default " + std::string(to_string(by_default)));
    land_.begin(by_default);
  }

  asio::awaitable<void> settle() {
    const auto lacking = co_await land_.settled();
    if (!lacking.empty()) wrong += lacking + "\n";
    journal_.note("all have what there is");
  }

  land land_;
  bool failing_ = false;
  k8s::test::journal journal_{land_.all.clock};
};

}  // namespace

BOOST_AUTO_TEST_CASE(every_runtime_has_the_newest_content_whatever_is_switched_when) {
  const auto first = k8s::test::from_environment("RW_ROAD_FIRST", 1);
  const auto seeds = k8s::test::from_environment("RW_ROAD_SEEDS", k8s::test::sanitized ? 1 : 4);
  std::size_t reconciles = 0;
  int changes = 0;
  int steps = 0;
  for (auto seed = first; seed < first + seeds; ++seed) {
    story one(seed);
    test::run(one.context(), one.begin());
    for (int chapters = 4; chapters > 0 && one.wrong.empty(); --chapters) {
      test::run(one.context(), one.chapter());
    }
    test::run(one.context(), one.end());
    BOOST_CHECK_MESSAGE(one.wrong.empty(),
                        "RW_ROAD_SEEDS=1 RW_ROAD_FIRST=" << seed << " went wrong\n"
                                                         << one.wrong << "what happened:\n"
                                                         << one.journal());
    reconciles += one.reconciles();
    changes += one.changes;
    steps += one.steps;
  }
  std::cout << seeds << " stories: " << changes << " changes, " << steps << " changes of a mode, "
            << reconciles << " reconciles of KIM\n";
  BOOST_TEST(reconciles > 10 * seeds);
}

BOOST_AUTO_TEST_SUITE_END()
}  // namespace rw::runtime_config_test
