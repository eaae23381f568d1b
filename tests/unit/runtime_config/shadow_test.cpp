// What is told in mode shadow, while Kyma Infrastructure Manager writes; and how direct takes over.

#include "rw/k8s/objects/types.hpp"
#include "rw/reactors/shared/kyma_resources.hpp"

#include <boost/json/array.hpp>
#include <boost/json/object.hpp>
#include <boost/test/unit_test.hpp>

#include "tests/unit/runtime_config/land.hpp"
#include <string>

namespace rw::runtime_config_test {
BOOST_AUTO_TEST_SUITE(shadow)

using namespace std::chrono_literals;

namespace {

/// One runtime that KIM has configured, and a manager that signals.
struct installed : land {
  installed() : land(1) {
    add_runtime("skr");
    pass(5min);
    BOOST_REQUIRE_EQUAL(lacks("skr"), "");
    begin(bootstrapper_mode::signal);
    pass(1min);
  }

  void rotate() {
    ++now.config;
    put(&versions::config);
  }
  std::string told(const std::string& condition) {
    const auto found = k8s::find_condition(bootstrapper("skr"), condition);
    return found ? found->status : "none";
  }
  std::int64_t generation() { return k8s::generation_of(deployment("skr")); }
};

}  // namespace

BOOST_FIXTURE_TEST_CASE(difference_is_reported_as_long_as_it_lasts_and_nothing_is_written,
                        installed) {
  set_mode("skr", bootstrapper_mode::shadow);
  pass(10s);
  BOOST_TEST(told("InStep") == "True");
  kim->options().held = true;
  rotate();
  pass(10s);
  BOOST_TEST(told("InStep") == "False");
  kim->options().held = false;
  pass(15min);  // nothing on the Runtime shows when KIM has written
  BOOST_TEST(lacks("skr") == "");
  BOOST_TEST(told("InStep") == "True");
  const auto object = deployment("skr");
  for (const auto& one : k8s::find(object, {"metadata", "managedFields"})->as_array()) {
    BOOST_TEST(k8s::find_string(one, {"manager"}) != "runtime-watcher-bootstrapper");
  }
}

BOOST_FIXTURE_TEST_CASE(adoption_and_return_restart_no_pods, installed) {
  const auto before = generation();
  set_mode("skr", bootstrapper_mode::direct);
  pass(10s);
  BOOST_TEST(told("ConfigurationSynced") == "True");
  BOOST_TEST(generation() == before);
  set_mode("skr", bootstrapper_mode::signal);
  rotate();
  pass(10min);
  BOOST_TEST(lacks("skr") == "");
  BOOST_TEST(generation() == before);
}

BOOST_AUTO_TEST_SUITE_END()
}  // namespace rw::runtime_config_test
