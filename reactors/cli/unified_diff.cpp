#include "rw/reactors/cli/unified_diff.hpp"

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <vector>

namespace rw::cli {
namespace {

constexpr std::size_t context_lines = 3;
constexpr std::size_t most_line_pairs = 16u << 20;

using line_list = std::vector<std::string_view>;

line_list split_lines(std::string_view text) {
  line_list out;
  while (!text.empty()) {
    const auto end = std::min(text.find('\n'), text.size() - 1) + 1;
    out.push_back(text.substr(0, end));
    text.remove_prefix(end);
  }
  return out;
}

struct line_edit {
  char sign;  ///< ' ', '-' or '+'
  std::string_view line;
};

/// The edits between two parts that have no common beginning and end.
void compare_lines(const line_list& a, const line_list& b, std::vector<line_edit>& out) {
  const auto width = b.size() + 1;
  std::vector<std::uint32_t> common;  // of a from i on and b from j on
  if (a.size() * b.size() <= most_line_pairs) common.resize((a.size() + 1) * width);
  const auto at = [&](std::size_t i, std::size_t j) -> std::uint32_t& {
    return common[i * width + j];
  };
  if (!common.empty()) {
    for (auto i = a.size(); i-- > 0;) {
      for (auto j = b.size(); j-- > 0;) {
        at(i, j) = a[i] == b[j] ? at(i + 1, j + 1) + 1 : std::max(at(i + 1, j), at(i, j + 1));
      }
    }
  }
  std::size_t i = 0;
  std::size_t j = 0;
  while (i < a.size() || j < b.size()) {
    const bool both = i < a.size() && j < b.size() && !common.empty();
    if (both && a[i] == b[j]) {
      out.push_back({' ', a[i++]});
      ++j;
    } else if (j == b.size() || (i < a.size() && (!both || at(i + 1, j) >= at(i, j + 1)))) {
      out.push_back({'-', a[i++]});
    } else {
      out.push_back({'+', b[j++]});
    }
  }
}

std::vector<line_edit> edits_of(line_list a, line_list b) {
  const auto begin = static_cast<std::size_t>(std::ranges::mismatch(a, b).in1 - a.begin());
  std::size_t end = 0;
  while (end < std::min(a.size(), b.size()) - begin &&
         a[a.size() - 1 - end] == b[b.size() - 1 - end])
    ++end;
  const line_list tail(a.end() - static_cast<std::ptrdiff_t>(end), a.end());
  std::vector<line_edit> out;
  for (std::size_t i = 0; i < begin; ++i) out.push_back({' ', a[i]});
  for (auto* const each : {&a, &b}) {
    each->resize(each->size() - end);
    each->erase(each->begin(), each->begin() + static_cast<std::ptrdiff_t>(begin));
  }
  compare_lines(a, b, out);
  for (const auto line : tail) out.push_back({' ', line});
  return out;
}

/// "12,3": the line that a part begins at, and how many there are. An empty part begins at the line
/// before it.
std::string hunk_range(std::size_t before, std::size_t count) {
  return std::to_string(count == 0 ? before : before + 1) +
         (count == 1 ? "" : "," + std::to_string(count));
}

}  // namespace

std::string unified_diff(std::string_view before, std::string_view after) {
  const auto edits = edits_of(split_lines(before), split_lines(after));
  const auto is_edit = [](const line_edit& each) { return each.sign != ' '; };
  const auto count = [&](std::size_t from, std::size_t to, char other) {
    return static_cast<std::size_t>(
        std::count_if(edits.begin() + static_cast<std::ptrdiff_t>(from),
                      edits.begin() + static_cast<std::ptrdiff_t>(to),
                      [other](const line_edit& each) { return each.sign != other; }));
  };
  std::string out;
  for (std::size_t done = 0;;) {
    const auto first =
        std::find_if(edits.begin() + static_cast<std::ptrdiff_t>(done), edits.end(), is_edit);
    if (first == edits.end()) return out;
    const auto at = static_cast<std::size_t>(first - edits.begin());
    const auto begin = std::max(done, at - std::min(at, context_lines));
    auto end = at + 1;  // after the last edit of the hunk
    for (auto next = end; next < edits.size() && next - end <= 2 * context_lines; ++next) {
      if (is_edit(edits[next])) end = next + 1;
    }
    end = std::min(end + context_lines, edits.size());
    out += "@@ -" + hunk_range(count(0, begin, '+'), count(begin, end, '+')) + " +" +
           hunk_range(count(0, begin, '-'), count(begin, end, '-')) + " @@\n";
    for (auto i = begin; i < end; ++i) {
      out += edits[i].sign;
      out += edits[i].line;
      if (!edits[i].line.ends_with('\n')) out += "\n\\ No newline at end of file\n";
    }
    done = end;
  }
}

}  // namespace rw::cli
