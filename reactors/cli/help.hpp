#pragma once

#include <cstddef>
#include <memory>
#include <string_view>

namespace CLI {
class FormatterBase;
}

namespace rw::cli {

/// Text (`option_text`) of an argument that is required unless a flag replaces it: the usage shows
/// it without brackets, and a check of the command's own rejects that both are absent.
inline constexpr std::string_view required_text = "REQUIRED";

/// Returns the columns that help is wrapped to: those of COLUMNS, otherwise of the terminal on
/// standard output, otherwise 80; at least 60.
std::size_t help_columns();

/// Returns what formats the help of a program and of its commands: lines of `columns` at most,
/// except for a longer word, and with the rest of a paragraph indented as its beginning.
std::shared_ptr<CLI::FormatterBase> make_help_formatter(std::size_t columns);

}  // namespace rw::cli
