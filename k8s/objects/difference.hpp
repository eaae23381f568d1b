#pragma once

#include <boost/json/value.hpp>

#include <optional>
#include <string>
#include <string_view>

namespace rw::k8s {

/// Where an object in a cluster is not as `desired` says: the path of the first such field, such as
/// "spec.template.spec.containers[server].image"; none if it holds everything. Then applying it
/// would change nothing, and a read was enough.
///
/// Only fields of `desired` count: what the API server adds by default, and what other managers
/// set, is no difference. Values are compared as Kubernetes means them:
///   - Lists that server-side apply merges are compared by their keys (containers, volumes, env and
///     webhooks by name; ports by number and protocol; mounts by path): elements that others have
///     added, and the order, do not count. Other lists, and those where two elements have the same
///     keys, are compared element by element.
///   - Selectors are compared whole, since a further label in one changes what it selects.
///   - Quantities are compared by value: "0.01" is "10m".
///   - Null means nothing is asked for; false, zero, and an empty string, list or mapping are the
///     same as none, as Go writes them, but for the few fields where none means true.
///   - A Secret's stringData is compared with its data.
std::optional<std::string> find_difference(const boost::json::value& desired,
                                           const boost::json::value& live);

/// True if two quantities (k8s.io/apimachinery/pkg/api/resource) are the same amount; texts that
/// are no quantities are compared as texts.
bool same_quantity(std::string_view a, std::string_view b);

}  // namespace rw::k8s
