// The table of `runtime-watcher rollout plan`.

#include "rw/reactors/cli/rollout_plan.hpp"

#include "rw/k8s/objects/types.hpp"
#include "rw/reactors/runtime_rollout/resource.hpp"

#include <boost/json/array.hpp>
#include <boost/json/object.hpp>
#include <boost/json/value.hpp>
#include <boost/test/unit_test.hpp>

#include <string>

namespace rw::rollout_plan_test {
BOOST_AUTO_TEST_SUITE(rollout_plan)

namespace json = boost::json;
using cli::plan_of;
using runtime_rollout::phase;
using runtime_rollout::rollout_decision;

namespace {

/// By the SHA-256 of their uids (`printf a | sha256sum`) their order is d, c, b, a.
const json::array four =
    json::value{{{"metadata", {{"name", "a"}, {"uid", "a"}, {"labels", {{"size", "large"}}}}}},
                {{"metadata", {{"name", "b"}, {"uid", "b"}}}},
                {{"metadata", {{"name", "c"}, {"uid", "c"}}}},
                {{"metadata", {{"name", "d"}, {"uid", "d"}}}}}
        .as_array();
const std::string title = "runtimerollout.operator.kyma-project.io/watcher\n";

json::value rollout(json::object spec, const rollout_decision& decided) {
  auto out = runtime_rollout::make_rollout("watcher");
  for (const auto& [name, value] : spec) out.at("spec").as_object()[name] = value;
  const auto status = runtime_rollout::next_status(out, decided, {}, {});
  if (status) out.as_object()["status"] = *status;
  return out;
}

json::object steps(std::initializer_list<const char*> runtimes) {
  json::array out;
  for (const auto* each : runtimes) out.push_back(json::object{{"runtimes", each}});
  return {{"steps", std::move(out)}};
}

rollout_decision in_waves(std::uint64_t below) {
  rollout_decision out;
  out.next.at = phase::waves;
  out.next.steps = {{.of = {.runtimes = "1"}, .below = below}};
  return out;
}

}  // namespace

BOOST_AUTO_TEST_CASE(steps_of_the_next_content_are_placed_as_if_all_responded) {
  rollout_decision completed;
  completed.next.at = phase::completed;
  BOOST_TEST(plan_of(rollout(steps({"1", "50%", "size=large"}), completed), four) ==
             title +
                 "STEP  SELECTED-BY  RUNTIMES  NAME\n"
                 "1     1            1 of 4    d\n"
                 "2     50%          1 of 4    c\n"
                 "3     size=large   1 of 4    a\n"
                 "4     others       1 of 4    b\n");
  // A share is of 2 runtimes at least.
  BOOST_TEST(plan_of(rollout(steps({"1%"}), completed), {four[0], four[1]}) ==
             title +
                 "STEP  SELECTED-BY  RUNTIMES  NAME\n"
                 "1     1%           2 of 2    b\n"
                 "1     1%           2 of 2    a\n");
}

BOOST_AUTO_TEST_CASE(steps_under_way_are_those_of_the_status) {
  const auto everyone = std::uint64_t{1} << 32;
  const auto all_first = plan_of(rollout(steps({"1"}), in_waves(everyone)), four);
  BOOST_TEST(all_first.find("others") == all_first.npos, all_first);
  // By the manager's flags, too.
  BOOST_TEST(plan_of(rollout({}, in_waves(everyone)), four) == all_first);
  // Others of the spec take their place.
  const auto changed = plan_of(rollout(steps({"2"}), in_waves(everyone)), four);
  BOOST_TEST(changed == title +
                            "STEP  SELECTED-BY  RUNTIMES  NAME\n"
                            "1     2            2 of 4    d\n"
                            "1     2            2 of 4    c\n"
                            "2     others       2 of 4    b\n"
                            "2     others       2 of 4    a\n");
}

BOOST_AUTO_TEST_CASE(runtime_that_is_written_to_and_has_the_usual_sources_takes_part) {
  const bootstrapper_sources of{"config", "manifests", "credentials", "bundle"};
  const auto is = [&](const char* mode, json::object spec) {
    return cli::takes_part({{"spec", std::move(spec)}, {"status", {{"mode", mode}}}}, of);
  };
  const auto reference = [](const char* name) { return json::object{{"name", name}}; };
  const json::object usual{{"configMapRef", reference("config")},
                           {"manifests", {{"configMapRef", reference("manifests")}}},
                           {"trustBundleRef", reference("bundle")},
                           {"pullSecretRef", reference("of its own")}};
  BOOST_TEST(is("direct", {}));
  BOOST_TEST(is("direct", usual));
  BOOST_TEST(!is("shadow", usual));
  for (const auto* field : {"configMapRef", "trustBundleRef"}) {
    for (const auto* other : {"other", "manifests"}) {
      BOOST_TEST(!is("direct", {{field, reference(other)}}), field);
    }
  }
  BOOST_TEST(!is("direct", {{"manifests", {{"configMapRef", reference("other")}}}}));
  BOOST_TEST(!is("direct", {{"manifests", {{"inline", "kind: ConfigMap"}}}}));
}

BOOST_AUTO_TEST_SUITE_END()
}  // namespace rw::rollout_plan_test
