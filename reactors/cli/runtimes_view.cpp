#include "rw/reactors/cli/runtimes_view.hpp"

#include "rw/k8s/objects/types.hpp"
#include "rw/tls/xfcc.hpp"

#include <boost/json/array.hpp>

#include <algorithm>
#include <charconv>
#include <map>
#include <span>

namespace rw::cli {
namespace {

namespace json = boost::json;

constexpr std::size_t most_rows = 5000;

template <class Number>
bool read_number(std::string_view text, Number& into) {
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), into);
  return error == std::errc() && end == text.data() + text.size();
}

std::string_view take(std::string_view& text, char until) {
  const auto part = text.substr(0, text.find(until));
  text.remove_prefix(std::min(part.size() + 1, text.size()));
  return part;
}

/// Returns false if an element is none of those that there are.
bool take_list(std::string_view text, std::span<const std::string_view> known,
               std::vector<std::string>& into) {
  into.clear();
  while (!text.empty()) {
    const auto& each = into.emplace_back(take(text, ','));
    if (std::ranges::find(known, each) == known.end()) return false;
  }
  return true;
}

}  // namespace

runtimes_query runtimes_query::parse(std::string_view query, std::string& error) {
  runtimes_query out;
  while (!query.empty()) {
    auto value = take(query, '&');
    const auto name = take(value, '=');
    const auto decoded = tls::percent_decode(value);
    std::string text = decoded ? *decoded : std::string();
    bool good = decoded.has_value();
    if (name == "state") {
      good = good && take_list(text, runtimes_query::known_states, out.states);
    } else if (name == "heartbeat") {
      good = good && take_list(text, runtimes_query::known_heartbeats, out.heartbeats);
    } else if (name == "condition") {
      good = good && take_list(text, runtimes_query::known_conditions, out.conditions);
    } else if (name == "reason") {
      out.reason = std::move(text);
    } else if (name == "name") {
      out.name = std::move(text);
    } else if (name == "kyma") {
      out.kyma = std::move(text);
    } else if (name == "continue") {
      out.after = std::move(text);
    } else if (name == "limit") {
      good = read_number(text, out.limit) && out.limit >= 1 && out.limit <= most_rows;
    } else if (name == "for") {
      std::chrono::seconds::rep seconds = -1;
      good = read_number(text, seconds) && seconds >= 0;
      out.at_least = std::chrono::seconds(seconds);
    } else {
      error =
          "unknown parameter " + std::string(name) +
          ": there are state, heartbeat, condition, reason, name, kyma, for, limit and continue";
      return out;
    }
    if (good) continue;
    error = "the parameter " + std::string(name) + " can't have the value " + std::string(value);
    return out;
  }
  return out;
}

bool runtimes_query::matches(const runtime_summary& runtime,
                             std::chrono::system_clock::time_point now) const {
  const auto excludes = [](const std::vector<std::string>& list, std::string_view state) {
    return !list.empty() && std::ranges::find(list, state) == list.end();
  };
  if (excludes(states, runtime.state) || excludes(heartbeats, runtime.heartbeat)) return false;
  if (excludes(conditions, runtime.condition)) return false;
  if (runtime.reason.find(reason) == std::string_view::npos) return false;
  if (runtime.kyma.name.find(name) == std::string::npos) return false;
  if (!kyma.empty() && runtime.kyma.name != kyma) return false;
  return at_least == std::chrono::seconds(0) || runtime.since + at_least <= now;
}

json::object runtimes_page(
    std::vector<runtime_summary> all, const runtimes_query& query,
    std::chrono::system_clock::time_point now,
    const std::function<void(const runtime_summary&, json::object&)>& describe) {
  std::map<std::string_view, std::uint64_t> states;
  for (const auto& runtime : all) ++states[runtime.state];
  json::object out{{"total", all.size()}};
  auto& counts = out["states"].emplace_object();
  for (const auto& [state, count] : states) counts[state] = count;
  std::erase_if(all, [&](const runtime_summary& runtime) { return !query.matches(runtime, now); });
  out["matching"] = all.size();
  std::erase_if(all,
                [&](const runtime_summary& runtime) { return runtime.kyma.name <= query.after; });
  std::ranges::sort(all, {}, [](const runtime_summary& runtime) { return runtime.kyma.name; });
  if (all.size() > query.limit) {
    all.resize(query.limit);
    out["continue"] = all.back().kyma.name;
  }
  auto& rows = out["runtimes"].emplace_array();
  for (const auto& runtime : all) {
    json::object row{
        {"kyma", runtime.kyma.name}, {"state", runtime.state}, {"condition", runtime.condition}};
    if (!runtime.reason.empty()) row["reason"] = runtime.reason;
    if (runtime.since.time_since_epoch().count() > 0)
      row["since"] = k8s::format_time(runtime.since);
    describe(runtime, row);
    rows.push_back(std::move(row));
  }
  return out;
}

}  // namespace rw::cli
