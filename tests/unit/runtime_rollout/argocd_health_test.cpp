// deploy/argocd/health.lua, run by Lua on what the roll-out writes.

#include "rw/k8s/objects/types.hpp"
#include "rw/reactors/runtime_rollout/resource.hpp"

#include <boost/json/array.hpp>
#include <boost/json/object.hpp>
#include <boost/test/unit_test.hpp>

#include "tests/unit/runtime_rollout/fleet.hpp"
#include "tests/unit/source_dir.hpp"
#include <cstdio>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <memory>
#include <string>
#include <unistd.h>

namespace rw::runtime_rollout_test {
BOOST_AUTO_TEST_SUITE(argocd_health)

namespace json = boost::json;
using runtime_rollout::rollout_decision;

namespace {

boost::test_tools::assertion_result has_lua(boost::unit_test::test_unit_id) {
  boost::test_tools::assertion_result out = std::system("lua5.4 -v >/dev/null 2>&1") == 0;
  out.message() << "lua5.4 is not installed";
  return out;
}

/// The value as an expression of Lua.
std::string in_lua(const json::value& value) {
  std::string out;
  if (const auto* const object = value.if_object()) {
    for (const auto& [name, member] : *object) {
      out += "[\"" + std::string(name) + "\"]=" + in_lua(member) + ",";
    }
    return "{" + out + "}";
  }
  if (const auto* const array = value.if_array()) {
    for (const auto& each : *array) out += in_lua(each) + ",";
    return "{" + out + "}";
  }
  if (const auto* const text = value.if_string()) return "[==[" + std::string(*text) + "]==]";
  if (value.is_bool()) return value.get_bool() ? "true" : "false";
  return value.is_int64() ? std::to_string(value.get_int64()) : "nil";
}

/// What Argo CD would show: the status, and the message.
std::string health_of(const json::value& object) {
  const auto file =
      std::filesystem::temp_directory_path() / ("health-" + std::to_string(::getpid()) + ".lua");
  std::ofstream(file) << "obj = " << in_lua(object) << "\nlocal function health()\n"
                      << std::ifstream(rw::test::source_file("deploy/argocd/health.lua")).rdbuf()
                      << "\nend\nlocal is = health()\nprint(is.status .. \" \" .. is.message)\n";
  const std::unique_ptr<std::FILE, int (*)(std::FILE*)> lua(
      ::popen(("lua5.4 " + file.string() + " 2>&1").c_str(), "r"), ::pclose);
  BOOST_REQUIRE(lua);
  std::string out;
  for (int each = 0; (each = std::fgetc(lua.get())) != EOF;) out += static_cast<char>(each);
  std::filesystem::remove(file);
  while (out.ends_with('\n')) out.pop_back();
  return out;
}

json::value with_status(const rollout_decision& decided) {
  auto out = runtime_rollout::make_rollout("bootstrapper");
  out.at("metadata").as_object()["generation"] = 2;
  out.as_object()["status"] = *runtime_rollout::next_status(out, decided, {}, start);
  return out;
}

rollout_decision at(phase of, std::size_t updated, std::string reason = {}) {
  rollout_decision out;
  out.next.content = "abc";
  out.next.at = of;
  out.next.reason = std::move(reason);
  out.now = {.total = 5, .updated = updated};
  return out;
}

}  // namespace

BOOST_AUTO_TEST_CASE(argocd_shows_each_state_of_a_rollout,
                     *boost::unit_test::precondition(has_lua)) {
  const std::string have = " of 5 runtimes have the content";
  BOOST_TEST(health_of(runtime_rollout::make_rollout("watcher")) ==
             "Progressing Waiting for the roll-out to be observed");
  BOOST_TEST(health_of(with_status(at(phase::completed, 5))) == "Healthy Completed: 5" + have);
  BOOST_TEST(health_of(with_status(at(phase::completed, 3))) == "Degraded RuntimesAside: 3" + have);
  BOOST_TEST(health_of(with_status(at(phase::waves, 3))) == "Progressing Waves: 3" + have);
  auto stalled = at(phase::paused, 1, "CanaryFailed");
  stalled.message = "r01: crashes";
  BOOST_TEST(health_of(with_status(stalled)) ==
             "Degraded CanaryFailed: 1" + have + "; r01: crashes");
  auto paused = with_status(at(phase::paused, 1, "ByHand"));
  paused.at("spec").as_object()["paused"] = true;
  BOOST_TEST(health_of(paused) == "Suspended ByHand: 1" + have);
  auto changed = with_status(at(phase::completed, 5));
  changed.at("metadata").as_object()["generation"] = 3;
  BOOST_TEST(health_of(changed) == "Progressing Waiting for the roll-out to be observed");
}

BOOST_AUTO_TEST_SUITE_END()
}  // namespace rw::runtime_rollout_test
