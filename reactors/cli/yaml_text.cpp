#include "rw/reactors/cli/yaml_text.hpp"

#include <boost/json/array.hpp>
#include <boost/json/object.hpp>
#include <boost/json/serialize.hpp>

#include <algorithm>
#include <array>
#include <charconv>
#include <cstddef>
#include <string>
#include <string_view>

namespace rw::cli {
namespace {

namespace json = boost::json;

bool is_letter(char c) {
  return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z');
}

/// True for text that is a string without quotes by YAML 1.1 and 1.2: it begins with a letter, has
/// no indicator, and is no boolean or null.
bool is_plain(std::string_view text) {
  constexpr std::array<std::string_view, 9> words{"true", "false", "yes", "no", "on",
                                                  "off",  "null",  "y",   "n"};
  constexpr std::string_view marks = "0123456789-_./() ";
  if (text.empty() || !is_letter(text.front()) || text.back() == ' ') return false;
  std::string lower(text);
  std::ranges::transform(lower, lower.begin(), [](char c) {
    return c >= 'A' && c <= 'Z' ? static_cast<char>(c + 32) : c;
  });
  if (std::ranges::find(words, lower) != words.end()) return false;
  return std::ranges::all_of(
      text, [&](char c) { return is_letter(c) || marks.find(c) != std::string_view::npos; });
}

/// YAML 1.1 reads a number as text if it has an exponent and no point.
std::string number(double value) {
  std::array<char, 400> text{};
  const auto end =
      std::to_chars(text.data(), text.data() + text.size(), value, std::chars_format::fixed).ptr;
  std::string out(text.data(), end);
  return out.find('.') == std::string::npos ? out + ".0" : out;
}

/// A JSON string is a YAML string in double quotes (YAML 1.2.2, section 1.3).
std::string scalar(const json::value& of) {
  if (const auto* const value = of.if_double()) return number(*value);
  const auto* const text = of.if_string();
  return text != nullptr && is_plain(*text) ? std::string(*text) : json::serialize(of);
}

/// True for text of several lines that a literal block scalar gives as it is (YAML 1.2.2, section
/// 8.1.2), without an indicator of indentation.
bool is_literal(const json::value& of) {
  const auto* const text = of.if_string();
  if (text == nullptr || text->find('\n') == json::string::npos) return false;
  if (text->front() == ' ' || text->front() == '\n' || text->ends_with("\n\n")) return false;
  return std::ranges::all_of(*text, [](char c) { return c == '\n' || (c >= ' ' && c <= '~'); });
}

void append_literal(std::string& out, std::string_view text, std::size_t indentation) {
  out += text.ends_with('\n') ? "|\n" : "|-\n";
  while (!text.empty()) {
    const auto line = text.substr(0, text.find('\n'));
    text.remove_prefix(std::min(line.size() + 1, text.size()));
    if (!line.empty()) out.append(indentation, ' ').append(line);
    out += '\n';
  }
}

bool is_block(const json::value& of) {
  return (of.is_object() && !of.get_object().empty()) || (of.is_array() && !of.get_array().empty());
}

/// Appends a collection with elements. Its first line has its indentation already.
void append_block(std::string& out, const json::value& of, std::size_t indentation) {
  bool first = true;
  const auto begin_line = [&] {
    if (!first) out.append(indentation, ' ');
    first = false;
  };
  if (const auto* const array = of.if_array()) {
    for (const auto& element : *array) {
      begin_line();
      out += "- ";
      if (is_block(element)) {
        append_block(out, element, indentation + 2);
      } else if (is_literal(element)) {
        append_literal(out, element.get_string(), indentation + 2);
      } else {
        out += scalar(element) + "\n";
      }
    }
    return;
  }
  for (const auto& [name, member] : of.get_object()) {
    begin_line();
    out += scalar(json::value(name)) + ":";
    if (is_block(member)) {
      const auto nested = indentation + (member.is_object() ? 2 : 0);
      out.append("\n").append(nested, ' ');
      append_block(out, member, nested);
    } else if (is_literal(member)) {
      out += " ";
      append_literal(out, member.get_string(), indentation + 2);
    } else {
      out += " " + scalar(member) + "\n";
    }
  }
}

}  // namespace

std::string yaml_text(const json::value& of) {
  std::string out;
  if (is_block(of)) {
    append_block(out, of, 0);
  } else {
    out = scalar(of) + "\n";
  }
  return out;
}

}  // namespace rw::cli
