#pragma once

#include "rw/k8s/objects/failure.hpp"
#include "rw/k8s/objects/yaml.hpp"

#include <boost/json/value.hpp>

#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace rw::k8s {

/// Reads a YAML mapping field by field. Keeps the first error; every later read is empty, so that
/// the caller checks for an error once, at the end. Not for public headers.
class yaml_fields {
 public:
  /// `location` begins the message: "kubeconfig /x: context 'a': user 'b'". A node that is not a
  /// mapping is an error; a null pointer or node is an empty mapping.
  yaml_fields(const yaml_node* node, std::string location);

  /// Returns a field's text; empty if it is missing or null.
  std::string text(const char* name);
  bool flag(const char* name);
  std::vector<std::string> texts(const char* name);
  std::vector<yaml_fields> list(const char* name);
  /// Returns a mapping, empty if it is missing. The caller takes over its error with `take`.
  yaml_fields map(const char* name);
  bool has(const char* name) const;

  /// Returns a field as JSON; "" if it is missing.
  std::string json(const char* name);

  std::vector<std::string> names() const;

  const yaml_node* node() const noexcept { return node_; }

  /// Records an error of a field: "proxy-url has no host".
  void wrong(const std::string& sentence);
  void take(const yaml_fields& from);
  const std::optional<failure>& failed() const noexcept { return failed_; }

 private:
  const yaml_node* field(std::string_view name) const;
  std::vector<const yaml_node*> sequence(const char* name);
  /// Returns a field's value; nothing if it is missing, not JSON (yaml_reader), or too large.
  std::optional<boost::json::value> value(const char* name) const;

  const yaml_node* node_;
  std::string path_;
  std::optional<failure> failed_;
};

}  // namespace rw::k8s
