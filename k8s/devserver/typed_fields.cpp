#include "rw/k8s/devserver/typed_fields.hpp"

#include "rw/k8s/devserver/go_text.hpp"
#include "rw/k8s/devserver/typed_access.hpp"

#include <boost/json/array.hpp>
#include <boost/json/object.hpp>

#include <algorithm>
#include <optional>
#include <string_view>
#include <utility>

namespace rw::k8s::devserver {
namespace {

namespace json = boost::json;

/// Returns what is wrong with a value's type; empty if nothing is.
std::string type_error(const json::value& value, const schema* type) {
  if (type == nullptr || value.is_null()) return {};
  const auto printed = [&value] { return "&{" + go_text(value) + "}"; };
  switch (type->form()) {
    case value_form::text:
      if (value.is_string()) return {};
      return "expected string, got &value.valueUnstructured{Value:" + go_value(value) + "}";
    case value_form::number:
      if (value.is_number()) return {};
      return "expected numeric (int or float), got *value.valueUnstructured";
    case value_form::boolean:
      return value.is_bool() ? std::string() : "expected boolean, got " + printed();
    case value_form::list:
      return value.is_array() ? std::string() : "expected list, got " + printed();
    case value_form::map:
      return value.is_object() ? std::string() : "expected map, got " + printed();
    case value_form::any:
      break;
  }
  return {};
}

class field_collector {
 public:
  explicit field_collector(std::vector<std::string>& errors) : errors_(errors) {}

  void visit(const json::value& value, const schema* type, field_set& into) {
    if (auto wrong = type_error(value, type); !wrong.empty()) return fail(wrong);
    if (associative(value, type)) return visit_items(value.get_array(), *type, into);
    if (!granular(value, type)) {
      into.member = true;
      check_declared(value, type);
      return;
    }
    for (const auto& [name, field] : value.get_object()) {
      path_.push_back(field_element(name));
      if (type != nullptr && !type->allows(name)) fail("field not declared in schema");
      auto& child = into.children[path_.back()];
      visit(field, child_of(type, name), child);
      const bool hollow = field.is_null() || (field.is_object() && field.get_object().empty());
      if (hollow || !declares(type, name)) child.member = true;
      if (child.empty()) into.children.erase(path_.back());
      path_.pop_back();
    }
  }

 private:
  void visit_items(const json::array& items, const schema& type, field_set& into) {
    for (std::size_t i = 0; i < items.size(); ++i) {
      std::string reason;
      const auto element = item_element(items[i], type, &reason);
      if (!element) {
        return fail("element " + std::to_string(i) + ": " + reason);
      }
      auto& child = into.children[*element];
      if (child.member) {
        fail("duplicate entries for key " + printed(field_set::path{*element}));
        continue;
      }
      path_.push_back(*element);
      visit(items[i], type.items(), child);
      child.member = true;
      path_.pop_back();
    }
  }

  /// Checks what is in a value that is applied as a whole.
  void check_declared(const json::value& value, const schema* type) {
    if (type == nullptr) return;
    if (auto wrong = type_error(value, type); !wrong.empty()) return fail(wrong);
    if (value.is_array()) {
      for (std::size_t i = 0; i < value.get_array().size(); ++i) {
        path_.push_back("i:" + std::to_string(i));
        check_declared(value.get_array()[i], type->items());
        path_.pop_back();
      }
    } else if (value.is_object()) {
      for (const auto& [name, field] : value.get_object()) {
        path_.push_back(field_element(name));
        if (!type->allows(name)) fail("field not declared in schema");
        check_declared(field, child_of(type, name));
        path_.pop_back();
      }
    }
  }

  void fail(const std::string& text) { errors_.push_back(printed(path_) + ": " + text); }

  std::vector<std::string>& errors_;
  field_set::path path_;
};

class empty_part_finder {
 public:
  static void visit(const json::value& value, const schema* type, field_set& into) {
    if (type == nullptr) return;
    if (associative(value, type)) {
      for (const auto& item : value.get_array()) {
        if (const auto element = item_element(item, *type)) {
          visit_part(item, type->items(), *element, into);
        }
      }
    } else if (granular(value, type)) {
      for (const auto& [name, field] : value.get_object()) {
        visit_part(field, child_of(type, name), field_element(name), into);
      }
    } else {
      into.member = !is_hollow(&value) && has_empty_part(value, type);
    }
  }

 private:
  static void visit_part(const json::value& value, const schema* type, const std::string& element,
                         field_set& into) {
    field_set part;
    visit(value, type, part);
    if (!part.empty()) into.children.emplace(element, std::move(part));
  }
};

class reconciler {
 public:
  reconciler(const json::value& object, const schema& root) : object_(object), root_(root) {}

  /// `path` leads to the node.
  void visit(field_set& node, const schema* type) {
    if (type == nullptr) return;
    const auto form = type->form();
    if (form != value_form::map && form != value_form::list) return;
    const bool list = form == value_form::list;
    const bool atomic = list ? !associative(type) : type->atomic_object();
    const bool whole = node.member && node.children.empty();
    if (atomic && !node.children.empty()) {
      node = {.member = true, .children = {}};
      return;
    }
    if (!atomic && whole) node.unite(at_path());
    for (auto& [element, child] : node.children) {
      const bool field = element.starts_with("f:");
      path_.push_back(element);
      visit(child,
            field && !list ? child_of(type, std::string_view(element).substr(2)) : items_of(type));
      path_.pop_back();
    }
  }

 private:
  /// All fields that the object has at the path.
  field_set at_path() {
    if (!all_) {
      std::vector<std::string> ignored;
      all_ = fields_of(object_, root_, ignored);
    }
    const auto* at = &*all_;
    for (const auto& element : path_) {
      const auto found = at->children.find(element);
      if (found == at->children.end()) return {};
      at = &found->second;
    }
    return *at;
  }

  const json::value& object_;
  const schema& root_;
  std::optional<field_set> all_;
  field_set::path path_;
};

field_set declared(const field_set& set, const schema* type) {
  field_set made;
  made.member = set.member;
  for (const auto& [element, child] : set.children) {
    const bool field = element.starts_with("f:");
    const auto name = std::string_view(element).substr(2);
    auto below = declared(child, field ? child_of(type, name) : items_of(type));
    if (field && declares(type, name)) below.member = true;
    made.children.emplace(element, std::move(below));
  }
  return made;
}

}  // namespace

field_set fields_of(const json::value& object, const schema& type,
                    std::vector<std::string>& errors) {
  field_set made;
  if (object.is_object()) field_collector(errors).visit(object, &type, made);
  return made;
}

bool has_empty_part(const json::value& value, const schema* type) {
  if (type == nullptr) return false;
  if (const auto* const list = value.if_array()) {
    return list->empty() || std::ranges::any_of(*list, [type](const json::value& item) {
             return has_empty_part(item, type->items());
           });
  }
  const auto* const fields = value.if_object();
  if (fields == nullptr) return false;
  const bool map = type->items() != nullptr;
  return (map && fields->empty()) || std::ranges::any_of(*fields, [type](const auto& field) {
           return has_empty_part(field.value(), child_of(type, field.key()));
         });
}

field_set fields_with_empty_parts(const json::value& object, const schema& type) {
  field_set made;
  if (object.is_object()) empty_part_finder::visit(object, &type, made);
  return made;
}

field_set reconciled_fields(const field_set& set, const json::value& object, const schema& type) {
  auto made = set;
  reconciler(object, type).visit(made, &type);
  return made;
}

field_set with_declared_fields(const field_set& set, const schema& type) {
  return declared(set, &type);
}

}  // namespace rw::k8s::devserver
