#pragma once

#include "k8s/devserver/call.hpp"
#include "k8s/devserver/schema.hpp"
#include "k8s/devserver/write_plan.hpp"

#include <boost/json/value.hpp>

#include <memory>
#include <string>
#include <vector>

// The rules that creations, updates and patches have in common (apiserver, "registry/rest" and the
// strategies of its registries).

namespace rw::k8s::devserver {

bool is_namespace(const call& to) noexcept;

/// A namespace goes when all that was in it has gone: spec.finalizers stand for that.
bool holds_content(const call& to, const boost::json::value& object);

/// A namespace must be there, and neither it nor the kind on its way out, before something is made.
outcome<void> check_room(const call& to);

/// Takes away what the schema does not know; 400 if the client is strict about it.
outcome<void> prune_unknown(const call& to, boost::json::value& object, const write_options& with,
                            std::vector<std::string>& warnings);

/// Warns the client of what a real API server does with such an object and this one does not.
void warn_of_gaps(const call& to, const boost::json::value& object, const write_options& with,
                  std::vector<std::string>& warnings);

void fill_defaults(const call& to, boost::json::value& object);

/// What the object must be like; `before` is null if it is new.
outcome<void> check_object(const call& to, const boost::json::value& before,
                           const boost::json::value& object);

/// True if metadata.generation stays.
bool same_generation(const call& to, const boost::json::value& before,
                     const boost::json::value& after);

/// The status subresource writes status alone, that of a namespace's finalizers those alone, and
/// everything else writes all but what they do. managedFields are written by either.
void keep_other_parts(const call& to, const boost::json::value& before, boost::json::value& after);

/// 409 if the object has a resourceVersion other than the present one; 422 if it must have one.
outcome<void> check_version(const call& to, const boost::json::value& before,
                            const boost::json::value& after);

/// How the kind's fields are merged, and who owns them; never null.
std::shared_ptr<const schema> schema_of(const resource_view& of);

}  // namespace rw::k8s::devserver
