#include "rw/k8s/objects/qualified_name.hpp"

#include <algorithm>
#include <initializer_list>

namespace rw::k8s {
namespace {

constexpr std::size_t label_length = 63;       // of names, values and DNS labels
constexpr std::size_t subdomain_length = 253;  // RFC 1123
constexpr std::size_t port_length = 15;        // RFC 6335

constexpr std::string_view name_pattern = "([A-Za-z0-9][-A-Za-z0-9_.]*)?[A-Za-z0-9]";
constexpr std::string_view name_rule =
    "must consist of alphanumeric characters, '-', '_' or '.', and must start and end with an "
    "alphanumeric character";

bool lower(char c) noexcept {
  return c >= 'a' && c <= 'z';
}
bool lower_or_digit(char c) noexcept {
  return lower(c) || (c >= '0' && c <= '9');
}
bool alphanumeric(char c) noexcept {
  return lower_or_digit(c) || (c >= 'A' && c <= 'Z');
}

bool is_name(std::string_view text) {
  return !text.empty() && alphanumeric(text.front()) && alphanumeric(text.back()) &&
         std::ranges::all_of(
             text, [](char c) { return alphanumeric(c) || c == '-' || c == '_' || c == '.'; });
}

bool is_dns_label(std::string_view text) {
  return !text.empty() && lower_or_digit(text.front()) && lower_or_digit(text.back()) &&
         std::ranges::all_of(text, [](char c) { return lower_or_digit(c) || c == '-'; });
}

bool is_dns_subdomain(std::string_view text) {
  for (;;) {
    const auto dot = text.find('.');
    if (!is_dns_label(text.substr(0, dot))) return false;
    if (dot == std::string_view::npos) return true;
    text.remove_prefix(dot + 1);
  }
}

std::string too_long(std::size_t most) {
  return "must be no more than " + std::to_string(most) + " characters";
}

std::string unlike(std::string_view rule, std::string_view pattern,
                   std::initializer_list<std::string_view> examples) {
  std::string text(rule);
  text += " (e.g. ";
  bool first = true;
  for (const auto example : examples) {
    if (!first) text += " or ";
    first = false;
    text.append("'").append(example).append("', ");
  }
  return text.append("regex used for validation is '").append(pattern).append("')");
}

void name_part_errors(std::string_view name, std::vector<std::string>& found) {
  if (name.empty()) {
    found.emplace_back("name part must be non-empty");
  } else if (name.size() > label_length) {
    found.push_back("name part " + too_long(label_length));
  }
  if (!is_name(name)) {
    found.push_back("name part " +
                    unlike(name_rule, name_pattern, {"MyName", "my.name", "123-abc"}));
  }
}

}  // namespace

std::vector<std::string> label_key_errors(std::string_view key) {
  std::vector<std::string> found;
  const auto slash = key.find('/');
  if (slash == std::string_view::npos) {
    name_part_errors(key, found);
    return found;
  }
  const auto prefix = key.substr(0, slash);
  const auto name = key.substr(slash + 1);
  if (name.find('/') != std::string_view::npos) {
    found.push_back("a qualified name " +
                    unlike(name_rule, name_pattern, {"MyName", "my.name", "123-abc"}) +
                    " with an optional DNS subdomain prefix and '/' (e.g. 'example.com/MyName')");
    return found;
  }
  if (prefix.empty()) {
    found.emplace_back("prefix part must be non-empty");
  } else {
    for (const auto& error : dns_subdomain_errors(prefix)) found.push_back("prefix part " + error);
  }
  name_part_errors(name, found);
  return found;
}

std::vector<std::string> label_value_errors(std::string_view value) {
  std::vector<std::string> found;
  if (value.size() > label_length) found.push_back(too_long(label_length));
  if (!value.empty() && !is_name(value)) {
    found.push_back(
        unlike("a valid label must be an empty string or consist of alphanumeric characters, '-', "
               "'_' or '.', and must start and end with an alphanumeric character",
               "(([A-Za-z0-9][-A-Za-z0-9_.]*)?[A-Za-z0-9])?", {"MyValue", "my_value", "12345"}));
  }
  return found;
}

std::vector<std::string> dns_subdomain_errors(std::string_view name) {
  std::vector<std::string> found;
  if (name.size() > subdomain_length) found.push_back(too_long(subdomain_length));
  if (!is_dns_subdomain(name)) {
    found.push_back(unlike(
        "a lowercase RFC 1123 subdomain must consist of lower case alphanumeric "
        "characters, '-' or '.', and must start and end with an alphanumeric character",
        "[a-z0-9]([-a-z0-9]*[a-z0-9])?(\\.[a-z0-9]([-a-z0-9]*[a-z0-9])?)*", {"example.com"}));
  }
  return found;
}

std::vector<std::string> dns_label_errors(std::string_view name) {
  std::vector<std::string> found;
  if (name.size() > label_length) found.push_back(too_long(label_length));
  if (!is_dns_label(name)) {
    found.push_back(
        unlike("a lowercase RFC 1123 label must consist of lower case alphanumeric characters or "
               "'-', and must start and end with an alphanumeric character",
               "[a-z0-9]([-a-z0-9]*[a-z0-9])?", {"my-name", "123-abc"}));
  }
  return found;
}

std::vector<std::string> dns_1035_label_errors(std::string_view name) {
  std::vector<std::string> found;
  if (name.size() > label_length) found.push_back(too_long(label_length));
  if (!is_dns_label(name) || !lower(name.front())) {
    found.push_back(
        unlike("a DNS-1035 label must consist of lower case alphanumeric characters or '-', start "
               "with an alphabetic character, and end with an alphanumeric character",
               "[a-z]([-a-z0-9]*[a-z0-9])?", {"my-name", "abc-123"}));
  }
  return found;
}

std::vector<std::string> port_name_errors(std::string_view name) {
  std::vector<std::string> found;
  if (name.size() > port_length) found.push_back(too_long(port_length));
  if (name.empty() ||
      !std::ranges::all_of(name, [](char c) { return lower_or_digit(c) || c == '-'; })) {
    found.emplace_back("must contain only alpha-numeric characters (a-z, 0-9), and hyphens (-)");
  }
  if (std::ranges::none_of(name, lower)) {
    found.emplace_back("must contain at least one letter (a-z)");
  }
  if (name.find("--") != std::string_view::npos) {
    found.emplace_back("must not contain consecutive hyphens");
  }
  if (name.starts_with('-') || name.ends_with('-')) {
    found.emplace_back("must not begin or end with a hyphen");
  }
  return found;
}

std::vector<std::string> path_segment_errors(std::string_view name) {
  if (name == "." || name == "..") return {"may not be '" + std::string(name) + "'"};
  std::vector<std::string> found;
  for (const char c : {'/', '%'}) {
    if (name.find(c) != std::string_view::npos) {
      found.push_back("may not contain '" + std::string(1, c) + "'");
    }
  }
  return found;
}

}  // namespace rw::k8s
