#pragma once

#include <cstdint>
#include <string>

namespace rw::k8s {

/// Tells cheaply whether a file has changed: stat(2)'s idea of it, symlinks followed, so that
/// kubelet's swap of a whole directory is seen, too.
class file_stamp {
 public:
  /// True if the file differs from what the last call saw; the first call is true. A file that is
  /// missing is a state like others.
  bool changed(const std::string& name);

  /// Makes the next call of changed() true.
  void forget() noexcept { known_ = false; }

 private:
  bool known_ = false;
  std::uint64_t inode_ = 0;
  std::int64_t size_ = -1;
  std::int64_t modified_ns_ = 0;
  std::int64_t changed_ns_ = 0;
};

}  // namespace rw::k8s
