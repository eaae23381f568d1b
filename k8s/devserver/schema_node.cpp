#include "rw/k8s/devserver/schema_node.hpp"

#include <boost/json/array.hpp>
#include <boost/json/object.hpp>

#include <re2/re2.h>
#include <utility>

namespace rw::k8s::devserver {
namespace {

namespace json = boost::json;

std::string below(const std::string& path, std::string_view name) {
  return path.empty() ? std::string(name) : path + "." + std::string(name);
}

/// Removes all fields of an object, and of the objects in a list.
void clear_fields(json::value& value, const std::string& path, std::vector<std::string>& removed) {
  if (value.is_object()) {
    for (const auto& [name, field] : value.get_object()) removed.push_back(below(path, name));
    value.get_object().clear();
  } else if (value.is_array()) {
    auto& list = value.get_array();
    for (std::size_t i = 0; i < list.size(); ++i) {
      clear_fields(list[i], path + "[" + std::to_string(i) + "]", removed);
    }
  }
}

}  // namespace

value_rules::value_rules() = default;
value_rules::~value_rules() = default;
value_rules::value_rules(value_rules&&) noexcept = default;

const schema_node* schema_node::child(std::string_view name) const {
  const auto found = properties.find(name);
  if (found != properties.end()) return found->second.get();
  return of_items ? nullptr : element.get();
}

/// Returns true for the fields of each resource, independent of its schema.
bool schema_node::is_hidden(std::string_view name) const {
  return resource && (name == "apiVersion" || name == "kind" || name == "metadata");
}

const schema* schema_node::property(std::string_view name) const {
  if (resource && name == "metadata") return object_meta.get();
  const auto found = properties.find(name);
  return found != properties.end() ? found->second.get() : nullptr;
}

value_form schema_node::form() const {
  if (int_or_string) return value_form::any;
  switch (type) {
    case value_type::object:
      return value_form::map;
    case value_type::array:
      return value_form::list;
    case value_type::string:
      return rules == nullptr || rules->format_name.empty() || rules->format_name == "byte"
                 ? value_form::text
                 : value_form::any;
    case value_type::integer:
    case value_type::number:
      return value_form::number;
    case value_type::boolean:
      return value_form::boolean;
    case value_type::any:
      break;
  }
  return value_form::any;
}

const schema* schema_node::items() const {
  return element.get();
}

bool schema_node::declares(std::string_view field) const {
  return is_hidden(field) || properties.contains(field);
}

bool schema_node::allows(std::string_view field) const {
  return properties.empty() || preserves_unknown || any_property || declares(field);
}

void schema_node::fill_defaults(json::value& value) const {
  const auto fill = [](json::value& field, const schema_node& as) {
    if (field.is_null() && !as.nullable && as.by_default) field = *as.by_default;
    as.fill_defaults(field);
  };
  if (value.is_array() && item() != nullptr) {
    for (auto& entry : value.get_array()) fill(entry, *item());
  }
  if (!value.is_object()) return;
  auto& fields = value.get_object();
  for (const auto& [name, node] : properties) {
    if (node->by_default && !fields.contains(name)) fields.emplace(name, *node->by_default);
  }
  for (auto& [name, field] : fields) {
    if (const auto* const node = child(name)) fill(field, *node);
  }
}

void schema_node::drop_nulls(json::value& value) const {
  if (value.is_array() && item() != nullptr) {
    for (auto& entry : value.get_array()) item()->drop_nulls(entry);
  }
  if (!value.is_object()) return;
  auto& fields = value.get_object();
  for (auto at = fields.begin(); at != fields.end();) {
    const auto* const node = child(at->key());
    if (node != nullptr) node->drop_nulls(at->value());
    const bool nothing =
        node != nullptr && at->value().is_null() && !node->nullable && !node->by_default;
    at = nothing ? fields.stable_erase(at) : at + 1;
  }
}

void schema_node::prune(json::value& value, std::vector<std::string>& removed) const {
  prune_fields(value, "", preserves_unknown, removed);
}

/// `keep`: keeps unknown fields.
void schema_node::prune_fields(json::value& value, const std::string& path, bool keep,
                               std::vector<std::string>& removed) const {
  if (value.is_array()) {
    auto& all = value.get_array();
    for (std::size_t i = 0; i < all.size(); ++i) {
      const auto at = path + "[" + std::to_string(i) + "]";
      if (item() != nullptr) {
        item()->prune_fields(all[i], at, keep || item()->preserves_unknown, removed);
      } else if (!keep) {
        clear_fields(all[i], at, removed);
      }
    }
  }
  if (!value.is_object()) return;
  auto& fields = value.get_object();
  for (auto field = fields.begin(); field != fields.end();) {
    const std::string_view name = field->key();
    const auto* const node = child(name);
    if (is_hidden(name)) {
      ++field;
    } else if (node != nullptr) {
      node->prune_fields(field->value(), below(path, name), node->preserves_unknown, removed);
      ++field;
    } else if (any_property || no_property) {
      if (!keep) clear_fields(field->value(), below(path, name), removed);
      ++field;
    } else if (keep) {
      ++field;
    } else {
      removed.push_back(below(path, name));
      field = fields.stable_erase(field);
    }
  }
}

std::string value_path::text() const {
  const auto before = parent != nullptr ? parent->text() : std::string();
  if (before.empty() || name.empty() || name.starts_with('[')) return before + std::string(name);
  return before + "." + std::string(name);
}

}  // namespace rw::k8s::devserver
