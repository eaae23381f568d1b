#pragma once

#include "k8s/devserver/kinds.hpp"

#include <boost/json/value.hpp>

namespace rw::k8s::devserver {

// Versions of a custom resource differ in apiVersion alone (conversion strategy None); the two
// kinds of events name their fields differently.

/// Turns a stored object into one of the request's group and version, in place.
void to_view(boost::json::value& object, const resource_view& in);
/// The other way round.
void to_stored(boost::json::value& object, const resource_view& from);

/// True if `to_view` changes more than apiVersion.
bool renames_fields(const resource_view& in) noexcept;

}  // namespace rw::k8s::devserver
