#include "rw/k8s/config/file_stamp.hpp"

#include <sys/stat.h>

namespace rw::k8s {
namespace {

std::int64_t nanoseconds(const timespec& time) {
  return std::int64_t{time.tv_sec} * 1'000'000'000 + time.tv_nsec;
}

}  // namespace

bool file_stamp::changed(const std::string& name) {
  file_stamp now;
  now.known_ = true;
  struct stat found{};
  if (::stat(name.c_str(), &found) == 0) {
    now.inode_ = found.st_ino;
    now.size_ = found.st_size;
    now.modified_ns_ = nanoseconds(found.st_mtim);
    now.changed_ns_ = nanoseconds(found.st_ctim);
  }
  const bool same = known_ && inode_ == now.inode_ && size_ == now.size_ &&
                    modified_ns_ == now.modified_ns_ && changed_ns_ == now.changed_ns_;
  *this = now;
  return !same;
}

}  // namespace rw::k8s
