#include "rw/reactors/dev/folder_lock.hpp"

#include "rw/reactors/cli/settings.hpp"

#include <boost/test/unit_test.hpp>

#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <optional>
#include <string>

BOOST_AUTO_TEST_SUITE(folder_lock)

BOOST_AUTO_TEST_CASE(folder_is_refused_as_long_as_another_has_it) {
  std::string parent = "/tmp/runtime-watcher-folder-XXXXXX";
  BOOST_REQUIRE(::mkdtemp(parent.data()) != nullptr);
  const auto dir = parent + "/dev";
  std::optional<rw::dev::folder_lock> first(dir);
  BOOST_TEST(std::filesystem::is_empty(dir));
  const auto names_folder = [&dir](const rw::cli::setting_error& error) {
    return std::string(error.what()).starts_with("--dir: another dev runs in the folder " + dir);
  };
  BOOST_CHECK_EXCEPTION(rw::dev::folder_lock{dir}, rw::cli::setting_error, names_folder);
  const rw::dev::folder_lock other(parent);
  first.reset();
  first.emplace(dir);
  first.reset();
  std::filesystem::remove_all(parent);
}

BOOST_AUTO_TEST_CASE(folder_loses_what_an_earlier_dev_wrote_for_its_runtimes_alone) {
  std::string dir = "/tmp/runtime-watcher-folder-XXXXXX";
  BOOST_REQUIRE(::mkdtemp(dir.data()) != nullptr);
  const auto write = [&dir](const std::string& name) { std::ofstream(dir + "/" + name) << "x"; };
  const auto is_there = [&dir](const std::string& name) {
    return std::filesystem::exists(dir + "/" + name);
  };
  for (const auto* of : {"access", "kyma", "runtime", "skr"}) {
    write(std::string(of) + "-runtime-12.yaml");
  }
  write("bootstrapper-sources.yaml");
  for (const auto* name : {"kcp.yaml", "kyma-mine.yaml", "kyma-runtime-.yaml", "runtime-1.yaml"}) {
    write(name);
  }
  rw::dev::remove_earlier_files(dir);
  for (const auto* of : {"access", "kyma", "runtime", "skr"}) {
    BOOST_TEST(!is_there(std::string(of) + "-runtime-12.yaml"), of);
  }
  BOOST_TEST(!is_there("bootstrapper-sources.yaml"));
  for (const auto* name : {"kcp.yaml", "kyma-mine.yaml", "kyma-runtime-.yaml", "runtime-1.yaml"}) {
    BOOST_TEST(is_there(name), name);
  }
  rw::dev::remove_earlier_files(dir + "/nowhere");
  std::filesystem::remove_all(dir);
}

BOOST_AUTO_TEST_SUITE_END()
