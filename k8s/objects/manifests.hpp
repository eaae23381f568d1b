#pragma once

#include "k8s/objects/names.hpp"

#include <boost/assert/source_location.hpp>
#include <boost/json/value.hpp>
#include <boost/system/result.hpp>

#include <cstddef>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace rw::k8s {

/// What a text of manifests may grow to. Aliases let a short text stand for an endless one, so it
/// is the values that count, after all aliases are followed.
struct manifest_limits {
  std::size_t bytes = 8u << 20;
  std::size_t values = 500'000;
};

/// Why a text is no list of manifests.
struct manifest_defect {
  std::size_t document = 0;  ///< counted from 1; 0: the text as a whole
  std::size_t line = 0;      ///< counted from 1, of the whole text; 0: not known
  std::string text = {};     ///< a sentence's end, such as "kind is missing"

  /// "document 2, line 14: kind is missing".
  std::string message() const;
};

template <class T>
using manifest_result = boost::system::result<T, manifest_defect>;
[[noreturn]] void throw_exception_from_error(const manifest_defect& defect,
                                             const boost::source_location& where);

/// Reads a YAML stream of Kubernetes objects, as `kubectl apply -f` does: documents are told apart
/// by the YAML parser (a "---" inside a block of text is text), empty ones are skipped, a `kind:
/// List` is taken apart. What is not quoted is typed as kubectl has it (sigs.k8s.io/yaml over
/// go-yaml 2): `yes` and `on` are true, 0644 is octal, times stay text. Anchors, aliases and merge
/// keys (`<<`) work.
///
/// Stricter than kubectl where a manifest can't mean what it says: the same key twice, a tag other
/// than those of YAML's core schema, and numbers that JSON does not have are refused, and so is a
/// document without apiVersion, kind or metadata.name.
manifest_result<std::vector<boost::json::value>> parse_manifests(const std::string& text,
                                                                 manifest_limits limits = {});

/// The resource of an object of a kind that every API server has; none for others, which discovery
/// finds (client::find).
std::optional<resource_type> well_known_type(std::string_view api_version, std::string_view kind);

/// Where a kind stands in the order of application, the smallest first: namespaces, then what other
/// objects need (definitions, priority classes, accounts, rights, policies, configuration), then
/// services, workloads, other and custom objects, and webhook configurations last, so that nothing
/// calls what does not run yet. Helm's InstallOrder has the idea.
int apply_rank(std::string_view api_version, std::string_view kind) noexcept;

/// Sorts by that rank; objects of the same rank keep their order. Removal goes the other way.
void sort_for_apply(std::vector<boost::json::value>& objects);

}  // namespace rw::k8s
