#include "rw/reactors/dev/runtime_log.hpp"

#include "rw/core/json_text.hpp"

namespace rw::dev {
namespace {

/// Adds a field to a logger's line `{...}\n`.
std::string with_field(std::string_view line, const std::string& field) {
  std::string out(line.substr(0, line.rfind('}')));
  return out + field + "}\n";
}

}  // namespace

core::logger::sink name_runtime(const std::string& runtime, terminal& on) {
  std::string field = ",\"runtime\":";
  core::append_json_string(field, runtime);
  return [field, &on](std::string_view line) { on.log(with_field(line, field)); };
}

}  // namespace rw::dev
