#pragma once

#include "rw/k8s/devserver/kinds.hpp"

#include <boost/json/value.hpp>

namespace rw::k8s::devserver {

// Versions of a custom resource differ in apiVersion only (conversion strategy None); the two kinds
// of events name their fields differently.

/// Converts a stored object to the request's group and version, in place.
void to_view(boost::json::value& object, const served_resource& in);
/// Converts an object of the request's group and version to the stored one, in place.
void to_stored(boost::json::value& object, const served_resource& from);

/// Returns true if `to_view` changes more than apiVersion.
bool renames_fields(const served_resource& in) noexcept;

}  // namespace rw::k8s::devserver
