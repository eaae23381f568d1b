#pragma once

#include <string>

namespace rw::cli {

/// Writes a file into `dir`, and creates that if it is missing. Unlike tls::write_files it does not
/// wait for the disk: the files are useless after a crash, and there may be thousands. Throws
/// setting_error that names `--dir` and the error.
void write_file(const std::string& dir, const std::string& name, const std::string& contents,
                unsigned mode);

}  // namespace rw::cli
