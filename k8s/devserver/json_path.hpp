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
/// (`[*]`) and those of which a field has a value (`[?(@.type=="Ready")]`).
class json_path {
 public:
  /// Nothing if it can't be understood, or asks for more than that.
  static std::optional<json_path> parse(std::string_view text);

  /// All values that are there; valid as long as `in`.
  std::vector<const boost::json::value*> find(const boost::json::value& in) const;

  /// Sets the value at a path of names only; false for others.
  bool set(boost::json::value& in, boost::json::value what) const;

 private:
  struct step {
    enum class kind : std::uint8_t { name, index, all, filter };
    kind what;
    std::string name = {};  ///< of the field that a filter looks at, too
    std::int64_t index = 0;
    boost::json::value value = {};  ///< what a filter's field is compared with
    bool equal = true;
  };
  class parser;

  std::vector<step> steps_;
};

}  // namespace rw::k8s::devserver
