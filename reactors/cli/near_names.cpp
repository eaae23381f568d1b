#include "rw/reactors/cli/near_names.hpp"

#include "rw/reactors/shared/fleet_verdict.hpp"

#include <algorithm>
#include <cstddef>
#include <utility>

namespace rw::cli {
namespace {

constexpr std::size_t letters_a_change = 3;  ///< a near name differs in one change for so many
constexpr std::size_t farthest = 2;
constexpr std::size_t most_names = 3;

/// Number of insertions, deletions and replacements between two words (Levenshtein).
std::size_t distance(std::string_view a, std::string_view b) {
  std::vector<std::size_t> row(b.size() + 1);
  for (std::size_t j = 0; j <= b.size(); ++j) row[j] = j;
  for (std::size_t i = 1; i <= a.size(); ++i) {
    auto diagonal = std::exchange(row[0], i);
    for (std::size_t j = 1; j <= b.size(); ++j) {
      const auto replaced = diagonal + (a[i - 1] == b[j - 1] ? 0 : 1);
      diagonal = row[j];
      row[j] = std::min({row[j - 1] + 1, row[j] + 1, replaced});
    }
  }
  return row.back();
}

}  // namespace

std::vector<std::string> near_names(std::string_view given, const std::vector<std::string>& known) {
  const auto limit = std::clamp(given.size() / letters_a_change, std::size_t{1}, farthest);
  std::vector<std::pair<std::size_t, std::string>> near;
  for (const auto& name : known) {
    const auto far = name.starts_with(given) ? 1 : distance(name, given);
    if (far <= limit) near.emplace_back(far, name);
  }
  std::ranges::sort(near);
  std::vector<std::string> out;
  for (auto& [far, name] : near) {
    if (out.size() < most_names) out.push_back(std::move(name));
  }
  return out;
}

std::string unknown_kyma(const std::string& given, const std::vector<std::string>& known) {
  const auto text = "there is no Kyma " + given;
  const auto near = near_names(given, known);
  if (!near.empty()) return text + "; did you mean " + first_of(near, near.size()) + "?";
  return text +
         (known.empty() ? ", nor any other" : ": there are " + first_of(known, known.size()));
}

}  // namespace rw::cli
