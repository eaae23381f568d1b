#pragma once

#include "rw/core/log.hpp"
#include "rw/core/requirements.hpp"

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

/// A directory entry whose change can change the target of a path.
struct watched_entry {
  std::string directory;  ///< absolute, without symlinks
  std::string name;

  auto operator<=>(const watched_entry&) const = default;
};

/// Returns the entries on the way to a file: each symlink, its targets, and the file itself. If the
/// path is broken, the last entry is the first missing one.
std::set<watched_entry> entries_on_the_way(const std::string& path);

/// inotify(7) on directories, for a set of paths. Not thread-safe.
class directory_watch {
 public:
  explicit directory_watch(const boost::asio::any_io_executor& executor);

  /// Returns false if inotify is not available; wait() then only waits.
  bool works() const noexcept { return inotify_.is_open(); }

  /// Watches exactly the entries on the way to `paths` now. Cheap if nothing has moved. Returns
  /// false if a directory cannot be watched.
  bool follow(std::span<const std::string> paths);

  /// Waits until something happens in a watched directory, at most until `end`. Returns early if
  /// cancelled.
  boost::asio::awaitable<void> wait(std::chrono::steady_clock::time_point end);

  /// Reads the pending events. Returns true if one of them is about a watched entry.
  bool take();

 private:
  bool concerns(int watch, std::uint32_t mask, const char* name) const;

  boost::asio::posix::stream_descriptor inotify_;
  boost::asio::steady_timer timer_;
  std::map<int, std::set<std::string>> names_;  ///< by inotify's watch descriptor
};

struct watch_times {
  /// Time without changes before a check, so that a set of files is complete when it is read.
  std::chrono::milliseconds quiet{50};
  /// Maximum delay of a check while changes continue.
  std::chrono::milliseconds quiet_limit{500};
  /// Period of comparisons of the contents, for file systems without inotify events.
  std::chrono::milliseconds poll{30000};
};

/// Calls `check` at once, after each burst of changes on the way to the paths (kubelet's swap of
/// `..data`, a rename, a write in place), and periodically. Returns when cancelled (terminal,
/// partial or total).
boost::asio::awaitable<void> watch_files(boost::asio::any_io_executor executor,
                                         std::vector<std::string> paths, watch_times times,
                                         core::logger* log, std::function<void()> check);

}  // namespace rw::tls
