#pragma once

#include "rw/k8s/devserver/schema.hpp"

#include <boost/json/value.hpp>

#include <map>
#include <optional>
#include <string>
#include <string_view>

// Parts of typed_fields.hpp: how the parts of a value are owned, and what identifies them.

namespace rw::k8s::devserver {

/// Returns null if the type is unknown, or has no items.
const schema* items_of(const schema* type);
bool declares(const schema* type, std::string_view field);

/// Returns true for an object whose fields are owned one by one.
bool granular(const boost::json::value& value, const schema* type);
/// Returns true for a list whose items are owned one by one.
bool associative(const schema* type);
bool associative(const boost::json::value& value, const schema* type);
/// Returns true for what is absent, null or an empty object or list.
bool is_hollow(const boost::json::value* value);

/// Returns the path element of a field.
std::string field_element(std::string_view name);
/// Returns the path element that identifies an item of an associative list; otherwise nothing, with
/// the reason in `error`.
std::optional<std::string> item_element(const boost::json::value& item, const schema& list,
                                        std::string* error = nullptr);

/// The items of a list by their path elements; items without one by their index.
using items_by_element = std::map<std::string, const boost::json::value*>;
/// Returns the items of what is a list, else none; they point into it.
items_by_element index_items(const boost::json::value* list, const schema& type);
/// Returns the one that has the same identity as `item`; null if none has.
const boost::json::value* find_item(const items_by_element& among, const boost::json::value& item,
                                    const schema& list);

}  // namespace rw::k8s::devserver
