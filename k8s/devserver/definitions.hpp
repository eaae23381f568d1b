#pragma once

#include "rw/k8s/devserver/kinds.hpp"
#include "rw/k8s/devserver/problem.hpp"

#include <boost/json/value.hpp>

#include <memory>
#include <string>
#include <string_view>
#include <vector>

namespace rw::k8s::devserver {

class custom_kinds;

inline constexpr std::string_view definitions_key =
    "customresourcedefinitions.apiextensions.k8s.io";

/// Keeps a CustomResourceDefinition that is being deleted until its objects are deleted.
inline constexpr std::string_view definition_finalizer =
    "customresourcecleanup.apiextensions.k8s.io";

/// Adds the errors of a CustomResourceDefinition (apiextensions.k8s.io/v1). `before` is null for a
/// new one.
void check_definition(const boost::json::value& before, const boost::json::value& definition,
                      std::vector<cause>& found);

/// Returns warnings of the parts of a definition that kube-apiserver honours and this server does
/// not.
std::vector<std::string> unsupported_parts(const boost::json::value& definition);

/// Does at once what the controllers of definitions do: accepts names, sets conditions, records
/// stored versions.
void establish_definition(const custom_kinds& among, boost::json::value& definition,
                          const std::string& now);

/// Returns the resource of a definition; null if it is not established.
std::shared_ptr<const resource> make_resource(const boost::json::value& definition);

/// Orders versions as discovery does: v2 before v1 before v1beta2 before v1alpha1, then all others
/// by name (Kubernetes, "Version priority").
bool version_before(std::string_view a, std::string_view b);

}  // namespace rw::k8s::devserver
