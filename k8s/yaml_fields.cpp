#include "k8s/yaml_fields.hpp"

#include <boost/json/array.hpp>
#include <boost/json/object.hpp>
#include <boost/json/serialize.hpp>

#include <yaml-cpp/yaml.h>

namespace rw::k8s {
namespace {

namespace json = boost::json;

/// Aliases let a short text stand for an endless one.
constexpr std::size_t most_nodes = 10'000;

bool absent(const YAML::Node& node) {
  return !node.IsDefined() || node.IsNull();
}

/// A plain scalar's type is guessed as YAML 1.2's core schema has it, a quoted one is text.
json::value scalar_to_json(const YAML::Node& node) {
  if (node.Tag() == "!") return json::value(node.Scalar());
  std::int64_t integer = 0;
  double number = 0;
  bool flag = false;
  if (YAML::convert<std::int64_t>::decode(node, integer)) return integer;
  if (YAML::convert<double>::decode(node, number)) return number;
  if (YAML::convert<bool>::decode(node, flag)) return flag;
  return json::value(node.Scalar());
}

bool to_json(const YAML::Node& node, json::value& into, std::size_t& budget, int depth) {
  if (budget == 0 || depth > 32) return false;
  --budget;
  if (node.IsMap()) {
    auto& object = into.emplace_object();
    for (const auto& one : node) {
      if (!one.first.IsScalar()) return false;
      if (!to_json(one.second, object[one.first.Scalar()], budget, depth + 1)) return false;
    }
  } else if (node.IsSequence()) {
    auto& array = into.emplace_array();
    for (const auto& one : node) {
      array.emplace_back(nullptr);
      if (!to_json(one, array.back(), budget, depth + 1)) return false;
    }
  } else if (node.IsScalar()) {
    into = scalar_to_json(node);
  }
  return true;
}

}  // namespace

yaml_fields::yaml_fields(YAML::Node node, std::string where)
    : node_(std::move(node)), where_(std::move(where)) {
  if (!absent(node_) && !node_.IsMap()) wrong("is not a mapping");
}

YAML::Node yaml_fields::field(const char* name) const {
  // Of a constant node: the other operator would add the field.
  const auto& node = node_;
  if (failed_ || !node.IsDefined() || !node.IsMap()) return YAML::Node(YAML::NodeType::Null);
  auto found = node[name];
  return found.IsDefined() ? found : YAML::Node(YAML::NodeType::Null);
}

bool yaml_fields::has(const char* name) const {
  return !absent(field(name));
}

std::string yaml_fields::scalar(const YAML::Node& node, const std::string& name) {
  if (absent(node)) return {};
  if (node.IsScalar()) return node.Scalar();
  wrong(name + " is not a string");
  return {};
}

std::string yaml_fields::text(const char* name) {
  return scalar(field(name), name);
}

bool yaml_fields::flag(const char* name) {
  const auto node = field(name);
  if (absent(node)) return false;
  bool value = false;
  const bool plain = node.IsScalar() && node.Tag() != "!";
  if (!plain || !YAML::convert<bool>::decode(node, value)) {
    wrong(std::string(name) + " is neither true nor false");
  }
  return value;
}

std::vector<std::string> yaml_fields::texts(const char* name) {
  std::vector<std::string> out;
  const auto node = field(name);
  if (absent(node)) return out;
  if (!node.IsSequence()) {
    wrong(std::string(name) + " is not a list");
    return out;
  }
  for (const auto& one : node) {
    if (!one.IsScalar()) wrong(std::string(name) + " is not a list of strings");
    if (failed_) return {};
    out.push_back(one.Scalar());
  }
  return out;
}

std::vector<yaml_fields> yaml_fields::list(const char* name) {
  std::vector<yaml_fields> out;
  const auto node = field(name);
  if (absent(node)) return out;
  if (!node.IsSequence()) {
    wrong(std::string(name) + " is not a list");
    return out;
  }
  for (const auto& one : node) {
    const auto where = where_ + ": " + name + "[" + std::to_string(out.size()) + "]";
    out.emplace_back(one, where);
    take(out.back());
  }
  return out;
}

yaml_fields yaml_fields::map(const char* name) {
  yaml_fields out(field(name), where_ + ": " + name);
  take(out);
  return out;
}

std::string yaml_fields::json(const char* name) {
  const auto node = field(name);
  if (absent(node)) return {};
  json::value value;
  auto budget = most_nodes;
  if (!to_json(node, value, budget, 0)) {
    wrong(std::string(name) + " is too large, or has keys that are no strings");
    return {};
  }
  return json::serialize(value);
}

std::vector<std::string> yaml_fields::names() const {
  std::vector<std::string> out;
  if (failed_ || !node_.IsDefined() || !node_.IsMap()) return out;
  for (const auto& one : node_) {
    if (one.first.IsScalar()) out.push_back(one.first.Scalar());
  }
  return out;
}

void yaml_fields::wrong(const std::string& sentence) {
  if (failed_) return;
  failed_ = failure{.code = errc::not_configured, .message = where_ + ": " + sentence};
}

void yaml_fields::take(const yaml_fields& from) {
  if (!failed_) failed_ = from.failed_;
}

}  // namespace rw::k8s
