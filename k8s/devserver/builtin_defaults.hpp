#pragma once

#include "rw/k8s/devserver/builtin_table.hpp"

#include <boost/json/object.hpp>

namespace rw::k8s::devserver {

/// Adds the defaults of a Go type's fields, in place (idempotent): those of this folder's list,
/// which no package of types holds, and those of the OpenAPI document.
void apply_defaults(const builtin_type& type, boost::json::object& object);

}  // namespace rw::k8s::devserver
