#pragma once

#include "rw/k8s/objects/delta.hpp"

#include <charconv>
#include <cstdint>
#include <map>
#include <string>
#include <vector>

namespace rw::k8s::test {

/// What a history may have in it that looks like a mistake elsewhere.
struct view_rules {
  bool leaves = false;    ///< objects leave what is selected, and come back
  bool restored = false;  ///< the server's storage is set back, and objects with it
};

/// What one subscriber believes, and what was wrong with what it was told: that no object goes
/// backwards, that each is told as added and as deleted once in its life at most, and that the
/// states which deltas lead from and to fit together.
class watcher_view {
 public:
  /// Of one object, by uid.
  struct life {
    std::uint64_t latest = 0;  ///< the version that was told last
    unsigned added = 0;
    unsigned deleted = 0;
  };

  explicit watcher_view(view_rules rules = {}) : rules_(rules) {}

  void take(const delta& told) {
    const auto name = to_string(told.latest().key());
    const auto found = objects_.find(name);
    const bool known = found != objects_.end();
    auto& whole = lives_[std::string(told.latest().uid())];
    ++deltas_;
    switch (told.type) {
      case delta::kind::added:
        check(!known, "added twice", name);
        check(!told.before, "added, and was there before", name);
        check(whole.added == 0 || rules_.leaves || rules_.restored, "added in a second life", name);
        check(goes_forward(whole, told.now), "added at an old version", name);
        ++whole.added;
        break;
      case delta::kind::updated:
        check(known && same_state(found->second, told.before), "updated from another state", name);
        check(told.before.uid() == told.now.uid(), "updated into another object", name);
        check(goes_forward(whole, told.now), "updated backwards", name);
        break;
      case delta::kind::deleted:
        check(known && same_state(found->second, told.before), "deleted from another state", name);
        check(!told.now, "deleted, and is there", name);
        ++whole.deleted;
        break;
    }
    if (told.now) {
      whole.latest = number(told.now);
      objects_[name] = told.now;
    } else {
      objects_.erase(name);
    }
    // Each is deleted as often as it was added, or is there.
    const unsigned here = told.now ? 1 : 0;
    check(whole.added == whole.deleted + here, "not deleted as often as added", name);
  }

  const std::map<std::string, object>& objects() const noexcept { return objects_; }
  const std::map<std::string, life>& lives() const noexcept { return lives_; }
  const std::vector<std::string>& wrong() const noexcept { return wrong_; }
  std::size_t deltas() const noexcept { return deltas_; }

 private:
  /// The servers of these tests count; an informer does not know.
  static std::uint64_t number(const object& of) {
    std::uint64_t value = 0;
    const auto text = of.resource_version();
    std::from_chars(text.data(), text.data() + text.size(), value);
    return value;
  }

  bool goes_forward(const life& until_now, const object& next) const {
    return rules_.restored || number(next) > until_now.latest;
  }

  void check(bool good, const char* what, const std::string& name) {
    if (!good) wrong_.push_back(name + ": " + what);
  }

  view_rules rules_;
  std::map<std::string, object> objects_;
  std::map<std::string, life> lives_;
  std::vector<std::string> wrong_;
  std::size_t deltas_ = 0;
};

}  // namespace rw::k8s::test
