#include "rw/reactors/cli/explain.hpp"

#include "rw/reactors/cli/near_names.hpp"
#include "rw/reactors/shared/explanations.hpp"
#include "rw/reactors/shared/fleet_verdict.hpp"

#include <boost/json/array.hpp>
#include <boost/json/serialize.hpp>

#include <algorithm>
#include <cctype>
#include <stdexcept>
#include <vector>

namespace rw::cli {
namespace {

namespace json = boost::json;

/// True if each word is there once, and has what `explain` and the runbook say of it.
consteval bool is_complete() {
  for (const auto& group : explanation_groups) {
    for (const auto& each : group.entries) {
      const bool alert = !each.fires.empty();
      const bool has_all =
          alert ? !each.commands.empty() && !each.next.empty() && !each.causes.empty()
                : !group.commands.empty() && each.causes.empty() == each.next.empty();
      if (each.meaning.empty() || !has_all || find_entry(each.word) != &each) return false;
    }
  }
  return true;
}
static_assert(is_complete());

/// Where the runbook has the entry.
std::string link_of(const explanation& of) {
  std::string anchor(of.word);
  std::ranges::transform(anchor, anchor.begin(),
                         [](unsigned char c) { return static_cast<char>(std::tolower(c)); });
  return "deploy/runbook.md#" + anchor;
}

/// What to look at first; an element is a line.
std::vector<std::string> commands_of(const explanation& of, const explanation_group& group) {
  constexpr std::string_view placeholder = "WORD";
  std::vector<std::string> out;
  auto rest = of.commands.empty() ? group.commands : of.commands;
  while (!rest.empty()) {
    const auto end = std::min(rest.find('\n'), rest.size());
    auto& line = out.emplace_back(rest.substr(0, end));
    const auto at = line.find(placeholder);
    if (at != line.npos) line.replace(at, placeholder.size(), of.word);
    rest.remove_prefix(std::min(end + 1, rest.size()));
  }
  return out;
}

json::object json_of(const explanation& of, const explanation_group& group) {
  json::object out{{"name", of.word},
                   {"kind", of.fires.empty() ? "reason" : "alert"},
                   {"group", group.title},
                   {"meaning", of.meaning}};
  if (!of.fires.empty()) out["fires"] = of.fires;
  if (!of.causes.empty()) out["causes"] = of.causes;
  if (!of.next.empty()) out["nextStep"] = of.next;
  const auto commands = commands_of(of, group);
  out["commands"] = json::array(commands.begin(), commands.end());
  out["runbook"] = link_of(of);
  return out;
}

/// For a shell and a terminal, not for Markdown.
std::string without_backquotes(std::string_view text) {
  std::string out(text);
  std::erase(out, '`');
  return out;
}

std::string text_of(const explanation& of, const explanation_group& group) {
  std::string out(of.word);
  const auto add = [&out](std::string_view title, std::string_view text) {
    if (!text.empty()) out.append("\n").append(title).append(":\n  ").append(text).append("\n");
  };
  out.append(": ").append(group.title).append("\n");
  add("FIRES", of.fires);
  add("MEANING", of.meaning);
  add("USUAL CAUSES", of.causes);
  std::string commands;
  for (const auto& each : commands_of(of, group))
    commands += (commands.empty() ? "" : "\n  ") + each;
  add("LOOK AT FIRST", without_backquotes(commands));
  add("NEXT STEP", without_backquotes(of.next));
  add("RUNBOOK", link_of(of));
  return out;
}

std::string list_text() {
  std::string out;
  for (const auto& group : explanation_groups) {
    out.append(out.empty() ? "" : "\n").append(group.title).append(":\n");
    std::size_t width = 0;
    for (const auto& each : group.entries) width = std::max(width, each.word.size());
    for (const auto& each : group.entries) {
      out.append("  ").append(each.word).append(width - each.word.size() + 2, ' ');
      out.append(each.meaning.substr(0, each.meaning.find_first_of(":;"))).append("\n");
    }
  }
  return out;
}

const explanation_group& group_of(const explanation& of) {
  return *std::ranges::find_if(explanation_groups, [&of](const explanation_group& group) {
    return std::ranges::find(group.entries, of.word, &explanation::word) != group.entries.end();
  });
}

[[noreturn]] void fail_unknown(const std::string& word) {
  std::vector<std::string> known;
  for (const auto& group : explanation_groups) {
    for (const auto& each : group.entries) known.emplace_back(each.word);
  }
  const auto near = near_names(word, known);
  throw std::runtime_error("there is no reason or alert " + word +
                           (near.empty() ? ": runtime-watcher explain lists them"
                                         : "; did you mean " + first_of(near, near.size()) + "?"));
}

}  // namespace

std::string explanation_text(const explain_settings& settings) {
  const bool as_json = settings.format == "json";
  if (!settings.word.empty()) {
    const auto* const found = explain(settings.word);
    if (found == nullptr) fail_unknown(settings.word);
    const auto& group = group_of(*found);
    return as_json ? json::serialize(json_of(*found, group)) + "\n" : text_of(*found, group);
  }
  if (!as_json) return list_text();
  json::array all;
  for (const auto& group : explanation_groups) {
    for (const auto& each : group.entries) all.push_back(json_of(each, group));
  }
  return json::serialize(all) + "\n";
}

}  // namespace rw::cli
