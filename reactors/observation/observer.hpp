#pragma once

#include "core/clock.hpp"
#include "k8s/objects/names.hpp"
#include "reactors/observation/observed_objects.hpp"
#include "reactors/observation/plan.hpp"
#include "reactors/shared/events.hpp"

#include <boost/json/value.hpp>

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <deque>
#include <list>
#include <optional>
#include <string_view>
#include <unordered_map>
#include <vector>

namespace rw::observation {

/// What events come from.
enum class event_source : std::uint8_t { webhook, watch, both };

struct observer_options {
  event_source source = event_source::both;
  /// From an admission to the event where no watch is live: by then the change can be read.
  core::duration settle = std::chrono::milliseconds(100);
  /// From an admission until the object is read, unless its watch has shown it by then.
  core::duration confirm_wait = std::chrono::seconds(2);
  std::size_t settling = 1024;       ///< beyond it the oldest event goes out early
  std::size_t confirmations = 4096;  ///< open at once; beyond it the event is settled instead
  std::size_t reads = 4;             ///< of objects, at once
  std::size_t resyncs = 256;         ///< of one manager without an outcome
  std::size_t objects = 50000;       ///< in all
  /// Of a manager's resyncs, after a lost event of it.
  core::duration loss_pause = std::chrono::seconds(5);
};

/// Why an event is sent.
enum class cause : std::uint8_t {
  watch,       ///< a live watch has shown a change
  resync,      ///< a list has, or an earlier event was lost
  review,      ///< no live watch covers the object: a change was admitted
  unverified,  ///< likewise; whether it was persisted could not be read
};

/// Decides which events are sent. Knows no socket and no timer: `poll` is a function of the state
/// and of the time, to be called after any other call and at the time that it returned.
///
/// While every Watcher of a manager that concerns an object has a live watch, the watches alone
/// send events. A review then sets a deadline: if no watch has shown the object by then, the object
/// is read. Where it differs from what the watch has shown, its change is sent and the watch
/// restarted; otherwise the write was not persisted, or changed nothing. (A kube-apiserver calls
/// webhooks for each try of a write, before it is stored: two reviews for one write, and reviews
/// for writes that never happen, are normal.) A review that could not be checked in three times
/// that time is sent. Elsewhere a review's event is sent after `settle`, without a mark: a list
/// compares as if it had not been sent.
///
/// Reviews name neither the Watcher nor its part of the object, so all Watchers of that manager,
/// group and kind concern it. A Watcher that is not observed makes its manager's reviews of the
/// same resource go out.
///
/// Not thread-safe.
class observer {
 public:
  /// An object to read.
  struct confirmation {
    watch_event review;
    k8s::resource_type type;
    std::uint64_t number;
  };
  struct confirm_result {
    enum class kind : std::uint8_t { found, not_found, failed };
    kind outcome = kind::failed;
    boost::json::value object = {};
  };
  /// What a read has shown.
  struct confirmed {
    bool not_persisted = false;
    std::vector<managed_watch> lagging = {};  ///< their watches are to be restarted
  };
  /// Do one of these, or else wait until then.
  struct decision {
    std::optional<watch_event> send = {};
    cause reason = cause::watch;
    std::optional<confirmation> confirm = {};
    core::time_point until = core::time_point::max();
  };

  explicit observer(observer_options options) : options_(options) {}

  /// Replaces the Watchers; the objects of those that stay are kept.
  void set_watches(const plan& from);
  /// The resource of a Watcher was found.
  void set_type(const managed_watch& watch, const k8s::resource_type& type);
  /// Its watch is live, or is not.
  void set_live(const managed_watch& watch, bool live);
  /// Its resource cannot be observed at present. What was delivered of it stays known.
  void give_up(const managed_watch& watch);

  // What its list and watch bring.

  void begin_listing(const managed_watch& watch);
  /// False: the object is new, and one too many. Its changes are those of reviews.
  bool put(const managed_watch& watch, const k8s::object_key& key, mark now);
  void erase(const managed_watch& watch, const k8s::object_key& key);
  void end_listing(const managed_watch& watch);

  /// Takes the event of a review.
  void accept(watch_event review, core::time_point now);
  /// No more reviews come: those that wait are sent at once.
  void close() { closed_ = true; }
  /// The result of a confirmation.
  confirmed confirm(const confirmation& read, const confirm_result& result, core::time_point now);
  /// The outcome of an event with a mark.
  void delivered(const watch_event& event, std::uint64_t sequence);
  void lost(const watch_event& event, std::uint64_t sequence, core::time_point now);

  decision poll(core::time_point now);

  observed_objects& objects() noexcept { return objects_; }
  std::size_t waiting() const noexcept { return settling_.size() + open_.size(); }
  bool is_live(const managed_watch& watch) const;
  std::size_t live_watches() const noexcept;
  std::size_t unobserved_watches() const noexcept;
  /// Accepts no further review for the moment.
  bool full() const noexcept { return settling_.size() >= 2 * options_.settling; }
  /// Closed, and nothing but resyncs is left.
  bool drained() const noexcept {
    return closed_ && waiting() == 0 && !objects_.has_live_changes();
  }

 private:
  struct view {
    managed_watch watch;
    observed_objects::table* objects = nullptr;  ///< null: events come from reviews alone
    std::optional<k8s::resource_type> type = {};
    bool live = false;
    bool observed = false;  ///< was live, and was not given up
  };
  struct settling {
    watch_event event;
    cause reason;
    core::time_point due;
  };
  /// A review that waits for a watch to show its object.
  struct open_review {
    watch_event event;
    core::time_point accepted;
    core::time_point newest;   ///< when the latest review for the object was accepted
    std::uint64_t number = 0;  ///< of the read that is under way; 0: none is
    core::time_point read_at = {};
  };
  using open_list = std::list<open_review>;

  enum class route : std::uint8_t { settle, confirm, ignore };

  view* find(const managed_watch& watch);
  bool concerns(const view& one, const watch_event& event) const;
  route route_of(const watch_event& event) const;
  void shown(const view& one, const k8s::object_key& key);
  void end(open_list::iterator open);
  void settle(watch_event event, cause reason, core::time_point due);
  void release_uncovered();
  void release_all(core::time_point now);
  bool next_open(decision& result, core::time_point now);
  confirmation read(open_review& open, core::time_point now);
  watch_event event_of(const observed_objects::change& change) const;

  const observer_options options_;
  observed_objects objects_;
  std::vector<view> views_;
  std::deque<settling> settling_;
  open_list open_;  ///< in the order of `accepted`
  std::unordered_map<watch_event, open_list::iterator, watch_event_hash> open_by_event_;
  std::size_t reading_ = 0;
  std::uint64_t reads_ = 0;  ///< begun
  bool closed_ = false;
};

}  // namespace rw::observation
