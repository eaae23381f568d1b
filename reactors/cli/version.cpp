#include "rw/reactors/cli/version.hpp"

#include "rw/core/json_text.hpp"

#include <string_view>
#include <utility>

namespace rw::cli {
namespace {

/// As Go, and so kubectl, names them.
constexpr auto architecture =
#if defined(__x86_64__)
    "amd64";
#elif defined(__aarch64__)
    "arm64";
#else
    "";
#endif

}  // namespace

std::string version_text() {
  const std::string_view revision = source_revision;
  return revision.empty() ? RW_VERSION : RW_VERSION "+" + std::string(revision);
}

std::string version_line(const std::string& program) {
  const std::string_view time = source_time;
  return program + " " + version_text() + (time.empty() ? "" : " of " + std::string(time));
}

std::string version_document(bool yaml) {
  const std::string version = RW_VERSION;
  const auto dot = version.find('.');
  const std::string known = architecture;
  const std::pair<const char*, std::string> fields[] = {
      {"major", version.substr(0, dot)},
      {"minor", version.substr(dot + 1, version.find('.', dot + 1) - dot - 1)},
      {"gitVersion", "v" + version},
      {"gitCommit", source_revision},
      {"gitCommitDate", source_time},
      {"compiler", __VERSION__},
      {"platform", known.empty() ? "" : "linux/" + known}};
  std::string out = yaml ? "clientVersion:" : "{\n  \"clientVersion\": {";
  const auto* separator = "\n";
  for (const auto& [name, value] : fields) {
    if (value.empty()) continue;
    out += yaml ? "\n  " + std::string(name) + ": "
                : separator + ("    \"" + std::string(name) + "\": ");
    core::append_json_string(out, value);
    separator = ",\n";
  }
  return out + (yaml ? "\n" : "\n  }\n}\n");
}

}  // namespace rw::cli
