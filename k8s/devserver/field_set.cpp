#include "rw/k8s/devserver/field_set.hpp"

#include <boost/json/object.hpp>
#include <boost/json/parse.hpp>
#include <boost/json/serialize.hpp>

#include <utility>

namespace rw::k8s::devserver {
namespace {

namespace json = boost::json;

bool is_element(std::string_view text) {
  return text.size() > 1 && text[1] == ':' &&
         std::string_view("fkvi").find(text[0]) != std::string_view::npos;
}

void tidy(field_set::elements& children) {
  std::erase_if(children, [](const auto& child) { return child.second.empty(); });
}

/// Formats "name" as ".name", a key as `[name="x"]`, a value as `[="x"]`.
std::string printed_element(std::string_view element) {
  const auto text = element.substr(2);
  switch (element[0]) {
    case 'f':
      return "." + std::string(text);
    case 'v':
      return "[=" + std::string(text) + "]";
    case 'k':
      break;
    default:
      return "[" + std::string(text) + "]";
  }
  boost::system::error_code error;
  const auto keys = json::parse({text.data(), text.size()}, error);
  if (error || !keys.is_object()) return "[" + std::string(text) + "]";
  std::string out = "[";
  for (const auto& [name, value] : keys.get_object()) {
    if (out.size() > 1) out += ',';
    out.append(std::string_view(name)) += '=';
    out += json::serialize(value);
  }
  return out + "]";
}

void print(const field_set& set, std::string& prefix, std::vector<std::string>& out) {
  for (const auto& [element, child] : set.children) {
    if (child.member) out.push_back(prefix + printed_element(element));
  }
  for (const auto& [element, child] : set.children) {
    const auto length = prefix.size();
    prefix += printed_element(element);
    print(child, prefix, out);
    prefix.resize(length);
  }
}

}  // namespace

std::optional<field_set> field_set::parse(const json::value& fields) {
  if (!fields.is_object()) return std::nullopt;
  field_set made;
  for (const auto& [name, value] : fields.get_object()) {
    if (name == ".") {
      made.member = true;
      continue;
    }
    if (!is_element(name)) return std::nullopt;
    auto child = parse(value);
    if (!child) return std::nullopt;
    // A leaf is written without its "."
    if (child->children.empty()) child->member = true;
    made.children.emplace(name, std::move(*child));
  }
  return made;
}

json::value field_set::to_json() const {
  json::object out;
  if (member && !children.empty()) out.emplace(".", json::object());
  for (const auto& [element, child] : children) out.emplace(element, child.to_json());
  return out;
}

void field_set::insert(const path& path) {
  auto* at = this;
  for (const auto& element : path) at = &at->children[element];
  at->member = true;
}

void field_set::unite(const field_set& other) {
  member = member || other.member;
  for (const auto& [element, child] : other.children) children[element].unite(child);
}

void field_set::subtract(const field_set& other) {
  if (other.member) member = false;
  for (auto& [element, child] : children) {
    const auto found = other.children.find(element);
    if (found != other.children.end()) child.subtract(found->second);
  }
  tidy(children);
}

void field_set::intersect(const field_set& other) {
  member = member && other.member;
  for (auto& [element, child] : children) {
    const auto found = other.children.find(element);
    if (found != other.children.end()) {
      child.intersect(found->second);
    } else {
      child = {};
    }
  }
  tidy(children);
}

void field_set::subtract_trees(const field_set& other) {
  for (auto& [element, child] : children) {
    const auto found = other.children.find(element);
    if (found == other.children.end()) continue;
    if (found->second.member) {
      child = {};
    } else {
      child.subtract_trees(found->second);
    }
  }
  tidy(children);
}

std::vector<std::string> printed(const field_set& set) {
  std::vector<std::string> out;
  std::string prefix;
  print(set, prefix, out);
  return out;
}

std::string printed(const field_set::path& path) {
  std::string out;
  for (const auto& element : path) out += printed_element(element);
  return out;
}

}  // namespace rw::k8s::devserver
