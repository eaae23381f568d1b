#pragma once

#include <cstddef>
#include <cstdint>
#include <deque>
#include <stdexcept>
#include <string>
#include <vector>

namespace rw::k8s {

/// One node of a YAML document; the stream owns it.
struct yaml_node {
  enum class kind : std::uint8_t { null, scalar, sequence, map };

  kind what = kind::null;
  std::size_t line = 0;  ///< of the whole text, counted from 1
  std::string tag = {};  ///< "?": there is none; "!": the text was quoted
  std::string text = {};
  /// Of a sequence; of a map its keys and values in turn. With aliases several may be the same, and
  /// a node may even contain itself: who walks along them needs bounds.
  std::vector<const yaml_node*> items = {};
};

/// Why a text is not YAML, or too much of it.
struct yaml_error : std::runtime_error {
  yaml_error(std::size_t in_document, std::size_t in_line, const std::string& text)
      : std::runtime_error(text), document(in_document), line(in_line) {}

  const std::size_t document;  ///< counted from 1
  const std::size_t line;      ///< counted from 1; 0: not known
};

/// All documents of a YAML text, as yaml-cpp's parser tells them. Unlike its own `LoadAll` it ends
/// for every text (that goes on for ever at a "," or "]" outside of brackets), and it is bounded
/// while it reads. Not for public headers.
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

}  // namespace rw::k8s
