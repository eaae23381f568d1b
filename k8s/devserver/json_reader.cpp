#include "rw/k8s/devserver/json_reader.hpp"

#include "rw/k8s/devserver/json_access.hpp"

#include <boost/json/array.hpp>
#include <boost/json/basic_parser_impl.hpp>
#include <boost/json/object.hpp>

#include <utility>

namespace rw::k8s::devserver {
namespace {

namespace json = boost::json;
using boost::system::error_code;

constexpr std::size_t most_duplicates = 16;

/// Decodes `value` into what a field has already.
void merge_repeated(json::value& into, json::value value) {
  if (into.is_object() && value.is_object()) {
    for (auto& [name, member] : value.get_object()) {
      const auto [at, added] = into.get_object().emplace(name, nullptr);
      merge_repeated(at->value(), std::move(member));
    }
  } else if (into.is_array() && value.is_array()) {
    auto& items = into.get_array();
    items.resize(value.get_array().size());
    for (std::size_t i = 0; i < items.size(); ++i) {
      merge_repeated(items[i], std::move(value.get_array()[i]));
    }
  } else {
    into = std::move(value);
  }
}

/// Makes the value of a document (boost::json::basic_parser, "Handler").
struct document_handler {
  static constexpr std::size_t max_object_size = ~std::size_t{0}, max_array_size = max_object_size,
                               max_key_size = max_object_size, max_string_size = max_object_size;

  /// An object or array that is open.
  struct level {
    json::value value;
    std::string name = {};  ///< of the field that is being read
  };

  std::string path() const {
    std::string made;
    for (const auto& outer : levels) {
      if (const auto* const list = outer.value.if_array()) {
        made += '[' + std::to_string(list->size()) + ']';
      } else {
        made.append(made.empty() ? "" : ".").append(outer.name);
      }
    }
    return made;
  }
  bool open(json::value value) {
    levels.push_back({std::move(value)});
    return true;
  }
  bool close() {
    auto value = std::move(levels.back().value);
    levels.pop_back();
    return put(std::move(value));
  }
  bool put(json::value value) {
    if (levels.empty()) {
      read.value = std::move(value);
    } else if (auto* const list = levels.back().value.if_array()) {
      list->push_back(std::move(value));
    } else {
      auto& field = levels.back().value.get_object()[levels.back().name];
      if (repeated != repeated_fields::merged) field = nullptr;
      merge_repeated(field, std::move(value));
    }
    return true;
  }

  bool on_document_begin(error_code&) { return true; }
  bool on_document_end(error_code&) { return true; }
  bool on_object_begin(error_code&) { return open(json::object()); }
  bool on_object_end(std::size_t, error_code&) { return close(); }
  bool on_array_begin(error_code&) { return open(json::array()); }
  bool on_array_end(std::size_t, error_code&) { return close(); }
  bool append(json::string_view part) {
    text.append(part.data(), part.size());
    return true;
  }
  bool on_key_part(json::string_view part, std::size_t, error_code&) { return append(part); }
  bool on_key(json::string_view part, std::size_t, error_code&) {
    append(part);
    auto& here = levels.back();
    here.name = std::exchange(text, {});
    if (here.value.get_object().contains(here.name) && read.duplicates.size() < most_duplicates) {
      read.duplicates.push_back(path());
    }
    return true;
  }
  bool on_string_part(json::string_view part, std::size_t, error_code&) { return append(part); }
  bool on_string(json::string_view part, std::size_t, error_code&) {
    append(part);
    return put(json::string(std::exchange(text, {})));
  }
  bool on_number_part(json::string_view, error_code&) { return true; }
  bool on_int64(std::int64_t number, json::string_view, error_code&) { return put(number); }
  bool on_uint64(std::uint64_t number, json::string_view, error_code&) { return put(number); }
  bool on_double(double number, json::string_view, error_code&) { return put(number); }
  bool on_bool(bool flag, error_code&) { return put(flag); }
  bool on_null(error_code&) { return put(nullptr); }
  bool on_comment_part(json::string_view, error_code&) { return true; }
  bool on_comment(json::string_view, error_code&) { return true; }

  repeated_fields repeated;
  std::string text = {};  ///< of a name or value that is being read
  std::vector<level> levels = {};
  json_document read = {};
};

}  // namespace

std::optional<json_document> read_json(std::string_view text, repeated_fields repeated,
                                       std::string& reason) {
  json::parse_options options;
  options.max_depth = deepest_json;
  json::basic_parser<document_handler> parser(options, document_handler{repeated});
  error_code error;
  const auto size = parser.write_some(false, text.data(), text.size(), error);
  if (!error && size < text.size()) error = json::error::extra_data;
  if (!error) return std::move(parser.handler().read);
  reason = error.message();
  return {};
}

}  // namespace rw::k8s::devserver
