#pragma once

#include "core/log.hpp"

#include <boost/asio/any_io_executor.hpp>
#include <boost/asio/awaitable.hpp>
#include <boost/asio/posix/stream_descriptor.hpp>
#include <boost/asio/steady_timer.hpp>

#include <chrono>
#include <compare>
#include <cstdint>
#include <functional>
#include <map>
#include <set>
#include <span>
#include <string>
#include <vector>

namespace rw::tls {

/// An entry of a directory whose change can change what a path leads to.
struct watched_entry {
  std::string directory;  ///< absolute, without symlinks
  std::string name;

  auto operator<=>(const watched_entry&) const = default;
};

/// The entries on the way to a file: each symlink met, its targets included, and the file itself.
/// Where the way breaks off, the first entry that is missing.
std::set<watched_entry> entries_on_the_way(const std::string& path);

/// inotify(7) on directories, for a set of paths. Not thread-safe.
class directory_watch {
 public:
  explicit directory_watch(const boost::asio::any_io_executor& executor);

  /// False where inotify is not to be had; wait() then only waits.
  bool works() const noexcept { return inotify_.is_open(); }

  /// Watches what leads to `paths` now, and nothing else. Cheap where nothing has moved. False if
  /// some directory cannot be watched.
  bool follow(std::span<const std::string> paths);

  /// Until something happens in a watched directory, at most until `end`. Returns early when
  /// cancelled.
  boost::asio::awaitable<void> wait(std::chrono::steady_clock::time_point end);

  /// Takes what has happened. True if one of the watched entries is concerned.
  bool take();

 private:
  bool concerns(int watch, std::uint32_t mask, const char* name) const;

  boost::asio::posix::stream_descriptor inotify_;
  boost::asio::steady_timer timer_;
  std::map<int, std::set<std::string>> names_;  ///< by inotify's watch
};

struct watch_times {
  /// Quiet time awaited after a change, so that a set of files is read when it is complete.
  std::chrono::milliseconds quiet{50};
  /// Longest wait while changes go on.
  std::chrono::milliseconds quiet_limit{500};
  /// The contents are compared this often even without a notice, for file systems that give none.
  std::chrono::milliseconds poll{30000};
};

/// Calls `check` at once, after each burst of changes of what the paths lead to (kubelet's swap of
/// `..data`, a rename, a write in place), and at intervals. Until cancelled (terminal, partial or
/// total); then returns.
boost::asio::awaitable<void> watch_files(boost::asio::any_io_executor executor,
                                         std::vector<std::string> paths, watch_times times,
                                         core::logger* log, std::function<void()> check);

}  // namespace rw::tls
