#include "reactors/dev/runtime_log.hpp"

#include "core/json_text.hpp"

#include <cerrno>
#include <unistd.h>

namespace rw::dev {
namespace {

/// Adds a field to a logger's line `{...}\n`.
std::string with_field(std::string_view line, const std::string& field) {
  std::string out(line.substr(0, line.rfind('}')));
  return out + field + "}\n";
}

void write_stderr(std::string_view line) {
  while (!line.empty()) {
    const auto n = ::write(STDERR_FILENO, line.data(), line.size());
    if (n < 0 && errno == EINTR) continue;
    if (n <= 0) return;  // standard error is closed
    line.remove_prefix(static_cast<std::size_t>(n));
  }
}

}  // namespace

core::logger::sink name_runtime(const std::string& runtime) {
  std::string field = ",\"runtime\":";
  core::append_json_string(field, runtime);
  return [field](std::string_view line) { write_stderr(with_field(line, field)); };
}

}  // namespace rw::dev
