#pragma once

#include "rw/core/backoff.hpp"
#include "rw/k8s/devserver/call.hpp"
#include "rw/k8s/devserver/problem.hpp"

#include <boost/json/value.hpp>

#include <string>
#include <string_view>
#include <vector>

// The rules of metadata (Kubernetes API conventions, "Metadata"; apimachinery, ObjectMeta).

namespace rw::k8s::devserver {

/// Checks that `object` can be read as the kind that the path names. Sets missing apiVersion and
/// kind from the path.
outcome<void> check_decodable(const call& to, boost::json::value& object);

/// Checks that `object` is of the kind that the path names. Sets missing apiVersion, kind and
/// namespace from the path; clears the namespace of cluster-scoped kinds.
outcome<void> check_envelope(const call& to, boost::json::value& object);

/// Gives a new object its name (from generateName, if it has none), uid and creationTimestamp, and
/// removes fields that only the server sets.
void begin_life(boost::json::value& object, const std::string& now, core::random_source& random);

/// Restores fields that a writer can't change: an update may omit them.
void keep_identity(const boost::json::value& before, boost::json::value& after);

void check_metadata(const resource& of, const boost::json::value& object,
                    std::vector<cause>& found);
void check_metadata_change(const boost::json::value& before, const boost::json::value& after,
                           std::vector<cause>& found);

bool is_being_deleted(const boost::json::value& object) noexcept;
/// Returns metadata.finalizers; empty if there are none.
std::vector<std::string> finalizers_of(const boost::json::value& object);
void set_finalizers(boost::json::value& object, const std::vector<std::string>& names);

/// Removes fields of metadata that are null or empty maps and lists, as kube-apiserver omits them;
/// except managedFields, where an empty list has a meaning.
void tidy_metadata(boost::json::value& object);

/// Returns a random UUID (RFC 9562, version 4).
std::string make_uid(core::random_source& random);

}  // namespace rw::k8s::devserver
