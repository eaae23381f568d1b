#pragma once

#include "rw/k8s/devserver/field_set.hpp"

#include <boost/json/value.hpp>

#include <string>
#include <vector>

namespace rw::k8s::devserver {

/// One entry of metadata.managedFields.
struct field_manager {
  std::string name;
  bool applies = false;  ///< operation Apply, otherwise Update
  std::string api_version;
  std::string subresource = {};
  std::string time = {};  ///< RFC 3339
  field_set fields = {};

  bool same(const field_manager& other) const noexcept;
  /// Formats it for messages about conflicts.
  std::string printed() const;

  friend bool operator==(const field_manager&, const field_manager&) = default;
};

/// metadata.managedFields of an object: the owners of its fields.
class field_managers {
 public:
  /// Returns those of the object; none if there are none, or they are invalid.
  static field_managers of(const boost::json::value& object);
  /// Returns true if the object resets managedFields: `[]` or `[{}]`.
  static bool reset_by(const boost::json::value& object);

  bool empty() const noexcept { return all_.empty(); }
  std::vector<field_manager>& all() noexcept { return all_; }
  const std::vector<field_manager>& all() const noexcept { return all_; }

  field_manager* find(const field_manager& like);
  /// Replaces the fields of an entry; adds the entry if it is missing.
  field_manager& set(const field_manager& like, field_set fields);
  void remove_empty();

  /// Merges the oldest updates until no more than ten are left.
  void merge_ancient();

  /// Writes them to the object, in kube-apiserver's order.
  void write_to(boost::json::value& object);

  friend bool operator==(const field_managers&, const field_managers&) = default;

 private:
  std::vector<field_manager> all_;
};

}  // namespace rw::k8s::devserver
