// What becomes of the stored contents while they can't be stored.

#include "rw/k8s/objects/types.hpp"

#include <boost/test/unit_test.hpp>

#include "tests/unit/runtime_config/land.hpp"
#include <string>

namespace rw::runtime_config_test {
BOOST_AUTO_TEST_SUITE(contents)

using namespace std::chrono_literals;

/// Until then a runtime would have nothing to fall back to.
BOOST_AUTO_TEST_CASE(content_that_could_not_be_stored_is_stored_before_the_resync) {
  land all(1);
  const auto ns = all.settings.direct.state_namespace;
  bool refuses = true;
  all.on_request = [&](const std::string&, const std::string& verb, const std::string& path) {
    const bool stores = !test::reads(verb) && path.find(ns) != path.npos;
    return k8s::devserver::fault{.status = refuses && stores ? 403U : 0U};
  };
  all.add_runtime("skr");
  all.begin(bootstrapper_mode::direct);
  all.pass(10s);
  all.set_all_ready();
  all.pass(4min);
  const auto warned = [&] {
    return k8s::find(all.bootstrapper("skr"), {"status", "warnings"}) != nullptr;
  };
  BOOST_TEST(all.lacks("skr") == "");
  BOOST_TEST(warned());
  refuses = false;
  all.pass(2min);
  BOOST_TEST(!warned());
}

BOOST_AUTO_TEST_SUITE_END()
}  // namespace rw::runtime_config_test
