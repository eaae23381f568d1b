#pragma once

#include <boost/json/value.hpp>

#include <cstddef>
#include <cstdint>
#include <deque>
#include <stdexcept>
#include <string>
#include <string_view>
#include <vector>

namespace rw::k8s {

/// One node of a YAML document; the stream owns it.
struct yaml_node {
  enum class kind : std::uint8_t { null, scalar, sequence, map };

  kind type = kind::null;
  std::size_t line = 0;  ///< of the whole text, counted from 1
  std::string tag = {};  ///< "?": no tag; "!": quoted text
  std::string text = {};
  /// Items of a sequence; of a map its keys and values in turn. With aliases several may be the
  /// same, and a node may even contain itself: a walk over them needs bounds.
  std::vector<const yaml_node*> items = {};
};

/// The text is not YAML, or exceeds the limits.
struct yaml_error : std::runtime_error {
  yaml_error(std::size_t in_document, std::size_t in_line, const std::string& text)
      : std::runtime_error(text), document(in_document), line(in_line) {}

  const std::size_t document;  ///< counted from 1
  const std::size_t line;      ///< counted from 1; 0: not known
};

/// All documents of a YAML text, as yaml-cpp's parser delivers them. Unlike yaml-cpp's own
/// `LoadAll`, which loops endlessly at a "," or "]" outside of brackets, it ends for every text,
/// and it bounds what it reads. Merges (`<<`, yaml.org/type/merge.html) are carried out, and
/// `!!binary` is decoded (yaml.org/type/binary.html), so that readers see neither. Not for public
/// headers.
class yaml_stream {
 public:
  /// Throws yaml_error, also if there are more than `most` nodes.
  yaml_stream(const std::string& text, std::size_t most);

  const std::vector<const yaml_node*>& documents() const noexcept { return documents_; }

 private:
  class builder;

  std::deque<yaml_node> nodes_;
  std::vector<const yaml_node*> documents_;
};

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
  /// Reads at most `most` values in all, and what a JSON text of `bytes` may cost (read_json.hpp),
  /// expanded aliases and merges included.
  yaml_reader(std::size_t most, std::size_t bytes);

  /// Throws yaml_type_error.
  boost::json::value read(const yaml_node& node) { return read(node, 0); }

 private:
  boost::json::value read(const yaml_node& node, unsigned depth);
  boost::json::value map(const yaml_node& node, unsigned depth);
  void charge(const yaml_node& node, std::size_t bytes);
  bool contains(const yaml_node& node, const boost::json::object& of, std::string_view name);

  std::size_t left_;
  std::size_t memory_;
  std::uint64_t comparisons_;
};

}  // namespace rw::k8s
