#include "rw/k8s/devserver/table.hpp"

#include "rw/k8s/devserver/json_path.hpp"
#include "rw/k8s/devserver/table_cells.hpp"
#include "rw/k8s/objects/types.hpp"

#include <boost/json/serialize.hpp>

#include <algorithm>

namespace rw::k8s::devserver {
namespace {

namespace json = boost::json;

/// Returns the columns of a custom resource after its name.
const std::vector<printer_column>& custom_columns(const served_resource& of) {
  static const std::vector<printer_column> age{{"Age", "date", ".metadata.creationTimestamp"}};
  return of.version->columns.empty() ? age : of.version->columns;
}

json::value describe(const printer_column& printer_column) {
  return {{"name", printer_column.name},
          {"type", printer_column.type},
          {"format", printer_column.format},
          {"description", printer_column.description},
          {"priority", printer_column.priority}};
}

json::value cell(const printer_column& column, const json::value& object,
                 std::chrono::system_clock::time_point now) {
  const auto path = json_path::parse(column.json_path);
  if (!path) return nullptr;
  const auto found = path->find(object);
  if (found.empty()) return nullptr;
  const auto& value = *found.front();
  if (column.type == "date" && value.is_string()) {
    const auto since = parse_rfc3339(value.get_string()).value_or(decltype(now){});
    return json::string(
        human_duration(std::chrono::duration_cast<std::chrono::seconds>(now - since)));
  }
  if (column.type != "string" || value.is_string()) return value;
  return json::string(json::serialize(value));
}

}  // namespace

void append_columns(std::string& out, const served_resource& of) {
  json::array all;
  if (of.of->custom) {
    all.push_back(describe({"Name", "string", {}, "name"}));
    for (const auto& column : custom_columns(of)) all.push_back(describe(column));
  } else {
    for (const auto& column : builtin_columns(of.of->storage_key)) all.push_back(describe(column));
  }
  out += json::serialize(all);
}

void append_row(std::string& out, const record& record, const served_resource& of,
                const presentation& presentation) {
  const auto object = record.parse();
  const auto now = presentation.time->wall();
  json::array cells;
  if (of.of->custom) {
    cells.push_back(json::string(record.name()));
    for (const auto& column : custom_columns(of)) cells.push_back(cell(column, object, now));
  } else {
    cells = builtin_cells(of.of->storage_key, object, now);
  }
  out += "{\"cells\":";
  out += json::serialize(cells);
  if (presentation.rows != row_objects::none) {
    auto shown = presentation;
    shown.as = presentation.rows == row_objects::whole ? shape::whole : shape::metadata;
    out += ",\"object\":";
    append_object(out, record, of, shown);
  }
  out += '}';
}

std::string human_duration(std::chrono::seconds span) {
  // apimachinery, util/duration: the longer, the coarser.
  const auto total = std::max<std::int64_t>(span.count(), 0);
  const auto pair = [](std::int64_t large, const char* unit, std::int64_t small,
                       const char* small_unit) {
    auto text = std::to_string(large) + unit;
    if (small > 0) text += std::to_string(small) + small_unit;
    return text;
  };
  const auto minutes = total / 60;
  const auto hours = minutes / 60;
  const auto days = hours / 24;
  if (total < 120) return std::to_string(total) + "s";
  if (minutes < 10) return pair(minutes, "m", total % 60, "s");
  if (minutes < 180) return std::to_string(minutes) + "m";
  if (hours < 8) return pair(hours, "h", minutes % 60, "m");
  if (hours < 48) return std::to_string(hours) + "h";
  if (days < 8) return pair(days, "d", hours % 24, "h");
  if (days < 2 * 365) return std::to_string(days) + "d";
  if (days < 8 * 365) return pair(days / 365, "y", days % 365, "d");
  return std::to_string(days / 365) + "y";
}

}  // namespace rw::k8s::devserver
