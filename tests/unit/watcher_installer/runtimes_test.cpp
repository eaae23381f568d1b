#include "rw/reactors/runtime_controller/workload.hpp"
#include "rw/reactors/watcher_installer/webhooks.hpp"

#include <boost/json/parse.hpp>
#include <boost/test/unit_test.hpp>

#include <string>

namespace rw::watcher_installer_test {
BOOST_AUTO_TEST_SUITE(runtimes)

using namespace rw::watcher_installer;

namespace {

std::string unwanted(const char* wanted, const char* present) {
  std::string out;
  for (const auto& one :
       unwanted_webhooks(boost::json::parse(wanted), boost::json::parse(present))) {
    out += one + " ";
  }
  return out;
}

}  // namespace

BOOST_AUTO_TEST_CASE(only_webhooks_of_ours_are_unwanted) {
  const auto* wanted = R"({"webhooks":[{"name":"k.a.operator.kyma-project.io"}]})";
  BOOST_TEST(unwanted(wanted, R"({"webhooks":[{"name":"k.a.operator.kyma-project.io"},
    {"name":"k.b.operator.kyma-project.io"},{"name":"mine.example.com"}]})") ==
             "k.b.operator.kyma-project.io ");
  BOOST_TEST(unwanted(R"({"webhooks":[]})", "{}") == "");
}

BOOST_AUTO_TEST_SUITE_END()
}  // namespace rw::watcher_installer_test
