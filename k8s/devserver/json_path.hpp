#pragma once

#include <boost/json/value.hpp>

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace rw::k8s::devserver {

/// The part of kubectl's JSONPath (Kubernetes, "JSONPath Support") that columns and the scale
/// subresource use: names (`.a.b`, `['a.b']`, `.a\.b`), indexes (`[0]`, `[-1]`), all elements
/// (`[*]`) and those with a field of a given value (`[?(@.type=="Ready")]`).
class json_path {
 public:
  /// Returns nothing if the text is invalid, or uses more than that.
  static std::optional<json_path> parse(std::string_view text);

  /// Returns all values at the path; valid as long as `in`.
  std::vector<const boost::json::value*> find(const boost::json::value& in) const;

  /// Sets the value at a path of names only; returns false for others.
  bool set(boost::json::value& in, boost::json::value value) const;

 private:
  struct step {
    enum class kind : std::uint8_t { name, index, all, filter };
    kind form;
    std::string name = {};  ///< also of the field that a filter compares
    std::int64_t index = 0;
    boost::json::value value = {};  ///< the value that a filter compares with
    bool equal = true;
  };
  class parser;

  std::vector<step> steps_;
};

}  // namespace rw::k8s::devserver
