#pragma once

#include "rw/core/text_error.hpp"
#include "rw/reactors/shared/watcher.hpp"

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

/// One part of one resource that a manager watches: a Watcher in the form for a runtime.
struct managed_watch {
  std::string manager = {};
  watcher::resource watched = {};
  /// "spec", "status", or the name of another subresource.
  std::string field = "spec";
  std::map<std::string, std::string> labels = {};  ///< of the objects; empty: all of them

  auto operator<=>(const managed_watch&) const = default;
};

managed_watch watch_of(const watcher& from);

/// Why the webhook does not watch what the Watcher names, and needs no rights to: "wildcard",
/// "subresource" (other than status), or "secrets" (unless `secrets`). Empty: it does.
std::string_view unobserved_reason(const managed_watch& watch, bool secrets);

/// The managers whose reviews a runtime's webhook accepts, with their watches. A value.
class known_managers {
 public:
  known_managers() = default;
  /// In any order; duplicates are merged.
  explicit known_managers(std::vector<managed_watch> watches);

  /// Returns the subresources other than status that the manager watches; null: the manager is
  /// unknown.
  const std::vector<std::string>* find(std::string_view manager) const;
  /// Returns true if an event of that watch would be sent: its manager is known, and its
  /// subresource.
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

known_managers merge(const known_managers& a, const known_managers& b);

/// The error says why a file is invalid, in a sentence that begins with "it".
using managers_result = boost::system::result<known_managers, core::text_error>;

/// Limits of a file: its size, and its number of watches.
inline constexpr std::size_t managers_file_bytes = 512u << 10;
inline constexpr std::size_t managers_file_watches = 4096;

/// Reads a managers' file, which is JSON:
///
///     {"version": 1,
///      "watches": [{"manager": "lifecycle-manager", "group": "operator.kyma-project.io",
///                   "version": "*", "resource": "kymas", "field": "spec",
///                   "matchLabels": {"operator.kyma-project.io/watched-by": "kyma"}}],
///      "since": "2026-03-01T00:00:00.000000Z"}
///
/// `since`, which only its writer reads, makes the file of each growth another one, so that who has
/// loaded it has not loaded an earlier one of the same watches. `matchLabels` may be missing.
/// Unknown fields are ignored, so that later writers may add some; another meaning of these has
/// another version. Rejects text beyond the limits, and throws nothing but std::bad_alloc.
managers_result parse_managers(std::string_view text);

bool fits_managers_file(const known_managers& managers);

/// Returns what a file without watches has, and what one with `watch` has more, in bytes.
std::size_t rendered_bytes();
std::size_t rendered_bytes(const managed_watch& watch);

/// Returns the file, ending in a newline. Equal arguments give equal bytes. An empty `since` is
/// left out.
std::string render_managers(const known_managers& managers, std::string_view since = {});
/// Returns the SHA-256 of a file, hexadecimal.
std::string managers_digest(std::string_view file);

/// The managers in use; they can be replaced while others read. Thread-safe.
class managers_in_use {
 public:
  /// Returns null before the first valid file: every manager then counts as known.
  std::shared_ptr<const known_managers> current() const {
    const std::lock_guard lock(mutex_);
    return current_;
  }
  /// `managers_digest` of the current managers' file; empty: none is in use.
  std::string digest() const {
    const std::lock_guard lock(mutex_);
    return digest_;
  }
  /// `file`: what they were read from.
  void replace(known_managers next, std::string_view file);
  void replace(known_managers next);

 private:
  mutable std::mutex mutex_;
  std::shared_ptr<const known_managers> current_;
  std::string digest_;
};

}  // namespace rw
