#include "rw/reactors/shared/probe.hpp"

#include "rw/core/text.hpp"

#include <algorithm>
#include <charconv>

namespace rw {
namespace {

constexpr std::string_view mark = "runtime-watcher probe=";
constexpr std::size_t longest = 250;
constexpr std::size_t longest_name = 64;

/// Removes what stands up to `name`, and returns it; nothing if the name is missing.
std::optional<std::string_view> take_until(std::string_view& text, std::string_view name) {
  const auto at = text.find(name);
  if (at == text.npos) return {};
  const auto value = text.substr(0, at);
  text.remove_prefix(at + name.size());
  return value;
}

std::optional<std::uint64_t> number_in(std::string_view text) {
  std::uint64_t value = 0;
  const auto* const end = text.data() + text.size();
  const auto read = std::from_chars(text.data(), end, value);
  if (read.ec != std::errc() || read.ptr != end) return {};
  return value;
}

}  // namespace

std::string_view probe_nonce(std::string_view name) noexcept {
  if (!name.starts_with(probe_prefix)) return {};
  name.remove_prefix(probe_prefix.size());
  const bool valid = name.size() == 16 && name.find_first_not_of("0123456789abcdef") == name.npos;
  return valid ? name : std::string_view();
}

std::string render_probe_report(const probe_report& from) {
  std::string out(mark);
  out += from.nonce.substr(0, longest_name) + " boot=" + from.boot_id.substr(0, longest_name) +
         " undelivered=" + std::to_string(from.undelivered) +
         " oldest=" + std::to_string(from.oldest.count()) + " upstream=";
  out = core::printable(out);
  // Printable text has one byte for each character.
  out += core::middle_cut(core::printable(from.upstream), longest - std::min(longest, out.size()));
  std::ranges::replace_if(out, [](char c) { return c == '"' || c == '\\'; }, '?');
  return out.substr(0, longest);
}

std::optional<probe_report> parse_probe_report(std::string_view warning) {
  if (!warning.starts_with(mark) || warning.size() > 4 * longest) return {};
  warning.remove_prefix(mark.size());
  const auto nonce = take_until(warning, " boot=");
  const auto boot = take_until(warning, " undelivered=");
  const auto undelivered = take_until(warning, " oldest=");
  const auto oldest = take_until(warning, " upstream=");
  if (!nonce || !boot || !undelivered || !oldest) return {};
  const auto events = number_in(*undelivered);
  const auto age = number_in(*oldest);
  if (!events || !age) return {};
  constexpr std::uint64_t most = 1'000'000'000'000;
  return probe_report{std::string(*nonce), std::string(*boot), *events,
                      std::chrono::milliseconds(std::min(*age, most)), std::string(warning)};
}

}  // namespace rw
