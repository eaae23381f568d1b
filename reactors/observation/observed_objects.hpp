#pragma once

#include "core/clock.hpp"
#include "k8s/objects/names.hpp"
#include "reactors/observation/digest.hpp"
#include "reactors/shared/managers_file.hpp"

#include <boost/intrusive/list.hpp>

#include <cstddef>
#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <unordered_map>

namespace rw::observation {

/// What is known of the objects of each Watcher, and which of their changes are not delivered yet.
/// Pure: neither sockets nor a clock.
///
/// An object is `delivered` in its newest state, or waits in one of two queues, or its newest state
/// was handed out as an event and its outcome is not known. Changes that a live watch brings queue
/// in front of those that a list brings: a list is a resync. Resyncs queue for each manager alone,
/// so that one that takes nothing delays only its own. A deletion is kept until it is delivered.
///
/// A Watcher's objects cost one node of a hash table each: at most 200 bytes with a key of 40
/// bytes. All calls are O(1) on average, but for listings. Not thread-safe.
class observed_objects {
 public:
  class table;

  /// A change to send as an event.
  struct change {
    const managed_watch& watch;
    k8s::object_key key;
    std::uint64_t sequence;  ///< increases; names this event in `delivered` and `lost`
  };

  observed_objects();
  ~observed_objects();
  observed_objects(const observed_objects&) = delete;
  observed_objects& operator=(const observed_objects&) = delete;

  /// Finds or adds the table of a Watcher. References stay valid until `remove`.
  table& add(const managed_watch& watch);
  void remove(const managed_watch& watch);

  /// Adds an object as a ledger has it: delivered as `delivered` (unknown_mark: it is not known in
  /// which state), and to be compared with the next list. No effect on a known object.
  void remember(table& of, std::string_view key, mark delivered);

  // What a list and a watch bring. Between begin_listing and end_listing changes are resyncs.

  void begin_listing(table& of);
  void put(table& of, const k8s::object_key& key, mark now);
  void erase(table& of, const k8s::object_key& key);
  void end_listing(table& of);

  /// Returns the newest state; absent_mark if there is no such object.
  mark state_of(const table& of, const k8s::object_key& key) const;

  /// Hands out the live change that waits longest.
  std::optional<change> next_live();
  /// Hands out a resync: by turns of the managers that have fewer than `window` without an outcome,
  /// and whose pause after a loss has ended.
  std::optional<change> next_resync(std::size_t window, core::time_point now);
  /// When the first pause ends that holds back resyncs; max(): none does.
  core::time_point resumes(std::size_t window) const;

  /// The event with this sequence was delivered, and with it each earlier one for that object.
  void delivered(table& of, const k8s::object_key& key, std::uint64_t sequence);
  /// It was lost: the change queues as a resync, and its manager pauses.
  void lost(table& of, const k8s::object_key& key, std::uint64_t sequence, core::time_point until);

  bool knows(const table& of, const k8s::object_key& key) const;
  std::size_t size() const noexcept { return size_; }
  /// Objects that exist, as far as is known.
  std::size_t existing() const noexcept { return size_ - absent_; }
  /// Objects whose newest state is not delivered.
  std::size_t undelivered() const noexcept { return undelivered_; }
  /// Resyncs that were handed out and have no outcome.
  std::size_t open_resyncs() const noexcept { return open_resyncs_; }
  bool has_live_changes() const noexcept { return !live_.empty(); }
  /// Increases whenever what `visit` passes changes.
  std::uint64_t version() const noexcept { return version_; }

  /// Where `visit` is among the objects.
  struct position {
    std::optional<managed_watch> watch = {};  ///< nothing: at the beginning
    std::size_t bucket = 0;
    std::size_t buckets = 0;  ///< of the Watcher's hash table
  };
  using watch_visitor = std::function<void(const managed_watch&)>;
  using object_visitor = std::function<void(std::string_view key, mark delivered)>;
  /// Passes objects as a ledger should have them, after their Watcher: those in the next `count`
  /// buckets, each of which has about one. Returns false after the last ones. The objects may
  /// change between two calls: what exists all the time is passed, and maybe twice.
  bool visit(position& from, std::size_t count, const watch_visitor& watch,
             const object_visitor& object) const;

 private:
  enum class state : std::uint8_t { delivered, live, resync, sent, sent_resync };
  using hook =
      boost::intrusive::list_base_hook<boost::intrusive::link_mode<boost::intrusive::auto_unlink>>;
  struct record : hook {
    table* of = nullptr;
    const std::string* key = nullptr;  ///< of its node
    mark newest = unknown_mark;
    std::uint64_t sequence = 0;  ///< of the event, while sent
    std::uint32_t listing = 0;   ///< the one that it was in last
    observed_objects::state state = observed_objects::state::delivered;
  };
  using queue = boost::intrusive::list<record, boost::intrusive::constant_time_size<false>>;

  /// Resyncs of one manager.
  struct backlog {
    queue waiting;
    std::size_t open = 0;  ///< without an outcome
    std::size_t tables = 0;
    core::time_point from = core::time_point::min();  ///< the end of its pause

    bool may_send(std::size_t window) const { return !waiting.empty() && open < window; }
  };

  record& insert(table& of, std::string_view key);
  void set(record& object, state to);
  void change_to(table& of, record& object, mark now);
  change hand_out(record& object, state as);
  record* sent_as(table& of, const k8s::object_key& key, std::uint64_t sequence);

  std::map<managed_watch, std::unique_ptr<table>> tables_;
  std::map<std::string, backlog> backlogs_;  ///< by manager
  std::string turn_;                         ///< the manager whose resync was handed out last
  queue live_;
  std::size_t size_ = 0;
  std::size_t absent_ = 0;
  std::size_t undelivered_ = 0;
  std::size_t open_resyncs_ = 0;
  std::uint64_t sequence_ = 0;
  std::uint64_t version_ = 0;
};

}  // namespace rw::observation
