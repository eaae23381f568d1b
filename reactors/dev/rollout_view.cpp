#include "rw/reactors/dev/rollout_view.hpp"

#include "rw/core/json_text.hpp"
#include "rw/k8s/objects/types.hpp"

#include <cstdio>
#include <utility>

namespace rw::dev {
namespace {

std::string in_milliseconds(core::duration time) {
  char text[32];
  std::snprintf(text, sizeof text, "%.3f", std::chrono::duration<double, std::milli>(time).count());
  return text;
}

}  // namespace

std::string rollout_line(const boost::json::value& before, const boost::json::value& now,
                         std::chrono::system_clock::time_point time, bool json) {
  const auto text = [&now](std::string_view name) {
    return std::string(k8s::find_string(now, {"status", name}));
  };
  const auto differs = [&](std::string_view name) {
    return k8s::find_string(before, {"status", name}) != k8s::find_string(now, {"status", name});
  };
  if (text("content").empty()) return {};
  if (!differs("phase") && !differs("reason") && !differs("content")) return {};
  const auto number = [&now](std::string_view name) {
    return std::to_string(k8s::find_number(now, {"status", name}));
  };
  const auto time_text = k8s::format_micro_time(time);
  if (!json) {
    return time_text.substr(11, 12) + "  roll-out of " + k8s::key_of(now).name + ": " +
           text("phase") + (text("reason").empty() ? "" : " (" + text("reason") + ")") + ", " +
           number("updated") + " updated, " + number("ready") + " ready, " + number("failed") +
           " failed of " + number("total") +
           (text("message").empty() ? "" : "; " + text("message"));
  }
  std::string out = "{\"time\":";
  core::append_json_string(out, time_text);
  out += ",\"rollout\":";
  core::append_json_string(out, k8s::key_of(now).name);
  for (const auto* name : {"phase", "reason", "content", "message"}) {
    out += ",\"" + std::string(name) + "\":";
    core::append_json_string(out, text(name));
  }
  for (const auto* name : {"updated", "ready", "failed", "total"}) {
    out += ",\"" + std::string(name) + "\":" + number(name);
  }
  return out + "}";
}

std::string line_of(const arrival& arrival, std::chrono::system_clock::time_point now) {
  // The time of day of "2026-11-21T09:00:00.123456Z", in milliseconds.
  const auto time =
      arrival.after ? " has arrived, " + in_milliseconds(*arrival.after) + " ms after it changed"
                    : std::string(" was there before");
  return k8s::format_micro_time(now).substr(11, 12) + "  " + arrival.runtime + ": KCP's " +
         std::string(to_string(arrival.kind)) + time + " (" + std::to_string(arrival.have) +
         " of " + std::to_string(arrival.of) + " have it)";
}

std::string json_line_of(const arrival& arrival, std::chrono::system_clock::time_point now) {
  std::string out = "{\"time\":";
  core::append_json_string(out, k8s::format_micro_time(now));
  out += ",\"runtime\":";
  core::append_json_string(out, arrival.runtime);
  out += ",\"source\":";
  core::append_json_string(out, to_string(arrival.kind));
  if (arrival.after) out += ",\"arrivedAfterMs\":" + in_milliseconds(*arrival.after);
  return out + ",\"have\":" + std::to_string(arrival.have) +
         ",\"of\":" + std::to_string(arrival.of) + "}";
}

bool is_milestone(const arrival& arrival) {
  const auto tenths = [&](std::size_t have) { return 10 * have / arrival.of; };
  const bool shown = arrival.of <= 10 || arrival.have <= 1 ||
                     tenths(arrival.have) != tenths(arrival.have - 1) ||
                     arrival.have == (99 * arrival.of + 99) / 100;
  return arrival.after && shown;
}

rollout_view::rollout_view(core::clock& clock, std::size_t runtimes,
                           std::function<void(const arrival&)> tell)
    : clock_(clock), runtimes_(runtimes), tell_(std::move(tell)) {}

void rollout_view::wanted(source source, const std::string& digest) {
  auto& all = parts_.at(static_cast<std::size_t>(source));
  if (all.digest == digest) return;
  all.digest = digest;
  all.since = clock_.now();
  all.have = 0;
  // The source may be unknown yet: a runtime may report first.
  for (const auto& [runtime, held] : all.held) {
    if (held == digest) count(runtime, source, std::nullopt);
  }
}

void rollout_view::has(const std::string& runtime, source source, const std::string& digest) {
  auto& all = parts_.at(static_cast<std::size_t>(source));
  auto& held = all.held[runtime];
  if (held == digest) return;
  if (!held.empty() && held == all.digest) --all.have;
  held = digest;
  if (held == all.digest) count(runtime, source, clock_.now() - all.since);
}

void rollout_view::count(const std::string& runtime, source source,
                         std::optional<core::duration> after) {
  auto& all = parts_.at(static_cast<std::size_t>(source));
  if (all.digest.empty()) return;
  ++all.have;
  tell_({runtime, source, after, all.have, runtimes_});
}

}  // namespace rw::dev
