// What a runtime has while it waits for its turn.

#include "rw/reactors/bootstrapper/rollout_turn.hpp"

#include <boost/json/array.hpp>
#include <boost/json/object.hpp>
#include <boost/test/unit_test.hpp>

#include "tests/unit/bootstrapper/sync_env.hpp"
#include <memory>
#include <string>
#include <utility>
#include <vector>

namespace rw::bootstrapper_test {
BOOST_AUTO_TEST_SUITE(rollout_turn)

using bootstrapper::revision;
using bootstrapper::revision_ptr;
using bootstrapper::unit;
using bootstrapper::unit_state;

namespace {

revision_ptr named(std::string digest) {
  revision out;
  out.digest = std::move(digest);
  return std::make_shared<const revision>(std::move(out));
}

unit_state newest_b(const char* in_place) {
  return {.revisions = {named("b"), named("a"), named("z")}, .desired = "b", .in_place = in_place};
}

std::vector<std::string> digests(const unit_state& of) {
  std::vector<std::string> out;
  for (const auto& each : of.revisions) out.push_back(each->digest);
  return out;
}

using list = std::vector<std::string>;

}  // namespace

BOOST_AUTO_TEST_CASE(waiting_runtime_keeps_the_revision_in_place) {
  auto of = newest_b("a");
  hold(of, named("c"));
  BOOST_TEST((digests(of) == list{"a"}));
  BOOST_TEST(of.desired == "a");
  BOOST_TEST(of.withheld->digest == "b");
}

BOOST_AUTO_TEST_CASE(runtime_with_nothing_gets_what_was_rolled_out_last) {
  auto of = newest_b("");
  hold(of, named("c"));
  BOOST_TEST((digests(of) == list{"c"}));
  BOOST_TEST(of.desired == "c");
  of = newest_b("");
  hold(of, nullptr);
  BOOST_TEST(of.revisions.empty());
  BOOST_TEST(of.desired.empty());
}

BOOST_AUTO_TEST_CASE(revision_in_place_that_is_not_stored_is_left_alone) {
  auto of = newest_b("lost");
  hold(of, named("c"));
  BOOST_TEST(of.revisions.empty());
  BOOST_TEST(of.desired == "lost");
  of = newest_b("c");
  hold(of, named("c"));
  BOOST_TEST((digests(of) == list{"c"}));
}

BOOST_AUTO_TEST_CASE(invalid_content_brings_no_other_stored_one) {
  unit_state of{.revisions = {named("stored"), named("a")}, .invalid = "a field", .in_place = "a"};
  hold(of, nullptr);
  BOOST_TEST((digests(of) == list{"a"}));
  BOOST_TEST(of.desired.empty());
  BOOST_TEST(of.withheld == nullptr);
}

BOOST_AUTO_TEST_CASE(object_that_is_as_the_newer_revision_has_it_was_brought_by_others) {
  const auto pem = ca_pem();
  const auto before = rendered(unit::bootstrapper, good_sources(pem, "1.0.0"));
  const auto newer = rendered(unit::bootstrapper, good_sources(pem, "2.0.0"));
  bootstrapper::unit_plan plan;
  const auto add = [&](const bootstrapper::desired_object& each, json::value live) {
    bootstrapper::planned_object object;
    object.key = k8s::key_of(each.object);
    k8s::parse_api_version(k8s::find_string(each.object, {"apiVersion"}), object.type.gvk);
    object.type.gvk.kind = k8s::find_string(each.object, {"kind"});
    object.desired = each.object;
    object.live = std::move(live);
    object.write = true;
    plan.objects.push_back(std::move(object));
  };
  // A drift that is not of the newer revision, one that is in both, and one that is missing.
  for (const auto& each : before.objects) {
    const auto kind = k8s::find_string(each.object, {"kind"});
    auto live = each.object;
    if (kind == "Service") live.at("spec").as_object()["ports"] = json::array();
    add(each, kind == "ServiceAccount" ? json::value() : live);
  }
  BOOST_TEST(!has_newer(plan, newer));
  for (std::size_t i = 0; i < plan.objects.size(); ++i) {
    if (plan.objects[i].type.gvk.kind == "Deployment")
      plan.objects[i].live = newer.objects[i].object;
  }
  BOOST_TEST(has_newer(plan, newer));
  BOOST_TEST(!has_newer(plan, before));
}

BOOST_AUTO_TEST_SUITE_END()
}  // namespace rw::bootstrapper_test
