#include "rw/k8s/devserver/target.hpp"

#include "rw/tls/xfcc.hpp"

#include <algorithm>

namespace rw::k8s::devserver {
namespace {

/// RFC 3986, section 2.1; in a query "+" is a blank too (application/x-www-form-urlencoded).
std::optional<std::string> decode(std::string_view text, bool in_query) {
  std::string blanked(text);
  if (in_query) std::ranges::replace(blanked, '+', ' ');
  auto decoded = tls::percent_decode(blanked);
  return decoded ? std::optional(std::move(*decoded)) : std::nullopt;
}

template <class Take>
void split(std::string_view text, char separator, Take take) {
  while (!text.empty()) {
    const auto end = std::min(text.find(separator), text.size());
    take(text.substr(0, end));
    text.remove_prefix(std::min(end + 1, text.size()));
  }
}

}  // namespace

query query::parse(std::string_view text) {
  query result;
  split(text, '&', [&](std::string_view field) {
    const auto equals = std::min(field.find('='), field.size());
    auto name = decode(field.substr(0, equals), true);
    auto value = decode(field.substr(std::min(equals + 1, field.size())), true);
    if (name && value) result.fields_.emplace_back(std::move(*name), std::move(*value));
  });
  return result;
}

std::string_view query::get(std::string_view name) const noexcept {
  for (const auto& [key, value] : fields_) {
    if (key == name) return value;
  }
  return {};
}

bool query::has(std::string_view name) const noexcept {
  return std::any_of(fields_.begin(), fields_.end(),
                     [&](const auto& field) { return field.first == name; });
}

bool query::flag(std::string_view name) const noexcept {
  for (const auto& [key, value] : fields_) {
    if (key == name) return value != "0" && value != "false";
  }
  return false;
}

std::vector<std::string_view> query::all(std::string_view name) const {
  std::vector<std::string_view> result;
  for (const auto& [key, value] : fields_) {
    if (key == name) result.emplace_back(value);
  }
  return result;
}

std::optional<target> target::parse(std::string_view text) {
  target result;
  const auto mark = std::min(text.find('?'), text.size());
  result.parameters = query::parse(text.substr(std::min(mark + 1, text.size())));
  text = text.substr(0, mark);
  constexpr std::string_view prefix = "/clusters/";
  if (text.starts_with(prefix)) {
    text.remove_prefix(prefix.size());
    const auto end = std::min(text.find('/'), text.size());
    result.cluster = text.substr(0, end);
    text.remove_prefix(end);
  }
  result.path = text.empty() ? "/" : text;
  bool good = true;
  split(text, '/', [&](std::string_view part) {
    if (part.empty()) return;
    auto plain = decode(part, false);
    if (plain) {
      result.parts.push_back(std::move(*plain));
    } else {
      good = false;
    }
  });
  if (!good) return {};
  return result;
}

std::optional<resource_path> parse_resource_path(const std::vector<std::string>& parts) {
  resource_path result;
  std::size_t at = 0;
  const auto left = [&] { return parts.size() - at; };
  if (parts.size() >= 3 && parts[0] == "api") {
    result.version = parts[1];
    at = 2;
  } else if (parts.size() >= 4 && parts[0] == "apis") {
    result.group = parts[1];
    result.version = parts[2];
    at = 3;
  } else {
    return {};
  }
  // Below a namespace, unless it is the namespace's own subresource.
  if (parts[at] == "namespaces" && left() >= 3 &&
      !(left() == 3 && result.group.empty() &&
        (parts[at + 2] == "status" || parts[at + 2] == "finalize"))) {
    result.key.ns = parts[at + 1];
    at += 2;
  }
  result.plural = parts[at];
  if (left() > 1) result.key.name = parts[at + 1];
  if (left() > 2) result.subresource = parts[at + 2];
  for (std::size_t i = at + 3; i < parts.size(); ++i) result.subresource += '/' + parts[i];
  return result;
}

}  // namespace rw::k8s::devserver
