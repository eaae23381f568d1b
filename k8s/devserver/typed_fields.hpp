#pragma once

#include "k8s/devserver/field_set.hpp"
#include "k8s/devserver/schema.hpp"

#include <boost/json/value.hpp>

#include <string>
#include <vector>

// Walks over objects with their schemas, for server-side apply: which fields there are, how two
// objects differ, merging and removing (structured-merge-diff, typed). Without a schema, objects
// are merged field by field, and lists are one piece.

namespace rw::k8s::devserver {

/// The fields of an object that is applied. What makes it impossible to apply is added to `errors`,
/// such as `.spec.ports: duplicate entries for key [port=80,protocol="TCP"]`.
field_set fields_of(const boost::json::value& object, const schema& type,
                    std::vector<std::string>& errors);

struct field_changes {
  field_set added;
  field_set modified;
  field_set removed;
};

/// How two objects differ; null counts as an empty one.
field_changes compare_fields(const boost::json::value& before, const boost::json::value& after,
                             const schema& type);

/// Puts all that `from` has into `into`; items of lists that are new there go to the end.
void merge_fields(boost::json::value& into, const boost::json::value& from, const schema& type);

/// Removes the fields and items of a set, with all that is below them.
void remove_fields(boost::json::value& object, const field_set& set, const schema& type);

/// The set with the fields in it that the type declares and that something below them is in it of.
field_set with_declared_fields(const field_set& set, const schema& type);

}  // namespace rw::k8s::devserver
