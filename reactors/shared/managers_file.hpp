#pragma once

#include "reactors/shared/watcher.hpp"

#include <boost/system/result.hpp>

#include <compare>
#include <functional>
#include <map>
#include <memory>
#include <mutex>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace rw {

/// One part of one resource that a manager watches: what a Watcher says to a runtime.
struct managed_watch {
  std::string manager = {};
  watcher::resource watched = {};
  /// "spec", "status", or the name of another subresource.
  std::string field = "spec";
  std::map<std::string, std::string> labels = {};  ///< of the objects; empty: all of them

  auto operator<=>(const managed_watch&) const = default;
};

managed_watch watch_of(const watcher& from);

/// The managers that a runtime's webhook takes reviews for, with what they watch. A value.
class known_managers {
 public:
  known_managers() = default;
  /// In any order; the same watch twice is one.
  explicit known_managers(std::vector<managed_watch> watches);

  /// Names of the subresources other than status that the manager watches; null: it is not known.
  const std::vector<std::string>* find(std::string_view manager) const;
  /// True if an event of that watch would be sent: its manager is known, and its subresource.
  bool knows(const managed_watch& watch) const;
  /// Sorted.
  const std::vector<managed_watch>& watches() const noexcept { return watches_; }

  friend bool operator==(const known_managers& a, const known_managers& b) {
    return a.watches_ == b.watches_;
  }

 private:
  std::vector<managed_watch> watches_;
  std::map<std::string, std::vector<std::string>, std::less<>> subresources_;
};

/// Everything that either knows.
known_managers merge(const known_managers& a, const known_managers& b);

/// Why a text is no managers' file: a sentence that names the field.
struct managers_defect {
  std::string message;
};
using managers_result = boost::system::result<known_managers, managers_defect>;

/// The limits of a file: the largest that is read, and how many watches it may have.
inline constexpr std::size_t managers_file_bytes = 512u << 10;
inline constexpr std::size_t managers_file_watches = 4096;

/// Reads a managers' file, which is JSON:
///
///     {"version": 1,
///      "watches": [{"manager": "lifecycle-manager", "group": "operator.kyma-project.io",
///                   "version": "*", "resource": "kymas", "field": "spec",
///                   "matchLabels": {"operator.kyma-project.io/watched-by": "kyma"}}]}
///
/// `matchLabels` may be missing. Fields that are not mentioned here are ignored, so that later
/// writers may add some; another meaning of these has another version. Takes no text beyond the
/// limits, and throws nothing but std::bad_alloc.
managers_result parse_managers(std::string_view text);

/// True if the managers' file is within the limits.
bool fits_managers_file(const known_managers& managers);

/// The file, ending in a newline. The same managers give the same bytes.
std::string render_managers(const known_managers& managers);

/// The managers in use, to be replaced while others read. Thread-safe.
class managers_in_use {
 public:
  /// Null: not known yet, so every manager counts as known.
  std::shared_ptr<const known_managers> current() const {
    const std::lock_guard lock(mutex_);
    return current_;
  }
  void replace(known_managers next) {
    auto made = std::make_shared<const known_managers>(std::move(next));
    const std::lock_guard lock(mutex_);
    current_.swap(made);
  }

 private:
  mutable std::mutex mutex_;
  std::shared_ptr<const known_managers> current_;
};

}  // namespace rw
