#pragma once

#include "rw/core/sip_hash.hpp"
#include "rw/reactors/events/delivery.hpp"

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <iterator>
#include <memory>
#include <string>
#include <string_view>
#include <unordered_map>
#include <utility>
#include <vector>

namespace rw::dispatch {

/// Lists of records have two ranks: changes of live watches, and others.
class delivery::table {
 public:
  table(managed_watch of, std::shared_ptr<queue> into, core::time_point now)
      : watch(std::move(of)), waiting(std::move(into)), since(now) {}

  /// By then no resync waits for its watch, unless that changes.
  core::time_point ready_at() const {
    constexpr core::duration away = std::chrono::seconds(30);
    constexpr core::duration lists = std::chrono::minutes(10);
    if (live) return core::time_point::min();
    return is_listing ? began + lists : since + away;
  }

  const managed_watch watch;
  const std::shared_ptr<queue> waiting;
  k8s::group_version_kind kind;  ///< empty: unknown
  std::unordered_map<std::string, record, core::foreign_text_hash, std::equal_to<>> objects;
  std::array<records, 2> deletions;
  std::size_t taken = 0;      ///< which the schedule bounds
  std::size_t listed = 0;     ///< by the listing that is under way
  std::uint64_t listing = 0;  ///< up to `last_listing`
  std::size_t searched = 0;   ///< buckets without a record that is not listed
  core::time_point since;     ///< when it was live last, had a complete list, or came
  core::time_point began;     ///< the first of the lists since then
  bool is_listing = false;
  bool has_listed = false;  ///< a list was complete
  bool has_time = false;    ///< the resync that the end of this list raises, as tenants cause it
  bool live = false;
  bool told_away = false;      ///< a resync was sent while it was not live
  bool reviewed_away = false;  ///< likewise the event of a review
};

class delivery::queue {
 public:
  queue(std::string of, core::time_point started, bool needs_offer)
      : manager(std::move(of)), account(started, needs_offer) {}

  /// Events of one object in several API versions are under way independently of each other: their
  /// number among those that were seen. The sixteenth and later ones, which no Watcher has, share
  /// one.
  std::uint64_t flight_of(const std::string& version) {
    constexpr std::ptrdiff_t last = 15;
    const auto at = std::ranges::find(versions, version) - versions.begin();
    if (at == std::ssize(versions) && at < last) versions.push_back(version);
    return static_cast<std::uint64_t>(std::min(at, last));
  }

  const std::string manager;
  resync_account account;
  std::vector<table*> tables;
  std::vector<std::string> versions;  ///< of the Watchers' kinds first
  std::array<records, 2> changes;     ///< but for deletions, which are in the tables
  std::size_t size = 0;               ///< that waits
  unsigned turn = 0;
  bool adopted = false;
  bool named = false;  ///< by the managers' file
};

}  // namespace rw::dispatch
