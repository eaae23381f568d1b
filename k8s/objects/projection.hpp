#pragma once

#include <memory>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace rw::k8s {

/// Which fields of an object a store keeps. `apiVersion`, `kind` and, of the metadata, namespace,
/// name, uid and resourceVersion always are. What stands in a list is chosen in each of its
/// elements alike. A value; copies share the rules.
class projection {
 public:
  /// Everything.
  static projection whole();
  /// Everything but metadata.managedFields, which can be larger than the rest.
  static projection without_managed_fields();
  /// The metadata but for managedFields and the annotation that kubectl keeps a copy of the object
  /// in (kubectl.kubernetes.io/last-applied-configuration); and the fields at the paths `also`, in
  /// the form that `fields` takes.
  static projection metadata(const std::vector<std::string>& also = {});
  /// Only these, given by paths such as "spec.resourceToWatch" or "metadata.labels"; an element in
  /// quotes may have dots: `metadata.annotations."a.b/c"`. Throws std::invalid_argument that names
  /// a path that is none.
  static projection fields(const std::vector<std::string>& paths);

  struct rule;
  const rule& root() const noexcept { return *root_; }

 private:
  explicit projection(std::shared_ptr<const rule> root) : root_(std::move(root)) {}
  std::shared_ptr<const rule> root_;
};

/// What becomes of one value: kept, dropped, or decided for each of its members (of an object, or
/// of the objects in a list).
struct projection::rule {
  enum class fate : std::uint8_t { keep, drop, look_inside };

  std::string name = {};  ///< of the member that this is about
  fate what = fate::keep;
  fate others = fate::keep;  ///< when looking inside: of the members that no rule names
  std::vector<rule> inside = {};

  static const rule& kept() noexcept;
  static const rule& dropped() noexcept;

  /// The rule for a member of the value that this is about.
  const rule& find(std::string_view member) const noexcept {
    for (const auto& each : inside) {
      if (each.name == member) return each;
    }
    const auto rest = what == fate::look_inside ? others : what;
    return rest == fate::keep ? kept() : dropped();
  }
};

}  // namespace rw::k8s
