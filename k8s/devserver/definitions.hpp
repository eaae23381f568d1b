#pragma once

#include "k8s/devserver/kinds.hpp"
#include "k8s/devserver/problem.hpp"

#include <boost/json/value.hpp>

#include <memory>
#include <string>
#include <string_view>
#include <vector>

namespace rw::k8s::devserver {

class custom_kinds;

inline constexpr std::string_view definitions_key =
    "customresourcedefinitions.apiextensions.k8s.io";

/// Keeps a CustomResourceDefinition that is being deleted until its objects are gone.
inline constexpr std::string_view definition_finalizer =
    "customresourcecleanup.apiextensions.k8s.io";

/// What is wrong with a CustomResourceDefinition (apiextensions.k8s.io/v1). `before` is null for a
/// new one.
void check_definition(const boost::json::value& before, const boost::json::value& definition,
                      std::vector<cause>& found);

/// The parts of a definition that a real API server honours and this one does not, as warnings.
std::vector<std::string> unsupported_parts(const boost::json::value& definition);

/// Does what the controllers of definitions do, but at once: names accepted, conditions set, stored
/// versions noted.
void establish_definition(const custom_kinds& among, boost::json::value& definition,
                          const std::string& now);

/// The resource that a definition makes; null if it is not established.
std::shared_ptr<const resource> make_resource(const boost::json::value& definition);

/// Orders versions as discovery does: v2 before v1 before v1beta2 before v1alpha1, then all others
/// by name (Kubernetes, "Version priority").
bool version_before(std::string_view a, std::string_view b);

}  // namespace rw::k8s::devserver
