#include "rw/reactors/dev/folder_lock.hpp"

#include "rw/reactors/cli/settings.hpp"

#include <boost/test/unit_test.hpp>

#include <cstdlib>
#include <filesystem>
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

BOOST_AUTO_TEST_SUITE_END()
