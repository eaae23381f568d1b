// Stands in for libFuzzer: runs the fuzz target over the files and folders that it is given.

#include <cstddef>
#include <cstdint>
#include <cstdio>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <string>

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size);

namespace {

std::size_t replay(const std::filesystem::path& path) {
  if (std::filesystem::is_directory(path)) {
    std::size_t files = 0;
    for (const auto& entry : std::filesystem::directory_iterator(path))
      files += replay(entry.path());
    return files;
  }
  std::ifstream in(path, std::ios::binary);
  const std::string text{std::istreambuf_iterator<char>(in), std::istreambuf_iterator<char>()};
  if (in.bad() || !in.is_open()) return 0;
  // Named before it runs: a crash leaves no other trace of its input.
  std::printf("%s (%zu bytes)\n", path.c_str(), text.size());
  std::fflush(stdout);
  LLVMFuzzerTestOneInput(reinterpret_cast<const std::uint8_t*>(text.data()), text.size());
  return 1;
}

}  // namespace

int main(int argc, char** argv) {
  std::size_t files = 0;
  for (int i = 1; i < argc; ++i) files += replay(argv[i]);
  std::printf("%zu inputs replayed\n", files);
  return files > 0 ? 0 : 1;
}
