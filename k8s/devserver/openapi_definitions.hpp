#pragma once

#include "rw/k8s/devserver/builtin_table.hpp"

#include <boost/json/object.hpp>

#include <cstdint>
#include <string>

namespace rw::k8s::devserver {

enum class openapi_version : std::uint8_t { v2, v3 };

/// Returns the name of a Go type in OpenAPI documents, such as "io.k8s.api.core.v1.Pod".
std::string definition_name(const builtin_type& type);

/// Adds the definitions of the type and of all that it refers to, by their names: fields with their
/// types and how patches merge them. What the table does not hold is left out: texts, and which
/// fields are required.
void define_type(boost::json::object& into, const builtin_type& type, openapi_version as);

/// Returns the part of a custom resource's schema that OpenAPI v2 can express (apiextensions-
/// apiserver, "ToStructuralOpenAPIV2"): structure and types, without limits and alternatives.
boost::json::object to_openapi_v2(const boost::json::object& schema);

}  // namespace rw::k8s::devserver
