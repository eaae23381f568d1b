#include "rw/tls/files.hpp"

#include <boost/test/unit_test.hpp>

#include "tests/unit/tls/scratch.hpp"
#include <cstdlib>
#include <linux/magic.h>
#include <sched.h>
#include <sys/mount.h>
#include <sys/stat.h>
#include <sys/statfs.h>
#include <sys/wait.h>
#include <unistd.h>

BOOST_AUTO_TEST_SUITE(key_file)

using namespace rw::tls;
using namespace rw::tls::test;

namespace {

const char text[] = "a private key\n";

std::string with_mode(const scratch& dir, unsigned mode, const std::string& name = "tls.key") {
  dir.write(name, text);
  BOOST_REQUIRE(::chmod(dir.in(name).c_str(), mode) == 0);
  return dir.in(name);
}

/// Runs `check` in a process with mounts of its own, after `mount`; a process may not mount where
/// it lacks the right to. True if `check` is true, or there is no such right.
template <class Mount, class Check>
bool holds_with_mount(Mount mount, Check check) {
  const auto child = ::fork();
  BOOST_REQUIRE(child >= 0);
  if (child == 0) {
    const bool own = ::unshare(CLONE_NEWNS) == 0 || ::unshare(CLONE_NEWUSER | CLONE_NEWNS) == 0;
    if (!own || ::mount(nullptr, "/", nullptr, MS_REC | MS_PRIVATE, nullptr) != 0 || !mount()) {
      ::_exit(77);
    }
    ::_exit(check() ? 0 : 1);
  }
  int status = 0;
  BOOST_REQUIRE(::waitpid(child, &status, 0) == child);
  BOOST_REQUIRE(WIFEXITED(status));
  if (WEXITSTATUS(status) == 77) BOOST_TEST_MESSAGE("skipped: this process may not mount");
  return WEXITSTATUS(status) != 1;
}

bool is_rejected(const std::string& name) {
  const auto read = read_key_file(name);
  return !read && read.error().code == make_error_code(error::exposed_key);
}

bool is_read(const std::string& name) {
  const auto read = read_key_file(name);
  return read && *read == text;
}

bool mount_memory(const scratch& dir) {
  return ::mount("tmpfs", dir.path().c_str(), "tmpfs", 0, nullptr) == 0;
}

/// Without Boost.Test, whose checks are not for a forked process.
bool put(const std::string& name) {
  std::error_code failed;
  std::filesystem::create_directories(std::filesystem::path(name).parent_path(), failed);
  std::ofstream(name) << text;
  return !failed && ::chmod(name.c_str(), 0644) == 0;
}

}  // namespace

BOOST_AUTO_TEST_CASE(key_file_of_its_owner_alone_is_read) {
  const scratch dir;
  for (const unsigned mode : {0600U, 0400U, 0700U}) {
    const auto name = with_mode(dir, mode);
    BOOST_TEST(is_read(name), mode);
  }
}

BOOST_AUTO_TEST_CASE(key_file_open_to_group_or_others_is_rejected) {
  const scratch dir;
  for (const unsigned mode : {0640U, 0604U, 0644U, 0660U, 0440U, 0620U}) {
    BOOST_TEST(is_rejected(with_mode(dir, mode)), mode);
  }
}

BOOST_AUTO_TEST_CASE(mode_is_that_of_the_file_behind_a_link) {
  const scratch dir;
  const auto name = with_mode(dir, 0644);
  std::filesystem::create_symlink(name, dir.in("link.key"));
  BOOST_TEST(is_rejected(dir.in("link.key")));
  BOOST_REQUIRE(::chmod(name.c_str(), 0600) == 0);
  BOOST_TEST(is_read(dir.in("link.key")));
}

BOOST_AUTO_TEST_CASE(folder_named_as_of_kubelet_on_disk_does_not_protect) {
  const scratch dir;
  with_mode(dir, 0644, "..2026_01_31/tls.key");
  struct statfs about{};
  BOOST_REQUIRE(::statfs(dir.path().c_str(), &about) == 0);
  if (about.f_type == TMPFS_MAGIC) return;  // a scratch folder in memory shows nothing
  BOOST_TEST(is_rejected(dir.in("..2026_01_31/tls.key")));
}

BOOST_AUTO_TEST_CASE(key_file_on_a_read_only_mount_is_read) {
  const scratch dir;
  const auto name = with_mode(dir, 0644);
  const auto* at = dir.path().c_str();
  BOOST_TEST(holds_with_mount(
      [&] {
        return ::mount(at, at, nullptr, MS_BIND, nullptr) == 0 &&
               ::mount(nullptr, at, nullptr, MS_BIND | MS_REMOUNT | MS_RDONLY, nullptr) == 0;
      },
      [&] { return is_read(name); }));
}

BOOST_AUTO_TEST_CASE(key_file_in_a_volume_of_kubelet_is_read) {
  const scratch dir;
  BOOST_TEST(holds_with_mount(
      [&] { return mount_memory(dir); },
      [&] {
        std::error_code failed;
        std::filesystem::create_directory_symlink("..2026_01_31", dir.path() / "..data", failed);
        std::filesystem::create_symlink("..data/tls.key", dir.path() / "tls.key", failed);
        return put(dir.in("..2026_01_31/tls.key")) && is_read(dir.in("tls.key"));
      }));
}

BOOST_AUTO_TEST_CASE(key_file_in_any_other_memory_is_rejected) {
  const scratch dir;
  BOOST_TEST(
      holds_with_mount([&] { return mount_memory(dir); },
                       [&] { return put(dir.in("tls.key")) && is_rejected(dir.in("tls.key")); }));
}

BOOST_AUTO_TEST_SUITE_END()
