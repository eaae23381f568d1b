#pragma once

#include "rw/core/clock.hpp"
#include "rw/k8s/objects/names.hpp"
#include "rw/reactors/events/resync_account.hpp"
#include "rw/reactors/shared/events.hpp"
#include "rw/reactors/shared/managers_file.hpp"

#include <boost/intrusive/list.hpp>

#include <chrono>
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

struct delivery_options {
  std::size_t objects = 50'000;  ///< of one Watcher; twice as many while it is listed
  /// From a review to the time when its change can be read.
  core::duration settle = std::chrono::milliseconds(100);
};

/// What each operator has to be told: the one place that knows. For each Watcher its objects, with
/// their newest state and whether that is told; for each operator whether a resync is owed
/// (`resync_account`). All in memory only: a process that begins owes a resync. Pure: neither
/// sockets nor a clock.
///
/// The newest state of an object is told, or it waits to be taken by its operator's destination
/// (`schedule`), or is taken until that ends as told, or as returned. Objects of a Watcher's first
/// list are held while a resync is owed: it tells them. A resync that is taken tells every state
/// that was known when it was sent, but for what was taken meanwhile; what came since is told.
/// Whatever is given up raises a resync instead, and forgets that a state is untold, never an
/// object that exists:
///
/// - a Watcher holds `objects`, deletions that wait included, and needs room for a new one: the
///   oldest of those deletions goes;
/// - the Watcher is removed with untold states.
///
/// Of what waits three of four are changes that a live watch has brought; those of a list, and
/// objects that are sent in place of a resync, come in between and when nothing else waits.
/// Deletions take turns with other changes.
///
/// A Watcher's objects cost one node of a hash table each: at most 200 bytes with a key of 40
/// bytes. All calls are O(1) on average, but for resyncs and the end of lists. Not thread-safe.
class delivery {
  struct record;

 public:
  class table;  ///< the objects of one Watcher
  class queue;  ///< what one operator is to be told

  /// Told of what raises a resync, and of the operator. Must not call back.
  using raise_handler = std::function<void(const std::string& manager, resync_cause)>;
  /// A change to send.
  struct change {
    watch_event event;
    core::time_point since;  ///< when it was noticed first
  };

  explicit delivery(delivery_options options, raise_handler on_raise = {});
  ~delivery();
  delivery(const delivery&) = delete;
  delivery& operator=(const delivery&) = delete;

  // The operators.

  /// These have Watchers, observed or not. The first call raises a resync for each; those that are
  /// no longer there are owed nothing.
  void set_managers(const std::vector<std::string>& names, core::time_point now);
  /// Something has to be looked at once more.
  void raise(const std::string& manager, resync_cause cause);
  /// A review of the operator was dropped: raised once its change can be read.
  void drop_review(const std::string& manager, core::time_point now);

  // The Watchers' tables.

  /// Finds or adds the table of a Watcher. References stay valid until `remove`.
  table& add(const managed_watch& watch, core::time_point now);
  /// `replaced`: by another selection of the same resource, for which a resync is owed anyway.
  void remove(const managed_watch& watch, bool replaced, core::time_point now);
  /// Changes of the table are not taken before its kind is known.
  void set_kind(table& of, const k8s::group_version_kind& kind);
  /// An event of a review is sent: while the watch is not live nothing shows whether its write
  /// stays (etcd may be restored), so that a resync follows some time after it is.
  static void told_by_review(table& of);
  /// Its watch shows each change, or does not.
  void set_live(table& of, bool live, core::time_point now);

  // What a list and a watch bring.

  /// A later list than the first raises a resync when it is complete, as does one in the place of
  /// which a resync was sent: while no watch showed them, objects may have changed and changed
  /// back. `by_reviews`: reviews were the cause, so that the resync has time.
  void begin_listing(table& of, bool by_reviews, core::time_point now);
  /// The list has ended without being complete, and no other follows at once.
  static void break_listing(table& of);
  /// False: the object is one too many, and is not known.
  bool put(table& of, const object_key& key, state_hash state, core::time_point now);
  void erase(table& of, const object_key& key, core::time_point now);
  void end_listing(table& of, core::time_point now);

  /// Returns the newest state; absent_state if there is no such object.
  state_hash state_of(const table& of, const object_key& key) const;

  // For the destinations.

  /// Returns the next queue with something to do that no destination has adopted, and counts it as
  /// adopted; null: there is none.
  std::shared_ptr<queue> adopt();
  /// Its destination is gone.
  void release(queue& of);
  /// Of an operator that is known by its reviews alone, as there is no managers' file; null: there
  /// is one.
  std::shared_ptr<queue> adopt_unlisted(const std::string& manager, core::time_point now);
  static const std::string& manager_of(const queue& of) noexcept;
  /// Returns true if `take` has something. `closing`: that no list would bring again.
  bool has_changes(const queue& of, bool closing) const;
  std::optional<change> take(queue& of, bool closing);
  /// An event is sent, maybe again: it tells the object's changes up to now.
  void sending(queue& of, const watch_event& event);
  /// A taken change was told by a resync that was sent after its event had come.
  void told_by_resync(queue& of, const watch_event& event, core::time_point now);
  /// A taken change was told.
  void told(queue& of, const watch_event& event, core::time_point now);
  /// A taken change is given back. False: the event is none of an observed object.
  bool returned(queue& of, const watch_event& event, core::time_point now);
  /// Number of changes that wait, and since when the first one of them does (max(): none).
  static std::size_t size_of(const queue& of) noexcept;
  core::time_point oldest_of(const queue& of) const;

  // Resyncs.

  /// Raises what is due, and has all objects sent where that is.
  void advance(queue& of, bool closing, core::time_point now);
  bool resync_due(const queue& of, bool closing, core::time_point now) const;
  /// When, after `now`, time alone changes what the two above do; max(): never.
  core::time_point next_resync(const queue& of, core::time_point now) const;
  /// Nothing is owed or under way.
  static bool is_settled(const queue& of) noexcept;
  /// A resync has to be tried before the process ends.
  bool holds_end() const;
  resync_reason begin_resync(queue& of, bool closing);
  /// Returns an object to be sent as an event, by which the receiver is judged.
  std::optional<watch_event> end_resync(queue& of, resync_account::outcome ending,
                                        const core::random_source& random, core::time_point now);
  static void resync_unprocessed(queue& of);
  /// From a review to the time when its change can be read. Its event goes out after that, but for
  /// events beyond those that may wait for it.
  core::duration settle() const noexcept { return options_.settle; }
  /// An event was accepted, with the offer to take resyncs or without it.
  void accepted(queue& of, bool offers, core::time_point now);

  /// Objects of all Watchers.
  std::size_t size() const noexcept { return size_; }
  /// Objects whose newest state is not told; held ones are.
  std::size_t undelivered() const noexcept { return undelivered_; }
  /// Changes that are not taken.
  std::size_t waiting() const noexcept { return waiting_; }
  /// Numbers of changes taken: that a live watch brought, and others.
  std::uint64_t taken_live() const noexcept { return taken_live_; }
  std::uint64_t taken_listed() const noexcept { return taken_listed_; }
  /// Returns true if something waits that no list would bring again.
  bool has_live_changes() const noexcept { return live_ > 0; }
  /// Number of operators that are owed a resync.
  std::size_t owed() const;
  /// Number of resyncs that were owed to operators whose last Watcher went.
  std::uint64_t forgiven() const noexcept { return forgiven_; }
  /// By operator how often something was dropped since the process started.
  const std::map<std::string, std::uint64_t>& losses() const noexcept { return losses_; }

  static const managed_watch& watch_of(const table& of) noexcept;
  static std::size_t size_of(const table& of) noexcept;
  void visit(const std::function<void(const table&)>& take) const;

 private:
  enum class place : std::uint8_t { told, live, listed, held, taken, changed };
  using hook =
      boost::intrusive::list_base_hook<boost::intrusive::link_mode<boost::intrusive::auto_unlink>>;
  struct record : hook {
    table* of = nullptr;
    const std::string* key = nullptr;  ///< of its node
    state_hash newest = unknown_state;
    /// Of the first change that is not taken, in microseconds: enough for four years of uptime.
    std::uint64_t since : 47 = 0;
    std::uint64_t listing : 4 = 0;  ///< the one that it was in last
    std::uint64_t at : 3 = 0;       ///< a `place`
    std::uint64_t fresh : 1 = 0;    ///< noticed since the resync under way was sent
    std::uint64_t flight : 4 = 0;   ///< the event that tells it, by its version

    delivery::place place() const noexcept { return static_cast<delivery::place>(at); }
  };
  using records = boost::intrusive::list<record, boost::intrusive::constant_time_size<false>>;

  static bool waits(place at) noexcept { return at == place::live || at == place::listed; }
  static bool is_taken(place at) noexcept { return at == place::taken || at == place::changed; }
  static records& records_of(record& object);
  queue& add_queue(const std::string& manager, core::time_point now, bool needs_offer);
  queue* find_queue(const std::string& manager) const;
  void wake(queue& of);
  void raise(queue& of, resync_cause cause);
  void note_loss(const std::string& manager, resync_cause cause);
  record* find(const table& of, const object_key& key) const;
  record& insert(table& of, std::string_view key);
  void set(record& object, place to, core::time_point now);
  void set_newest(record& object, state_hash state);
  void change_to(record& object, state_hash state, core::time_point now);
  void forget(record& object);
  bool trim(table& of);
  bool forget_unlisted(table& of);
  void tell_all(table& of, core::time_point now);
  void resend(queue& of, core::time_point now);
  void erase_if_done(const queue& of);
  static core::time_point ready_at(const queue& of);
  record* first(queue& of, place rank) const;
  template <typename Function>
  bool each_taken(queue& of, const watch_event& event, Function then);

  const delivery_options options_;
  const raise_handler on_raise_;
  std::map<managed_watch, std::unique_ptr<table>> tables_;
  std::map<std::string, std::shared_ptr<queue>> queues_;  ///< by manager
  std::vector<std::shared_ptr<queue>> awake_;             ///< to be adopted
  std::map<std::string, std::uint64_t> losses_;
  std::uint64_t forgiven_ = 0;
  bool has_file_ = false;
  std::size_t size_ = 0;
  std::size_t absent_ = 0;
  std::size_t undelivered_ = 0;
  std::size_t waiting_ = 0;
  std::size_t live_ = 0;
  std::uint64_t taken_live_ = 0;
  std::uint64_t taken_listed_ = 0;
};

}  // namespace rw::dispatch
