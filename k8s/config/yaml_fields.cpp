#include "rw/k8s/config/yaml_fields.hpp"

#include "rw/core/text.hpp"

#include <boost/json/serialize.hpp>

namespace rw::k8s {
namespace {

/// Limit of values: with aliases a short text can expand without end.
constexpr std::size_t most_values = 10'000;

using node_kind = yaml_node::kind;

bool is(const yaml_node* node, node_kind type) {
  return node != nullptr && node->type == type;
}

bool absent(const yaml_node* node) {
  return node == nullptr || node->type == node_kind::null;
}

}  // namespace

yaml_fields::yaml_fields(const yaml_node* node, std::string location)
    : node_(node), path_(std::move(location)) {
  if (!absent(node_) && !is(node_, node_kind::map)) wrong("is not a mapping");
}

const yaml_node* yaml_fields::field(std::string_view name) const {
  if (failed_ || absent(node_)) return nullptr;
  for (std::size_t i = 0; i + 1 < node_->items.size(); i += 2) {
    const auto& key = *node_->items[i];
    if (key.type == node_kind::scalar && key.text == name) return node_->items[i + 1];
  }
  return nullptr;
}

bool yaml_fields::has(const char* name) const {
  return !absent(field(name));
}

std::string yaml_fields::text(const char* name) {
  const auto* const node = field(name);
  if (absent(node)) return {};
  if (is(node, node_kind::scalar)) return node->text;
  wrong(std::string(name) + " is not a string");
  return {};
}

std::optional<boost::json::value> yaml_fields::value(const char* name) const {
  try {
    return yaml_reader(most_values, 0).read(*field(name));
  } catch (const yaml_type_error&) {
    return std::nullopt;
  }
}

bool yaml_fields::flag(const char* name) {
  if (!has(name)) return false;
  const auto read = value(name);
  if (read && read->is_bool()) return read->get_bool();
  wrong(std::string(name) + " is neither true nor false");
  return false;
}

std::vector<std::string> yaml_fields::texts(const char* name) {
  std::vector<std::string> out;
  for (const auto* node : sequence(name)) {
    if (!is(node, node_kind::scalar)) wrong(std::string(name) + " is not a list of strings");
    if (failed_) return {};
    out.push_back(node->text);
  }
  return out;
}

std::vector<yaml_fields> yaml_fields::list(const char* name) {
  std::vector<yaml_fields> out;
  for (const auto* node : sequence(name)) {
    const auto location = path_ + ": " + name + "[" + std::to_string(out.size()) + "]";
    out.emplace_back(node, location);
    take(out.back());
  }
  return out;
}

std::vector<const yaml_node*> yaml_fields::sequence(const char* name) {
  const auto* const node = field(name);
  if (absent(node)) return {};
  if (is(node, node_kind::sequence)) return node->items;
  wrong(std::string(name) + " is not a list");
  return {};
}

yaml_fields yaml_fields::map(const char* name) {
  yaml_fields out(field(name), path_ + ": " + name);
  take(out);
  return out;
}

std::string yaml_fields::json(const char* name) {
  if (!has(name)) return {};
  if (const auto read = value(name)) return boost::json::serialize(*read);
  wrong(std::string(name) + " is too large, or has keys that are no strings");
  return {};
}

std::vector<std::string> yaml_fields::names() const {
  std::vector<std::string> out;
  if (failed_ || absent(node_)) return out;
  for (std::size_t i = 0; i + 1 < node_->items.size(); i += 2) {
    if (is(node_->items[i], node_kind::scalar)) out.push_back(node_->items[i]->text);
  }
  return out;
}

void yaml_fields::wrong(const std::string& sentence) {
  if (failed_) return;
  failed_ =
      failure{.code = errc::not_configured, .message = core::printable(path_ + ": " + sentence)};
}

void yaml_fields::take(const yaml_fields& from) {
  if (!failed_) failed_ = from.failed_;
}

}  // namespace rw::k8s
