#pragma once

#include <string>

namespace rw::dev {

/// Writes a file into `dir`, which is made where it is missing. Unlike tls::write_files it does not
/// wait for the disk: what is written is of no use after a crash, and there may be thousands.
/// Throws setting_error that names `--dir` and says why.
void write_file(const std::string& dir, const std::string& name, const std::string& contents,
                unsigned mode);

}  // namespace rw::dev
