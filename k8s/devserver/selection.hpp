#pragma once

#include "rw/k8s/devserver/field_selector.hpp"
#include "rw/k8s/devserver/kinds.hpp"
#include "rw/k8s/devserver/storage.hpp"
#include "rw/k8s/devserver/target.hpp"
#include "rw/k8s/objects/label_selector.hpp"

#include <string>

namespace rw::k8s::devserver {

/// Selects the objects of a collection for a list, watch or deletecollection.
class selection {
 public:
  /// Selects by namespace (empty: all) and, if `key` has one, name; and by the selectors of a
  /// query. 400 for invalid selectors, and for fields that the kind does not support.
  static outcome<selection> parse(const object_key& key, const query& parameters,
                                  const resource& of);

  bool matches(const record& record) const;
  const std::string& ns() const noexcept { return ns_; }
  /// Returns the only name that can match; empty: several may.
  std::string_view name() const noexcept;
  /// Returns true if selectors choose among the objects of the namespace.
  bool selective() const noexcept { return !labels_.empty() || !fields_.empty() || !name_.empty(); }

 private:
  bool matches_fields(const record& record) const;

  std::string ns_;
  std::string name_;
  label_selector labels_;
  field_selector fields_;
  bool by_content_ = false;  // selects by a field other than name and namespace
};

}  // namespace rw::k8s::devserver
