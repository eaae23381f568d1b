#pragma once

#include <cstdint>
#include <string>

namespace rw::k8s {

/// Detects cheaply whether a file has changed: by stat(2), which follows symlinks and so notices
/// kubelet's swap of a whole directory.
class file_stamp {
 public:
  /// Returns true if the file differs from its state at the last call, and at the first call.
  /// "Missing" is a state as well.
  bool changed(const std::string& name);

  /// Makes the next call of changed() return true.
  void forget() noexcept { known_ = false; }

 private:
  bool known_ = false;
  std::uint64_t inode_ = 0;
  std::int64_t size_ = -1;
  std::int64_t modified_ns_ = 0;
  std::int64_t changed_ns_ = 0;
};

}  // namespace rw::k8s
