#pragma once

#include "rw/core/sip_hash.hpp"
#include "rw/reactors/dispatch/observed_objects.hpp"

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

/// Queues have two ranks: changes of live watches, and resyncs.
class observed_objects::table {
 public:
  table(managed_watch of, std::shared_ptr<backlog> into, std::uint32_t as)
      : watch(std::move(of)), number(as), waiting(std::move(into)) {}

  const managed_watch watch;
  const std::uint32_t number;
  const std::shared_ptr<backlog> waiting;
  k8s::group_version_kind kind;  ///< empty: unknown
  std::unordered_map<std::string, record, core::foreign_text_hash, std::equal_to<>> records;
  std::array<queue, 2> deletions;
  std::size_t taken = 0;      ///< which the schedule bounds
  std::size_t listed = 0;     ///< by the listing that is under way
  std::uint64_t listing = 0;  ///< up to `last_listing`
  std::size_t searched = 0;   ///< buckets without a record that is not listed
  bool is_listing = false;
  bool overflowed = false;  ///< there were more objects than may be: its reviews tell of them
  bool live = true;
  bool outdated = false;     ///< it was live since the latest list began, or there was none
  bool has_history = false;  ///< an object that is new was not told of
  bool incomplete = false;   ///< objects were told of that have no record
};

class observed_objects::backlog {
 public:
  explicit backlog(std::string of) : manager(std::move(of)) {}

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
  std::vector<table*> tables;
  std::vector<std::string> versions;  ///< of the Watchers' kinds first
  std::array<queue, 2> changes;       ///< but for deletions, which are in the tables
  queue expired;
  std::size_t size = 0;  ///< that waits
  unsigned turn = 0;
  bool adopted = false;
};

}  // namespace rw::dispatch
