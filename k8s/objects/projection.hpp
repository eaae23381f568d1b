#pragma once

#include <memory>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace rw::k8s {

/// Selects the fields of an object that a store keeps. `apiVersion`, `kind` and, of the metadata,
/// namespace, name, uid and resourceVersion are always kept. A path into a list applies to
/// each of its elements. A value; copies share the rules.
class projection {
 public:
  static projection whole();
  /// Keeps everything but metadata.managedFields, which can be larger than the rest.
  static projection without_managed_fields();
  /// Keeps the metadata without managedFields and without the annotation in which kubectl keeps a
  /// copy of the object (kubectl.kubernetes.io/last-applied-configuration); and the fields at the
  /// paths `also`, in the form that `fields` takes.
  static projection metadata(const std::vector<std::string>& also = {});
  /// Keeps only these paths, such as "spec.resourceToWatch" or "metadata.labels"; an element in
  /// quotes may have dots, as in metadata.annotations."a.b/c". Throws std::invalid_argument that
  /// names an invalid path.
  static projection fields(const std::vector<std::string>& paths);

  struct rule;
  const rule& root() const noexcept { return *root_; }

 private:
  explicit projection(std::shared_ptr<const rule> root) : root_(std::move(root)) {}
  std::shared_ptr<const rule> root_;
};

/// Rule for one value: kept, dropped, or decided for each of its members (of an object, or
/// of the objects in a list).
struct projection::rule {
  enum class fate : std::uint8_t { keep, drop, look_inside };

  std::string name = {};  ///< of the member that the rule is for
  fate treatment = fate::keep;
  fate unnamed = fate::keep;  ///< if decided for each member: of the members without a rule
  std::vector<rule> inside = {};

  static const rule& kept() noexcept;
  static const rule& dropped() noexcept;

  /// Returns the rule for a member of this value.
  const rule& find(std::string_view member) const noexcept {
    for (const auto& member_rule : inside) {
      if (member_rule.name == member) return member_rule;
    }
    const auto rest = treatment == fate::look_inside ? unnamed : treatment;
    return rest == fate::keep ? kept() : dropped();
  }
};

}  // namespace rw::k8s
