#include "rw/k8s/devserver/element_order.hpp"
#include "rw/k8s/devserver/go_text.hpp"
#include "rw/k8s/devserver/patch.hpp"

#include <boost/json/array.hpp>
#include <boost/json/object.hpp>
#include <boost/json/serialize.hpp>

#include <algorithm>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <utility>

namespace rw::k8s::devserver {
namespace {

namespace json = boost::json;

constexpr std::string_view patch_directive = "$patch";
constexpr std::string_view retain_directive = "$retainKeys";
constexpr std::string_view order_directive = "$setElementOrder";
constexpr std::string_view delete_directive = "$deleteFromPrimitiveList";

problem malformed(std::string_view text) {
  return {.code = 400,
          .reason = "BadRequest",
          .message = "invalid patch format of " + std::string(text)};
}

/// kube-apiserver has no status for it.
problem contradictory(std::string message) {
  return {.code = 500, .reason = "", .message = std::move(message)};
}

problem unknown_patch(const json::value& kind, const json::object& in) {
  return contradictory("unknown patch type: " + go_text(kind) + " in map: " + go_text(in));
}

/// Returns "x" of "$setElementOrder/x"; empty if the name is not such a directive.
std::string_view field_of(std::string_view name, std::string_view directive) {
  return name.starts_with(directive) && name.substr(directive.size()).starts_with('/')
             ? name.substr(directive.size() + 1)
             : std::string_view();
}

bool is_directive(std::string_view name) {
  return name == patch_directive || name == retain_directive || name.starts_with(order_directive) ||
         name.starts_with(delete_directive);
}

bool has_directive(const json::value& item) {
  return item.is_object() && item.get_object().contains(patch_directive);
}

/// Returns the value without the nulls in objects, which mean absent fields.
json::value without_nulls(const json::value& value) {
  if (value.is_array()) {
    json::array list;
    list.reserve(value.get_array().size());
    for (const auto& entry : value.get_array()) list.push_back(without_nulls(entry));
    return list;
  }
  if (!value.is_object()) return value;
  json::object object;
  for (const auto& [name, member] : value.get_object()) {
    if (!member.is_null()) object.emplace(name, without_nulls(member));
  }
  return object;
}

/// True for two objects, or two lists: how they merge is looked up in their type.
bool can_merge(const json::value* into, const json::value& change) {
  if (into == nullptr) return false;
  return (into->is_object() && change.is_object()) || (into->is_array() && change.is_array());
}

/// Merges objects and lists into the target. Each step returns the patch's error.
class merger {
 public:
  outcome<void> object(json::object& target, const json::object& change, const schema* type);

 private:
  outcome<void> retain(json::object& target, const json::object& change);
  outcome<void> member(json::object& target, std::string_view name, const json::value& change,
                       const schema* type, const json::array* wanted_order);
  outcome<void> copy(json::array& target, const json::array& change, const schema& type);
  outcome<void> list(json::array& target, const json::array& change, const schema& type,
                     const json::array* wanted_order);
  outcome<void> mapped(json::array& target, const json::array& change, const schema& type,
                       const item_identity& by);
  outcome<void> patched_away(json::array& target, const json::array& change,
                             const item_identity& by, bool& replaced);
};

outcome<void> merger::object(json::object& target, const json::object& change, const schema* type) {
  if (const auto* const kind = change.if_contains(patch_directive)) {
    if (*kind == json::value("delete")) {
      target.clear();
    } else if (*kind == json::value("replace")) {
      target = without_nulls(change).get_object();
      target.stable_erase(patch_directive);
    } else {
      return unknown_patch(*kind, change);
    }
    return {};
  }
  const auto retained = retain(target, change);
  if (!retained) return retained;
  std::map<std::string_view, const json::array*> orders;
  for (const auto& [name, value] : change) {
    if (!name.starts_with(order_directive)) continue;
    const auto field = field_of(name, order_directive);
    if (field.empty()) return malformed("setElementOrder list");
    if (!value.is_array()) {
      return contradictory("expected a []interface {}, but received a " +
                           std::string(value.is_string() ? "string" : "value of another type"));
    }
    orders.emplace(field, &value.get_array());
  }
  for (const auto& [name, value] : change) {
    if (name.starts_with(delete_directive)) {
      const auto field = field_of(name, delete_directive);
      if (field.empty() || !value.is_array()) return malformed("primitive list");
      auto* const from = target.if_contains(field);
      auto* const items = from != nullptr ? from->if_array() : nullptr;
      if (items == nullptr) continue;
      const auto gone = positions_in(value.get_array(), item_identity(""));
      json::array left;
      for (auto& item : *items) {
        if (!gone.contains(json::serialize(item))) left.push_back(std::move(item));
      }
      *items = std::move(left);
    } else if (!is_directive(name)) {
      const auto ordered = orders.find(name);
      const auto* const wanted = ordered != orders.end() ? ordered->second : nullptr;
      const auto* const of = child_of(type, name);
      const bool unknown = type != nullptr && of == nullptr && !type->allows(name);
      if (unknown && can_merge(target.if_contains(name), value)) {
        return contradictory("unable to find api field in struct for the json field \"" +
                             std::string(name) + "\"");
      }
      const bool lists = value.is_array() && can_merge(target.if_contains(name), value);
      if (lists && type != nullptr && !type->may_merge_lists(name)) {
        return contradictory("expected slice or array type, but got: struct");
      }
      const auto merged = member(target, name, value, of, wanted);
      if (!merged) return merged;
    }
  }
  // Lists that are only ordered.
  for (const auto& [field, wanted] : orders) {
    auto* const there = change.contains(field) ? nullptr : target.if_contains(field);
    const auto* const of = child_of(type, field);
    if (there == nullptr || !there->is_array() || of == nullptr || !of->patch_merges()) continue;
    const auto merged = list(there->get_array(), {}, *of, wanted);
    if (!merged) return merged;
  }
  return {};
}

outcome<void> merger::retain(json::object& target, const json::object& change) {
  const auto* const directive = change.if_contains(retain_directive);
  if (directive == nullptr) return {};
  if (!directive->is_array()) return malformed("retainKeys");
  const auto kept = positions_in(directive->get_array(), item_identity(""));
  const auto is_kept = [&kept](std::string_view name) {
    return kept.contains(json::serialize(json::string(name)));
  };
  for (const auto& [name, value] : change) {
    if (!value.is_null() && !is_directive(name) && !is_kept(name)) return malformed("retainKeys");
  }
  json::object left;
  for (auto& [name, value] : target) {
    if (is_kept(name)) left.emplace(name, std::move(value));
  }
  target = std::move(left);
  return {};
}

outcome<void> merger::member(json::object& target, std::string_view name, const json::value& change,
                             const schema* type, const json::array* wanted_order) {
  if (change.is_null()) {
    target.stable_erase(name);
    return {};
  }
  auto& into = target[name];
  if (change.is_object() && (type == nullptr || !type->patch_replaces())) {
    if (!into.is_object()) into.emplace_object();
    return object(into.get_object(), change.get_object(), type);
  }
  if (change.is_array() && type != nullptr && type->patch_merges()) {
    if (!into.is_array()) {
      into.emplace_array();
      // There is nothing to merge with: items may be the same, or lack what identifies them.
      if (std::ranges::none_of(change.get_array(), has_directive)) {
        return copy(into.get_array(), change.get_array(), *type);
      }
    }
    return list(into.get_array(), change.get_array(), *type, wanted_order);
  }
  // An object that is replaced is taken as it is.
  into = into.is_object() && change.is_object() ? change : without_nulls(change);
  return {};
}

outcome<void> merger::copy(json::array& target, const json::array& change, const schema& type) {
  for (const auto& item : change) {
    if (!item.is_object()) {
      target.push_back(without_nulls(item));
      continue;
    }
    json::object made;
    const auto merged = object(made, item.get_object(), type.items());
    if (!merged) return merged;
    target.push_back(std::move(made));
  }
  return {};
}

/// Checks that items are all objects, or all something else. Lists of lists are not supported.
outcome<void> check_alike(const json::array& target, const json::array& change, bool& objects) {
  bool has_others = false;
  for (const auto* const list : {&target, &change}) {
    for (const auto& entry : *list) {
      if (entry.is_array() && !objects && !has_others) {
        return problem{.code = 422,
                       .reason = "Invalid",
                       .message = "the server rejected our request due to an error in our request"};
      }
      (entry.is_object() ? objects : has_others) = true;
      if ((objects && has_others) || entry.is_array()) {
        return contradictory("list element types are not identical: [" + go_text(target) + " " +
                             go_text(change) + "]");
      }
    }
  }
  return {};
}

/// Checks that the items of the patch are in the order that the patch requests.
outcome<void> check_order(const json::array& change, const json::array& wanted,
                          const item_identity& by) {
  json::array staying;
  for (const auto& item : change) {
    if (!item.is_object() || !item.get_object().contains(patch_directive)) staying.push_back(item);
  }
  for (std::size_t i = 0; by.by_key() && i < wanted.size(); ++i) {
    if (!wanted[i].is_object()) {
      return contradictory("value for key " + std::to_string(i) + " is not a map");
    }
  }
  if (is_subsequence(staying, wanted, by)) return {};
  return contradictory("The order in patch list:\n" + go_text(change) + "\n doesn't match " +
                       std::string(order_directive) + " list:\n" + go_text(wanted) + "\n");
}

outcome<void> merger::list(json::array& target, const json::array& change, const schema& type,
                           const json::array* wanted_order) {
  bool objects = false;
  const auto alike = check_alike(target, change, objects);
  if (!alike) return alike;
  const item_identity by(objects ? type.patch_merge_key() : std::string_view());
  if (objects && !by.by_key()) {
    return contradictory("cannot merge lists without merge key");
  }
  if (wanted_order != nullptr) {
    const auto checked = check_order(change, *wanted_order, by);
    if (!checked) return checked;
  }
  const auto server = positions_in(target, by);
  bool replaced = false;
  if (objects) {
    const auto gone = patched_away(target, change, by, replaced);
    if (!gone) return gone;
  }
  if (!objects) {
    auto there = server;
    for (const auto& item : change) {
      if (there.emplace(by.text(item), there.size()).second) target.push_back(item);
    }
  } else if (!replaced) {
    const auto merged = mapped(target, change, type, by);
    if (!merged) return merged;
  }
  if (wanted_order != nullptr) {
    order_items(target, positions_in(*wanted_order, by), server, by);
  } else if (!replaced) {
    order_items(target, positions_in(change, by), server, by);
  }
  return {};
}

/// Applies the items with a `$patch`: deletes some items of the target, or (`replaced`) replaces
/// all by the other items of the patch.
outcome<void> merger::patched_away(json::array& target, const json::array& change,
                                   const item_identity& by, bool& replaced) {
  item_positions gone;
  json::array plain;
  for (const auto& item : change) {
    const auto* const kind = item.get_object().if_contains(patch_directive);
    if (kind == nullptr) {
      plain.push_back(without_nulls(item));
    } else if (*kind == json::value("replace")) {
      replaced = true;
    } else if (*kind == json::value("merge")) {
      return contradictory("merging lists cannot yet be specified in the patch");
    } else if (*kind != json::value("delete")) {
      return unknown_patch(*kind, item.get_object());
    } else if (by.of(item) == nullptr) {
      return contradictory("map: " + go_text(item) +
                           " does not contain declared merge key: " + std::string(by.key()));
    } else {
      gone.emplace(by.text(item), gone.size());
    }
  }
  if (replaced) {
    target = std::move(plain);
  } else if (!gone.empty()) {
    json::array left;
    for (auto& item : target) {
      if (!gone.contains(by.text(item))) left.push_back(std::move(item));
    }
    target = std::move(left);
  }
  return {};
}

outcome<void> merger::mapped(json::array& target, const json::array& change, const schema& type,
                             const item_identity& by) {
  const auto lacks_key = [&by](const json::value& item) {
    return contradictory("map: " + go_text(item) +
                         " does not contain declared merge key: " + std::string(by.key()));
  };
  auto there = positions_in(target, by);
  std::optional<std::size_t> nameless;
  for (const auto& item : change) {
    if (item.get_object().contains(patch_directive)) continue;
    if (by.of(item) == nullptr) return lacks_key(item);
    const auto [found, added] = there.emplace(by.text(item), target.size());
    // A null merge key stays in an item that is added, and is removed from it by a second one.
    if (!added && by.of(item)->is_null() && !nameless) nameless = found->second;
    if (added) target.emplace_back(json::object());
    auto& into = target[found->second];
    if (!into.is_object()) into.emplace_object();
    const auto merged = object(into.get_object(), item.get_object(), type.items());
    if (!merged) return merged;
  }
  if (nameless) return lacks_key(target[*nameless]);
  return {};
}

}  // namespace

outcome<void> strategic_merge_patch(json::value& target, const json::value& change,
                                    const schema& type) {
  if (!change.is_object() || !target.is_object()) {
    return problem{.code = 400,
                   .reason = "BadRequest",
                   .message = "a strategic merge patch must be an object, and be applied to one"};
  }
  return merger().object(target.get_object(), change.get_object(), &type);
}

}  // namespace rw::k8s::devserver
