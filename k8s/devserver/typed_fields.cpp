#include "rw/k8s/devserver/typed_fields.hpp"

#include "rw/k8s/devserver/go_text.hpp"

#include <boost/json/array.hpp>
#include <boost/json/object.hpp>
#include <boost/json/serialize.hpp>

#include <algorithm>
#include <map>
#include <optional>
#include <string_view>
#include <utility>

namespace rw::k8s::devserver {
namespace {

namespace json = boost::json;

const schema* items_of(const schema* type) {
  return type != nullptr ? type->items() : nullptr;
}

bool declares(const schema* type, std::string_view field) {
  return type != nullptr && type->declares(field);
}

/// Returns true for an object whose fields are owned one by one.
bool granular(const json::value& value, const schema* type) {
  return value.is_object() && (type == nullptr || !type->atomic_object());
}

/// Returns true for a list whose items are owned one by one.
bool associative(const schema* type) {
  return type != nullptr && type->merge() != list_type::atomic;
}
bool associative(const json::value& value, const schema* type) {
  return value.is_array() && associative(type);
}

std::string field_element(std::string_view name) {
  return "f:" + std::string(name);
}

/// Returns the path element that identifies an item of an associative list; otherwise nothing, with
/// the reason in `error`.
std::optional<std::string> item_element(const json::value& item, const schema& list,
                                        std::string* error = nullptr) {
  const auto fail = [error](std::string reason) -> std::optional<std::string> {
    if (error != nullptr) *error = std::move(reason);
    return std::nullopt;
  };
  if (list.merge() == list_type::set) {
    if (item.is_object() || item.is_array()) {
      return fail("associative list without keys has an element that's a map or a list");
    }
    if (item.is_null()) {
      return fail("associative list without keys has an element that's an explicit null");
    }
    return "v:" + json::serialize(item);
  }
  if (!item.is_object()) {
    return fail("associative list with keys may not have non-map elements");
  }
  std::map<std::string_view, const json::value*> keys;
  json::value defaults;
  for (const auto& name : list.list_map_keys()) {
    const auto* value = item.get_object().if_contains(name);
    if (value == nullptr) {
      if (defaults.is_null()) {
        defaults.emplace_object();
        if (list.items() != nullptr) list.items()->fill_defaults(defaults);
      }
      value = defaults.get_object().if_contains(name);
    }
    if (value == nullptr) {
      return fail("associative list with keys has an element that omits key field \"" + name +
                  "\" (and doesn't have default value)");
    }
    keys.emplace(name, value);
  }
  std::string text = "k:{";
  for (const auto& [name, value] : keys) {
    if (text.back() != '{') text += ',';
    text += json::serialize(json::string(name)) + ":" + json::serialize(*value);
  }
  return text + "}";
}

/// The items of a list by their path elements; items without one by their index.
using items_by_element = std::map<std::string, const json::value*>;

items_by_element index_items(const json::value* list, const schema& type) {
  items_by_element found;
  if (list == nullptr || !list->is_array()) return found;
  const auto& all = list->get_array();
  for (std::size_t i = 0; i < all.size(); ++i) {
    auto element = item_element(all[i], type);
    found.emplace(element ? std::move(*element) : "i:" + std::to_string(i), &all[i]);
  }
  return found;
}

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
      into.member = !is_empty(value) && has_empty_part(value, type);
    }
  }

 private:
  static bool is_empty(const json::value& value) {
    return (value.is_array() && value.get_array().empty()) ||
           (value.is_object() && value.get_object().empty());
  }

  static void visit_part(const json::value& value, const schema* type, const std::string& element,
                         field_set& into) {
    field_set part;
    visit(value, type, part);
    if (!part.empty()) into.children.emplace(element, std::move(part));
  }
};

bool is_hollow(const json::value* value) {
  return value == nullptr || value->is_null() ||
         (value->is_object() && value->get_object().empty()) ||
         (value->is_array() && value->get_array().empty());
}

class comparer {
 public:
  explicit comparer(field_changes& into) : changes_(into) {}

  /// Compares two values; one of them may be absent (null).
  void visit(const json::value* before, const json::value* after, const schema* type) {
    const auto any = [&](auto holds) {
      return (before != nullptr && holds(*before)) || (after != nullptr && holds(*after));
    };
    const auto all = [&](auto holds) {
      const auto check = [&](const json::value* value) {
        return value == nullptr || value->is_null() || holds(*value);
      };
      return check(before) && check(after);
    };
    const auto is_map = [type](const json::value& value) { return granular(value, type); };
    const auto is_list = [type](const json::value& value) { return associative(value, type); };
    const bool hollow = is_hollow(before) && is_hollow(after);
    if (!hollow && any(is_map) && all(is_map)) {
      visit_fields(before, after, type);
      note_presence(before, after);
    } else if (!hollow && any(is_list) && all(is_list)) {
      visit_items(before, after, *type);
      note_presence(before, after);
    } else {
      visit_leaf(before, after, type);
    }
  }

 private:
  void visit_leaf(const json::value* before, const json::value* after, const schema* type) {
    if (before == nullptr) {
      changes_.added.insert(path_);
    } else if (after == nullptr) {
      changes_.removed.insert(path_);
    } else if (*before != *after) {
      changes_.modified.insert(path_);
      // The fields of a value that changed its type.
      if (granular(*before, type)) visit_fields(before, nullptr, type);
      if (granular(*after, type)) visit_fields(nullptr, after, type);
    }
  }

  void note_presence(const json::value* before, const json::value* after) {
    if (path_.empty()) return;
    if (before == nullptr) changes_.added.insert(path_);
    if (after == nullptr) changes_.removed.insert(path_);
  }

  /// The value of a field that Go always has, while it is not set.
  static const json::value& empty_like(const json::value& other) {
    static const json::value text("");
    static const json::value number(0);
    static const json::value flag(false);
    static const json::value map(json::object_kind);
    static const json::value none;  // a list that is not set is null
    if (other.is_null()) return none;
    if (other.is_string()) return text;
    if (other.is_number()) return number;
    if (other.is_bool()) return flag;
    return other.is_array() ? none : map;
  }

  static const json::object* fields(const json::value* value) {
    return value != nullptr ? value->if_object() : nullptr;
  }

  void visit_fields(const json::value* before, const json::value* after, const schema* type) {
    const auto* const old_fields = fields(before);
    const auto* const new_fields = fields(after);
    if (old_fields != nullptr) {
      for (const auto& [name, value] : *old_fields) {
        visit_field(name, &value, new_fields != nullptr ? new_fields->if_contains(name) : nullptr,
                    type, before != nullptr, after != nullptr);
      }
    }
    if (new_fields == nullptr) return;
    for (const auto& [name, value] : *new_fields) {
      if (old_fields == nullptr || !old_fields->contains(name)) {
        visit_field(name, nullptr, &value, type, before != nullptr, after != nullptr);
      }
    }
  }

  /// `had`, `has`: the objects themselves are there, before and after.
  void visit_field(std::string_view name, const json::value* before, const json::value* after,
                   const schema* type, bool had, bool has) {
    if (type != nullptr && type->always_present(name)) {
      if (before == nullptr && had) before = &empty_like(*after);
      if (after == nullptr && has) after = &empty_like(*before);
    }
    path_.push_back(field_element(name));
    visit(before, after, child_of(type, name));
    path_.pop_back();
  }

  void visit_items(const json::value* before, const json::value* after, const schema& type) {
    const auto old_items = index_items(before, type);
    const auto new_items = index_items(after, type);
    const auto at = [](const items_by_element& items, const std::string& element) {
      const auto found = items.find(element);
      return found != items.end() ? found->second : nullptr;
    };
    for (const auto& [element, item] : old_items) {
      visit_item(element, item, at(new_items, element), type);
    }
    for (const auto& [element, item] : new_items) {
      if (!old_items.contains(element)) visit_item(element, nullptr, item, type);
    }
  }

  void visit_item(const std::string& element, const json::value* before, const json::value* after,
                  const schema& type) {
    path_.push_back(element);
    visit(before, after, type.items());
    path_.pop_back();
  }

  field_changes& changes_;
  field_set::path path_;
};

void merge(json::value& into, const json::value& from, const schema* type) {
  if (granular(into, type) && from.is_object()) {
    for (const auto& [name, value] : from.get_object()) {
      const auto [at, added] = into.get_object().emplace(name, nullptr);
      if (added) {
        at->value() = value;
      } else {
        merge(at->value(), value, child_of(type, name));
      }
    }
    return;
  }
  // Null is no content: what is merged by parts stays.
  if (from.is_null() && !is_hollow(&into) && (granular(into, type) || associative(into, type))) {
    return;
  }
  if (!associative(into, type) || !from.is_array()) {
    into = from;
    return;
  }
  auto& items = into.get_array();
  std::map<std::string, std::size_t> there;
  for (std::size_t i = 0; i < items.size(); ++i) {
    if (auto element = item_element(items[i], *type)) there.emplace(std::move(*element), i);
  }
  for (const auto& item : from.get_array()) {
    auto element = item_element(item, *type);
    const auto found = element ? there.find(*element) : there.end();
    if (found != there.end()) {
      merge(items[found->second], item, type->items());
    } else {
      items.push_back(item);
    }
  }
}

void remove(json::value& from, const field_set& set, const schema* type) {
  if (from.is_object()) {
    for (const auto& [element, child] : set.children) {
      if (!element.starts_with("f:")) continue;
      const auto name = std::string_view(element).substr(2);
      auto* const field = from.get_object().if_contains(name);
      if (field == nullptr) continue;
      if (child.member) {
        from.get_object().stable_erase(name);
      } else {
        remove(*field, child, child_of(type, name));
      }
    }
  } else if (associative(from, type)) {
    json::array left;
    for (auto& item : from.get_array()) {
      const auto element = item_element(item, *type);
      const auto found = element ? set.children.find(*element) : set.children.end();
      if (found != set.children.end()) {
        if (found->second.member) continue;
        remove(item, found->second, type->items());
      }
      left.push_back(std::move(item));
    }
    from = std::move(left);
  }
}

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

field_changes compare_fields(const json::value& before, const json::value& after,
                             const schema& type) {
  field_changes made;
  comparer(made).visit(&before, &after, &type);
  return made;
}

void merge_fields(json::value& into, const json::value& from, const schema& type) {
  merge(into, from, &type);
}

void remove_fields(json::value& object, const field_set& set, const schema& type) {
  remove(object, set, &type);
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
