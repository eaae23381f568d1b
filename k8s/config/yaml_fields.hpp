#pragma once

#include "k8s/objects/failure.hpp"
#include "k8s/objects/yaml_stream.hpp"

#include <boost/json/value.hpp>

#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace rw::k8s {

/// Reads a YAML mapping field by field. The first thing that is wrong is kept, and what is asked
/// for afterwards is empty, so that it need be looked at once, at the end. Not for public headers.
class yaml_fields {
 public:
  /// `where` begins the message: "kubeconfig /x: context 'a': user 'b'". A node that is no mapping
  /// is wrong; null, or one that is null, is an empty mapping.
  yaml_fields(const yaml_node* node, std::string where);

  /// A field's text; empty where it is missing or null.
  std::string text(const char* name);
  bool flag(const char* name);
  std::vector<std::string> texts(const char* name);
  /// A list of mappings.
  std::vector<yaml_fields> list(const char* name);
  /// A mapping, empty where it is missing; its failure is to be taken over with `take`.
  yaml_fields map(const char* name);
  bool has(const char* name) const;

  /// Everything below a field as JSON; "" where it is missing.
  std::string json(const char* name);

  /// The names of the mapping's fields.
  std::vector<std::string> names() const;

  const yaml_node* node() const noexcept { return node_; }

  /// Notes that a field is wrong: "proxy-url has no host".
  void wrong(const std::string& sentence);
  void take(const yaml_fields& from);
  const std::optional<failure>& failed() const noexcept { return failed_; }

 private:
  const yaml_node* field(std::string_view name) const;
  std::vector<const yaml_node*> sequence(const char* name);
  /// A field that is there; none if it is no JSON (yaml_reader), or too much of it.
  std::optional<boost::json::value> value(const char* name) const;

  const yaml_node* node_;
  std::string where_;
  std::optional<failure> failed_;
};

}  // namespace rw::k8s
