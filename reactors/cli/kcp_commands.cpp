#include "rw/reactors/cli/kcp_commands.hpp"

#include "rw/reactors/cli/shell_word.hpp"

#include <algorithm>
#include <array>
#include <cstddef>
#include <utility>

namespace rw::cli {
namespace {

constexpr std::array<std::string_view, 10> kubectl_words{
    "-n", "apply", "auth", "create", "delete", "describe", "get", "patch", "port-forward", "logs"};
constexpr std::array<std::string_view, 5> own_words{"diff", "doctor", "rollout", "status",
                                                    "uninstall"};

constexpr std::array<std::string_view, 3> words_with_address{"diff", "doctor", "status"};

/// `word`: of our commands; else of kubectl's.
std::string chosen_flags(const kcp_access& given, std::string_view word) {
  std::string out;
  const auto add = [&out](std::string_view flag, const std::string& value) {
    if (!value.empty()) out.append(" ").append(flag).append(" ").append(shell_word(value));
  };
  add("--kubeconfig", given.kubeconfig);
  add("--context", given.context);
  add("--as", given.as);
  for (const auto& group : given.as_groups) add("--as-group", group);
  if (std::ranges::find(words_with_address, word) != words_with_address.end()) {
    add("--address", given.manager);
  }
  return out;
}

/// The word of a command that begins at `at`.
std::string_view word_at(std::string_view text, std::size_t at) {
  const auto rest = text.substr(std::min(at, text.size()));
  return rest.substr(0, rest.find_first_not_of("abcdefghijklmnopqrstuvwxyz-"));
}

/// Returns where a command ends: before the next one of its line, or the text around it.
std::size_t end_of(std::string_view text, std::size_t begin) {
  auto end = text.size();
  for (const std::string_view each : {" && ", " | ", "`", ")", ";", ", ", "\n"}) {
    end = std::min(end, text.find(each, begin));
  }
  return end;
}

/// Returns where a command of KCP takes its flags; npos: none begins at `at`.
std::size_t place_of_flags(std::string_view text, std::size_t at) {
  constexpr std::string_view before = " (`\n";
  if (at > 0 && before.find(text[at - 1]) == before.npos) return text.npos;
  const auto program = word_at(text, at);
  const auto first = at + program.size() + 1;
  const auto word = word_at(text, first);
  if (program == "kubectl") {
    const bool known = std::ranges::find(kubectl_words, word) != kubectl_words.end();
    return known ? at + program.size() : text.npos;
  }
  if (program != "runtime-watcher") return text.npos;
  if (std::ranges::find(own_words, word) == own_words.end()) return text.npos;
  const auto end = first + word.size();
  if (word != "rollout") return end;
  const auto verb = word_at(text, end + 1);
  return verb.empty() ? text.npos : end + 1 + verb.size();
}

}  // namespace

std::string with_kcp_flags(std::string_view text, const kcp_access& given) {
  if (text.find("auth reconcile") != text.npos) return std::string(text);  // it grants rights
  // What follows is for a runtime, which KCP's kubeconfig does not reach.
  const auto limit =
      std::min({text.find("on the runtime: "), text.find("On these: "), text.size()});
  std::string out;
  std::size_t copied = 0;
  for (std::size_t at = 0; at < limit; ++at) {
    if (text[at] != 'k' && text[at] != 'r') continue;
    const auto place = place_of_flags(text, at);
    if (place == text.npos) continue;
    const auto end = end_of(text, at);
    const auto command = text.substr(at, end - at);
    const bool is_of_runtime = command.find("-n kyma-system") != command.npos;
    if (is_of_runtime || command.find("--kubeconfig") != command.npos) continue;
    const auto program = word_at(text, at).size() + 1;
    out.append(text.substr(copied, place - copied));
    out.append(chosen_flags(given, word_at(command, program)));
    copied = place;
    at = place - 1;
  }
  return out.append(text.substr(copied));
}

finding with_kcp_flags(finding of, const kcp_access& given) {
  of.message = with_kcp_flags(of.message, given);
  of.remedy = with_kcp_flags(of.remedy, given);
  return of;
}

}  // namespace rw::cli
