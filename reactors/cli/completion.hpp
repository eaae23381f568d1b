#pragma once

#include <string>

namespace CLI {
class App;
}

namespace rw::cli {

/// Returns a script that lets a shell ("bash", "zsh", "fish") complete the commands of a program
/// and their flags. `of` is the program's parser with all commands described. File names are
/// completed for everything else.
std::string completion_script(const CLI::App& of, const std::string& shell);

}  // namespace rw::cli
