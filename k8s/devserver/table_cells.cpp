#include "rw/k8s/devserver/table_cells.hpp"

#include "rw/k8s/devserver/json_access.hpp"
#include "rw/k8s/devserver/json_path.hpp"
#include "rw/k8s/devserver/scale.hpp"
#include "rw/k8s/devserver/table.hpp"
#include "rw/k8s/objects/types.hpp"

#include <boost/json/serialize.hpp>

#include <algorithm>
#include <map>
#include <string>

namespace rw::k8s::devserver {
namespace {

namespace json = boost::json;
using when = std::chrono::system_clock::time_point;
using texts = std::vector<std::string>;

/// Takes the text up to `separator` off the front.
std::string_view take(std::string_view& text, char separator) {
  const auto end = std::min(text.find(separator), text.size());
  const auto part = text.substr(0, end);
  text.remove_prefix(std::min(end + 1, text.size()));
  return part;
}

std::string since(std::string_view time, when now) {
  return human_duration(
      std::chrono::duration_cast<std::chrono::seconds>(now - parse_rfc3339(time).value_or(when{})));
}

/// The short name of a volume's access mode: RWO, ROX, RWX, RWOP.
std::string capitals(std::string_view mode) {
  std::string letters;
  for (const char c : mode) {
    if (c >= 'A' && c <= 'Z') letters += c == 'M' ? 'X' : c;
  }
  return letters;
}

/// A column with the source of its cells (table_cells.hpp).
struct column {
  printer_column shown;
  char form;
  std::vector<json_path> paths;
  std::string otherwise;
  cell_maker make = nullptr;

  static column parse(std::string_view text);
  json::value cell(const json::value& object, when now) const;

 private:
  std::vector<const json::value*> values(const json::value& object) const;
  std::string text(const json::value& object, when now) const;
};

/// Returns the source of a column that is the same for all kinds.
std::string_view common_source(std::string_view name) {
  static const std::map<std::string_view, std::string_view> all{
      {"Age", "~.metadata.creationTimestamp!<unknown>"},
      {"Containers+", ",.spec.template.spec.containers[*].name"},
      {"Created At:date", ".metadata.creationTimestamp"},
      {"Images+", ",.spec.template.spec.containers[*].image"},
      {"Name", ".metadata.name"},
      {"Selector+", "=.spec.selector!<none>"},
  };
  return all.at(name);
}

column column::parse(std::string_view text) {
  auto source = text;
  auto name = take(source, '=');
  if (source.empty()) source = common_source(name);
  auto type = name;
  name = take(type, ':');
  if (type.empty()) type = "string";
  column made{{std::string(name), std::string(type), {}}, source.front(), {}, {}};
  if (name == "Name") made.shown.format = "name";
  if (name.ends_with('+')) {
    made.shown.name.pop_back();
    made.shown.priority = 1;
    made.shown.format.clear();
  }
  if (made.form != '.') source.remove_prefix(1);
  auto paths = take(source, '!');
  made.otherwise = source;
  if (made.form == '@') {
    made.make = find_cell_maker(paths);
  } else {
    while (!paths.empty()) made.paths.push_back(*json_path::parse(take(paths, '+')));
  }
  return made;
}

std::vector<const json::value*> column::values(const json::value& object) const {
  std::vector<const json::value*> found;
  for (const auto& path : paths) {
    for (const auto* const value : path.find(object)) {
      if (!value->is_null() && *value != "") found.push_back(value);
    }
  }
  return found;
}

std::string column::text(const json::value& object, when now) const {
  const auto found = values(object);
  texts parts;
  for (const auto* const value : found) {
    const auto plain =
        value->is_string() ? std::string(view(value->get_string())) : json::serialize(*value);
    parts.push_back(form == '=' ? selector_text(*value) : form == '^' ? capitals(plain) : plain);
  }
  if (form == '~') return parts.empty() ? otherwise : since(parts.front(), now);
  std::string more;
  if (form == '3' && parts.size() > 3) {
    more = " + " + std::to_string(parts.size() - 3) + " more...";
    parts.resize(3);
  }
  std::string all;
  const auto* const separator = form == ';' ? ", " : form == '/' ? "/" : ",";
  for (const auto& part : parts) all.append(all.empty() ? "" : separator).append(part);
  return all.empty() ? otherwise : all + more;
}

json::value column::cell(const json::value& object, when now) const {
  if (make != nullptr) return make(object, now);
  const auto found = values(object);
  if (form == '#') {
    std::size_t size = 0;
    for (const auto* const value : found) {
      size += value->is_array()    ? value->get_array().size()
              : value->is_object() ? value->get_object().size()
                                   : 0;
    }
    return size;
  }
  if (form == '%') {
    const auto number = [&](const json_path& path) {
      const auto there = path.find(object);
      return there.empty() ? "0" : json::serialize(*there.front());
    };
    return json::string(number(paths.front()) + "/" + number(paths.back()));
  }
  if (form != '.') return json::string(text(object, now));
  if (!found.empty()) return *found.front();
  if (otherwise == "0") return 0;
  if (otherwise == "false" || (otherwise.empty() && shown.type == "boolean")) return false;
  if (!otherwise.empty()) return json::string(otherwise);
  return shown.type == "integer" ? json::value(0) : json::value("");
}

struct layout {
  std::vector<printer_column> columns;
  std::vector<column> sources;
};

const layout& layout_of(std::string_view storage_key) {
  static const auto all = [] {
    std::map<std::string_view, layout> made;
    for (const auto& row : table_rows()) {
      layout shared;
      for (auto rest = row.columns; !rest.empty();) {
        shared.sources.push_back(column::parse(take(rest, '|')));
        shared.columns.push_back(shared.sources.back().shown);
      }
      auto keys = row.storage_keys;
      do made[take(keys, ' ')] = shared;
      while (!keys.empty());
    }
    return made;
  }();
  const auto at = all.find(storage_key);
  return at == all.end() ? all.at("") : at->second;
}

}  // namespace

const std::vector<printer_column>& builtin_columns(std::string_view storage_key) {
  return layout_of(storage_key).columns;
}

json::array builtin_cells(std::string_view storage_key, const json::value& object, when now) {
  json::array cells;
  for (const auto& source : layout_of(storage_key).sources) {
    cells.push_back(source.cell(object, now));
  }
  return cells;
}

}  // namespace rw::k8s::devserver
