#pragma once

#include <boost/test/unit_test.hpp>

#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <string>

namespace rw::tls::test {

/// A directory of its own, removed with what is in it.
class scratch {
 public:
  scratch() {
    auto pattern = (std::filesystem::temp_directory_path() / "rw-tls-XXXXXX").string();
    BOOST_REQUIRE(::mkdtemp(pattern.data()) != nullptr);
    path_ = pattern;
  }
  ~scratch() {
    std::error_code ignored;
    std::filesystem::remove_all(path_, ignored);
  }
  scratch(const scratch&) = delete;
  scratch& operator=(const scratch&) = delete;

  const std::filesystem::path& path() const noexcept { return path_; }
  std::string in(const std::string& name) const { return (path_ / name).string(); }

  /// Writes in place, as an editor without care does.
  void write(const std::string& name, const std::string& contents) const {
    std::filesystem::create_directories((path_ / name).parent_path());
    std::ofstream out(path_ / name, std::ios::trunc);
    out << contents;
    using std::filesystem::perms;
    std::filesystem::permissions(path_ / name, perms::owner_read | perms::owner_write);
  }

 private:
  std::filesystem::path path_;
};

}  // namespace rw::tls::test
