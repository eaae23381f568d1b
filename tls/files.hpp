#pragma once

#include "rw/tls/error.hpp"

#include <cstddef>
#include <filesystem>
#include <span>
#include <string>
#include <string_view>

namespace rw::tls {

/// Reads a file of at most 1 MiB. The failure (unreadable_file, too_large) names it and the reason.
result<std::string> read_file(const std::string& name);

/// Reads the file of a private key likewise. A key that others than its owner may read is rejected
/// (exposed_key), but for one on a read-only mount, or in a volume that kubelet keeps in memory:
/// that is how a pod has a Secret, whose mode is for the pod alone.
result<std::string> read_key_file(const std::string& name);

/// A file to write. Private keys have mode 0600.
struct output_file {
  std::string name;
  std::string contents;
  unsigned mode = 0644;
};

/// Writes files into `dir`, and creates that if it is missing. Each file appears atomically
/// (written to a temporary file, then renamed) and has its mode from the start. The failure
/// (unwritable_file) names the file.
result<void> write_files(const std::filesystem::path& dir, std::span<const output_file> files);

}  // namespace rw::tls
