#include "rw/reactors/cli/help.hpp"

#include <CLI/CLI.hpp>

#include <algorithm>
#include <charconv>
#include <cstdlib>
#include <string>
#include <string_view>
#include <sys/ioctl.h>
#include <unistd.h>

namespace rw::cli {
namespace {

constexpr std::size_t least_columns = 60;
constexpr std::size_t usual_columns = 80;
/// Indentation of the rest of a flag's name, type and variable.
constexpr std::size_t name_indent = 6;

/// Returns a paragraph whose first line begins in column `at`, and all others, of `columns` at
/// most, in column `indent`. A word that is longer than a line is broken behind a comma.
std::string wrapped(std::string_view text, std::size_t at, std::size_t indent,
                    std::size_t columns) {
  const auto line = "\n" + std::string(indent, ' ');
  std::string out;
  for (const auto* separator = ""; !text.empty(); separator = " ") {
    const auto end = std::min(text.find(' '), text.size());
    auto word = text.substr(0, end);
    text.remove_prefix(std::min(end + 1, text.size()));
    if (*separator != '\0' && at + 1 + word.size() > columns) {
      out += line;
      at = indent;
      separator = "";
    }
    out += separator;
    at += std::string_view(separator).size();
    while (at + word.size() > columns) {
      const auto comma = word.substr(0, columns - std::min(at, columns)).rfind(',');
      if (comma == std::string_view::npos) break;
      out.append(word, 0, comma + 1) += line;
      word.remove_prefix(comma + 1);
      at = indent;
    }
    out += word;
    at += word.size();
  }
  return out;
}

/// Returns the paragraphs of a text, which newlines separate.
std::string wrapped_paragraphs(std::string_view text, std::size_t columns) {
  std::string out;
  while (!text.empty()) {
    const auto end = std::min(text.find('\n'), text.size());
    out += wrapped(text.substr(0, end), 0, 0, columns) + "\n";
    text.remove_prefix(std::min(end + 1, text.size()));
  }
  return out;
}

class help_formatter final : public CLI::Formatter {
 public:
  explicit help_formatter(std::size_t columns) : columns_(columns) {}

  std::string make_description(const CLI::App* app) const override {
    return wrapped_paragraphs(CLI::Formatter::make_description(app), columns_);
  }

  std::string make_footer(const CLI::App* app) const override {
    return wrapped_paragraphs(CLI::Formatter::make_footer(app), columns_);
  }

  std::string make_option(const CLI::Option* option, bool positional) const override {
    return entry(make_option_name(option, positional) + make_option_opts(option),
                 make_option_desc(option));
  }

  std::string make_subcommand(const CLI::App* command) const override {
    return entry(command->get_display_name(true), command->get_description());
  }

  std::string make_option_usage(const CLI::Option* option) const override {
    auto out = CLI::Formatter::make_option_usage(option);
    const bool is_required = option->get_option_text() == required_text;
    return is_required && out.starts_with('[') ? out.substr(1, out.size() - 2) : out;
  }

  /// Leaves the values of negative flags out, such as `--no-manager{false}`.
  std::string make_option_name(const CLI::Option* option, bool positional) const override {
    auto name = CLI::Formatter::make_option_name(option, positional);
    constexpr std::string_view value = "{false}";
    for (auto at = name.find(value); at != std::string::npos; at = name.find(value)) {
      name.erase(at, value.size());
    }
    return name;
  }

 private:
  /// Returns a name and, in the second column, what it means.
  std::string entry(const std::string& name, const std::string& description) const {
    auto out = "  " + wrapped(name, 2, name_indent, columns_);
    if (description.empty()) return out + "\n";
    if (out.size() >= column_width_) {
      out += "\n" + std::string(column_width_, ' ');
    } else {
      out.resize(column_width_, ' ');
    }
    return out + wrapped(description, column_width_, column_width_, columns_) + "\n";
  }

  const std::size_t columns_;
};

}  // namespace

std::size_t help_columns() {
  std::size_t columns = 0;
  if (const auto* const given = std::getenv("COLUMNS"); given != nullptr) {
    const std::string_view text(given);
    std::from_chars(text.data(), text.data() + text.size(), columns);
  }
  ::winsize size{};
  if (columns == 0 && ::ioctl(STDOUT_FILENO, TIOCGWINSZ, &size) == 0) columns = size.ws_col;
  return columns == 0 ? usual_columns : std::max(columns, least_columns);
}

std::shared_ptr<CLI::FormatterBase> make_help_formatter(std::size_t columns) {
  return std::make_shared<help_formatter>(columns);
}

}  // namespace rw::cli
