#pragma once

#include "rw/core/http/message.hpp"
#include "rw/core/metrics.hpp"
#include "rw/k8s/devserver/cluster.hpp"
#include "rw/k8s/devserver/presentation.hpp"
#include "rw/k8s/devserver/selection.hpp"
#include "rw/k8s/devserver/watch_schedule.hpp"

#include <chrono>
#include <cstddef>
#include <memory>
#include <optional>
#include <string>
#include <vector>

namespace rw::k8s::devserver {

struct watch_counters {
  watch_counters(core::metrics& registry, const std::string& server);

  core::gauge& open;
  core::counter& events;
  core::counter& expired;  ///< ended with 410: too slow, or begun too far back
};

/// Parameters of a watch (Kubernetes API concepts, "Efficient detection of changes", "Streaming
/// lists").
struct watch_request {
  std::shared_ptr<cluster> in;
  std::shared_ptr<collection> objects;
  selection selected;
  served_resource view;
  presentation show;
  bool from_state = false;    ///< begins with all objects as ADDED
  std::uint64_t version = 0;  ///< otherwise: begins after this version
  bool bookmarks = false;
  bool initial_bookmark = false;  ///< a marked one after the initial objects
  std::chrono::milliseconds timeout{};
  std::chrono::milliseconds bookmark_interval{};
  bool silent = false;                          ///< a fault: sends nothing, indefinitely
  std::optional<std::size_t> break_after = {};  ///< a fault: disconnects after so many events
  bool torn = false;                            ///< with `break_after`: within the last one
  bool ends = false;                            ///< with `break_after`: in order instead
};

/// One watch's stream of events. It has no queue of its own: it reads the collection's history from
/// its last position. A client too slow for the history gets 410.
class watch final : public http::body_source, follower, watch_schedule::sleeper {
 public:
  watch(watch_request wanted, watch_schedule& schedule, watch_counters& counters);
  ~watch() override;
  watch(const watch&) = delete;
  watch& operator=(const watch&) = delete;

  state read(std::string& into, std::size_t room) override;
  void on_ready(std::function<void()> ready) override { ready_ = std::move(ready); }
  bool drain() override;

 private:
  void changed() override { wake(); }
  void due() override;
  void wake();
  void sleep();

  bool read_initial(std::string& into, std::size_t room);
  bool read_changes(std::string& into, std::size_t room);
  void append(std::string& into, const change& change);
  void append_departure(std::string& into, const change& change);
  void append_plain(std::string& into, std::string_view type, const record& record);
  void append_bookmark(std::string& into, std::uint64_t version, bool ends_initial_events);
  bool broken() const noexcept { return wanted_.break_after && *wanted_.break_after == 0; }

  watch_request wanted_;
  watch_schedule& schedule_;
  watch_counters& counters_;
  std::function<void()> ready_;
  std::vector<record_ptr> initial_;  // not sent yet, the next one last
  std::uint64_t seen_;               // all changes up to this version were sent
  core::time_point ends_at_;
  watch_schedule::place wakes_at_{};
  bool too_old_ = false;  // its version is not in the history
  bool bookmark_due_ = false;
  bool ended_ = false;
};

}  // namespace rw::k8s::devserver
