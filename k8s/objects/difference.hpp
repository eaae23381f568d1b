#pragma once

#include <boost/json/value.hpp>

#include <optional>
#include <string>
#include <string_view>

namespace rw::k8s {

/// Compares an object in a cluster with `desired`. Returns the path of the first field that
/// differs, such as "spec.template.spec.containers[server].image"; nothing if the object matches.
/// Then an apply would change nothing.
///
/// Only fields of `desired` count: defaults of the API server, and fields of other managers, are no
/// difference. Values are compared by the semantics of Kubernetes:
/// - Lists that server-side apply merges are compared by their keys (containers, volumes, env and
///   webhooks by name; ports by number and protocol; mounts by path). Elements of other managers,
///   and the order, do not count. Other lists, and lists with duplicate keys, are compared element
///   by element.
/// - Selectors are compared as a whole, since a further label in one changes what it selects.
/// - Quantities are compared by value: "0.01" is "10m".
/// - Null demands nothing. False, zero, and an empty string, list or mapping equal an absent field,
///   as Go writes them, except for the few fields that default to true.
/// - A Secret's stringData is compared with its data.
std::optional<std::string> find_difference(const boost::json::value& desired,
                                           const boost::json::value& live);

/// Returns true if two quantities (k8s.io/apimachinery/pkg/api/resource) are equal; texts that are
/// not quantities are compared as texts.
bool same_quantity(std::string_view a, std::string_view b);

}  // namespace rw::k8s
