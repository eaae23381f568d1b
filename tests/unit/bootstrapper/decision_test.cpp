// The one decision on a runtime.

#include "rw/reactors/bootstrapper/decision.hpp"

#include <boost/test/unit_test.hpp>

#include <string>

namespace rw::bootstrapper_test {
BOOST_AUTO_TEST_SUITE(decision)

using bootstrapper::action;
using bootstrapper::decide;
using bootstrapper::runtime_facts;
using mode = bootstrapper_mode;

namespace {

runtime_facts direct() {
  return {.exists = true,
          .has_finalizer = true,
          .has_objects = true,
          .runtime_exists = true,
          .mode = mode::direct};
}

runtime_facts without_resource(mode of) {
  return {.runtime_exists = true, .mode = of};
}

/// "wait NotInCharge".
bool is(const runtime_facts& facts, action next, const std::string& reason = {}) {
  const auto decided = decide(facts, true);
  return decided.next == next && decided.reason == reason;
}

}  // namespace

BOOST_AUTO_TEST_CASE(direct_runtime_is_synced_and_shadow_is_previewed) {
  auto facts = direct();
  BOOST_TEST(is(facts, action::sync));
  facts.mode = mode::shadow;
  BOOST_TEST(is(facts, action::preview));
  facts.runtime_suspended = true;
  BOOST_TEST(is(facts, action::preview));
}

BOOST_AUTO_TEST_CASE(runtime_that_is_not_ours_is_waited_for) {
  auto facts = direct();
  facts.mode = mode::signal;
  BOOST_TEST(is(facts, action::wait, "NotInCharge"));
  facts.mode = mode::off;
  facts.mode_unknown = true;
  BOOST_TEST(is(facts, action::wait, "BootstrapperModeUnknown"));
  facts = direct();
  facts.suspended = true;
  BOOST_TEST(is(facts, action::wait, "Suspended"));
  facts = direct();
  facts.runtime_suspended = true;
  BOOST_TEST(is(facts, action::wait, "RuntimeSuspended"));
  facts = direct();
  facts.no_access = "no Secret";
  BOOST_TEST(is(facts, action::wait, "NoAccess"));
  facts = direct();
  facts.runtime_exists = false;
  BOOST_TEST(is(facts, action::wait, "RuntimeNotFound"));
  facts = direct();
  facts.invalid = "spec.runtimeRef.name: is another";
  BOOST_TEST(is(facts, action::reject, "Invalid"));
}

BOOST_AUTO_TEST_CASE(runtime_that_is_being_deleted_is_not_written_to) {
  auto facts = direct();
  facts.runtime_deleting = true;
  BOOST_TEST(is(facts, action::wait, "RuntimeDeleting"));
  facts.deleting = true;
  BOOST_TEST(is(facts, action::release, "RuntimeDeleting"));
  BOOST_TEST(
      is({.runtime_exists = true, .runtime_deleting = true, .mode = mode::direct}, action::none));
}

BOOST_AUTO_TEST_CASE(deletion_undeploys_what_is_ours_to_write_to) {
  auto facts = direct();
  facts.deleting = true;
  BOOST_TEST(is(facts, action::undeploy, "Deleting"));
  facts.suspended = true;  // it holds up changes, not the end
  facts.invalid = "x";
  BOOST_TEST(is(facts, action::undeploy, "Deleting"));
  facts.runtime_suspended = true;
  BOOST_TEST(is(facts, action::wait, "RuntimeSuspended"));
  facts.mode = mode::signal;
  BOOST_TEST(is(facts, action::release, "NotInCharge"));
  facts = direct();
  facts.deleting = true;
  facts.no_access = "no Secret";  // it may be a Secret that is replaced just now
  BOOST_TEST(is(facts, action::wait, "NoAccess"));
  facts.has_objects = false;
  BOOST_TEST(is(facts, action::release, "NothingDeployed"));
  facts.has_finalizer = false;
  BOOST_TEST(is(facts, action::none));
}

BOOST_AUTO_TEST_CASE(deletion_because_the_runtime_was_replaced_leaves_it_as_it_is) {
  auto facts = direct();
  facts.of_former_runtime = true;
  BOOST_TEST(is(facts, action::sync));
  facts.deleting = true;
  BOOST_TEST(is(facts, action::release, "RuntimeReplaced"));
}

BOOST_AUTO_TEST_CASE(runtime_gets_a_resource_unless_it_has_opted_out) {
  auto facts = without_resource(mode::direct);
  BOOST_TEST(is(facts, action::create));
  BOOST_TEST((decide(facts, false).next == action::none));
  BOOST_TEST(is(without_resource(mode::shadow), action::create));
  BOOST_TEST(is(without_resource(mode::signal), action::none));
  BOOST_TEST((decide(facts, false).reason == "NoResource"));
  facts.opted_out = true;
  BOOST_TEST(is(facts, action::none, "OptedOut"));
}

BOOST_AUTO_TEST_SUITE_END()
}  // namespace rw::bootstrapper_test
