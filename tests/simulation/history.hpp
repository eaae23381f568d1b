#pragma once

#include "rw/k8s/objects/names.hpp"
#include "rw/reactors/dispatch/observed_objects.hpp"
#include "rw/reactors/observation/journal_format.hpp"
#include "rw/reactors/shared/events.hpp"
#include "rw/reactors/shared/managers_file.hpp"

#include "tests/simulation/environment.hpp"
#include <cstddef>
#include <cstdint>
#include <functional>
#include <map>
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

/// What was persisted and what was told, of each object and Watcher; holds both against the
/// promises of `reactors/README.md`, "The guarantee" and "observation".
///
/// An event that tells nothing new is a repetition. It is explained only by a request without an
/// answer, the end of a process without a record, a gap's resync, or an event that no live watch
/// covered, of a review or not. Each Watcher of a manager has its own changes, and each of them one
/// event: their watches show it in their own time. These are facts, which the parties report; no
/// repetition is explained by its time.
class history {
 public:
  /// `watches`: all that the managers' file may ever name.
  history(environment& in, std::vector<model_kind> kinds, std::vector<managed_watch> watches)
      : in_(in),
        kinds_(std::move(kinds)),
        watches_(std::move(watches)),
        wanted_(watches_.size(), false),
        observed_(watches_.size(), time_point::min()) {}

  /// The object can be read in this state from now on; null: it does not exist. `text`: of it.
  void persisted(const model_kind& kind, const k8s::object_key& key, const model_object* now,
                 std::string_view text);
  /// A listener has accepted an event. Notes a violation if nothing explains it.
  void told(const watch_event& event);

  /// The manager's operator is told that there is a gap: it lists everything itself.
  void gap_told(const std::string& manager);

  // What the runtime does.

  /// The Watchers of its managers' file, and those that it observes. `forgotten`: nothing can be
  /// known of what their operators were told before.
  void want(const std::vector<managed_watch>& watches, const std::vector<managed_watch>& forgotten);
  void observe(const std::vector<managed_watch>& watches);
  /// Its record of what is delivered of an object, `observed_objects::listeners::on_record`.
  /// `changes`: the object has left "delivered" for a change or a resync.
  void recorded(const managed_watch& watch, std::string_view key, dispatch::state_hash delivered,
                bool changes);
  /// A gap has all objects of a manager sent again.
  void sent_again(const std::string& manager);
  /// A review was admitted, or has lost its cover, whose event is sent.
  void uncovered(const watch_event& review);
  /// A watch that a read has proven wrong goes on: it shows an older state than was read.
  void old_shown(const model_kind& kind, const std::string& name);
  /// No event of a review, or of an old state, is under way.
  void came_to_rest();
  /// A process begins with that journal, which has to have what was recorded up to `complete`;
  /// and what was delivered up to `delivered`.
  void restarted(const observation::journal_content& journal, time_point complete,
                 time_point delivered);

  // What happens to the runtime's requests.

  /// Answers to requests up to now may not have reached it: a connection broke, an answer was not
  /// 2xx, data is held back, or the process ended.
  void unanswered() { unanswered_ = in_.now(); }
  /// Requests arrive that were sent at `since`, or later.
  void late(time_point since);

  /// Called before an event is judged: has `observe` called.
  std::function<void()> before_event;

  /// Returns the objects whose last change was before that time, and that differ from what their
  /// operator was told, by an event or a gap.
  std::vector<std::string> missing(time_point before = time_point::max()) const;
  void violate(const std::string& what);

  const std::vector<std::string>& violations() const noexcept { return violations_; }
  std::size_t changes() const noexcept { return changes_; }
  std::size_t told() const noexcept { return told_; }
  /// Events by what explains them.
  const std::map<std::string_view, std::size_t>& causes() const noexcept { return causes_; }

 private:
  static constexpr int nothing = -1;

  struct state {
    time_point since;
    std::string digest;  ///< empty: it does not exist for this Watcher
    dispatch::state_hash mark;
  };
  struct record {
    time_point at;
    int state;  ///< of which its operator was told; less: it is not known of which
  };
  /// An object as one Watcher sees it.
  struct view {
    std::vector<state> states = {{time_point::min(), {}, dispatch::absent_state}};
    std::vector<record> records = {};
    time_point told = time_point::min();  ///< the latest event while the Watcher was observed
    int delivered = 0;                    ///< the state that the runtime knows to be told
    bool changes = false;                 ///< it has seen another one since
    bool unknown = false;       ///< it does not know any more: it sends an event when it lists
    bool unknown_told = false;  ///< which has come

    const state& at(time_point when) const;
    int newest() const { return static_cast<int>(states.size()) - 1; }
    int find(dispatch::state_hash mark) const;
  };
  /// An object as its manager is told of it.
  struct subject {
    std::vector<time_point> told;
    time_point last = time_point::min();      ///< of these, but for those of reviews
    time_point recorded = time_point::min();  ///< when an answer was counted last
    bool as_review = false;                   ///< one since then was taken for that of a review
    std::size_t changes = 0;            ///< that events stand for, since an answer was counted
    std::size_t reviews = 0;            ///< whose events are under way
    std::size_t old = 0;                ///< states that a watch showed too late
    std::map<std::size_t, view> views;  ///< by Watcher
  };
  using name = std::pair<std::string, std::string>;  ///< manager, kind and key of the object

  void lost_records(const managed_watch& watch);
  bool is_edited(std::size_t watch, std::size_t other) const;
  std::size_t changes_of(std::size_t watch, const view& seen) const;
  std::string_view explain(subject& of) const;

  environment& in_;
  const std::vector<model_kind> kinds_;
  const std::vector<managed_watch> watches_;
  std::vector<bool> wanted_;
  std::vector<time_point> observed_;  ///< until when; max(): now, too
  std::map<name, subject> subjects_;
  time_point unanswered_ = time_point::min();
  time_point late_at_ = time_point::min();
  time_point late_since_ = time_point::min();
  std::map<std::string, time_point> told_gaps_;  ///< the latest, by manager
  std::vector<std::string> violations_;
  std::map<std::string_view, std::size_t> causes_;
  std::size_t changes_ = 0;
  std::size_t told_ = 0;
};

}  // namespace rw::simulation
