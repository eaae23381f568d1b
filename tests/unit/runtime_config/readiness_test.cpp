// A leader that can't read the sources is not ready.

#include <boost/test/unit_test.hpp>

#include "tests/unit/runtime_config/land.hpp"
#include <chrono>
#include <string>

namespace rw::runtime_config_test {
BOOST_AUTO_TEST_SUITE(readiness)

using namespace std::chrono_literals;

BOOST_AUTO_TEST_CASE(leader_without_rights_to_a_source_is_not_ready_and_names_it) {
  land all(1);
  bool forbidden = true;
  all.on_request = [&](const std::string&, const std::string&, const std::string& path) {
    const bool source = path.ends_with("/configmaps") || path.ends_with("/clustertrustbundles");
    return k8s::devserver::fault{.status = forbidden && source ? 403U : 0U};
  };
  all.begin(bootstrapper_mode::signal);
  all.pass(1min);
  BOOST_TEST(all.not_ready() ==
             "not in step with KCP: configmaps\nnot in step with KCP: clustertrustbundles\n");
  BOOST_TEST(all.lines("\"resource\":\"configmaps\"") > 0);
  forbidden = false;
  all.pass(1min);
  BOOST_TEST(all.not_ready() == "");
}

BOOST_AUTO_TEST_SUITE_END()
}  // namespace rw::runtime_config_test
