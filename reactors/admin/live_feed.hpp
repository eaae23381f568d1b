#pragma once

#include "rw/core/clock.hpp"
#include "rw/core/http/message.hpp"
#include "rw/core/metrics.hpp"
#include "rw/core/wake.hpp"

#include <boost/asio/any_io_executor.hpp>
#include <boost/asio/awaitable.hpp>
#include <boost/json/array.hpp>
#include <boost/json/object.hpp>

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

namespace rw::admin {

/// What a live page shows: a state, and named rows. Called on the feed's executor, only while there
/// are viewers.
class live_source {
 public:
  /// Takes the name of a row and a digest of its content: it changes when the content does.
  using visitor = std::function<void(std::string_view name, std::uint64_t digest)>;

  virtual ~live_source() = default;

  /// Visits every row, each name once.
  virtual void for_each_row(const visitor& visit) = 0;
  /// Returns all but the rows. Called after for_each_row.
  virtual boost::json::object state() = 0;
  /// Returns the content of a row that was just visited.
  virtual boost::json::object row(std::string_view name) = 0;
};

struct live_feed_options {
  core::duration interval = std::chrono::seconds(1);     ///< between updates
  core::duration keep_alive = std::chrono::seconds(15);  ///< until an update, if nothing changes
  std::size_t viewers = 16;                              ///< at once
  /// Waiting for one viewer; beyond it that viewer gets all anew when it has taken what it began.
  std::size_t pending_frames = 4;
};

/// Sends a source to the browsers that look at it, as server-sent events (HTML Living Standard,
/// section 9.2): `full` first, then `update` whenever something changed, at most one in an
/// interval, and one in `keep_alive` in any case. `data` is the source's state as a JSON object
/// with these members added:
///
///     now     the clock, milliseconds since 1970
///     rows    all rows, or those that changed
///     gone    names of rows that no longer exist; only of an update
///
/// Each frame is rendered once for all viewers and shared by them. Without viewers it does nothing,
/// and keeps nothing.
///
/// Metrics: `rw_admin_viewers`, `rw_admin_viewers_rejected_total`,
/// `rw_admin_dropped_frames_total`.
///
/// Single executor, which is also that of the server's connections.
class live_feed {
 public:
  /// `source` and the others must outlive it.
  live_feed(boost::asio::any_io_executor executor, core::clock& clock, core::metrics& metrics,
            live_source& source, live_feed_options options = {});
  ~live_feed();
  live_feed(const live_feed&) = delete;
  live_feed& operator=(const live_feed&) = delete;

  /// Returns the body of the response to one more viewer, who counts until it is destroyed. It may
  /// outlive the feed. Where there are as many as may be, of those open for `keep_alive` the one
  /// that has read nothing for longest is ended, or else the oldest: a client that reads nothing
  /// looks like one with nothing to read while the kernel's buffers have room. That happens at most
  /// once in `keep_alive`; otherwise this is null.
  std::unique_ptr<http::body_source> open();

  /// Runs until cancelled.
  boost::asio::awaitable<void> run();

 private:
  using frame = std::shared_ptr<const std::string>;
  struct viewer;
  class viewer_source;
  struct known_row {
    std::uint64_t digest = 0;
    std::uint64_t pass = 0;  ///< the latest that visited it
  };

  bool has_viewers();
  bool make_room();
  void update();
  boost::json::array rows_of(const std::vector<std::string>& names);
  bool note_rows(std::vector<std::string>& changed, std::vector<std::string>& gone);

  const boost::asio::any_io_executor executor_;
  core::clock& clock_;
  live_source& source_;
  const live_feed_options options_;
  core::gauge& viewers_gauge_;
  core::counter& rejected_;
  core::counter& dropped_;
  core::wake opened_;
  std::vector<std::weak_ptr<viewer>> viewers_;
  std::unordered_map<std::string, known_row> rows_;
  std::string state_;  ///< that was sent last, as text
  std::uint64_t pass_ = 0;
  core::time_point sent_ = {};
  core::time_point made_room_ = core::time_point::min();
};

}  // namespace rw::admin
