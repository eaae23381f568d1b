#include "rw/reactors/cli/write_file.hpp"

#include "rw/reactors/cli/settings.hpp"

#include <cerrno>
#include <cstdio>
#include <cstring>
#include <fcntl.h>
#include <filesystem>
#include <sys/stat.h>
#include <unistd.h>

namespace rw::cli {

namespace {

[[noreturn]] void fail(const std::string& attempt, int reason) {
  throw setting_error("--dir: " + attempt + ": " + std::strerror(reason));
}

}  // namespace

void write_file(const std::string& dir, const std::string& name, const std::string& contents,
                unsigned mode) {
  std::error_code failed;
  std::filesystem::create_directories(dir, failed);
  if (failed) fail(dir, failed.value());
  const auto place = (std::filesystem::path(dir) / name).string();
  const auto beside = place + ".new";
  ::unlink(beside.c_str());
  const int fd = ::open(beside.c_str(), O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, mode);
  if (fd < 0) fail(beside, errno);
  std::size_t done = 0;
  while (done < contents.size()) {
    const auto n = ::write(fd, contents.data() + done, contents.size() - done);
    if (n < 0 && errno == EINTR) continue;
    if (n < 0) break;
    done += static_cast<std::size_t>(n);
  }
  const bool good = done == contents.size() && ::fchmod(fd, mode) == 0 &&
                    ::rename(beside.c_str(), place.c_str()) == 0;
  const int reason = errno;
  ::close(fd);
  if (good) return;
  ::unlink(beside.c_str());
  fail(place, reason);
}

}  // namespace rw::cli
