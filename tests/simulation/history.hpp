#pragma once

#include "rw/k8s/objects/names.hpp"
#include "rw/reactors/shared/events.hpp"
#include "rw/reactors/shared/managers_file.hpp"

#include "tests/simulation/environment.hpp"
#include <cstddef>
#include <cstdint>
#include <functional>
#include <map>
#include <string>
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

/// What was persisted and what was told, of each object and Watcher; holds both against the
/// promises of `reactors/README.md`, "observation" and "dispatch".
class history {
 public:
  history(environment& in, std::vector<managed_watch> watches)
      : in_(in), watches_(std::move(watches)) {}

  /// The object can be read in this state from now on; null: it does not exist.
  void persisted(const model_kind& kind, const k8s::object_key& key, const model_object* now);
  /// A listener has accepted an event. Notes a violation if nothing explains it.
  void told(const watch_event& event);

  /// The manager's operator is told that there is a gap: it lists everything itself.
  void gap_told(const std::string& manager);
  /// Changes of now may be invisible: not every watch is live.
  void gap();
  /// Watches show nothing now, though they are live.
  void hang();
  /// Events of now may be repeated: the way to a listener is not in order, or reviews count.
  void excuse();
  /// A webhook process begins, with a ledger as it was `ledger_time` ago; without one: everything.
  void restarted(time_point ledger_time);

  /// Called before an event is judged: what explains it may be news of this moment.
  std::function<void()> before_event;

  /// Returns the objects whose last change was before that time, and that differ from what their
  /// operator was told, by an event or a gap.
  std::vector<std::string> missing(time_point before = time_point::max()) const;
  void violate(const std::string& what);

  const std::vector<std::string>& violations() const noexcept { return violations_; }
  std::size_t changes() const noexcept { return changes_; }
  std::size_t told() const noexcept { return told_; }
  std::size_t excused() const noexcept { return excused_; }
  std::size_t told_gaps() const noexcept { return gap_count_; }

 private:
  struct state {
    time_point since;
    std::string digest;  ///< empty: it does not exist for this Watcher
  };
  /// An object as one Watcher sees it.
  struct view {
    std::vector<state> states;

    const state& at(time_point when) const;
  };
  /// An object as its manager is told of it.
  struct subject {
    std::vector<time_point> told;
    std::vector<time_point> answers;     ///< of these: events that are no repetitions
    std::vector<time_point> unanswered;  ///< changes that no event stands for
    std::map<std::size_t, view> views;   ///< by Watcher
  };
  struct period {
    time_point from;
    time_point to;
  };
  struct restart {
    time_point ledger;
    time_point at;
  };
  using name = std::pair<std::string, std::string>;  ///< manager, kind and key of the object

  static void extend(std::vector<period>& periods, time_point now);
  static bool any_in(const std::vector<period>& periods, time_point from, time_point to);
  /// Whether an event since the latest one, of an object that did not change, has a reason.
  bool is_excused(const subject& of) const;
  bool is_other_watchers(const subject& of) const;
  bool is_told(const view& seen, time_point told) const;

  environment& in_;
  const std::vector<managed_watch> watches_;
  std::map<name, subject> subjects_;
  std::vector<period> gaps_;
  std::vector<period> hangs_;
  std::vector<period> excuses_;
  std::map<std::string, time_point> told_gaps_;  ///< the latest, by manager
  std::vector<restart> restarts_;
  std::vector<std::string> violations_;
  std::size_t changes_ = 0;
  std::size_t told_ = 0;
  std::size_t excused_ = 0;
  std::size_t gap_count_ = 0;
};

}  // namespace rw::simulation
