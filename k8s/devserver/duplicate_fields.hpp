#pragma once

#include <string>
#include <string_view>
#include <vector>

namespace rw::k8s::devserver {

/// Returns the paths of fields that JSON has twice in one object, such as "data.a"; 16 at most. The
/// text is valid JSON.
std::vector<std::string> duplicate_fields(std::string_view text);

}  // namespace rw::k8s::devserver
