#pragma once

#include "tests/simulation/history.hpp"
#include <cstddef>
#include <cstdint>
#include <functional>
#include <map>
#include <optional>
#include <string>
#include <utility>
#include <vector>

namespace rw::simulation {

/// Objects with versions and a history of changes that can be compacted: what etcd is to a
/// kube-apiserver. All objects are in one namespace.
class store {
 public:
  static constexpr auto space = "kyma-system";

  struct change {
    std::uint64_t version;
    time_point at;
    std::size_t kind;
    std::string name;
    std::optional<model_object> before;
    std::optional<model_object> after;
  };
  using objects = std::map<std::string, model_object>;

  store(environment& in, std::vector<model_kind> kinds, history& told)
      : in_(in),
        kinds_(std::move(kinds)),
        history_(told),
        objects_(kinds_.size()),
        defined_(kinds_.size(), true) {}

  const std::vector<model_kind>& kinds() const noexcept { return kinds_; }
  const objects& all(std::size_t kind) const { return objects_[kind]; }
  const model_object* find(std::size_t kind, const std::string& name) const;

  /// Replaces the object, or removes it; its version is set.
  void put(std::size_t kind, const std::string& name, std::optional<model_object> next);
  /// Forgets all changes so far.
  void compact();
  /// Goes back to the state of a version, as a restore of etcd does. No watch may be open.
  void restore(std::uint64_t version);
  /// Deletes the definition of a kind, and its objects, or adds it again.
  void define(std::size_t kind, bool defined);
  bool was_restored() const noexcept { return stride_ == 1; }
  bool defines(std::size_t kind) const { return defined_[kind]; }
  bool is_compacted(std::uint64_t version) const { return version < compacted_; }
  /// The version of a backup, by chance: older than what a watch may not have shown yet.
  std::uint64_t any_version() const;

  std::uint64_t version() const noexcept { return version_; }
  const std::vector<change>& changes() const noexcept { return changes_; }
  /// Index of the first change after that version.
  std::size_t after(std::uint64_t version) const;

  std::string text(std::size_t kind, const std::string& name, const model_object& object) const;

  std::function<void()> on_change;

 private:
  void tell(std::size_t kind, const std::string& name, bool restored);

  environment& in_;
  const std::vector<model_kind> kinds_;
  history& history_;
  std::vector<objects> objects_;
  std::vector<bool> defined_;
  std::vector<change> changes_;
  std::uint64_t version_ = 100;
  /// From a version to the next: others write, too. After a restore they do not, so that the
  /// versions of before are not reached again before a bookmark shows that it was one.
  std::uint64_t stride_ = 100;
  std::uint64_t compacted_ = 0;
};

}  // namespace rw::simulation
