#pragma once

#include "rw/k8s/devserver/field_set.hpp"
#include "rw/k8s/devserver/schema.hpp"

#include <boost/json/value.hpp>

#include <string>
#include <vector>

// Walks objects with their schemas, for server-side apply: fields of an object, differences of two
// objects, merging and removing (structured-merge-diff, typed). Without a schema, objects are
// merged field by field, and lists are one unit.

namespace rw::k8s::devserver {

/// Returns the fields of an applied object. Adds the errors that make it impossible to apply, such
/// as `.spec.ports: duplicate entries for key [port=80,protocol="TCP"]`.
field_set fields_of(const boost::json::value& object, const schema& type,
                    std::vector<std::string>& errors);

struct field_changes {
  field_set added;
  field_set modified;
  field_set removed;
};

/// Returns true if a list or a map of the value, or the value itself, is empty.
bool has_empty_part(const boost::json::value& value, const schema* type);

/// Returns the fields that are owned as a whole, and in which a list or a map is empty. Go's types
/// tell it from one that is absent, which is what is stored: a request that sends such a field
/// always changes it (structured-merge-diff, value/structreflect.go: Equals).
field_set fields_with_empty_parts(const boost::json::value& object, const schema& type);

/// Returns the differences of two objects; null counts as an empty one.
field_changes compare_fields(const boost::json::value& before, const boost::json::value& after,
                             const schema& type);

/// Merges all fields of `from` into `into`; appends new items of lists.
void merge_fields(boost::json::value& into, const boost::json::value& from, const schema& type);

/// Removes the fields and items of a set, with everything below them.
void remove_fields(boost::json::value& object, const field_set& set, const schema& type);

/// Returns the set, with the declared fields added that have a field of the set below them.
field_set with_declared_fields(const field_set& set, const schema& type);

/// Returns the set as the schema has it (structured-merge-diff, typed/reconcile_schema.go): what is
/// atomic is owned as a whole; an owned map or list that is not, of which no part is, is owned with
/// all that `object` has there. That is a change of the schema, and also what is left to a manager
/// whose fields another one has taken over.
field_set reconciled_fields(const field_set& set, const boost::json::value& object,
                            const schema& type);

}  // namespace rw::k8s::devserver
