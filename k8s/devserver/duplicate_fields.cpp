#include "rw/k8s/devserver/duplicate_fields.hpp"

#include <boost/json/basic_parser_impl.hpp>

#include <algorithm>
#include <set>

namespace rw::k8s::devserver {
namespace {

namespace json = boost::json;

constexpr std::size_t most_duplicates = 16;
constexpr std::size_t deepest_body = 256;

/// Sees each name of each object once (boost::json::basic_parser, "Handler").
struct name_watcher {
  static constexpr std::size_t max_object_size = static_cast<std::size_t>(-1);
  static constexpr std::size_t max_array_size = static_cast<std::size_t>(-1);
  static constexpr std::size_t max_key_size = static_cast<std::size_t>(-1);
  static constexpr std::size_t max_string_size = static_cast<std::size_t>(-1);

  /// An object or array that is open.
  struct level {
    bool array = false;
    std::set<std::string> names = {};
    std::string name = {};  ///< of the field that is being read
    std::size_t index = 0;  ///< of the item that is being read
  };

  std::string path() const {
    std::string text;
    for (const auto& level : levels) {
      if (level.array) {
        text += '[' + std::to_string(level.index) + ']';
      } else {
        if (!text.empty()) text += '.';
        text += level.name;
      }
    }
    return text;
  }
  bool open(bool array) {
    levels.push_back({array});
    return true;
  }
  bool close() {
    levels.pop_back();
    return value();
  }
  bool value() {
    if (!levels.empty()) ++levels.back().index;
    return true;
  }

  bool on_document_begin(boost::system::error_code&) { return true; }
  bool on_document_end(boost::system::error_code&) { return true; }
  bool on_object_begin(boost::system::error_code&) { return open(false); }
  bool on_object_end(std::size_t, boost::system::error_code&) { return close(); }
  bool on_array_begin(boost::system::error_code&) { return open(true); }
  bool on_array_end(std::size_t, boost::system::error_code&) { return close(); }
  bool on_key_part(json::string_view part, std::size_t, boost::system::error_code&) {
    key.append(part.data(), part.size());
    return true;
  }
  bool on_key(json::string_view part, std::size_t, boost::system::error_code&) {
    key.append(part.data(), part.size());
    auto& here = levels.back();
    here.name = std::move(key);
    key.clear();
    if (!here.names.insert(here.name).second && found.size() < most_duplicates)
      found.push_back(path());
    return true;
  }
  bool on_string_part(json::string_view, std::size_t, boost::system::error_code&) { return true; }
  bool on_string(json::string_view, std::size_t, boost::system::error_code&) { return value(); }
  bool on_number_part(json::string_view, boost::system::error_code&) { return true; }
  bool on_int64(std::int64_t, json::string_view, boost::system::error_code&) { return value(); }
  bool on_uint64(std::uint64_t, json::string_view, boost::system::error_code&) { return value(); }
  bool on_double(double, json::string_view, boost::system::error_code&) { return value(); }
  bool on_bool(bool, boost::system::error_code&) { return value(); }
  bool on_null(boost::system::error_code&) { return value(); }
  bool on_comment_part(json::string_view, boost::system::error_code&) { return true; }
  bool on_comment(json::string_view, boost::system::error_code&) { return true; }

  std::string key;
  std::vector<level> levels;
  std::vector<std::string> found;
};

}  // namespace

std::vector<std::string> duplicate_fields(std::string_view text) {
  json::parse_options options;
  options.max_depth = deepest_body;
  json::basic_parser<name_watcher> parser(options);
  boost::system::error_code error;
  parser.write_some(false, text.data(), text.size(), error);
  return std::move(parser.handler().found);
}

}  // namespace rw::k8s::devserver
