#pragma once

#include "rw/k8s/devserver/problem.hpp"
#include "rw/k8s/devserver/schema.hpp"

#include <boost/json/value.hpp>

namespace rw::k8s::devserver {

// Patches are untrusted: the parser limits their depth, and that of the target, and all of these
// recurse no deeper than the two together.

/// Applies a JSON merge patch (RFC 7386), in place.
void merge_patch(boost::json::value& target, const boost::json::value& change);

/// Applies a JSON patch (RFC 6902). After a problem `target` is unspecified. Bounded in operations
/// (10,000, as in kube-apiserver), in what copies add (3 MiB, as there) and in depth.
///
/// Beyond the RFC, as in kube-apiserver: a negative index counts from the end of a list, an
/// operation without `value` means null, and `test` for null holds if the field is missing.
/// Problems: 400 for an invalid patch, 413 for too many operations, 422 for an operation that
/// fails.
outcome<void> json_patch(boost::json::value& target, const boost::json::value& operations);

/// Applies a strategic merge patch (Kubernetes: "Update API Objects in Place Using kubectl patch"),
/// with `$patch`, `$retainKeys`, `$deleteFromPrimitiveList` and `$setElementOrder`. New items of a
/// list precede present ones, unless the patch gives an order. After a problem `target` is
/// unspecified.
///
/// A missing list is treated as an empty one. (kube-apiserver stores the patch's list as it is,
/// directives included.) A contradictory patch gets kube-apiserver's status: 400, or 500 without a
/// reason.
outcome<void> strategic_merge_patch(boost::json::value& target, const boost::json::value& change,
                                    const schema& type);

}  // namespace rw::k8s::devserver
