#pragma once

#include "rw/k8s/devserver/builtin_table.hpp"
#include "rw/k8s/devserver/call.hpp"
#include "rw/k8s/devserver/schema.hpp"
#include "rw/k8s/devserver/write_plan.hpp"

#include <boost/json/value.hpp>

#include <memory>
#include <string>
#include <vector>

// The common rules of creations, updates and patches (apiserver, "registry/rest" and the strategies
// of its registries).

namespace rw::k8s::devserver {

bool is_namespace(const call& to) noexcept;

/// Returns true while a namespace has content, for which spec.finalizers stand: it is deleted after
/// that.
bool holds_content(const call& to, const boost::json::value& object);

/// Checks that the namespace of a new object exists, and that neither it nor the kind is being
/// deleted.
outcome<void> check_room(const call& to);

/// Decodes a built-in object (400 if that fails), and removes fields that the schema does not know;
/// 400 if the client requests strict validation.
outcome<void> prune_unknown(const call& to, boost::json::value& object, const write_options& with);

/// Reports what kube-apiserver does with such an object and this server does not: as warnings, or
/// 501 (`call::refuse_unsupported`).
outcome<void> report_gaps(const call& to, const boost::json::value& object, bool creates);

/// `applied`: the object is not what a client has sent as a whole, and nulls in it are values.
void fill_defaults(const call& to, boost::json::value& object, bool applied);

/// Makes empty lists of a built-in object null, as they are stored.
void store_empty_lists(const call& to, boost::json::value& object);

/// Checks the object; `before` is null if it is new.
outcome<void> check_object(const call& to, const boost::json::value& before,
                           const boost::json::value& object);

/// 403 for a role, or a binding to one, with rights that the user lacks (roles.hpp).
outcome<void> check_rights(const call& to, const boost::json::value& before,
                           const boost::json::value& object);

/// Returns true if metadata.generation stays.
bool same_generation(const call& to, const boost::json::value& before,
                     const boost::json::value& after);

/// Restores the parts of `before` that the request must not write. The status subresource writes
/// status and the metadata that the kind does not keep (resource::status_keeps), that of a
/// namespace's finalizers those only, and all others write everything else. Each writes
/// managedFields.
void keep_other_parts(const call& to, const boost::json::value& before, boost::json::value& after);

/// 409 if the object has a resourceVersion other than the current one; 422 if it must have one.
outcome<void> check_version(const call& to, const boost::json::value& before,
                            const boost::json::value& after);

/// Returns the Go type of a built-in kind; null if the table has none.
const builtin_type* builtin_type_of(const served_resource& of);

/// Returns the schema of the kind's fields; never null.
std::shared_ptr<const schema> schema_of(const served_resource& of);

}  // namespace rw::k8s::devserver
