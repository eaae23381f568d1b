#include "reactors/gateway_secret/gate.hpp"

#include <algorithm>
#include <string_view>
#include <utility>
#include <vector>

namespace rw::gateway_secret {
namespace {

constexpr std::size_t named = 5;

/// Why a runtime is not ready; empty: it is.
std::string_view lacks(const rollout_board::entry& of, const gate_question& question) {
  if (!of.seen) return "not seen yet";
  if (!of.seen->trusts(question.authority)) return "without the new CA";
  const auto& issuer = of.seen->client_issuer;
  const bool fresh = issuer == question.authority || issuer == question.newest ||
                     of.seen->client_not_before > question.since;
  return fresh ? "" : "with an old client certificate";
}

/// The first few by name, so that the text stays the same while they do.
std::string words_for(std::vector<std::pair<std::string, std::string_view>> missing,
                      std::size_t runtimes) {
  const auto shown = std::min(named, missing.size());
  std::ranges::partial_sort(missing, missing.begin() + static_cast<std::ptrdiff_t>(shown));
  std::string text =
      std::to_string(missing.size()) + " of " + std::to_string(runtimes) + " runtimes: ";
  for (std::size_t i = 0; i < shown; ++i) {
    if (i > 0) text += ", ";
    text += missing[i].first;
    text += " (";
    text += missing[i].second;
    text += ')';
  }
  if (shown < missing.size()) text += " and others";
  return text;
}

}  // namespace

gate_answer ask_gate(const rollout_board& board, const gate_question& question,
                     std::chrono::system_clock::time_point now) {
  gate_answer answer;
  if (!board.is_complete()) {
    answer.who = "it is not known yet which runtimes there are";
    return answer;
  }
  answer.runtimes = board.size();
  std::vector<std::pair<std::string, std::string_view>> missing;
  board.for_each([&](const k8s::object_key& kyma, const rollout_board::entry& entry) {
    const auto why = lacks(entry, question);
    if (why.empty()) return;
    if (entry.unreachable_since) {
      const auto given_up = *entry.unreachable_since + question.unreachable_after;
      if (given_up <= now) return;
      answer.look_again = std::min(given_up, answer.look_again.value_or(given_up));
    }
    missing.emplace_back(to_string(kyma), why);
  });
  answer.missing = missing.size();
  answer.open = missing.empty();
  if (!answer.open) answer.who = words_for(std::move(missing), answer.runtimes);
  return answer;
}

}  // namespace rw::gateway_secret
