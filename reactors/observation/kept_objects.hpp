#pragma once

#include "rw/reactors/observation/journal_format.hpp"
#include "rw/reactors/observation/plan.hpp"
#include "rw/reactors/shared/managers_file.hpp"

#include <cstddef>
#include <cstdint>
#include <functional>
#include <map>
#include <optional>
#include <vector>

namespace rw::observation {

/// What was delivered of the objects of Watchers that are not there, because the managers' file no
/// longer has them, or has not been read yet.
///
/// A Watcher that comes back is compared with it. One that is new, as after an edit of the field or
/// the labels, inherits the objects of those of its manager and resource that are gone: its first
/// list shows which of them exist. What is inherited is kept for the old Watcher, too. In which
/// state it was delivered is not known any more where its manager has other Watchers, whose events
/// may tell of the same objects.
///
/// A value; not thread-safe.
class kept_objects {
 public:
  using objects = journal_content::objects;
  /// What is known of the Watcher is forgotten. `number`: in the journal. `lost`: for want of room,
  /// and nobody has inherited it.
  using drop_function =
      std::function<void(const managed_watch& of, std::uint32_t number, bool lost)>;

  /// `most`: objects in all.
  kept_objects(std::size_t most, drop_function on_drop)
      : most_(most), on_drop_(std::move(on_drop)) {}

  /// Replaces all by what a journal has, under other numbers.
  void restore(std::map<managed_watch, objects> watches);
  /// Replaces what is kept of a Watcher. What others have inherited goes first where room is
  /// needed.
  void keep(const managed_watch& watch, objects known);
  /// Removes and returns what is kept of a Watcher.
  std::optional<objects> take(const managed_watch& watch);

  /// Returns the Watchers whose objects a new one is to inherit: none is in the plan, and nobody
  /// has inherited of them.
  std::vector<managed_watch> heritage_of(const managed_watch& watch,
                                         const observation_plan& present) const;
  /// The Watcher's objects are inherited. Returns them; it must be one of a heritage.
  objects inherit(const managed_watch& watch);
  /// Events of these Watchers' managers will be sent: what they tell is not known of the Watchers
  /// that are gone. Calls `changed` with those of which all states are unknown from now on.
  void outdate(const observation_plan& present,
               const std::function<void(const managed_watch&, const objects&)>& changed);

  const std::map<managed_watch, objects>& by_watch() const noexcept { return watches_; }

 private:
  void drop(std::map<managed_watch, objects>::iterator at);
  std::size_t size() const;

  std::size_t most_;
  drop_function on_drop_;
  std::map<managed_watch, objects> watches_;
};

}  // namespace rw::observation
