#pragma once

#include "rw/k8s/devserver/kinds.hpp"

#include <boost/json/array.hpp>
#include <boost/json/value.hpp>

#include <chrono>
#include <string>
#include <vector>

namespace rw::k8s::devserver {

struct table_layout {
  using cells_maker = boost::json::array (*)(const boost::json::value& object,
                                             std::chrono::system_clock::time_point now);
  std::vector<printer_column> columns;  ///< without paths
  cells_maker cells;
};

/// Returns the layout of a built-in kind (Kubernetes, printers/internalversion), by storage key.
const table_layout& builtin_layout(std::string_view storage_key);

/// Returns the age of a timestamp of the object: "5s", "3m12s"; "<unknown>" without one.
std::string age_of(const boost::json::value& object, std::string_view field,
                   std::chrono::system_clock::time_point now);

}  // namespace rw::k8s::devserver
