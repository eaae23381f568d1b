#include "rw/reactors/runtime_rollout/steps.hpp"

#include "rw/tls/digest.hpp"

#include <algorithm>
#include <charconv>
#include <utility>

namespace rw::runtime_rollout {
namespace {

constexpr std::uint64_t everyone = std::uint64_t{1} << 32;

}  // namespace

std::size_t share::of(std::size_t total, std::size_t least) const noexcept {
  return percent ? std::max(total * value / 100, least) : value;
}

std::optional<share> parse_share(std::string_view text) {
  share out{.percent = text.ends_with('%')};
  if (out.percent) text.remove_suffix(1);
  const auto* const end = text.data() + text.size();
  const auto [at, error] = std::from_chars(text.data(), end, out.value);
  if (error != std::errc() || at != end || (out.percent && out.value > 100)) return std::nullopt;
  return out;
}

std::uint32_t position_of(std::string_view uid) {
  std::uint32_t out = 0;
  const auto digest = tls::sha256(uid);
  for (std::size_t i = 0; i < 4; ++i) out = out << 8 | digest[i];
  return out;
}

std::vector<k8s::label_selector> selectors_of(const std::vector<step>& steps) {
  std::vector<k8s::label_selector> out;
  for (const auto& each : steps) {
    out.emplace_back();
    if (parse_share(each.runtimes)) continue;
    if (auto selector = k8s::label_selector::parse(each.runtimes))
      out.back() = std::move(*selector);
  }
  return out;
}

std::optional<std::size_t> first_match(const std::vector<k8s::label_selector>& selectors,
                                       const boost::json::value* labels) {
  for (std::size_t i = 0; i < selectors.size(); ++i) {
    if (!selectors[i].empty() && selectors[i].matches(labels)) return i;
  }
  return std::nullopt;
}

void raise(std::vector<placed_step>& steps, const std::vector<member>& all) {
  std::vector<std::uint32_t> proving;
  const bool any = std::ranges::any_of(all, &member::proves);
  for (const auto& each : all) {
    if (any ? each.proves : each.answers) proving.push_back(each.position);
  }
  std::ranges::sort(proving);
  for (std::size_t i = 0; i < steps.size(); ++i) {
    auto number = parse_share(steps[i].of.runtimes);
    if (!number && i == 0) {
      const bool labelled = std::ranges::any_of(
          all, [](const member& each) { return each.proves && each.labelled == std::size_t{0}; });
      if (!labelled) number = share{1, true};
    }
    if (!number) continue;
    const auto count = std::min(number->of(all.size(), 2), proving.size());
    const bool all_of_them = *number == share{100, true};
    const auto below = all_of_them  ? everyone
                       : count == 0 ? 0
                                    : std::uint64_t{proving[count - 1]} + 1;
    steps[i].below = std::max(steps[i].below, below);
  }
}

std::size_t step_of(const std::vector<placed_step>& steps, const member& runtime) {
  for (std::size_t i = 0; i < steps.size(); ++i) {
    if (runtime.position < steps[i].below || runtime.labelled == i) return i;
  }
  return steps.size();
}

}  // namespace rw::runtime_rollout
