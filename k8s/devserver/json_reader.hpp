#pragma once

#include <boost/json/value.hpp>

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace rw::k8s::devserver {

/// What becomes of a field that an object has twice: Go replaces it in an object without a type,
/// and decodes a second time into a type's field, whose maps, structs and list items are merged.
enum class repeated_fields : std::uint8_t { replaced, merged };

struct json_document {
  boost::json::value value;
  std::vector<std::string> duplicates =
      {};  ///< paths of repeated fields, such as "data.a"; 16 at most
};

/// Reads JSON as deep as an API server must accept. Returns nothing on failure, with the error in
/// `reason`.
std::optional<json_document> read_json(std::string_view text, repeated_fields repeated,
                                       std::string& reason);

}  // namespace rw::k8s::devserver
