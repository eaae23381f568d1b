#include "rw/reactors/events/plan.hpp"

#include <boost/test/unit_test.hpp>

#include <string>

BOOST_AUTO_TEST_SUITE(plan)

using namespace rw::observation;
using rw::managed_watch;

namespace {

std::string text_of(const rw::observation::observation_plan& from) {
  std::string text;
  for (const auto& each : from.resources) {
    text += each.resource.plural + ":";
    for (const auto& watch : each.watches) text += watch.manager + "/" + watch.field + ",";
    text += " ";
  }
  for (const auto& each : from.unobserved) {
    text += "-" + each.watch.watched.plural + ":" + std::string(each.reason) + " ";
  }
  return text;
}

}  // namespace

BOOST_AUTO_TEST_CASE(watchers_of_the_same_objects_share_a_watch) {
  const rw::known_managers managers({{"a", {"op", "v1", "kymas"}, "spec", {}},
                                     {"a", {"op", "v1", "kymas"}, "status", {}},
                                     {"b", {"op", "v1", "kymas"}, "spec", {}},
                                     {"b", {"op", "v1", "kymas"}, "spec", {{"l", "1"}}},
                                     {"c", {"op", "*", "kymas"}, "spec", {}}});
  BOOST_TEST(text_of(make_plan(managers, false)) ==
             "kymas:a/spec,a/status,b/spec, kymas:b/spec, kymas:c/spec, ");
}

BOOST_AUTO_TEST_CASE(wildcards_subresources_and_secrets_are_not_observed) {
  const rw::known_managers managers({{"a", {"*", "v1", "kymas"}, "spec", {}},
                                     {"a", {"op", "v1", "*"}, "spec", {}},
                                     {"a", {"apps", "v1", "deployments"}, "scale", {}},
                                     {"a", {"", "v1", "secrets"}, "spec", {}},
                                     {"a", {"op", "v1", "secrets"}, "spec", {}}});
  BOOST_TEST(text_of(make_plan(managers, false)) ==
             "secrets:a/spec, -secrets:secrets -kymas:wildcard -deployments:subresource "
             "-*:wildcard ");
  BOOST_TEST(make_plan(managers, true).resources.size() == 2U);
}

BOOST_AUTO_TEST_SUITE_END()
