#pragma once

#include <string>

namespace rw::dev {

/// A folder that this process has alone, until its end: makes the folder, and locks it (flock(2)),
/// without a file in it. Throws `setting_error` where another process has it.
class folder_lock {
 public:
  explicit folder_lock(const std::string& dir);
  ~folder_lock();
  folder_lock(const folder_lock&) = delete;
  folder_lock& operator=(const folder_lock&) = delete;

 private:
  int fd_ = -1;
};

/// Removes what an earlier dev wrote for its runtimes into its folder, whose servers are gone. What
/// can't be removed stays.
void remove_earlier_files(const std::string& dir);

}  // namespace rw::dev
