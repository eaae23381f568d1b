// The RuntimeBootstrappers whose sources are invalid.

#include "rw/reactors/bootstrapper/invalid_sources.hpp"

#include <boost/json/parse.hpp>
#include <boost/test/unit_test.hpp>

#include <string>

namespace rw::bootstrapper_test {
BOOST_AUTO_TEST_SUITE(invalid_sources)

using known_sources = bootstrapper::invalid_sources;

namespace {

boost::json::value resource(const std::string& name, const std::string& status,
                            const std::string& reason, const std::string& message) {
  return boost::json::parse(R"({"metadata": {"namespace": "kcp-system", "name": ")" + name +
                            R"("}, "status": {"conditions": [{"type": "Compatible", "status": ")" +
                            status + R"(", "reason": ")" + reason + R"(", "message": ")" + message +
                            R"("}]}})");
}

}  // namespace

BOOST_AUTO_TEST_CASE(resources_with_one_error_are_one_fault) {
  known_sources known;
  for (const auto* const name : {"b", "a", "c"}) {
    known.note(resource(name, "False", "Invalid", "no JSON"));
  }
  known.note(resource("own", "False", "Invalid", "no YAML"));
  known.note(resource("refused", "False", "RejectedByRuntime", "a webhook says no"));
  known.note(resource("right", "True", "Validated", "Invalid"));
  const auto faults = known.faults();
  BOOST_TEST_REQUIRE(faults.size() == 2u);
  BOOST_TEST(faults[0].reason == "ContentRejected");
  BOOST_TEST(faults[0].message ==
             "3 RuntimeBootstrappers (a, b, c) are not Compatible: Invalid: no JSON");
  BOOST_TEST(faults[1].message ==
             "1 RuntimeBootstrapper (own) is not Compatible: Invalid: no YAML");
}

BOOST_AUTO_TEST_CASE(resource_that_is_corrected_or_gone_is_no_fault) {
  known_sources known;
  known.note(resource("a", "False", "Invalid", "no JSON"));
  known.note(resource("b", "False", "Invalid", "no JSON"));
  known.note(resource("a", "True", "Validated", "valid"));
  known.forget("b");
  known.forget("never known");
  BOOST_TEST(known.faults().empty());
}

BOOST_AUTO_TEST_SUITE_END()
}  // namespace rw::bootstrapper_test
