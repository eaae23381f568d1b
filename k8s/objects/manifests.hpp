#pragma once

#include "rw/k8s/objects/names.hpp"

#include <boost/assert/source_location.hpp>
#include <boost/json/value.hpp>
#include <boost/system/result.hpp>

#include <cstddef>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace rw::k8s {

/// Limits of a text of manifests. Aliases let a short text expand without end, so the limit counts
/// values after expansion.
struct manifest_limits {
  std::size_t bytes = 8u << 20;
  std::size_t values = 500'000;
};

/// Why a text is not a list of manifests.
struct manifest_error {
  std::size_t document = 0;  ///< counted from 1; 0: the text as a whole
  std::size_t line = 0;      ///< counted from 1, of the whole text; 0: not known
  std::string text = {};     ///< the end of a sentence, such as "kind is missing"

  /// "document 2, line 14: kind is missing".
  std::string message() const;
};

template <class T>
using manifest_result = boost::system::result<T, manifest_error>;
[[noreturn]] void throw_exception_from_error(const manifest_error& defect,
                                             const boost::source_location& location);

/// Parses a YAML stream of Kubernetes objects, as `kubectl apply -f` does: the YAML parser
/// separates documents (a "---" inside a block of text is text), skips empty ones, and expands a
/// `kind: List`. Unquoted scalars are typed as in kubectl (sigs.k8s.io/yaml over go-yaml 2): `yes`
/// and `on` are true, 0644 is octal, times stay text. Anchors, aliases and merge keys (`<<`) work.
///
/// Stricter than kubectl for faulty manifests: rejects duplicate keys, tags other than those of
/// YAML's core schema, numbers that JSON does not have, and documents without apiVersion, kind or
/// metadata.name.
manifest_result<std::vector<boost::json::value>> parse_manifests(const std::string& text,
                                                                 manifest_limits limits = {});

/// Returns the resource of a kind that every API server has; nothing for other kinds, which
/// discovery finds (client::find).
std::optional<resource_type> well_known_type(std::string_view api_version, std::string_view kind);

/// Returns the rank of a kind in the order of application, the smallest first: namespaces, then
/// what other objects need (definitions, priority classes, accounts, rights, policies,
/// configuration), then services, workloads, other and custom objects, and webhook configurations
/// last, so that the API server calls no webhook before it runs. The order follows Helm's
/// InstallOrder.
int apply_rank(std::string_view api_version, std::string_view kind) noexcept;

/// Sorts by that rank; objects of the same rank keep their order. Removal uses the reverse order.
void sort_for_apply(std::vector<boost::json::value>& objects);

}  // namespace rw::k8s
