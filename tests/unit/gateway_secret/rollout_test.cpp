// What runtimes lack before the gateway may switch, and what is tracked of them.

#include "rw/reactors/shared/rollout.hpp"

#include "rw/reactors/gateway_secret/rotation.hpp"

#include <boost/test/unit_test.hpp>

#include "tests/unit/gateway_secret/world.hpp"

BOOST_AUTO_TEST_SUITE(rollout)

using namespace rw;
using namespace rw::gateway_secret;
using namespace rw::gateway_secret::test;

namespace {

const time_point since = day0;
const trust_demand demand{.authority = "new", .newest = "newest", .since = since};
const rotation_options options{.propagation = 90s, .unreachable_after = 1h};

runtime_trust with(std::vector<std::string> authorities, std::string issuer,
                   time_point client_from) {
  return {.authorities = std::move(authorities),
          .client_not_before = client_from,
          .client_issuer = std::move(issuer)};
}
const auto ready = with({"new", "old"}, "new", since + 5s);

shortfall of(const rollout_tracker::entry& one, time_point now = since + 2h) {
  return lacks(one, demand, options, now);
}

}  // namespace

BOOST_AUTO_TEST_CASE(runtime_must_trust_the_authority_with_a_certificate_issued_since) {
  struct sample {
    std::optional<runtime_trust> observed;
    std::string_view reason;
  };
  const sample samples[] = {
      {{}, "not observed yet"},
      {ready, ""},
      {with({"old"}, "new", since + 1h), "without the new CA"},
      {with({"new", "old"}, "old", since - 1s), "with an old client certificate"},
      {with({"new", "old"}, "old", since), "with an old client certificate"},  // the same second
      {with({"new", "old"}, "old", since + 1s), ""},
      {with({"new", "old"}, "new", since - 1min), ""},  // an issuer's clock that is behind
      {with({"new", "old"}, "newest", since - 1min), ""},
  };
  for (const auto& [observed, reason] : samples) {
    BOOST_TEST(of({.observed = observed, .since = since}).reason == reason);
  }
}

BOOST_AUTO_TEST_CASE(what_a_runtime_holds_counts_once_it_is_in_effect) {
  const rollout_tracker::entry one{.observed = ready, .since = since};
  BOOST_TEST(of(one, since + 89s).reason == "not in effect yet");
  BOOST_TEST((of(one, since + 89s).recheck_at == since + 90s));
  BOOST_TEST(of(one, since + 90s).reason == "");
}

BOOST_AUTO_TEST_CASE(runtime_out_of_reach_is_excused_after_a_while) {
  const auto behind = with({"old"}, "old", since - 1h);
  const rollout_tracker::entry one{.observed = behind, .since = since, .unreachable_since = since};
  BOOST_TEST(!of(one, since + 59min).excused);
  BOOST_TEST((of(one, since + 59min).recheck_at == since + 1h));
  BOOST_TEST(of(one, since + 1h).excused);
  BOOST_TEST(of(one, since + 1h).reason == "without the new CA");
  BOOST_TEST(of({.unreachable_since = since}, since + 1h).excused);
  BOOST_TEST(of({.observed = ready, .since = since, .unreachable_since = since}).reason == "");
}

BOOST_AUTO_TEST_CASE(deadline_leaves_half_of_the_time_that_was_left) {
  const auto deadline = [](std::chrono::seconds left, std::chrono::seconds limit = 0s) {
    const rotation_options with{.grace = 4 * 24h, .before_expiry = 24h, .limit = limit};
    return switch_deadline(since, since + left, with) - since;
  };
  BOOST_TEST((deadline(30 * 24h) == 29 * 24h));
  BOOST_TEST((deadline(48h) == 24h));
  BOOST_TEST((deadline(2h) == 1h));  // a root that came late
  BOOST_TEST((deadline(0s) == 0s));
  BOOST_TEST((deadline(-1h) == -1h));
  BOOST_TEST((deadline(30 * 24h, 7 * 24h) == 7 * 24h));
  BOOST_TEST((deadline(30 * 24h, 24h) == 4 * 24h));  // never before the grace period ends
  BOOST_TEST((deadline(5 * 24h, 7 * 24h) == 4 * 24h));
}

BOOST_AUTO_TEST_CASE(tracker_keeps_since_when_nothing_else_was_observed) {
  rollout_tracker tracker;
  tracker.observed(kyma("a"), ready, since);
  tracker.observed(kyma("a"), ready, since + 1h);
  BOOST_TEST((tracker.find(kyma("a"))->since == since));
  tracker.unreachable(kyma("a"), since + 2h);
  tracker.observed(kyma("a"), ready, since + 3h);
  BOOST_TEST((tracker.find(kyma("a"))->since == since));
  tracker.observed(kyma("a"), with({"old"}, "old", since), since + 4h);
  BOOST_TEST((tracker.find(kyma("a"))->since == since + 4h));
}

BOOST_AUTO_TEST_CASE(tracker_forgets_that_a_runtime_was_out_of_reach_when_it_answers) {
  rollout_tracker tracker;
  tracker.unreachable(kyma("a"), since);
  tracker.unreachable(kyma("a"), since + 1h);  // the first time counts
  BOOST_TEST((tracker.find(kyma("a"))->unreachable_since == since));
  tracker.reached(kyma("a"));
  BOOST_TEST(!tracker.find(kyma("a"))->unreachable_since);
  tracker.unreachable(kyma("a"), since + 2h);
  tracker.observed(kyma("a"), ready, since + 3h);
  BOOST_TEST(!tracker.find(kyma("a"))->unreachable_since);
  tracker.reached(kyma("nobody"));
  BOOST_TEST(tracker.size() == 1U);
}

BOOST_AUTO_TEST_CASE(tracker_notifies_of_changes_and_only_of_changes) {
  rollout_tracker tracker;
  int notified = 0;
  auto listening = tracker.subscribe([&] { ++notified; });
  tracker.expect(kyma("a"));
  tracker.expect(kyma("a"));
  BOOST_TEST(notified == 1);
  tracker.observed(kyma("a"), ready, since);
  tracker.observed(kyma("a"), ready, since + 1s);
  BOOST_TEST(notified == 2);
  tracker.unreachable(kyma("a"), since);
  tracker.unreachable(kyma("a"), since + 1h);
  BOOST_TEST(notified == 3);
  tracker.observed(kyma("a"), ready, since + 2h);
  tracker.complete();
  tracker.complete();
  BOOST_TEST(notified == 5);
  tracker.forget(kyma("b"));
  BOOST_TEST(notified == 5);
  listening.reset();
  tracker.forget(kyma("a"));
  BOOST_TEST(notified == 5);
}

BOOST_AUTO_TEST_SUITE_END()
