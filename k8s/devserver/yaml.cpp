#include "rw/k8s/devserver/yaml.hpp"

#include "rw/k8s/objects/yaml.hpp"

#include <cstddef>

namespace rw::k8s::devserver {
namespace {

constexpr std::size_t most_values = 500'000;

std::string at_line(std::size_t line, const char* text) {
  return line == 0 ? text : "line " + std::to_string(line) + ": " + text;
}

}  // namespace

std::optional<boost::json::value> parse_yaml(const std::string& text, std::string& reason) {
  try {
    const yaml_stream all(text, most_values);
    const auto& documents = all.documents();
    if (documents.empty() || documents.front() == nullptr) return boost::json::value();
    return yaml_reader(most_values, text.size()).read(*documents.front());
  } catch (const yaml_type_error& e) {
    reason = at_line(e.line, e.what());
  } catch (const yaml_error& e) {
    reason = at_line(e.line, e.what());
  }
  return {};
}

}  // namespace rw::k8s::devserver
