#include "rw/reactors/dev/folder_lock.hpp"

#include "rw/reactors/cli/settings.hpp"

#include <cerrno>
#include <fcntl.h>
#include <filesystem>
#include <sys/file.h>
#include <system_error>
#include <unistd.h>

namespace rw::dev {

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

}  // namespace rw::dev
