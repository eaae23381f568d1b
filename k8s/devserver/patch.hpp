#pragma once

#include "k8s/devserver/problem.hpp"
#include "k8s/devserver/schema.hpp"

#include <boost/json/value.hpp>

namespace rw::k8s::devserver {

// Patches come from outside: their depth, and that of the target, is what the parser allowed, and
// all of these go no deeper than the two together.

/// JSON merge patch (RFC 7386), in place.
void merge_patch(boost::json::value& target, const boost::json::value& change);

/// JSON patch (RFC 6902). All or nothing: on a problem `target` is void. Bounded in operations
/// (10,000, as the real one), in what copies add (3 MiB, as the real one) and in depth.
///
/// Beyond the RFC, as the real one does it: a negative index counts from the end of a list, an
/// operation without `value` means null, and `test` for null holds where the field is missing.
/// Problems: 400 for what is no patch, 413 for too many operations, 422 for what can't be done.
outcome<void> json_patch(boost::json::value& target, const boost::json::value& operations);

/// Strategic merge patch (Kubernetes: "Update API Objects in Place Using kubectl patch"), with
/// `$patch`, `$retainKeys`, `$deleteFromPrimitiveList` and `$setElementOrder`. New items of a list
/// stand before those that were there, unless an order is given. On a problem `target` is void.
///
/// A list that is not there yet is treated as an empty one. (The real API server takes it as it is,
/// directives and all.) A patch that contradicts itself gets the status of the real one: 400, or
/// 500 without a reason.
outcome<void> strategic_merge_patch(boost::json::value& target, const boost::json::value& change,
                                    const schema& type);

}  // namespace rw::k8s::devserver
