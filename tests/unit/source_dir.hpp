#pragma once

#include <string>
#include <string_view>

namespace rw::test {

/// Returns the path of a file of the project, such as "deploy/skr". One source alone knows the
/// project's folder.
std::string source_file(std::string_view path);

}  // namespace rw::test
