#include "rw/reactors/shared/fleet_history.hpp"

#include "rw/core/text.hpp"
#include "rw/k8s/objects/types.hpp"

#include <algorithm>
#include <limits>

namespace rw {
namespace {

namespace json = boost::json;

constexpr std::string_view version_1 = "rw-history 1\n";

std::int64_t minute_of(fleet_history::time_point at) {
  return std::chrono::floor<std::chrono::minutes>(at).time_since_epoch().count();
}

std::uint32_t second_of(fleet_history::time_point at) {
  const auto count = std::chrono::floor<std::chrono::seconds>(at).time_since_epoch().count();
  return static_cast<std::uint32_t>(
      std::clamp<std::int64_t>(count, 0, std::numeric_limits<std::uint32_t>::max()));
}

/// What is not known is no reason to worry.
int severity(fleet_level of) {
  switch (of) {
    case fleet_level::unknown:
      return 0;
    case fleet_level::well:
      return 1;
    case fleet_level::degraded:
      return 2;
    case fleet_level::outage:
      return 3;
  }
  return 0;
}

// Numbers are of 7 bits a byte, the lowest first (LEB128).

void put(std::string& to, std::uint64_t value) {
  for (; value > 0x7f; value >>= 7U) to.push_back(static_cast<char>(0x80U | (value & 0x7fU)));
  to.push_back(static_cast<char>(value));
}

void put(std::string& to, std::string_view text) {
  put(to, text.size());
  to.append(text);
}

/// Reads what may be anything; after an error all numbers are 0 and all texts empty.
class byte_reader {
 public:
  explicit byte_reader(std::string_view bytes) : rest_(bytes) {}

  std::uint64_t number(std::uint64_t most) {
    std::uint64_t value = 0;
    for (unsigned shift = 0; shift < 63; shift += 7) {
      if (rest_.empty()) break;
      const auto byte = static_cast<unsigned char>(rest_.front());
      rest_.remove_prefix(1);
      value |= std::uint64_t{byte & 0x7fU} << shift;
      if (byte > 0x7f) continue;
      if (value <= most) return value;
      break;
    }
    fail();
    return 0;
  }
  std::string text(std::size_t most) {
    const auto size = static_cast<std::size_t>(number(most));
    if (size > rest_.size()) {
      fail();
      return {};
    }
    std::string out(rest_.substr(0, size));
    rest_.remove_prefix(size);
    return out;
  }
  bool failed() const { return failed_; }
  bool at_end() const { return rest_.empty(); }

 private:
  void fail() {
    failed_ = true;
    rest_ = {};
  }

  std::string_view rest_;
  bool failed_ = false;
};

template <typename State>
void keep_recent(State& of, auto oldest, auto at_of) {
  // The newest of the older ones says how it was at the beginning.
  while (of.size() > 1 && at_of(of[1]) <= oldest) of.erase(of.begin());
}

}  // namespace

void fleet_history::record(time_point now, const fleet_sample& sample) {
  const auto minute = minute_of(now);
  while (!minutes_.empty() && minutes_.back().minute > minute) minutes_.pop_back();
  if (minutes_.empty() || minutes_.back().minute < minute) {
    minutes_.push_back({.minute = minute});
    forget_old(minute);
  }
  auto& into = minutes_.back();
  if (severity(sample.level) > severity(into.level)) into.level = sample.level;
  into.counts = sample.counts;
  for (std::size_t i = 0; totals_ && i < history_stages.size(); ++i) {
    const auto more =
        sample.totals[i] > (*totals_)[i] ? sample.totals[i] - (*totals_)[i] : std::uint64_t{0};
    into.events[i] = static_cast<std::uint32_t>(
        std::min<std::uint64_t>(into.events[i] + more, std::numeric_limits<std::uint32_t>::max()));
  }
  totals_ = sample.totals;
}

void fleet_history::forget_old(std::int64_t minute) {
  const auto first = minute - static_cast<std::int64_t>(max_minutes) + 1;
  while (!minutes_.empty() && minutes_.front().minute < first) minutes_.pop_front();
  const std::chrono::sys_seconds oldest{std::chrono::minutes(first)};
  for (auto& [subject, all] : changes_) {
    keep_recent(all, oldest, [](const landscape_change& each) { return each.at; });
  }
  const auto oldest_second = second_of(oldest);
  std::erase_if(runtimes_, [&](const auto& each) { return each.second.named < oldest_second; });
  for (auto& [kyma, known] : runtimes_) {
    keep_recent(known.transitions, oldest_second,
                [](const runtime_transition& each) { return each.at; });
  }
}

void fleet_history::change(time_point now, std::string_view subject, std::string_view state,
                           std::string_view cause) {
  add_change(std::string(core::first_bytes(subject, max_text)),
             {.at = std::chrono::floor<std::chrono::seconds>(now),
              .state = std::string(core::first_bytes(state, max_text)),
              .cause = core::middle_cut(cause, max_text)});
}

void fleet_history::add_change(const std::string& subject, landscape_change added) {
  auto& all = changes_[subject];
  if (!all.empty() && all.back().state == added.state && all.back().cause == added.cause) return;
  all.push_back(std::move(added));
  if (all.size() > max_changes) all.pop_front();
  if (changes_.size() <= max_subjects) return;
  const auto oldest = std::ranges::min_element(changes_, {}, [](const auto& each) {
    return each.second.empty() ? std::chrono::sys_seconds() : each.second.back().at;
  });
  changes_.erase(oldest);
}

void fleet_history::transition(time_point now, const std::string& kyma, runtime_condition condition,
                               status_reason reason) {
  if (!runtimes_since_) runtimes_since_ = now;
  const auto at = second_of(now);
  const auto found = runtimes_.find(kyma);
  if (found == runtimes_.end() && condition == runtime_condition::unknown) return;
  auto& known = found == runtimes_.end() ? runtimes_[kyma] : found->second;
  known.named = at;
  auto& all = known.transitions;
  if (!all.empty() && all.back().condition == condition && all.back().reason == reason) return;
  if (all.size() == max_changes) all.erase(all.begin());
  all.push_back({at, condition, reason});
}

std::vector<runtime_transition> fleet_history::transitions_of(const std::string& kyma) const {
  const auto found = runtimes_.find(kyma);
  return found == runtimes_.end() ? std::vector<runtime_transition>() : found->second.transitions;
}

std::vector<std::pair<std::string, runtime_transition>> fleet_history::not_well_at(
    time_point at) const {
  const auto second = second_of(at);
  std::vector<std::pair<std::string, runtime_transition>> out;
  for (const auto& [kyma, known] : runtimes_) {
    if (known.named + 60U < second) continue;  // it was gone
    const auto after =
        std::ranges::find_if(known.transitions, [&](const auto& each) { return each.at > second; });
    if (after == known.transitions.begin()) continue;
    const auto& then = *std::prev(after);
    const bool is_well =
        then.condition == runtime_condition::well || then.condition == runtime_condition::left_out;
    if (!is_well) out.emplace_back(kyma, then);
  }
  std::ranges::sort(out, {}, [](const auto& each) { return each.first; });
  return out;
}

std::string fleet_history::encode() const {
  std::string out(version_1);
  put(out, minutes_.size());
  std::int64_t last = 0;
  for (const auto& each : minutes_) {
    put(out, static_cast<std::uint64_t>(std::max<std::int64_t>(0, each.minute - last)));
    last = each.minute;
    put(out, static_cast<std::uint64_t>(each.level));
    for (const auto count : each.counts) put(out, count);
    for (const auto count : each.events) put(out, count);
  }
  put(out, changes_.size());
  for (const auto& [subject, all] : changes_) {
    put(out, subject);
    put(out, all.size());
    for (const auto& each : all) {
      put(out, second_of(each.at));
      put(out, each.state);
      put(out, each.cause);
    }
  }
  return out;
}

std::optional<fleet_history> fleet_history::decode(std::string_view bytes) {
  if (bytes.size() > max_encoded || !bytes.starts_with(version_1)) return {};
  constexpr std::uint64_t max_number = std::numeric_limits<std::uint32_t>::max();
  byte_reader from(bytes.substr(version_1.size()));
  fleet_history out;
  std::int64_t last = 0;
  for (auto left = from.number(max_minutes); left > 0 && !from.failed(); --left) {
    fleet_minute each;
    const auto since = from.number(max_number / 60);
    if (since == 0) return {};
    last = each.minute = last + static_cast<std::int64_t>(since);
    each.level = static_cast<fleet_level>(from.number(fleet_level_count - 1));
    for (auto& count : each.counts) count = static_cast<std::uint32_t>(from.number(max_number));
    for (auto& count : each.events) count = static_cast<std::uint32_t>(from.number(max_number));
    if (last > static_cast<std::int64_t>(max_number / 60)) return {};
    out.minutes_.push_back(each);
  }
  for (auto subjects = from.number(max_subjects); subjects > 0 && !from.failed(); --subjects) {
    auto& all = out.changes_[from.text(max_text)];
    if (!all.empty()) return {};
    for (auto left = from.number(max_changes); left > 0 && !from.failed(); --left) {
      landscape_change each;
      each.at = std::chrono::sys_seconds(
          std::chrono::seconds(static_cast<std::int64_t>(from.number(max_number))));
      each.state = from.text(max_text);
      each.cause = from.text(max_text);
      all.push_back(std::move(each));
    }
    if (all.empty()) return {};
  }
  if (from.failed() || !from.at_end()) return {};
  return out;
}

void fleet_history::restore(const fleet_history& earlier, time_point now) {
  const auto own_first = minutes_.empty() ? minute_of(now) + 1 : minutes_.front().minute;
  std::deque<fleet_minute> all;
  for (const auto& each : earlier.minutes_) {
    if (each.minute < own_first) all.push_back(each);
  }
  all.insert(all.end(), minutes_.begin(), minutes_.end());
  minutes_ = std::move(all);
  auto own = std::move(changes_);
  changes_ = {};
  for (const auto* const from : {&earlier.changes_, &std::as_const(own)}) {
    for (const auto& [subject, list] : *from) {
      for (const auto& each : list) {
        if (each.at <= now) add_change(subject, each);
      }
    }
  }
  forget_old(minute_of(now));
}

namespace {

json::array numbers_of(const fleet_minute& of) {
  json::array out{of.minute * 60, static_cast<int>(of.level)};
  out.reserve(2 + of.counts.size() + of.events.size());
  for (const auto count : of.counts) out.emplace_back(count);
  for (const auto count : of.events) out.emplace_back(count);
  return out;
}

void describe(const runtime_transition& from, json::object& into) {
  into["at"] = from.at;
  into["time"] = k8s::format_time(std::chrono::system_clock::from_time_t(from.at));
  into["condition"] = to_string(from.condition);
  if (from.reason != status_reason::none) into["reason"] = to_string(from.reason);
}

}  // namespace

json::object json_of(const fleet_history& of) {
  json::object out;
  if (!of.minutes().empty()) out["since"] = of.minutes().front().minute * 60;
  if (const auto since = of.runtimes_since()) out["runtimesSince"] = second_of(*since);
  auto& levels = out["levels"].emplace_array();
  for (std::size_t i = 0; i < fleet_level_count; ++i) {
    levels.emplace_back(to_string(static_cast<fleet_level>(i)));
  }
  auto& columns = out["columns"].emplace_array();
  columns = {"at", "level"};
  for (std::size_t i = 0; i < runtime_condition_count; ++i) {
    columns.emplace_back(to_string(static_cast<runtime_condition>(i)));
  }
  for (const auto stage : history_stages) columns.emplace_back(stage);
  auto& minutes = out["minutes"].emplace_array();
  minutes.reserve(of.minutes().size());
  for (const auto& each : of.minutes()) minutes.push_back(numbers_of(each));
  auto& changes = out["changes"].emplace_array();
  for (const auto& [subject, all] : of.changes()) {
    for (const auto& each : all) {
      json::object change{
          {"at", each.at.time_since_epoch().count()}, {"subject", subject}, {"state", each.state}};
      if (!each.cause.empty()) change["cause"] = each.cause;
      changes.push_back(std::move(change));
    }
  }
  return out;
}

json::object json_of(const fleet_history& of, std::chrono::sys_seconds at, std::size_t limit) {
  const auto found = of.not_well_at(at);
  json::object out{{"at", at.time_since_epoch().count()}, {"total", found.size()}};
  if (const auto since = of.runtimes_since()) out["runtimesSince"] = second_of(*since);
  auto& runtimes = out["runtimes"].emplace_array();
  for (std::size_t i = 0; i < std::min(limit, found.size()); ++i) {
    json::object each{{"kyma", found[i].first}};
    describe(found[i].second, each);
    runtimes.push_back(std::move(each));
  }
  return out;
}

json::array json_of(const std::vector<runtime_transition>& of) {
  json::array out;
  for (auto each = of.rbegin(); each != of.rend(); ++each) {
    describe(*each, out.emplace_back(json::object()).as_object());
  }
  return out;
}

}  // namespace rw
