#pragma once

#include "json.hpp"
#include <optional>
#include <string>
#include <string_view>

// The paths by which the recorded answers of RW_TEST_KUBE name their parts (README.md there).

namespace rw::conformance {

/// Returns the value at a path such as `$.items[?(@.k=="v")].name` or `$.data.keys()`; nothing if
/// there is none.
std::optional<json> value_at(const json& answer, std::string_view path);

/// Returns the field at a path such as `pb:2.1.17[0].2` or `frame[0]:pb:1` of an answer in
/// protobuf: text, or a number. Nothing if there is none, or if the bytes are malformed.
std::optional<json> protobuf_at(std::string_view body, std::string_view path);

}  // namespace rw::conformance
