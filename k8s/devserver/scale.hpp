#pragma once

#include "rw/k8s/devserver/kinds.hpp"
#include "rw/k8s/devserver/problem.hpp"

#include <boost/json/value.hpp>

#include <string_view>

// The scale subresource (autoscaling/v1, Scale): the replicas of an object in a form that is the
// same for all kinds (apiextensions/v1, CustomResourceSubresourceScale).

namespace rw::k8s::devserver {

inline constexpr std::string_view scale_subresource = "scale";

group_version_kind scale_kind();

/// Returns the object as a Scale, for kinds that have one; missing numbers are 0.
boost::json::value scale_of(const served_resource& of, const boost::json::value& object);

/// Writes spec.replicas of a Scale into the object; 422 if they are invalid.
outcome<void> set_scale(const served_resource& of, boost::json::value& object,
                        const boost::json::value& scale);

/// Formats a selector as text, in the order of its keys: a metav1.LabelSelector, a map of labels as
/// in ReplicationControllers, or a text.
std::string selector_text(const boost::json::value& selector);

}  // namespace rw::k8s::devserver
