#pragma once

#include "rw/k8s/devserver/field_set.hpp"
#include "rw/k8s/devserver/problem.hpp"
#include "rw/k8s/devserver/schema.hpp"

#include <boost/json/value.hpp>

#include <string>

namespace rw::k8s::devserver {

/// The author of a write, for metadata.managedFields (Kubernetes API concepts, "Server-Side
/// Apply").
struct field_writer {
  std::string manager;
  std::string api_version;
  std::string subresource = {};
  std::string time;  ///< RFC 3339
};

/// Server-side apply of `applied` to `live` (null: the object does not exist yet). Returns the
/// object with its managedFields up to date, or `live` itself, times included, if nothing changes.
/// Fields that another manager owns with another value are a conflict (409, reason Conflict, one
/// cause FieldManagerConflict for each) unless `force`. Fields that this manager owned and no
/// longer applies are removed unless others own them. Other problems, as with kube-apiserver: 400
/// if `applied` has managedFields, 500 without a reason if it does not match the schema (not a
/// list, duplicate keys, unknown fields).
///
/// Fields written before the first apply to an object without managedFields belong to the manager
/// "before-first-apply". The caller checks that `applied` is for this object (name, kind,
/// resourceVersion).
///
/// Unlike Kubernetes 1.20, and like later versions: empty objects are owned too, and fields below
/// x-kubernetes-preserve-unknown-fields are owned one by one.
outcome<boost::json::value> apply(const boost::json::value& live, const boost::json::value& applied,
                                  const schema& type, const field_writer& by, bool force);

/// Updates managedFields after a write that is not an apply: the differences between `before`
/// (null: created) and `after` belong to the writer from now on. Called once `after` is what will
/// be stored, and not if it is what was stored.
///
/// managedFields that the client sent count if they are valid; `[]` and `[{}]` switch them off. An
/// object without managedFields gets none (only an apply restores them). Time changes only when the
/// writer's set of fields does. The oldest of more than ten updates are merged into
/// "ancient-changes".
///
/// Fields of `rewritten` that the object has before and after count as changed though they are
/// equal.
void track_update(const boost::json::value& before, boost::json::value& after, const schema& type,
                  const field_writer& by, field_set rewritten = {});

}  // namespace rw::k8s::devserver
