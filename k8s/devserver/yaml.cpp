#include "k8s/devserver/yaml.hpp"

#include <boost/json/array.hpp>
#include <boost/json/object.hpp>

#include <array>
#include <charconv>
#include <stdexcept>
#include <yaml-cpp/yaml.h>

namespace rw::k8s::devserver {
namespace {

namespace json = boost::json;

constexpr unsigned deepest = 128;
constexpr std::size_t most_nodes = 500'000;

class converter {
 public:
  json::value convert(const YAML::Node& node, unsigned depth = 0) {
    if (depth > deepest) throw std::runtime_error("nested too deeply");
    if (++nodes_ > most_nodes) throw std::runtime_error("too many values");
    switch (node.Type()) {
      case YAML::NodeType::Map: {
        json::object object;
        for (const auto& field : node) {
          object[field.first.Scalar()] = convert(field.second, depth + 1);
        }
        return object;
      }
      case YAML::NodeType::Sequence: {
        json::array array;
        for (const auto& item : node) array.push_back(convert(item, depth + 1));
        return array;
      }
      case YAML::NodeType::Scalar:
        return scalar(node);
      default:
        return nullptr;
    }
  }

 private:
  static json::value scalar(const YAML::Node& node) {
    const auto& text = node.Scalar();
    // "!" is the tag of what was quoted.
    if (node.Tag() == "!" || node.Tag() == "tag:yaml.org,2002:str") return json::string(text);
    for (const auto* word : {"true", "True", "TRUE", "yes", "Yes", "YES", "on", "On", "ON"}) {
      if (text == word) return true;
    }
    for (const auto* word : {"false", "False", "FALSE", "no", "No", "NO", "off", "Off", "OFF"}) {
      if (text == word) return false;
    }
    for (const auto* word : {"", "~", "null", "Null", "NULL"}) {
      if (text == word) return nullptr;
    }
    std::int64_t whole = 0;
    double real = 0;
    if (read(text, whole)) return whole;
    if (text.find_first_not_of("0123456789+-.eE") == std::string::npos && read(text, real)) {
      return real;
    }
    return json::string(text);
  }

  template <class Number>
  static bool read(const std::string& text, Number& into) {
    const auto* begin = text.data() + (text.front() == '+' ? 1 : 0);
    const auto* end = text.data() + text.size();
    const auto result = std::from_chars(begin, end, into);
    return result.ec == std::errc() && result.ptr == end;
  }

  std::size_t nodes_ = 0;
};

}  // namespace

std::optional<json::value> parse_yaml(const std::string& text, std::string& why) {
  try {
    return converter().convert(YAML::Load(text));
  } catch (const std::exception& e) {
    why = e.what();
    return {};
  }
}

}  // namespace rw::k8s::devserver
