// Random histories of a whole landscape, on a clock that only the test moves: what the contract
// wants to hold at every instant is checked after every single write. RW_ROTATION_SEEDS says how
// many of each kind, RW_ROTATION_FIRST which is the first.

#include <boost/test/unit_test.hpp>

#include "tests/unit/gateway_secret/landscape.hpp"
#include <cstdlib>

BOOST_AUTO_TEST_SUITE(rotation_history)

using namespace rw::gateway_secret;
using namespace rw::gateway_secret::test;

namespace {

#if defined(__has_feature)
#if __has_feature(address_sanitizer) || __has_feature(thread_sanitizer)
constexpr std::uint64_t usual_seeds = 1;
#else
constexpr std::uint64_t usual_seeds = 2;
#endif
#else
constexpr std::uint64_t usual_seeds = 2;
#endif

std::uint64_t from_environment(const char* name, std::uint64_t otherwise) {
  const char* const text = std::getenv(name);
  return text == nullptr ? otherwise : std::strtoull(text, nullptr, 10);
}

struct outcome {
  std::size_t broken = 0;
  std::string first = {};
  std::size_t changes = 0;
  std::size_t switches = 0;
  std::size_t dropped = 0;
  std::size_t reissues = 0;
  std::size_t restless = 0;
  std::size_t failures = 0;
  std::size_t left_behind = 0;
  std::size_t heard = 0;
};

outcome live_through(const climate& with) {
  const auto first = from_environment("RW_ROTATION_FIRST", 1);
  const auto seeds = from_environment("RW_ROTATION_SEEDS", usual_seeds);
  outcome all;
  for (auto seed = first; seed < first + seeds; ++seed) {
    landscape one(seed, with);
    one.run();
    if (one.broken.empty() && !one.comes_to_rest()) ++all.restless;
    if (!one.broken.empty() && all.broken++ == 0) {
      all.first = "RW_ROTATION_FIRST=" + std::to_string(seed) + " " + one.broken;
    }
    all.changes += one.changes;
    all.switches += one.switches;
    all.dropped += one.dropped;
    all.reissues += one.reissues;
    all.failures += one.failures;
    all.left_behind += one.left_behind;
    all.heard += one.heard;
  }
  BOOST_TEST_MESSAGE(seeds << " histories: " << all.changes << " roots, " << all.switches
                           << " switches, " << all.dropped << " drops, " << all.reissues
                           << " re-issues, " << all.failures << " failures, " << all.left_behind
                           << " switches without all, " << all.broken << " broken " << all.first);
  return all;
}

outcome holds(const climate& with) {
  const auto all = live_through(with);
  BOOST_TEST(all.broken == 0U, all.first);
  BOOST_TEST(all.restless == 0U);
  BOOST_TEST(all.switches > 0U);
  BOOST_TEST(all.reissues > all.changes);
  return all;
}

/// Ten runtimes of both dialects, one whose pods never run, one issuer that fails in half of its
/// runs, and keys that change from RSA to ECDSA in the middle.
climate torture() {
  climate with{.horizon = 24h * 30, .root_changes = 24h * 6, .root_validity = 24h * 24};
  with.rotation.grace = 24h;
  with.rotation.urgent = 24h * 4;
  with.issuing = 1h;
  with.out_of_reach = 6h;
  with.runtimes = 10;
  with.reconciles = 10;
  with.never_ready = 1;
  with.flaky = 1;
  with.rsa_for = 24h * 12;
  return with;
}

}  // namespace

BOOST_AUTO_TEST_CASE(trust_holds_at_every_instant_while_roots_change) {
  holds({});
}

BOOST_AUTO_TEST_CASE(trust_holds_for_those_out_of_reach_too_if_they_are_waited_for) {
  climate with;
  with.rotation.excuse_after = 24h * 1000;
  holds(with);
}

BOOST_AUTO_TEST_CASE(trust_holds_while_roots_change_faster_than_the_grace_period) {
  climate with{.horizon = 24h * 40,
               .root_changes = 48h,
               .root_validity = 24h * 30,
               .issuing = 1h,
               .out_of_reach = 30min};
  with.rotation.urgent = 24h * 14;
  holds(with);
}

BOOST_AUTO_TEST_CASE(expired_authorities_go_in_time_and_nobody_misses_them) {
  const climate with{.horizon = 24h * 120, .root_changes = 24h * 12, .root_validity = 24h * 90};
  const auto all = live_through(with);
  BOOST_TEST(all.broken == 0U, all.first);
  BOOST_TEST(all.dropped > 0U);
}

BOOST_AUTO_TEST_CASE(trust_holds_where_pods_never_run_issuers_fail_and_keys_change) {
  const auto all = holds(torture());
  BOOST_TEST(all.failures > 0U);
  BOOST_TEST(all.left_behind == 0U, "a pod that does not run holds nothing up");
}

BOOST_AUTO_TEST_CASE(trust_of_the_others_holds_where_one_can_never_be_written_to) {
  auto with = torture();
  with.rsa_for = 0s;
  with.read_only = 1;
  with.horizon = 24h * 60;
  const auto all = holds(with);
  BOOST_TEST(all.left_behind > 0U, "the rotation goes on without it");
}

BOOST_AUTO_TEST_CASE(without_the_propagation_delay_trust_breaks) {
  climate with{.horizon = 24h * 120, .root_changes = 24h * 4};
  with.delays.propagation = 0s;
  with.rotation.propagation = 0s;
  with.rotation.grace = 0s;
  BOOST_TEST(live_through(with).broken > 0U);
}

namespace {

/// Waits that take long, unless pods say that they have loaded what was written; the API servers'
/// share, with the clocks of managers that differ, is their own.
climate speaking() {
  climate with = torture();
  with.rsa_for = 0s;
  with.kubelet = 2h;
  with.delays.propagation = with.rotation.propagation = 3h;
  with.delays.api_server = 40s;
  with.pods_speak = true;
  return with;
}

}  // namespace

BOOST_AUTO_TEST_CASE(trust_holds_where_pods_say_what_they_have_loaded) {
  const auto all = holds(speaking());
  BOOST_TEST(all.heard > 0U);
}

BOOST_AUTO_TEST_CASE(trust_of_the_others_holds_beside_runtimes_that_forge_heartbeats) {
  auto with = speaking();
  with.forging = 3;
  const auto all = live_through(with);
  BOOST_TEST(all.broken == 0U, all.first);
  BOOST_TEST(all.switches > 0U);
}

BOOST_AUTO_TEST_CASE(pods_cannot_speak_for_the_api_server) {
  climate with{.horizon = 24h * 120, .root_changes = 24h * 4, .issuing = 2s, .reconciles = 20};
  with.kubelet = 1s;
  with.delays.api_server = 0s;
  with.rotation.grace = 0s;
  with.pods_speak = true;
  const auto all = live_through(with);
  BOOST_TEST(all.broken > 0U);
  BOOST_TEST(all.first.find("its API server refuses") != std::string::npos, all.first);
}

BOOST_AUTO_TEST_CASE(without_the_gate_a_runtime_refuses_the_gateway) {
  climate with;
  with.rotation.grace = 0s;
  with.rotation.time_only = true;
  const auto all = live_through(with);
  BOOST_TEST(all.broken > 0U);
  BOOST_TEST(all.first.find("refuses the gateway") != std::string::npos, all.first);
}

BOOST_AUTO_TEST_CASE(trust_holds_where_the_bundle_is_far_behind_the_issuer) {
  const auto all = live_through({.rotation_acts = 0.02});
  BOOST_TEST(all.broken == 0U, all.first);
}

BOOST_AUTO_TEST_CASE(without_a_look_before_delivery_a_certificate_is_refused) {
  const climate with{.rotation_acts = 0.02, .check_before_delivery = false};
  const auto all = live_through(with);
  BOOST_TEST(all.broken > 0U);
  BOOST_TEST(all.first.find("refuses its") != std::string::npos, all.first);
}

BOOST_AUTO_TEST_SUITE_END()
