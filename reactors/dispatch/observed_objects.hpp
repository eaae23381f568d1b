#pragma once

#include "rw/core/clock.hpp"
#include "rw/k8s/objects/names.hpp"
#include "rw/reactors/shared/events.hpp"
#include "rw/reactors/shared/managers_file.hpp"

#include <boost/intrusive/list.hpp>

#include <cstddef>
#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace rw::dispatch {

/// The state of an object as one Watcher sees it, as a 64-bit hash. Never 0 or 1.
using state_hash = std::uint64_t;

inline constexpr state_hash unknown_state = 0;
inline constexpr state_hash absent_state = 1;  ///< there is no such object

/// What is known of the objects of each Watcher, and which of their changes are not delivered: the
/// only place that knows. Pure: neither sockets nor a clock.
///
/// An object is delivered in its newest state, or its change waits to be taken by its manager's
/// destination (`schedule`), or is taken until that ends as delivered, or as returned. Nothing else
/// ends a change but three things:
///
/// - an object of which its manager was never told is deleted: there is no difference left;
/// - a Watcher holds `limit` objects, deletions that wait included, and needs room for a new one:
///   the oldest of those deletions goes, which is a gap;
/// - the Watcher is removed with undelivered changes, which is a gap.
///
/// A change that its receiver rejected until it expired is a gap, too; it waits for the object's
/// next change, or until the receiver accepts another object that it had rejected.
///
/// Where there is no room for a record of an object of which its manager was told, the next list
/// that ends is a gap: its deletion may be what that list does not show.
///
/// Of what waits three of four are changes that a live watch has brought; those of a list, a
/// resync, come in between and when nothing else waits. Deletions take turns with other changes.
///
/// A Watcher's objects cost one node of a hash table each: at most 200 bytes with a key of 40
/// bytes. All calls are O(1) on average, but for listings. Not thread-safe.
class observed_objects {
  struct record;

 public:
  class table;    ///< the objects of one Watcher
  class backlog;  ///< what waits for one manager

  /// Who is told of what happens to an object. None may call back.
  struct listeners {
    /// What is delivered of an object has changed: to unknown_mark, at `now`, before a change can
    /// be taken; to absent_mark: there is nothing to know of it any more. An empty key: objects
    /// were told of that have no record.
    std::function<void(const table&, std::string_view key, state_hash delivered,
                       core::time_point now)>
        on_record;
    /// Changes of that manager's Watchers are given up.
    std::function<void(const std::string& manager)> on_gap;
  };
  /// A change to send.
  struct change {
    watch_event event;
    core::time_point since;  ///< when it was noticed first
  };

  /// `limit`: objects of one Watcher; twice as many while it is listed.
  explicit observed_objects(std::size_t limit, listeners to);
  explicit observed_objects(std::size_t limit) : observed_objects(limit, listeners()) {}
  ~observed_objects();
  observed_objects(const observed_objects&) = delete;
  observed_objects& operator=(const observed_objects&) = delete;

  /// Whether what managers were told before is remembered. If not, what the first list of a table
  /// shows may have been told.
  void set_history(bool complete) { has_history_ = complete; }
  /// Likewise of one table.
  static void set_history(table& of, bool complete);

  /// Finds or adds the table of a Watcher. References stay valid until `remove`.
  table& add(const managed_watch& watch);
  /// Not reported by `on_record`. `inherited`: another table has its objects, so that what is not
  /// delivered is no gap.
  void remove(const managed_watch& watch, bool inherited = false);
  /// Changes of the table are not taken before its kind is known.
  void set_kind(table& of, const k8s::group_version_kind& kind);

  /// Adds an object as a journal has it: delivered as `delivered` (unknown_mark: it is not known in
  /// which state), and to be compared with the next list. No effect on a known object.
  /// The empty key: objects were told of that have no record.
  void remember(table& of, std::string_view key, state_hash delivered);
  /// Likewise an object of which its manager was told for another Watcher. It needs room.
  void inherit(table& of, std::string_view key);

  // What a list and a watch bring. Between begin_listing and end_listing changes are resyncs.

  /// `replaces`: a watch that may lag behind. It would have shown what became of what was told
  /// since the latest list; this one may show the state of before, so that what was told is unknown
  /// to it. So it is after a list that did not end, unless that had too many objects.
  void begin_listing(table& of, bool replaces = false);
  /// False: the object is one too many, and is not known.
  bool put(table& of, const object_key& key, state_hash state, core::time_point now);
  void erase(table& of, const object_key& key, core::time_point now);
  /// A state that is known by another mark: no change.
  void rehash(table& of, const object_key& key, state_hash from, state_hash to);
  void end_listing(table& of, core::time_point now);
  /// An event was sent without a watch that says in which state the object is: what the next list
  /// shows is a change.
  void make_unknown(table& of, const object_key& key);
  /// The Watcher's watch is live, as it is at first, or is not. What is sent meanwhile may tell of
  /// a state that no watch shows: it is unknown, unless the list has it from which the next watch
  /// goes on.
  void set_live(table& of, bool live);
  /// Returns true if an object was, or is being, delivered in an unknown state. O(objects).
  static bool has_unknown(const table& of);
  /// A change of the Watcher's objects may have been missed that no list will show.
  void report_gap(const std::string& manager) const;
  /// Makes changes of all objects of a manager's Watchers that are delivered. False: there are no
  /// Watchers.
  bool send_again(const std::string& manager, core::time_point now);

  /// Returns the newest state; absent_mark if there is no such object.
  state_hash state_of(const table& of, const object_key& key) const;

  // For the destinations.

  /// Returns the next backlog with something to take that no destination has adopted, and counts it
  /// as adopted; null: there is none.
  std::shared_ptr<backlog> adopt();
  /// Its destination is gone.
  void release(backlog& of);
  static const std::string& manager_of(const backlog& of) noexcept;
  /// Returns true if `take` has something. `closing`: that no list would bring again.
  bool has_changes(const backlog& of, bool closing) const;
  std::optional<change> take(backlog& of, bool closing);
  /// An event is sent, maybe again: it tells the object's changes up to now.
  void sending(backlog& of, const watch_event& event);
  /// A taken change was delivered.
  void delivered(backlog& of, const watch_event& event, core::time_point now);
  /// A taken change was not delivered, and is sent again.
  void failed(backlog& of, const watch_event& event, bool rejected);
  /// A taken change is given back. False: the event is none of an observed object.
  bool returned(backlog& of, const watch_event& event, core::time_point now);
  /// Likewise, since it was sent for too long.
  bool expired(backlog& of, const watch_event& event, core::time_point now);
  /// Where nothing else would show that a receiver accepts again what it rejected until it expired,
  /// one of these changes is sent again.
  void try_expired(core::time_point now);
  /// Number of changes that wait, and since when the first one of them does (max(): none).
  static std::size_t size_of(const backlog& of) noexcept;
  core::time_point oldest_of(const backlog& of) const;

  /// What `on_record` was told up to then is kept: changes noticed since are not taken.
  void set_recorded(core::time_point until) { recorded_ = until; }

  std::size_t size() const noexcept { return size_; }
  /// Objects that exist, as far as is known.
  std::size_t existing() const noexcept { return size_ - absent_; }
  /// Objects whose newest state is not delivered.
  std::size_t undelivered() const noexcept { return undelivered_; }
  /// Changes that are not taken.
  std::size_t waiting() const noexcept { return waiting_; }
  /// Numbers of changes taken: that a live watch brought, and resyncs.
  std::uint64_t taken_live() const noexcept { return taken_live_; }
  std::uint64_t taken_resyncs() const noexcept { return taken_resyncs_; }
  /// Returns true if something waits that no list would bring again.
  bool has_live_changes() const noexcept { return live_ > 0; }

  /// Increases with each table.
  static std::uint32_t number_of(const table& of) noexcept;
  static const managed_watch& watch_of(const table& of) noexcept;
  static const k8s::group_version_kind& kind_of(const table& of) noexcept;
  static std::size_t size_of(const table& of) noexcept;
  /// Passes the tables, and the objects of one as `on_record` would.
  void visit(const std::function<void(const table&)>& take) const;
  static void visit(const table& of,
                    const std::function<void(std::string_view key, state_hash delivered)>& object);

 private:
  enum class place : std::uint8_t { delivered, live, resync, taken, changed, expired };
  using hook =
      boost::intrusive::list_base_hook<boost::intrusive::link_mode<boost::intrusive::auto_unlink>>;
  struct record : hook {
    table* of = nullptr;
    const std::string* key = nullptr;  ///< of its node
    state_hash newest = unknown_state;
    /// Of the first change that is not taken, in microseconds: enough for four years of uptime.
    std::uint64_t since : 47 = 0;
    std::uint64_t listing : 4 = 0;    ///< the one that it was in last
    std::uint64_t at : 3 = 0;         ///< a `place`
    std::uint64_t untold : 1 = 0;     ///< its manager cannot know of it
    std::uint64_t rejected : 1 = 0;   ///< by its receiver, once since it was delivered
    std::uint64_t undecided : 1 = 0;  ///< its event has failed otherwise than by a rejection
    std::uint64_t blind : 1 = 0;      ///< its event was sent while the Watcher had no live watch
    std::uint64_t sent : 1 = 0;       ///< its event was, since the latest list ended
    std::uint64_t given_up : 1 = 0;   ///< the change is a gap by now
    std::uint64_t flight : 4 = 0;     ///< the event that tells it, by its version

    observed_objects::place place() const noexcept {
      return static_cast<observed_objects::place>(at);
    }
  };
  using queue = boost::intrusive::list<record, boost::intrusive::constant_time_size<false>>;

  static bool waits(place at) noexcept { return at == place::live || at == place::resync; }
  static bool is_taken(place at) noexcept { return at == place::taken || at == place::changed; }
  static bool is_sent_blindly(const record& object);
  static queue& queue_of(record& object);
  record* find(const table& of, const object_key& key) const;
  record& insert(table& of, std::string_view key);
  void set(record& object, place to, core::time_point now);
  void set_newest(record& object, state_hash state);
  void change_to(record& object, state_hash state, core::time_point now);
  void forget(record& object);
  void drop(record& object);
  bool trim(table& of);
  void mark_unknown(table& of, std::string_view key);
  void lose(table& of);
  bool forget_unlisted(table& of);
  record* first(backlog& of, place rank) const;
  template <typename Function>
  bool each_taken(backlog& of, const watch_event& event, Function then);

  const std::size_t limit_;
  const listeners listeners_;
  std::map<managed_watch, std::unique_ptr<table>> tables_;
  std::map<std::string, std::shared_ptr<backlog>> backlogs_;  ///< by manager
  std::vector<std::shared_ptr<backlog>> awake_;               ///< to be adopted
  core::time_point recorded_ = core::time_point::max();
  std::size_t size_ = 0;
  std::size_t absent_ = 0;
  std::size_t undelivered_ = 0;
  std::size_t waiting_ = 0;
  std::size_t live_ = 0;
  std::uint64_t taken_live_ = 0;
  std::uint64_t taken_resyncs_ = 0;
  std::uint32_t numbers_ = 0;
  bool has_history_ = true;
};

}  // namespace rw::dispatch
