#pragma once

#include "k8s/devserver/problem.hpp"
#include "k8s/devserver/schema.hpp"

#include <boost/json/value.hpp>

#include <string>

namespace rw::k8s::devserver {

/// Who writes, for metadata.managedFields (Kubernetes API concepts, "Server-Side Apply").
struct field_writer {
  std::string manager;
  std::string api_version;
  std::string subresource = {};
  std::string time;  ///< RFC 3339
};

/// Server-side apply of `applied` to `live` (null: the object does not exist yet). The result has
/// its managedFields up to date, and is `live` itself, times and all, if nothing changes. Fields
/// that another manager owns with another value are a conflict (409, reason Conflict, one cause
/// FieldManagerConflict for each) unless `force`; fields that this manager owned and does not apply
/// any more are removed unless others own them. Other problems: 400 if `applied` has managedFields,
/// 500 without a reason, as with the real API server, where it does not fit the schema (no list
/// where there should be one, duplicate keys, unknown fields).
///
/// What was written before the first apply to an object without managedFields belongs to the
/// manager "before-first-apply". That `applied` is for this object (name, kind, resourceVersion) is
/// for the caller to check.
///
/// Unlike Kubernetes 1.20, and like later ones: empty objects are owned too, and what is below
/// x-kubernetes-preserve-unknown-fields is owned field by field.
outcome<boost::json::value> apply(const boost::json::value& live, const boost::json::value& applied,
                                  const schema& type, const field_writer& by, bool force);

/// Keeps managedFields up to date over a write that is no apply: what differs between `before`
/// (null: created) and `after` belongs to the writer from now on. To be called once `after` is what
/// will be stored, and not if it is what was stored.
///
/// managedFields that the client sent count, where they are valid; `[]` and `[{}]` switch them off.
/// An object without managedFields gets none (only an apply brings them back). Time changes only
/// when the writer's set of fields does. The oldest of more than ten updates are merged into
/// "ancient-changes".
void track_update(const boost::json::value& before, boost::json::value& after, const schema& type,
                  const field_writer& by);

}  // namespace rw::k8s::devserver
