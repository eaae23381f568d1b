#pragma once

#include "core/backoff.hpp"
#include "core/clock.hpp"
#include "core/log.hpp"
#include "core/wake.hpp"
#include "k8s/client.hpp"
#include "k8s/informer.hpp"
#include "reactors/source_watch.hpp"

#include <boost/asio/any_io_executor.hpp>
#include <boost/asio/awaitable.hpp>
#include <boost/json/value.hpp>

#include <chrono>
#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <vector>

namespace rw::config_sync {

/// One content of the sources. Revisions are numbered in the order in which they were observed, so
/// that a content that returns is another revision: between the two a runtime may have got the
/// other.
struct revision {
  std::uint64_t number = 0;
  std::string digest = {};  ///< source_watch::digest

  friend bool operator==(const revision&, const revision&) = default;
};

/// The revision that all runtimes are to have.
struct target {
  using time_point = std::chrono::system_clock::time_point;

  revision of = {};
  /// When it was observed first, in whole seconds. KIM configured Runtimes that are newer with it
  /// when they were created. None: it is the first revision, which all Runtimes are taken to have.
  std::optional<time_point> since = {};

  friend bool operator==(const target&, const target&) = default;
};

/// The ConfigMap, in `kcp_namespace`, that stores the target for the next leader. It is written
/// before the first Runtime is marked for it.
inline constexpr std::string_view record_name = "runtime-watcher-signalled-configuration";

/// None if the ConfigMap holds no target.
std::optional<target> read_record(const boost::json::value& config_map);
/// The ConfigMap for a target; at the resourceVersion of `before` if that has one.
boost::json::value write_record(const target& now, const boost::json::value& before);

/// What the next target is computed from.
struct target_input {
  std::optional<target> recorded = {};
  std::vector<revision> signalled = {};  ///< on Runtimes; only needed without a record
  std::string digest = {};               ///< of the sources now
  bool changed = false;   ///< the digest changed since the record was written, or since the start
  bool all_once = false;  ///< sync_options::signal_all_once
  target::time_point now = {};
};

/// The target for the sources as they are:
///   - The recorded one, if nothing changed; the next revision if something did.
///   - Without a record and without a signal on any Runtime this is the first start. The sources'
///     content is taken for what all runtimes have, since KIM brought it there: to mark thousands
///     of Runtimes for a change that nobody made helps nobody. `all_once` marks them all the same,
///     also later as long as nothing else was signalled.
///   - A record that was lost continues from the newest signal on a Runtime.
target next_target(const target_input& in);

struct tracker_options {
  std::string field_manager = {};  ///< of the record
  /// Changes of the sources within so long of each other are one series.
  core::duration settle = std::chrono::seconds(2);
  bool signal_all_once = false;
};

/// All of it must outlive the tracker.
struct tracker_environment {
  k8s::client& api;  ///< with the leader's fence, where there is one
  core::clock& clock;
  core::logger& log;
  core::random_source random;
};

/// Keeps the target equal to the sources, and stores it before it is published. Every observed
/// change of the digest makes a new revision, even one that is undone at once.
///
/// A record that can't be read or written is tried again with backoff; until then the target stays.
class target_tracker {
 public:
  /// `publish` is called after each new target. Sources and informer of Runtimes are run elsewhere.
  target_tracker(boost::asio::any_io_executor executor, source_watch& sources,
                 k8s::informer& runtimes, tracker_options options, tracker_environment environment,
                 std::function<void()> publish);

  /// Runs until cancelled, once.
  boost::asio::awaitable<void> run();

  /// None: not known yet.
  const std::optional<target>& current() const noexcept { return current_; }
  /// The sources had the target's content at this resourceVersion, or before.
  std::uint64_t visible_at() const noexcept { return visible_at_; }
  /// When the sources have been still for `settle`, if they do not change again.
  core::time_point still_at() const { return changed_at_ + options_.settle; }
  /// When the series of changes began that the latest change belongs to.
  core::time_point series_began() const noexcept { return series_began_; }

 private:
  void on_change();
  boost::asio::awaitable<k8s::result<void>> update();
  boost::asio::awaitable<bool> wait_after(k8s::failure error);
  std::vector<revision> signalled() const;
  void announce() const;

  const boost::asio::any_io_executor executor_;
  source_watch& sources_;
  k8s::informer& runtimes_;
  const tracker_options options_;
  const tracker_environment environment_;
  const std::function<void()> publish_;
  core::wake wake_;
  core::backoff backoff_;
  core::log_limit log_limit_{1, std::chrono::minutes(1)};

  std::string digest_;                  ///< of the sources; empty: not known yet
  std::uint64_t changes_ = 0;           ///< of the digest
  std::uint64_t recorded_changes_ = 0;  ///< those that `current_` includes
  core::time_point changed_at_{};
  core::time_point series_began_{};
  std::optional<boost::json::value> stored_;  ///< the record; null: absent; none: to be read
  std::optional<target> current_;
  std::uint64_t visible_at_ = 0;
};

}  // namespace rw::config_sync
