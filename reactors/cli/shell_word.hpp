#pragma once

#include <string>
#include <string_view>

namespace rw::cli {

/// Returns the text as one word of a shell: quoted if it has other than harmless characters. Bytes
/// that are no printable ASCII are in octal within $'...', which bash, ksh and zsh read.
std::string shell_word(std::string_view text);

}  // namespace rw::cli
