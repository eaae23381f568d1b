#pragma once

#include "rw/k8s/objects/names.hpp"
#include "rw/reactors/shared/events.hpp"
#include "rw/reactors/shared/managers_file.hpp"
#include "rw/reactors/shared/resync.hpp"

#include "tests/simulation/environment.hpp"
#include <cstddef>
#include <cstdint>
#include <functional>
#include <map>
#include <set>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace rw::simulation {

/// A resource that the API server model serves; all are namespaced.
struct model_kind {
  std::string group;
  std::string version;
  std::string plural;
  std::string kind;
  bool has_status = false;  ///< a subresource, which leaves the generation as it is
};

/// What the model stores of an object.
struct model_object {
  std::string uid;
  std::uint64_t version = 0;
  bool labelled = false;  ///< has the label that some Watchers select
  bool deleting = false;
  unsigned spec = 0;
  unsigned status = 0;
  unsigned note = 0;  ///< an annotation, which no Watcher watches
  unsigned generation = 1;
};

/// What was stored, and what each operator has read of it, for the one promise of
/// `reactors/README.md`, "The guarantee": of each object that its Watchers select an operator's
/// latest read is later than the latest change, unless a limit of the guarantee applies.
///
/// An operator reads an object when it accepts an event of it, and all objects on a resync and when
/// it starts. One that knows no resyncs reads what it is sent.
class history {
 public:
  struct options {
    /// Operators that know no resyncs: of them, deletions that no process saw, kept and lived to
    /// tell are excused (limit 3).
    std::set<std::string> without_resyncs = {};
    /// There are no watches: a change is excused if no process took its review, and lived to tell
    /// it, or if it was stored later than so long after it (limit 1).
    bool reviews_only = false;
    duration settle = milliseconds(100);
  };

  /// `watches`: all that the managers' file may ever name.
  history(environment& in, std::vector<model_kind> kinds, std::vector<managed_watch> watches)
      : in_(in),
        kinds_(std::move(kinds)),
        watches_(std::move(watches)),
        wanted_(watches_.size(), false) {}

  /// The object can be read in this state from now on; null: it does not exist.
  /// `restored`: as it was before, so that nothing has changed for an operator that knows no other
  /// state.
  void persisted(const model_kind& kind, const k8s::object_key& key, const model_object* now,
                 bool restored = false);
  /// A process took the review.
  void reviewed(const watch_event& review);
  /// A listener handed over an event, or a resync.
  void told(const watch_event& event);
  void told(const std::string& manager, resync_reason why);
  /// The manager's operator starts, and reads everything.
  void started(const std::string& manager);

  /// The Watchers of the managers' file.
  void want(const std::vector<managed_watch>& watches);
  /// What no process keeps any more of a manager, or of all (empty), is excused where a limit does:
  /// a process ended, or dropped something, or has another file.
  void forgotten(std::string_view manager = {});
  /// A process ended that had told all that it had seen: a deletion that its watch had yet to show
  /// it has not.
  void ended();

  options limits;
  /// A pod of the webhook.
  struct observer {
    /// Whether its process knows that the object exists for the Watcher.
    std::function<bool(const managed_watch&, const k8s::object_key&)> knows;
    std::function<void()> on_event;  ///< called before an event counts as told
  };
  std::vector<observer> pods;

  /// Returns the objects whose latest change their operator has not read.
  std::vector<std::string> missing() const;
  /// Returns those that have differed since that time from what their operator has read.
  std::vector<std::string> late(time_point since) const;
  void violate(const std::string& what);

  const std::vector<std::string>& violations() const noexcept { return violations_; }
  std::size_t changes() const noexcept { return changes_; }
  std::size_t told() const noexcept { return told_; }
  /// Resyncs by reason.
  const std::map<std::string_view, std::size_t>& resyncs() const noexcept { return resyncs_; }

 private:
  /// An object as one Watcher sees it.
  struct view {
    std::string digest = {};  ///< empty: it does not exist for this Watcher
    std::string known = {};   ///< what its operator has read
    std::uint64_t changed = 0;
    std::uint64_t read = 1;
    time_point since = time_point::min();  ///< of the change
    bool excused = false;
  };
  using name = std::pair<std::string, std::string>;  ///< manager, kind and name of the object

  bool is_excused(const managed_watch& watch, const k8s::object_key& key, const name& of,
                  const view& seen) const;
  void excuse(const std::function<bool(const name&, const view&)>& which);
  void read(view& seen) const;
  void read_all(const std::string& manager);
  std::vector<std::string> list(const std::function<bool(const view&)>& which) const;

  environment& in_;
  const std::vector<model_kind> kinds_;
  const std::vector<managed_watch> watches_;
  std::vector<bool> wanted_;
  std::map<name, std::map<std::size_t, view>> objects_;  ///< views by Watcher
  std::map<name, time_point> reviews_;
  std::uint64_t order_ = 1;  ///< of changes and reads
  std::vector<std::string> violations_;
  std::map<std::string_view, std::size_t> resyncs_;
  std::size_t changes_ = 0;
  std::size_t told_ = 0;
};

}  // namespace rw::simulation
