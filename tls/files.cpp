#include "rw/tls/files.hpp"

#include <openssl/crypto.h>

#include <algorithm>
#include <cerrno>
#include <fcntl.h>
#include <linux/magic.h>
#include <sys/stat.h>
#include <sys/statfs.h>
#include <sys/statvfs.h>
#include <system_error>
#include <unistd.h>
#include <utility>

namespace rw::tls {
namespace {

constexpr std::size_t max_file = 1024 * 1024;

class descriptor {
 public:
  explicit descriptor(int fd) noexcept : fd_(fd) {}
  ~descriptor() { close(); }
  descriptor(const descriptor&) = delete;
  descriptor& operator=(const descriptor&) = delete;

  int get() const noexcept { return fd_; }
  bool close() noexcept {
    const int fd = std::exchange(fd_, -1);
    return fd < 0 || ::close(fd) == 0;
  }

 private:
  int fd_;
};

failure because(error code, const std::string& name, int reason) {
  return {code, name + ": " + std::generic_category().message(reason)};
}

bool write_all(int fd, std::string_view text) {
  while (!text.empty()) {
    const auto n = ::write(fd, text.data(), text.size());
    if (n < 0 && errno == EINTR) continue;
    if (n < 0) return false;
    text.remove_prefix(static_cast<std::size_t>(n));
  }
  return true;
}

result<void> write_one(const std::filesystem::path& dir, const output_file& file) {
  const auto place = (dir / file.name).string();
  auto beside = (dir / ("." + file.name + ".XXXXXX")).string();
  descriptor fd(::mkostemp(beside.data(), O_CLOEXEC));  // mode 0600
  if (fd.get() < 0) return because(error::unwritable_file, place, errno);
  const bool good = write_all(fd.get(), file.contents) && ::fchmod(fd.get(), file.mode) == 0 &&
                    ::fsync(fd.get()) == 0 && fd.close() &&
                    ::rename(beside.c_str(), place.c_str()) == 0;
  if (good) return {};
  const int reason = errno;
  ::unlink(beside.c_str());
  return because(error::unwritable_file, place, reason);
}

bool on_read_only_mount(int fd) {
  struct statvfs mount{};
  return ::fstatvfs(fd, &mount) == 0 && (mount.f_flag & ST_RDONLY) != 0;
}

/// True if the file is in memory, in a folder named as kubelet names the versions of a volume
/// ("..2026_01_31_..."). Memory alone is not enough: /tmp is often kept there.
bool in_kubelet_volume(int fd) {
  struct statfs about{};
  if (::fstatfs(fd, &about) != 0 || about.f_type != TMPFS_MAGIC) return false;
  std::error_code failed;
  const auto real = std::filesystem::read_symlink("/proc/self/fd/" + std::to_string(fd), failed);
  return !failed && real.parent_path().filename().string().starts_with("..");
}

/// Empty if only the owner may read it, or if its mode is for a pod alone.
std::string exposure(int fd, const struct stat& about) {
  constexpr unsigned not_owner = S_IRWXG | S_IRWXO;
  if ((about.st_mode & not_owner) == 0 || on_read_only_mount(fd) || in_kubelet_volume(fd))
    return {};
  std::string mode(3, '0');
  for (std::size_t i = 0; i < mode.size(); ++i) {
    mode[i] = static_cast<char>('0' + (about.st_mode >> (6 - 3 * i) & 7));
  }
  return "mode 0" + mode + " lets others than its owner use the private key; chmod 600 it";
}

result<std::string> read(const std::string& name, bool is_key) {
  // Non-blocking, so that a FIFO instead of a file cannot block the process.
  const descriptor fd(::open(name.c_str(), O_RDONLY | O_CLOEXEC | O_NONBLOCK));
  if (fd.get() < 0) return because(error::unreadable_file, name, errno);
  struct stat about{};
  if (::fstat(fd.get(), &about) != 0) return because(error::unreadable_file, name, errno);
  if (!S_ISREG(about.st_mode))
    return failure(error::unreadable_file, name + ": not a regular file");
  if (is_key) {
    if (const auto reason = exposure(fd.get(), about); !reason.empty()) {
      return failure(error::exposed_key, name + ": " + reason);
    }
  }
  std::string out;
  out.reserve(static_cast<std::size_t>(std::clamp<off_t>(about.st_size, 0, max_file)) +
              1);  // so that no copy is left behind
  char buffer[16 * 1024];
  for (;;) {
    const auto n = ::read(fd.get(), buffer, sizeof buffer);
    if (n < 0 && errno == EINTR) continue;
    if (n < 0) return because(error::unreadable_file, name, errno);
    if (n == 0) {
      if (is_key) OPENSSL_cleanse(buffer, sizeof buffer);
      return out;
    }
    out.append(buffer, static_cast<std::size_t>(n));
    if (out.size() > max_file) return failure(error::too_large, name + ": larger than 1 MiB");
  }
}

}  // namespace

result<std::string> read_file(const std::string& name) {
  return read(name, false);
}

result<std::string> read_key_file(const std::string& name) {
  return read(name, true);
}

result<void> write_files(const std::filesystem::path& dir, std::span<const output_file> files) {
  std::error_code failed;
  std::filesystem::create_directories(dir, failed);
  if (failed) return because(error::unwritable_file, dir.string(), failed.value());
  for (const auto& file : files) {
    if (auto done = write_one(dir, file); !done) return done;
  }
  return {};
}

}  // namespace rw::tls
