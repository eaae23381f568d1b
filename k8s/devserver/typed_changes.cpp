#include "rw/k8s/devserver/typed_access.hpp"
#include "rw/k8s/devserver/typed_fields.hpp"

#include <boost/json/array.hpp>
#include <boost/json/object.hpp>

#include <map>
#include <string_view>
#include <utility>

namespace rw::k8s::devserver {
namespace {

namespace json = boost::json;

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

}  // namespace

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

}  // namespace rw::k8s::devserver
