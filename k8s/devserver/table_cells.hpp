#pragma once

#include "rw/k8s/devserver/kinds.hpp"

#include <boost/json/array.hpp>
#include <boost/json/value.hpp>

#include <chrono>
#include <span>
#include <string_view>
#include <vector>

namespace rw::k8s::devserver {

/// Returns the columns of a built-in kind (Kubernetes, printers/internalversion), by storage key.
const std::vector<printer_column>& builtin_columns(std::string_view storage_key);

/// Returns an object's cells in these columns.
boost::json::array builtin_cells(std::string_view storage_key, const boost::json::value& object,
                                 std::chrono::system_clock::time_point now);

/// The columns of a kind, separated by `|`: `NAME[+][:TYPE]=SOURCE`, wide ones with a plus. A
/// source is a letter and paths (json_path.hpp) that `+` separates, and after `!` the text of a
/// cell without a value: `.` the first value, `#` the number of items, `~` the time since, `,`, `;`
/// and `/` texts joined by that, `%` two numbers, `3` three of them at most, `=` a selector, `^`
/// access modes by their capitals; or `@` and the name of a function. Columns of many kinds need
/// none.
struct table_row {
  std::string_view storage_keys;  ///< separated by blanks; none: all other kinds
  std::string_view columns;
};
std::span<const table_row> table_rows() noexcept;

using cell_maker = boost::json::value (*)(const boost::json::value& object,
                                          std::chrono::system_clock::time_point now);

/// Returns the function of that name.
cell_maker find_cell_maker(std::string_view name);

}  // namespace rw::k8s::devserver
