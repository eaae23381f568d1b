#include "tests/unit/source_dir.hpp"

namespace rw::test {

std::string source_file(std::string_view path) {
  return std::string(RW_SOURCE_DIR "/").append(path);
}

}  // namespace rw::test
