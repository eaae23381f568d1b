#include "rw/k8s/devserver/schedule_text.hpp"

#include "rw/core/text.hpp"

#include <algorithm>
#include <array>
#include <filesystem>
#include <optional>
#include <span>
#include <string>

namespace rw::k8s::devserver {
namespace {

constexpr std::array<std::string_view, 12> month_names{"jan", "feb", "mar", "apr", "may", "jun",
                                                       "jul", "aug", "sep", "oct", "nov", "dec"};
constexpr std::array<std::string_view, 7> day_names{"sun", "mon", "tue", "wed",
                                                    "thu", "fri", "sat"};

struct cron_field {
  unsigned least;
  unsigned most;
  std::span<const std::string_view> names = {};  ///< of the values from the least on
};

constexpr std::array cron_fields{cron_field{0, 59}, cron_field{0, 23}, cron_field{1, 31},
                                 cron_field{1, 12, month_names}, cron_field{0, 6, day_names}};

std::optional<unsigned> value_of(std::string_view text, const cron_field& of) {
  const auto name = std::ranges::find(of.names, core::lower(text));
  if (name != of.names.end()) return of.least + static_cast<unsigned>(name - of.names.begin());
  const auto number = core::parse_number<unsigned>(text);
  return number && *number >= of.least && *number <= of.most ? number : std::nullopt;
}

/// "*", "3", "1-5", each with a step: "*/15".
bool is_range(std::string_view text, const cron_field& of) {
  const auto slash = text.find('/');
  if (slash != std::string_view::npos) {
    const auto step = core::parse_number<unsigned>(text.substr(slash + 1));
    if (!step || *step == 0) return false;
    text = text.substr(0, slash);
  }
  if (text == "*" || text == "?") return true;
  const auto dash = text.find('-');
  const auto first = value_of(text.substr(0, dash), of);
  if (dash == std::string_view::npos) return first.has_value();
  const auto last = value_of(text.substr(dash + 1), of);
  return first && last && *first <= *last;
}

bool is_list(std::string_view text, const cron_field& of) {
  for (;;) {
    const auto comma = std::min(text.find(','), text.size());
    if (!is_range(text.substr(0, comma), of)) return false;
    if (comma == text.size()) return true;
    text.remove_prefix(comma + 1);
  }
}

}  // namespace

bool is_cron_schedule(std::string_view text) noexcept {
  constexpr std::array<std::string_view, 7> known{"@yearly", "@annually", "@monthly", "@weekly",
                                                  "@daily",  "@midnight", "@hourly"};
  if (text.starts_with('@')) return std::ranges::find(known, text) != known.end();
  std::size_t at = 0;
  while (!text.empty()) {
    const auto blank = std::min(text.find_first_of(" \t"), text.size());
    if (blank > 0) {
      if (at == cron_fields.size() || !is_list(text.substr(0, blank), cron_fields[at++]))
        return false;
    }
    text.remove_prefix(std::min(blank + 1, text.size()));
  }
  return at == cron_fields.size();
}

bool is_time_zone(std::string_view name) {
  const bool sane =
      !name.empty() && core::lower(name) != "local" && std::ranges::all_of(name, [](char c) {
        return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') ||
               c == '/' || c == '_' || c == '-' || c == '+';
      });
  const std::filesystem::path database = "/usr/share/zoneinfo";
  std::error_code error;
  if (!sane || !std::filesystem::is_directory(database, error)) return sane;
  return std::filesystem::is_regular_file(database / name, error);
}

}  // namespace rw::k8s::devserver
