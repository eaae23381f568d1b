#include "rw/k8s/cache/pending_deltas.hpp"

#include <boost/test/unit_test.hpp>

#include "tests/unit/k8s/samples.hpp"
#include <string>

BOOST_AUTO_TEST_SUITE(pending_deltas)

using namespace rw::k8s::test;
using rw::k8s::delta;
using rw::k8s::object;

namespace {

/// Everything that is pending, such as "+a@1 ~a@1>2 -a@2 ".
std::string told(rw::k8s::pending_deltas& pending) {
  std::string all;
  while (!pending.empty()) {
    const auto next = pending.take();
    const std::string name(next.latest().name());
    const std::string before(next.before.resource_version());
    const std::string now(next.now.resource_version());
    switch (next.type) {
      case delta::kind::added:
        all += "+" + name + "@" + now;
        break;
      case delta::kind::updated:
        all += "~" + name + "@" + before + ">" + now;
        break;
      case delta::kind::deleted:
        all += "-" + name + "@" + before;
        break;
    }
    all += ' ';
  }
  return all;
}

}  // namespace

BOOST_AUTO_TEST_CASE(change_is_reported_in_the_order_of_the_first) {
  rw::k8s::pending_deltas pending;
  pending.note({}, configmap_object("a", "1"));
  pending.note(configmap_object("b", "1"), configmap_object("b", "2"));
  pending.note(configmap_object("c", "1"), {});
  BOOST_TEST(pending.size() == 3U);
  BOOST_TEST(told(pending) == "+a@1 ~b@1>2 -c@1 ");
  BOOST_TEST(pending.empty());
}

BOOST_AUTO_TEST_CASE(changes_of_an_object_become_one) {
  rw::k8s::pending_deltas pending;
  pending.note({}, configmap_object("a", "1"));
  pending.note(configmap_object("a", "1"), configmap_object("a", "2"));
  pending.note(configmap_object("b", "1"), configmap_object("b", "2"));
  pending.note(configmap_object("b", "2"), configmap_object("b", "3"));
  pending.note(configmap_object("c", "1"), configmap_object("c", "2"));
  pending.note(configmap_object("c", "2"), {});
  BOOST_TEST(told(pending) == "+a@2 ~b@1>3 -c@1 ");
}

BOOST_AUTO_TEST_CASE(object_added_and_deleted_before_delivery_is_not_delivered) {
  rw::k8s::pending_deltas pending;
  for (int i = 0; i < 1000; ++i) {
    const auto one = configmap_object("n" + std::to_string(i), "1");
    pending.note({}, one);
    pending.note(one, {});
  }
  BOOST_TEST(pending.empty());
}

BOOST_AUTO_TEST_CASE(object_deleted_and_made_again_is_reported_as_both) {
  rw::k8s::pending_deltas pending;
  pending.note(configmap_object("a", "1", "old"), {});
  pending.note({}, configmap_object("a", "5", "new"));
  pending.note(configmap_object("a", "5", "new"), configmap_object("a", "6", "new"));
  BOOST_TEST(told(pending) == "-a@1 +a@6 ");
}

BOOST_AUTO_TEST_CASE(object_made_again_and_deleted_is_reported_as_deleted) {
  rw::k8s::pending_deltas pending;
  pending.note(configmap_object("a", "1", "old"), {});
  pending.note({}, configmap_object("a", "5", "new"));
  pending.note(configmap_object("a", "5", "new"), {});
  BOOST_TEST(told(pending) == "-a@1 ");
}

BOOST_AUTO_TEST_CASE(between_both_halves_of_a_remake_changes_go_on) {
  rw::k8s::pending_deltas pending;
  pending.note(configmap_object("a", "1", "old"), configmap_object("a", "5", "new"));
  BOOST_TEST((pending.take().type == delta::kind::deleted));
  pending.note(configmap_object("a", "5", "new"), {});
  BOOST_TEST(pending.empty());
}

BOOST_AUTO_TEST_CASE(object_that_is_as_reported_again_is_not_reported) {
  rw::k8s::pending_deltas pending;
  pending.note(configmap_object("a", "1"), {});
  pending.note({}, configmap_object("a", "1"));
  BOOST_TEST(pending.empty());
}

BOOST_AUTO_TEST_CASE(object_changed_after_delivery_is_delivered_again) {
  rw::k8s::pending_deltas pending;
  pending.note({}, configmap_object("a", "1"));
  BOOST_TEST(told(pending) == "+a@1 ");
  pending.note(configmap_object("a", "1"), configmap_object("a", "2"));
  BOOST_TEST(told(pending) == "~a@1>2 ");
}

BOOST_AUTO_TEST_SUITE_END()
