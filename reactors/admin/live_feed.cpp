#include "rw/reactors/admin/live_feed.hpp"

#include <boost/json/serialize.hpp>

#include <algorithm>
#include <deque>
#include <utility>

namespace rw::admin {

namespace json = boost::json;

struct live_feed::viewer {
  core::time_point opened;
  core::time_point taken = opened;  ///< when it had all
  std::deque<frame> pending = {};
  std::size_t offset = 0;  ///< of the first one, sent already
  bool needs_full = true;
  bool ended = false;
  std::function<void()> ready = {};

  void push(frame text) {
    pending.push_back(std::move(text));
    if (ready) ready();
  }
  /// Drops what was not begun; returns the number of frames.
  std::size_t shed() {
    const std::size_t begun = offset > 0 ? 1 : 0;
    const auto dropped = pending.size() - begun;
    pending.resize(begun);
    needs_full = true;
    return dropped;
  }
  void end() {
    shed();
    ended = true;
    if (ready) ready();
  }
};

class live_feed::viewer_source final : public http::body_source {
 public:
  explicit viewer_source(std::shared_ptr<viewer> of) : viewer_(std::move(of)) {}

  state read(std::string& into, std::size_t room) override {
    auto& frames = viewer_->pending;
    while (room > 0 && !frames.empty()) {
      const auto part = std::string_view(*frames.front()).substr(viewer_->offset, room);
      into += part;
      room -= part.size();
      viewer_->offset += part.size();
      if (viewer_->offset < frames.front()->size()) continue;
      frames.pop_front();
      viewer_->offset = 0;
    }
    if (!frames.empty()) return state::more;
    return viewer_->ended ? state::end : state::pending;
  }

  void on_ready(std::function<void()> ready) override { viewer_->ready = std::move(ready); }

 private:
  const std::shared_ptr<viewer> viewer_;
};

namespace {

std::shared_ptr<const std::string> make_event(std::string_view name, const json::object& data) {
  return std::make_shared<const std::string>("event: " + std::string(name) +
                                             "\ndata: " + json::serialize(data) + "\n\n");
}

}  // namespace

live_feed::live_feed(boost::asio::any_io_executor executor, core::clock& clock,
                     core::metrics& metrics, live_source& source, live_feed_options options)
    : executor_(executor),
      clock_(clock),
      source_(source),
      options_(options),
      viewers_gauge_(core::make_gauge(metrics, "rw_admin_viewers",
                                      "Number of clients that receive the live page's updates")),
      rejected_(core::make_counter(metrics, "rw_admin_viewers_rejected_total",
                                   "Number of clients rejected, or ended for another, because the "
                                   "live page had as many viewers as it may")),
      dropped_(core::make_counter(metrics, "rw_admin_dropped_frames_total",
                                  "Number of the live page's updates that were dropped because a "
                                  "viewer was too slow; it gets the current state instead")),
      opened_(std::move(executor)) {}

live_feed::~live_feed() = default;

bool live_feed::has_viewers() {
  std::erase_if(viewers_, [](const auto& each) { return each.expired(); });
  viewers_gauge_.Set(static_cast<double>(viewers_.size()));
  return !viewers_.empty();
}

std::unique_ptr<http::body_source> live_feed::open() {
  has_viewers();
  if (viewers_.size() >= options_.viewers) {
    rejected_.Increment();
    if (!make_room()) return nullptr;
  }
  auto made = std::make_shared<viewer>(viewer{.opened = clock_.now()});
  viewers_.push_back(made);
  viewers_gauge_.Set(static_cast<double>(viewers_.size()));
  opened_.set();
  return std::make_unique<viewer_source>(std::move(made));
}

bool live_feed::make_room() {
  const auto recently = clock_.now() - options_.keep_alive;
  if (made_room_ > recently) return false;
  auto longest = viewers_.end();
  std::shared_ptr<viewer> ends;
  for (auto at = viewers_.begin(); at != viewers_.end(); ++at) {
    auto each = at->lock();
    if (each->opened > recently || (ends && ends->taken <= each->taken)) continue;
    longest = at;
    ends = std::move(each);
  }
  if (!ends) return false;
  made_room_ = clock_.now();
  viewers_.erase(longest);
  ends->end();
  return true;
}

boost::asio::awaitable<void> live_feed::run() {
  const auto timer = clock_.make_timer(executor_);
  for (;;) {
    while (!has_viewers()) {
      rows_ = {};
      state_.clear();
      const auto error = co_await opened_.wait();
      if (error) co_return;
    }
    update();
    timer->expires_at(clock_.now() + options_.interval);
    const bool due = co_await timer->wait();
    if (!due) co_return;
  }
}

/// Compares the rows with those of the previous pass. Returns true if any differs.
bool live_feed::note_rows(std::vector<std::string>& changed, std::vector<std::string>& gone) {
  ++pass_;
  std::size_t count = 0;
  std::string key;
  source_.for_each_row([&](std::string_view name, std::uint64_t digest) {
    ++count;
    key.assign(name);
    const auto [at, added] = rows_.try_emplace(key);
    if (added || at->second.digest != digest) changed.push_back(key);
    at->second = {digest, pass_};
  });
  if (rows_.size() > count) {
    std::erase_if(rows_, [&](const auto& row) {
      if (row.second.pass == pass_) return false;
      gone.push_back(row.first);
      return true;
    });
  }
  return !changed.empty() || !gone.empty();
}

json::array live_feed::rows_of(const std::vector<std::string>& names) {
  json::array rows;
  for (const auto& name : names) rows.push_back(source_.row(name));
  return rows;
}

void live_feed::update() {
  std::vector<std::string> changed;
  std::vector<std::string> gone;
  const bool have_rows_changed = note_rows(changed, gone);
  auto state = source_.state();
  auto text = json::serialize(state);
  const bool is_due = clock_.now() - sent_ >= options_.keep_alive;
  const bool is_news = have_rows_changed || text != state_ || is_due;
  state_ = std::move(text);
  const auto wall = clock_.wall().time_since_epoch();
  state["now"] = std::chrono::duration_cast<std::chrono::milliseconds>(wall).count();
  frame full;
  frame part;
  for (const auto& each : viewers_) {
    const auto viewer = each.lock();
    if (!viewer) continue;
    if (viewer->pending.empty()) viewer->taken = clock_.now();
    if (is_news && viewer->pending.size() >= options_.pending_frames) {
      dropped_.Increment(static_cast<double>(viewer->shed()));
    }
    if (viewer->needs_full) {
      if (!viewer->pending.empty()) continue;
      if (!full) {
        std::vector<std::string> all;
        for (const auto& row : rows_) all.push_back(row.first);
        std::ranges::sort(all);
        auto data = state;
        data["rows"] = rows_of(all);
        full = make_event("full", data);
      }
      viewer->needs_full = false;
      viewer->push(full);
    } else if (is_news) {
      if (!part) {
        auto data = state;
        data["rows"] = rows_of(changed);
        data["gone"] = json::array(gone.begin(), gone.end());
        part = make_event("update", data);
      }
      viewer->push(part);
    }
  }
  if (is_news) sent_ = clock_.now();
}

}  // namespace rw::admin
