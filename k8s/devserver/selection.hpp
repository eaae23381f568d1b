#pragma once

#include "k8s/devserver/field_selector.hpp"
#include "k8s/devserver/kinds.hpp"
#include "k8s/devserver/storage.hpp"
#include "k8s/devserver/target.hpp"
#include "k8s/objects/label_selector.hpp"

#include <string>

namespace rw::k8s::devserver {

/// Which objects of a collection a list, watch or deletecollection is about.
class selection {
 public:
  /// By namespace (empty: all) and, where `key` has one, name; and by the selectors of a query.
  /// 400 for selectors that can't be parsed, or name a field that the kind does not support.
  static outcome<selection> parse(const object_key& key, const query& parameters,
                                  const resource& of);

  bool matches(const record& one) const;
  const std::string& ns() const noexcept { return ns_; }
  /// True if selectors choose among the objects of the namespace.
  bool selective() const noexcept { return !labels_.empty() || !fields_.empty() || !name_.empty(); }

 private:
  bool matches_fields(const record& one) const;

  std::string ns_;
  std::string name_;
  label_selector labels_;
  field_selector fields_;
  bool by_content_ = false;  // a field other than name and namespace is asked for
};

}  // namespace rw::k8s::devserver
