#pragma once

#include <string>
#include <string_view>

namespace rw::test {

/// Returns the path of a file of the project, such as "deploy/skr". One source alone is compiled
/// with the project's folder, so that the compiler's cache serves each clone.
std::string source_file(std::string_view path);

}  // namespace rw::test
