#pragma once

#include <boost/json/value.hpp>

#include <string>

// Values as kube-apiserver prints them in messages.

namespace rw::k8s::devserver {

/// Formats by Go's "%v": "map[a:1 b:[2 3]]", with the keys in order.
std::string go_text(const boost::json::value& value);

/// Formats an invalid value for a message: strings in quotes, numbers as they are, the rest as Go
/// source ("%#v"), such as `map[string]interface {}{"a":1}`.
std::string go_value(const boost::json::value& value);

std::string go_number(double number);

}  // namespace rw::k8s::devserver
