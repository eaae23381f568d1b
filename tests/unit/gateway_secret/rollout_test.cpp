// What runtimes lack before the gateway may switch, and what is tracked of them.

#include "rw/reactors/gateway_secret/rotation.hpp"
#include "rw/reactors/shared/cluster_state.hpp"

#include <boost/test/unit_test.hpp>

#include "tests/unit/gateway_secret/world.hpp"

BOOST_AUTO_TEST_SUITE(rollout)

using namespace rw;
using namespace rw::gateway_secret;
using namespace rw::gateway_secret::test;

namespace {

const wall_time since = day0;
const trust_demand demand{.authority = "new", .newest = "newest", .since = since};
const rotation_options options{.propagation = 90s, .excuse_after = 1h};

runtime_trust with(std::vector<std::string> authorities, std::string issuer,
                   wall_time client_from) {
  return {.authorities = std::move(authorities),
          .client_not_before = client_from,
          .client_issuer = std::move(issuer)};
}
const auto ready = with({"new", "old"}, "new", since + 5s);
const cluster_error away{status_reason::runtime_unreachable, cluster_fault::tenant, since};

shortfall of(const cluster_state& one, wall_time now = since + 2h) {
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

BOOST_AUTO_TEST_CASE(bundle_of_a_runtime_counts_once_it_is_in_effect) {
  const cluster_state one{.observed = ready, .since = since};
  BOOST_TEST(of(one, since + 89s).reason == "not in effect yet");
  BOOST_TEST((of(one, since + 89s).recheck_at == since + 90s));
  BOOST_TEST(of(one, since + 90s).reason == "");
}

BOOST_AUTO_TEST_CASE(bundle_that_all_pods_have_loaded_counts_at_once) {
  cluster_states clusters;
  clusters.observed(kyma("a"), ready, since);
  clusters.observed(kyma("b"), ready, since);
  std::size_t notified = 0;
  const auto subscription = clusters.subscribe([&] { ++notified; });
  clusters.observed(kyma("a"), ready, since + 2s, true);
  BOOST_TEST(notified == 1U);
  BOOST_TEST(of(*clusters.find(kyma("a")), since + 2s).reason == "");
  // Of the others nothing is known by that.
  BOOST_TEST(of(*clusters.find(kyma("b")), since + 2s).reason == "not in effect yet");
  clusters.observed(kyma("a"), ready, since + 3s);  // not heard again, as nothing waits for it
  BOOST_TEST(of(*clusters.find(kyma("a")), since + 3s).reason == "");
  BOOST_TEST(notified == 1U);
  // What is written later has to be loaded again.
  clusters.observed(kyma("a"), with({"new"}, "new", since + 9s), since + 10s);
  BOOST_TEST(of(*clusters.find(kyma("a")), since + 10s).reason == "not in effect yet");
}

BOOST_AUTO_TEST_CASE(runtime_out_of_reach_is_excused_after_a_while) {
  const auto behind = with({"old"}, "old", since - 1h);
  const cluster_state one{.observed = behind, .since = since, .error = away};
  BOOST_TEST(!of(one, since + 59min).excused);
  BOOST_TEST((of(one, since + 59min).recheck_at == since + 1h));
  BOOST_TEST(of(one, since + 1h).excused);
  BOOST_TEST(of(one, since + 1h).reason == "without the new CA");
  BOOST_TEST(of({.error = away}, since + 1h).excused);
  BOOST_TEST(of({.observed = ready, .since = since, .error = away}).reason == "");
}

BOOST_AUTO_TEST_CASE(faults_of_others_excuse_no_runtime) {
  for (const auto fault : {cluster_fault::manager, cluster_fault::issuer, cluster_fault::kcp}) {
    BOOST_TEST(!of({.error = cluster_error{status_reason::gateway_invalid, fault, since}},
                   since + 24h * 365)
                    .excused);
  }
}

BOOST_AUTO_TEST_CASE(cluster_of_another_kyma_is_not_waited_for) {
  BOOST_TEST(of({.owner = "b"}).reason == "");
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

BOOST_AUTO_TEST_CASE(states_keeps_since_when_nothing_else_was_observed) {
  cluster_states clusters;
  clusters.observed(kyma("a"), ready, since);
  clusters.observed(kyma("a"), ready, since + 1h);
  BOOST_TEST((clusters.find(kyma("a"))->since == since));
  clusters.failing(kyma("a"), status_reason::runtime_unreachable, cluster_fault::tenant,
                   since + 2h);
  clusters.observed(kyma("a"), ready, since + 3h);
  BOOST_TEST((clusters.find(kyma("a"))->since == since));
  clusters.observed(kyma("a"), with({"old"}, "old", since), since + 4h);
  BOOST_TEST((clusters.find(kyma("a"))->since == since + 4h));
}

BOOST_AUTO_TEST_CASE(own_fault_lasts_until_the_runtime_converges_whatever_its_reason) {
  cluster_states clusters;
  const auto own_since = [&] { return clusters.find(kyma("a"))->own_fault_since(); };
  clusters.failing(kyma("a"), status_reason::runtime_unreachable, cluster_fault::tenant, since);
  clusters.failing(kyma("a"), status_reason::access_denied, cluster_fault::tenant, since + 1h);
  BOOST_TEST((own_since() == since));
  BOOST_TEST(clusters.find(kyma("a"))->error->reason == status_reason::access_denied);
  clusters.failing(kyma("a"), status_reason::gateway_invalid, cluster_fault::kcp, since + 2h);
  BOOST_TEST(!own_since());
  BOOST_TEST((clusters.find(kyma("a"))->error->since == since + 2h));
  clusters.observed(kyma("a"), ready, since + 2h);  // it is known what is there, not desired
  clusters.failing(kyma("a"), status_reason::contested, cluster_fault::tenant, since + 3h);
  BOOST_TEST((own_since() == since));
  clusters.converged(kyma("a"));
  BOOST_TEST(!clusters.find(kyma("a"))->error);
  clusters.failing(kyma("a"), status_reason::contested, cluster_fault::tenant, since + 4h);
  BOOST_TEST((own_since() == since + 4h));
  clusters.converged(kyma("nobody"));
  BOOST_TEST(clusters.size() == 1U);
}

BOOST_AUTO_TEST_CASE(fault_that_a_former_leader_saw_excuses_once_this_one_sees_it) {
  cluster_states clusters;
  const cluster_error before{status_reason::runtime_unreachable, cluster_fault::tenant, since};
  clusters.restore(kyma("a"), before);
  BOOST_TEST(!clusters.find(kyma("a"))->own_fault_since());
  BOOST_TEST(!of(*clusters.find(kyma("a"))).excused);
  clusters.failing(kyma("a"), status_reason::access_denied, cluster_fault::tenant, since + 1h);
  BOOST_TEST((clusters.find(kyma("a"))->own_fault_since() == since));
  clusters.restore(kyma("a"), {status_reason::contested, cluster_fault::tenant, since - 1h});
  BOOST_TEST((clusters.find(kyma("a"))->own_fault_since() == since), "it replaces nothing");
  // A record from the future.
  clusters.restore(kyma("b"), before);
  clusters.failing(kyma("b"), status_reason::access_denied, cluster_fault::tenant, since - 1h);
  BOOST_TEST((clusters.find(kyma("b"))->own_fault_since() == since - 1h));
  clusters.restore(kyma("c"), before);
  clusters.converged(kyma("c"));
  clusters.failing(kyma("c"), status_reason::contested, cluster_fault::tenant, since + 4h);
  BOOST_TEST((clusters.find(kyma("c"))->own_fault_since() == since + 4h));
}

BOOST_AUTO_TEST_CASE(cluster_of_another_kyma_keeps_nothing_and_may_come_back) {
  cluster_states clusters;
  clusters.observed(kyma("a"), ready, since);
  clusters.failing(kyma("a"), status_reason::runtime_unreachable, cluster_fault::tenant, since);
  clusters.belongs_to(kyma("a"), "b");
  BOOST_TEST(clusters.is_duplicate(kyma("a")));
  BOOST_TEST(!clusters.find(kyma("a"))->observed);
  BOOST_TEST(!clusters.find(kyma("a"))->error);
  clusters.belongs_to(kyma("a"), "");
  BOOST_TEST(!clusters.is_duplicate(kyma("a")));
  clusters.belongs_to(kyma("nobody"), "");
  BOOST_TEST(clusters.size() == 1U);
  BOOST_TEST(!clusters.is_duplicate(kyma("nobody")));
}

BOOST_AUTO_TEST_CASE(installed_runtime_is_probed_and_reports_until_it_is_left_or_outdated) {
  using enum cluster_scope;
  cluster_states clusters;
  const auto is = [&](bool installed, bool reporting) {
    const auto* const a = clusters.find(kyma("a"));
    return a->is_installed() == installed && a->is_reporting() == reporting;
  };
  clusters.set_scope(kyma("a"), managed);
  BOOST_TEST(clusters.size() == 0U);  // one without a certificate is not known
  clusters.expect(kyma("a"));
  BOOST_TEST(is(false, false));
  clusters.failing(kyma("a"), status_reason::access_missing, cluster_fault::tenant, since);
  BOOST_TEST(is(false, false), "nothing was installed yet");
  clusters.converged(kyma("a"), false);
  BOOST_TEST(is(false, false));
  clusters.converged(kyma("a"), true);
  BOOST_TEST(is(true, true));
  clusters.set_outdated(kyma("a"), true);
  BOOST_TEST(is(false, false));
  clusters.set_outdated(kyma("a"), false);
  const auto fail = [&](status_reason reason) {
    clusters.failing(kyma("a"), reason, cluster_fault::tenant, since);
  };
  for (const auto reason : {status_reason::runtime_unreachable, status_reason::runtime_slow,
                            status_reason::access_rejected, status_reason::access_missing,
                            status_reason::write_rejected}) {
    fail(reason);
    BOOST_TEST(is(false, true), reason);
  }
  fail(status_reason::contested);
  BOOST_TEST(is(false, false));
  clusters.converged(kyma("a"), true);
  for (const auto scope : {left_alone, unselected, leaving}) {
    clusters.set_scope(kyma("a"), scope);
    BOOST_TEST(is(false, false));
    BOOST_TEST(clusters.find(kyma("a"))->is_concerned() == (scope == left_alone));
  }
  clusters.set_scope(kyma("a"), managed);
  BOOST_TEST(is(true, true));
  clusters.belongs_to(kyma("a"), "b");
  BOOST_TEST(is(false, false));
}

BOOST_AUTO_TEST_CASE(states_notifies_of_changes_and_only_of_changes) {
  cluster_states clusters;
  int notified = 0;
  auto listening = clusters.subscribe([&] { ++notified; });
  clusters.expect(kyma("a"));
  clusters.expect(kyma("a"));
  BOOST_TEST(notified == 1);
  clusters.observed(kyma("a"), ready, since);
  clusters.observed(kyma("a"), ready, since + 1s);
  BOOST_TEST(notified == 2);
  clusters.failing(kyma("a"), status_reason::runtime_unreachable, cluster_fault::tenant, since);
  clusters.failing(kyma("a"), status_reason::runtime_unreachable, cluster_fault::tenant,
                   since + 1h);
  BOOST_TEST(notified == 3);
  clusters.converged(kyma("a"));
  clusters.converged(kyma("a"));
  clusters.complete();
  clusters.complete();
  BOOST_TEST(notified == 5);
  clusters.forget(kyma("b"));
  BOOST_TEST(notified == 5);
  listening.reset();
  clusters.forget(kyma("a"));
  BOOST_TEST(notified == 5);
}

BOOST_AUTO_TEST_SUITE_END()
