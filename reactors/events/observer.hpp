#pragma once

#include "rw/core/clock.hpp"
#include "rw/k8s/objects/names.hpp"
#include "rw/reactors/events/delivery.hpp"
#include "rw/reactors/events/digest.hpp"
#include "rw/reactors/events/plan.hpp"
#include "rw/reactors/shared/events.hpp"

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

struct observer_options {
  /// From an admission to the event where no watch is live: by then the change can be read.
  core::duration settle = std::chrono::milliseconds(100);
  /// From an admission until the object is read, unless its watch has shown it by then.
  core::duration confirm_wait = std::chrono::seconds(2);
  std::size_t settling = 1024;       ///< beyond it the oldest event goes out early
  std::size_t confirmations = 4096;  ///< open at once; beyond it a list decides
  std::size_t reads = 4;             ///< of objects, at once
  /// From the begin of a resource's list to the next one that reviews cause.
  core::duration list_pause = std::chrono::seconds(10);
};

/// Decides which reviews become events, and when a watch must be checked. Knows no socket and no
/// timer: `poll` is a function of the state and of the time, to be called after any other call and
/// at the time that it returned.
///
/// While every Watcher of a manager that concerns an object has a live watch, the watches alone
/// make events, and no review does. A review then sets a deadline: if no watch has shown the object
/// by then, the object is read. Where it differs from what the watch has shown, its change is
/// noted, and the resource listed again; otherwise the write was not persisted, or changed nothing.
/// (A kube-apiserver calls webhooks for each try of a write, before it is stored: two reviews for
/// one write, and reviews for writes that never happen, are normal.) Reviews that could not be
/// checked, because there were too many, or a read failed or lasted too long, are decided all
/// together by one list. A list that fails makes the watch not live.
///
/// Elsewhere a review's event is sent after `settle`, unless a watch is live by then. A watch that
/// goes on where it ended shows each change since; one that has to list raises a resync.
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
    kind result = kind::failed;
    boost::json::value object = {};
  };
  enum class confirmed : std::uint8_t {
    nothing,        ///< it could not be told, or is checked again
    not_persisted,  ///< the write was not stored, or changed nothing
    missed,         ///< a watch should have shown it
  };
  /// Do one of these, or else wait until then.
  struct decision {
    std::optional<watch_event> send = {};      ///< of a review
    std::optional<confirmation> confirm = {};  ///< read it
    std::optional<managed_watch> list = {};    ///< list its resource again
    core::time_point until = core::time_point::max();
  };

  /// `objects` must outlive it.
  observer(observer_options options, dispatch::delivery& objects)
      : options_(options), objects_(objects) {}

  /// Replaces the Watchers; the objects of those that stay are kept. Raises a resync for the
  /// operators of those that are new, but of the first ones.
  void set_watches(const observation_plan& from, core::time_point now);
  /// The resource of a Watcher was found. `has_status`: that subresource.
  void set_type(const managed_watch& watch, const k8s::resource_type& type, bool has_status);
  /// Its watch is live, or is not.
  void set_live(const managed_watch& watch, bool live, core::time_point now);
  /// Its resource cannot be observed at present. What is known of it stays known.
  void give_up(const managed_watch& watch, core::time_point now);

  // What its list and watch bring.

  void begin_listing(const managed_watch& watch, core::time_point now);
  /// False: the object is one too many.
  bool put(const managed_watch& watch, const k8s::object_key& key, state_hash state,
           core::time_point now);
  void erase(const managed_watch& watch, const k8s::object_key& key, core::time_point now);
  void end_listing(const managed_watch& watch, core::time_point now);

  /// Returns true if the event of the review is to be sent at once: it waits for nothing.
  bool passes(const watch_event& review) const {
    return options_.settle == core::duration::zero() && settling_.empty() && !is_covered(review);
  }
  /// Such an event is sent.
  void sending(const watch_event& review) const;
  /// Takes the event of a review.
  void accept(watch_event review, core::time_point now);
  /// A review was admitted whose event could not be taken. False: nothing makes up for it.
  bool missed(const watch_event& review, core::time_point now);
  /// No more reviews come: those that wait are sent, or checked, once their writes can be read.
  void close() { closed_ = true; }
  /// The result of a confirmation.
  confirmed confirm(const confirmation& read, const confirm_result& result, core::time_point now);

  decision poll(core::time_point now);

  std::size_t waiting() const noexcept { return settling_.size() + open_.size(); }
  /// A list is to be made, now or at a time.
  bool wants_list() const noexcept;
  bool is_live(const managed_watch& watch) const;
  std::size_t live_watches() const noexcept;
  std::size_t unobserved_watches() const noexcept;
  /// Accepts no further review for the moment.
  bool full() const noexcept { return settling_.size() >= 2 * options_.settling; }
  /// Closed, and nothing is left.
  bool drained() const noexcept { return closed_ && waiting() == 0; }

 private:
  using table = dispatch::delivery::table;
  struct view {
    managed_watch watch;
    table* objects = nullptr;  ///< null: events come from reviews alone
    std::optional<k8s::resource_type> type = {};
    bool has_status = false;
    bool live = false;
    bool listing = false;
    bool observed = false;                                ///< was live, and was not given up
    bool by_reviews = false;                              ///< they caused the next list
    core::time_point list_at = core::time_point::max();   ///< when a list is wanted
    core::time_point list_for = core::time_point::min();  ///< it is to begin after that
    core::time_point began = core::time_point::min();     ///< the latest list
    core::time_point listed = core::time_point::min();    ///< begin of the latest complete one
  };
  struct settling {
    watch_event event;
    core::time_point due;
  };
  /// A review that waits for a watch to show its object.
  struct open_review {
    watch_event event;
    core::time_point accepted;
    core::time_point newest;   ///< when the latest review for the object was accepted
    std::uint64_t number = 0;  ///< of the read that is under way; 0: none is
    core::time_point read_at = core::time_point::min();
  };
  using open_list = std::list<open_review>;

  view* find(const managed_watch& watch);
  bool concerns(const view& view, const watch_event& event) const;
  bool is_covered(const watch_event& event) const;
  bool list_decides(const open_review& open) const;
  core::duration wait() const { return closed_ ? options_.settle : options_.confirm_wait; }
  void shown(const view& view, const k8s::object_key& key);
  void end(open_list::iterator open);
  void settle(watch_event event, core::time_point due);
  void release_uncovered();
  void raise_undecided(const view& of);
  void want_list(const watch_event& event, core::time_point at, core::time_point covering);
  bool next_settled(decision& result, core::time_point now);
  bool next_open(decision& result, core::time_point now);
  bool next_list(decision& result, core::time_point now);
  void check_overdue(core::time_point now);
  confirmation read(open_review& open, core::time_point now);

  const observer_options options_;
  dispatch::delivery& objects_;
  std::vector<view> views_;
  bool is_first_plan_ = true;
  std::deque<settling> settling_;
  open_list open_;  ///< in the order of `accepted`
  std::unordered_map<watch_event, open_list::iterator, watch_event_hash> open_by_event_;
  std::size_t reading_ = 0;
  std::uint64_t reads_ = 0;  ///< begun
  core::time_point overdue_at_ = core::time_point::min();
  bool closed_ = false;
};

}  // namespace rw::observation
