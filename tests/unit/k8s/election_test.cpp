#include "rw/k8s/controller/election.hpp"

#include "rw/k8s/objects/types.hpp"

#include <boost/json/parse.hpp>
#include <boost/json/serialize.hpp>
#include <boost/test/unit_test.hpp>

#include <cstdint>
#include <limits>
#include <stdexcept>

namespace rw::k8s_test {  // where nothing else has the suite's name
BOOST_AUTO_TEST_SUITE(election)

namespace json = boost::json;
namespace k8s = rw::k8s;
using namespace rw::k8s;
using namespace std::chrono_literals;
using kind = k8s::election::step::kind;

namespace {

const core::time_point start{1h};
const auto wall = parse_rfc3339("2026-01-01T00:00:00Z").value();

election_options mine() {
  return {.ns = "ns", .name = "lock", .identity = "me"};
}

core::random_source always(std::uint64_t number) {
  return [number] { return number; };
}

/// A Lease as the server has it.
json::value held(const std::string& holder, int version, const std::string& renewed,
                 int transitions = 0) {
  json::value made{{"metadata", {{"name", "lock"}, {"resourceVersion", std::to_string(version)}}}};
  write_lease(made, {holder, 15s, wall, parse_rfc3339(renewed), transitions});
  return made;
}

result<json::value> failed(errc code) {
  return failure{make_error_code(code), 0, {}, "failed"};
}

/// One that leads since `start`, and waits.
k8s::election leader(k8s::election::step* waits) {
  k8s::election one(mine(), always(0));
  one.begin(start, wall);
  auto step = one.resume(failed(errc::not_found), start, wall);
  *waits = one.resume(result<json::value>(std::move(step.object)), start, wall);
  return one;
}

}  // namespace

BOOST_AUTO_TEST_CASE(lease_that_is_not_there_is_created) {
  k8s::election one(mine(), always(0));
  auto step = one.begin(start, wall);
  BOOST_TEST((step.type == kind::read));
  BOOST_TEST((step.until == start + 10s));
  step = one.resume(failed(errc::not_found), start + 1s, wall);
  BOOST_TEST((step.type == kind::create));
  BOOST_TEST(json::serialize(step.object) ==
             R"({"apiVersion":"coordination.k8s.io/v1","kind":"Lease",)"
             R"("metadata":{"namespace":"ns","name":"lock"},)"
             R"("spec":{"holderIdentity":"me","leaseDurationSeconds":15,"leaseTransitions":0,)"
             R"("acquireTime":"2026-01-01T00:00:00.000000Z",)"
             R"("renewTime":"2026-01-01T00:00:00.000000Z"}})");
  BOOST_TEST(!one.leading());
  step = one.resume(result<json::value>(step.object), start + 3s, wall);
  BOOST_TEST(one.leading());
  BOOST_TEST(one.holder() == "me");
  // Counted from before the request was sent, at 1 s.
  BOOST_TEST((one.writes_until() == start + 15s));
  BOOST_TEST((step.type == kind::wait));
  BOOST_TEST((step.until == start + 5s));
}

BOOST_AUTO_TEST_CASE(leader_renews_without_reading_and_keeps_its_acquire_time) {
  k8s::election::step step;
  auto one = leader(&step);
  step = one.resume(std::nullopt, start + 2s, wall + 2s);
  BOOST_TEST((step.type == kind::update));
  BOOST_TEST((step.until == start + 7s));  // half of the renew deadline: it may be tried again
  const auto spec = read_lease(step.object);
  BOOST_TEST((spec.acquired == wall));
  BOOST_TEST((spec.renewed == wall + 2s));
  BOOST_TEST(spec.transitions == 0);
  step = one.resume(result<json::value>(step.object), start + 3s, wall);
  BOOST_TEST((one.writes_until() == start + 2s + 14s));
  BOOST_TEST((step.until == start + 5s));
}

BOOST_AUTO_TEST_CASE(leader_writes_its_annotations_which_outlast_its_term) {
  auto with = mine();
  with.annotations = {{"a/settings", "now"}};
  k8s::election one(with, always(0));
  one.begin(start, wall);
  // Of the former leader, which had others.
  auto lease = held("", 1, "2026-01-01T00:00:00Z");
  set_annotation(lease, "a/settings", "before");
  set_annotation(lease, "b", "somebody's");
  auto step = one.resume(result<json::value>(lease), start, wall);
  BOOST_TEST((step.type == kind::update));
  BOOST_TEST((annotation(step.object, "a/settings") == "now"));
  BOOST_TEST((annotation(step.object, "b") == "somebody's"));
  one.resume(result<json::value>(step.object), start, wall);
  BOOST_TEST(one.leading());
  step = one.release(start + 1s, wall);
  BOOST_TEST(read_lease(step.object).holder == "");
  BOOST_TEST((annotation(step.object, "a/settings") == "now"));
}

BOOST_AUTO_TEST_CASE(lease_of_another_is_taken_only_when_it_has_not_changed_for_its_duration) {
  k8s::election one(mine(), always(0));
  one.begin(start, wall);
  // Its renewTime is years ago, which says nothing: clocks differ.
  auto step = one.resume(held("other", 1, "2001-01-01T00:00:00Z"), start, wall);
  BOOST_TEST((step.type == kind::wait));
  BOOST_TEST((step.until == start + 2s));
  BOOST_TEST(one.holder() == "other");
  one.resume(std::nullopt, start + 14s, wall);
  step = one.resume(held("other", 2, "2001-01-01T00:00:10Z"), start + 14s, wall);  // renewed
  BOOST_TEST((step.type == kind::wait));
  one.resume(std::nullopt, start + 28s, wall);
  step = one.resume(held("other", 3, "2001-01-01T00:00:10Z", 4), start + 28s, wall);
  BOOST_TEST((step.type == kind::wait));  // transitions changed: somebody wrote
  one.resume(std::nullopt, start + 43s, wall);
  // Only its labels were changed.
  step = one.resume(held("other", 9, "2001-01-01T00:00:10Z", 4), start + 43s, wall + 1h);
  BOOST_TEST((step.type == kind::update));
  BOOST_TEST(resource_version_of(step.object) == "9");
  const auto spec = read_lease(step.object);
  BOOST_TEST(spec.holder == "me");
  BOOST_TEST(spec.transitions == 5);
  BOOST_TEST((spec.acquired == wall + 1h));
}

BOOST_AUTO_TEST_CASE(holder_leads_until_its_lease_has_not_changed_for_its_duration) {
  k8s::election one(mine(), always(0));
  BOOST_TEST(!one.observed(start).leads);
  one.begin(start, wall);
  one.resume(held("other", 1, "2025-12-31T23:59:50Z"), start, wall);
  BOOST_TEST(one.observed(start + 14s).leads);
  const auto expired = one.observed(start + 15s);
  BOOST_TEST(!expired.leads);
  BOOST_TEST(expired.holder == "other");
  BOOST_TEST((expired.renewed == parse_rfc3339("2025-12-31T23:59:50Z")));
  BOOST_TEST(expired.error.empty());
  // It cannot be read: nobody knows of a leader, and why stays known during the next request.
  one.resume(std::nullopt, start + 2s, wall);
  one.resume(failed(errc::unreachable), start + 3s, wall);
  one.resume(std::nullopt, start + 15s, wall);
  BOOST_TEST(one.observed(start + 15s).error == "failed");
  // The update fails, so that nobody leads.
  auto step = one.resume(held("other", 1, "2025-12-31T23:59:50Z"), start + 15s, wall);
  BOOST_TEST((step.type == kind::update));
  one.resume(failed(errc::forbidden), start + 15s, wall);
  BOOST_TEST(!one.observed(start + 16s).leads);
  BOOST_TEST(one.observed(start + 16s).error.empty());
  // Renewed again.
  one.resume(std::nullopt, start + 17s, wall);
  one.resume(held("other", 2, "2026-01-01T00:00:10Z"), start + 17s, wall);
  BOOST_TEST(one.observed(start + 18s).leads);
}

BOOST_AUTO_TEST_CASE(own_lease_that_was_lost_has_no_leader) {
  k8s::election::step step;
  auto one = leader(&step);
  BOOST_TEST(one.observed(start + 1s).leads);
  one.resume(std::nullopt, start + 10s, wall);
  BOOST_TEST(!one.leading());
  const auto lost = one.observed(start + 10s);
  BOOST_TEST(!lost.leads);
  BOOST_TEST(lost.holder == "me");
}

BOOST_AUTO_TEST_CASE(lease_that_was_given_back_is_taken_at_once) {
  k8s::election one(mine(), always(0));
  one.begin(start, wall);
  const auto step = one.resume(held("", 1, "2026-01-01T00:00:00Z", 1), start, wall);
  BOOST_TEST((step.type == kind::update));
  BOOST_TEST(read_lease(step.object).transitions == 2);
}

BOOST_AUTO_TEST_CASE(follower_waits_with_jitter_after_a_failure_or_a_lost_race) {
  k8s::election one(mine(), always(~std::uint64_t{0}));
  one.begin(start, wall);
  auto step = one.resume(failed(errc::unreachable), start, wall);
  BOOST_TEST((step.type == kind::wait));
  BOOST_TEST((step.until > start + 4390ms && step.until <= start + 4400ms));
  BOOST_TEST(one.error() == "failed");
  step = one.resume(std::nullopt, step.until, wall);
  BOOST_TEST((step.type == kind::read));
  BOOST_TEST(one.error().empty());
  step = one.resume(failed(errc::not_found), start, wall);
  step = one.resume(failed(errc::already_exists), start, wall);
  BOOST_TEST((step.type == kind::wait));
  BOOST_TEST(one.error().empty());
  BOOST_TEST(!one.leading());
}

BOOST_AUTO_TEST_CASE(leader_loses_the_lease_at_the_renew_deadline_when_renewals_fail) {
  k8s::election::step step;
  auto one = leader(&step);
  step = one.resume(std::nullopt, start + 2s, wall);
  step = one.resume(failed(errc::timed_out), start + 7s, wall);
  BOOST_TEST((step.type == kind::wait));
  BOOST_TEST((step.until == start + 9s));
  step = one.resume(std::nullopt, start + 9s, wall);
  BOOST_TEST((step.type == kind::update));
  BOOST_TEST((step.until == start + 10s));
  step = one.resume(failed(errc::timed_out), start + 10s, wall);
  BOOST_TEST(!one.leading());
  BOOST_TEST((one.writes_until() == core::time_point::min()));
  BOOST_TEST((step.type == kind::wait));
  BOOST_TEST(one.error() == "failed");
}

BOOST_AUTO_TEST_CASE(renewal_that_is_answered_too_late_is_worth_nothing) {
  k8s::election::step step;
  auto one = leader(&step);
  step = one.resume(std::nullopt, start + 2s, wall);
  one.resume(result<json::value>(step.object), start + 12s, wall);  // sent ten seconds ago
  BOOST_TEST(!one.leading());
}

BOOST_AUTO_TEST_CASE(process_that_slept_through_its_lease_knows_when_it_wakes) {
  k8s::election::step step;
  auto one = leader(&step);
  one.resume(std::nullopt, start + 1h, wall);
  BOOST_TEST(!one.leading());
}

BOOST_AUTO_TEST_CASE(leader_in_conflict_reads_and_goes_on_if_the_lease_is_still_its_own) {
  k8s::election::step step;
  auto one = leader(&step);
  one.resume(std::nullopt, start + 2s, wall);
  step = one.resume(failed(errc::conflict), start + 2s, wall);
  BOOST_TEST((step.type == kind::read));
  step = one.resume(held("me", 7, "2026-01-01T00:00:02Z"), start + 2s, wall);
  BOOST_TEST((step.type == kind::update));
  BOOST_TEST(resource_version_of(step.object) == "7");
  BOOST_TEST(one.leading());
}

BOOST_AUTO_TEST_CASE(leader_that_finds_another_holder_loses_at_once) {
  for (const char* holder : {"other", ""}) {
    k8s::election::step step;
    auto one = leader(&step);
    one.resume(std::nullopt, start + 2s, wall);
    one.resume(failed(errc::conflict), start + 2s, wall);
    step = one.resume(held(holder, 7, "2026-01-01T00:00:02Z"), start + 2s, wall);
    BOOST_TEST(!one.leading());
    BOOST_TEST((step.type == kind::wait));
  }
}

BOOST_AUTO_TEST_CASE(leader_creates_a_deleted_lease_again) {
  k8s::election::step step;
  auto one = leader(&step);
  one.resume(std::nullopt, start + 2s, wall);
  step = one.resume(failed(errc::not_found), start + 2s, wall);
  BOOST_TEST((step.type == kind::read));
  step = one.resume(failed(errc::not_found), start + 2s, wall);
  BOOST_TEST((step.type == kind::create));
  BOOST_TEST(one.leading());
}

BOOST_AUTO_TEST_CASE(transitions_stay_at_the_largest_number_that_a_lease_may_have) {
  const auto most = std::numeric_limits<std::int32_t>::max();
  k8s::election one(mine(), always(0));
  one.begin(start, wall);
  const auto step = one.resume(held("", 1, "2025-01-01T00:00:00Z", most), start, wall);
  BOOST_TEST((step.type == kind::update));
  BOOST_TEST(read_lease(step.object).transitions == most);
}

BOOST_AUTO_TEST_CASE(release_clears_the_holder_and_keeps_the_transitions) {
  k8s::election::step step;
  auto one = leader(&step);
  step = one.release(start + 3s, wall + 3s);
  BOOST_TEST((step.type == kind::update));
  BOOST_TEST(!one.leading());
  const auto* const spec = find(step.object, {"spec"});
  BOOST_TEST((*spec == json::parse(R"({"leaseTransitions":0,"leaseDurationSeconds":1,
                                       "acquireTime":"2026-01-01T00:00:03.000000Z",
                                       "renewTime":"2026-01-01T00:00:03.000000Z"})")));
}

BOOST_AUTO_TEST_CASE(options_that_cannot_be_safe_are_refused) {
  const auto refused = [](void (*spoil)(election_options&)) {
    auto options = mine();
    spoil(options);
    BOOST_CHECK_THROW(k8s::election(options, always(0)), std::invalid_argument);
  };
  refused([](election_options& o) { o.name.clear(); });
  refused([](election_options& o) { o.identity.clear(); });
  refused([](election_options& o) { o.retry_period = 0ms; });
  refused([](election_options& o) { o.retry_period = 9s; });
  refused([](election_options& o) { o.lease_duration = 10s; });
  refused([](election_options& o) { o.lease_duration = 15500ms; });
  refused([](election_options& o) { o.margin = 5s; });
  refused([](election_options& o) { o.margin = -1s; });
}

BOOST_AUTO_TEST_SUITE_END()
}  // namespace rw::k8s_test
