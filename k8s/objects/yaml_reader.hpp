#pragma once

#include "k8s/objects/yaml_stream.hpp"

#include <boost/json/value.hpp>

#include <cstddef>
#include <stdexcept>
#include <string>

namespace rw::k8s {

/// A node can't be read; ends the reading of the text.
struct yaml_type_error : std::runtime_error {
  yaml_type_error(const yaml_node& at, const std::string& text)
      : std::runtime_error(text), line(at.line) {}
  const std::size_t line;
};

/// Reads YAML as JSON, by the rules of Kubernetes (sigs.k8s.io/yaml over go-yaml 2; manifests.hpp
/// states them). Not for public headers.
class yaml_reader {
 public:
  /// Reads at most `most` values in all, expanded aliases included.
  explicit yaml_reader(std::size_t most) : left_(most) {}

  /// Throws yaml_type_error.
  boost::json::value read(const yaml_node& node) { return read(node, 0); }

 private:
  boost::json::value read(const yaml_node& node, unsigned depth);
  boost::json::value map(const yaml_node& node, unsigned depth);
  void merge(const yaml_node& from, boost::json::object& into, unsigned depth);

  std::size_t left_;
};

}  // namespace rw::k8s
