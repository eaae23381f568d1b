#include "rw/reactors/dev/folder_lock.hpp"

#include "rw/reactors/cli/settings.hpp"

#include <cerrno>
#include <fcntl.h>
#include <filesystem>
#include <string_view>
#include <sys/file.h>
#include <system_error>
#include <unistd.h>
#include <vector>

namespace rw::dev {
namespace {

/// "access-runtime-3.yaml" and its like, and the sample of the bootstrapper's sources.
bool is_of_runtimes(std::string_view file) {
  if (file == "bootstrapper-sources.yaml") return true;
  for (const std::string_view of : {"access-", "kyma-", "runtime-", "skr-"}) {
    const auto begin = std::string(of) + "runtime-";
    if (!file.starts_with(begin) || !file.ends_with(".yaml")) continue;
    const auto number = file.substr(begin.size(), file.size() - begin.size() - 5);
    if (!number.empty() && number.find_first_not_of("0123456789") == number.npos) return true;
  }
  return false;
}

}  // namespace

folder_lock::folder_lock(const std::string& dir) {
  std::error_code error;
  std::filesystem::create_directories(dir, error);
  if (!error) fd_ = ::open(dir.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC);
  if (!error && fd_ < 0) error = {errno, std::generic_category()};
  if (error) throw cli::setting_error("--dir: " + dir + ": " + error.message());
  // A file system without locks locks nothing.
  if (::flock(fd_, LOCK_EX | LOCK_NB) == 0 || errno != EWOULDBLOCK) return;
  ::close(fd_);
  throw cli::setting_error("--dir: another dev runs in the folder " + dir +
                           ", and its files would be overwritten: end it, or name another folder");
}

folder_lock::~folder_lock() {
  ::close(fd_);
}

void remove_earlier_files(const std::string& dir) {
  std::error_code error;
  std::vector<std::filesystem::path> found;
  for (std::filesystem::directory_iterator at(dir, error), end; !error && at != end;
       at.increment(error)) {
    if (is_of_runtimes(at->path().filename().string())) found.push_back(at->path());
  }
  for (const auto& each : found) std::filesystem::remove(each, error);
}

}  // namespace rw::dev
