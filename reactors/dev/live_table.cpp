#include "rw/reactors/dev/live_table.hpp"

#include "rw/core/text.hpp"
#include "rw/k8s/objects/types.hpp"

#include <algorithm>
#include <cctype>
#include <cstdio>
#include <initializer_list>

namespace rw::dev {
namespace {

constexpr std::size_t state_width = 11;
constexpr std::size_t heartbeat_width = 9;
constexpr std::size_t events_width = 6;
constexpr std::size_t latency_width = 8;
constexpr std::size_t longest_name = 28;

constexpr std::string_view bold = "\x1b[1m";
constexpr std::string_view red = "\x1b[31m";
constexpr std::string_view yellow = "\x1b[33m";
constexpr std::string_view plain_text = "\x1b[0m";

std::string left_cell(std::string text, std::size_t width) {
  text.resize(width, ' ');
  return text + "  ";
}

std::string right_cell(const std::string& text, std::size_t width) {
  return std::string(width - std::min(width, text.size()), ' ') + text + "  ";
}

std::string one_decimal(double value) {
  char text[32];
  std::snprintf(text, sizeof text, "%.1f", value);
  return text;
}

std::string milliseconds_of(core::duration time) {
  return one_decimal(core::seconds(time) * 1000);
}

/// Compares names with runs of digits as numbers: runtime-2 precedes runtime-10.
bool name_precedes(std::string_view a, std::string_view b) {
  const auto digits = [](std::string_view text) {
    return std::min(text.find_first_not_of("0123456789"), text.size());
  };
  while (!a.empty() && !b.empty()) {
    const auto in_a = digits(a);
    const auto in_b = digits(b);
    if (in_a > 0 && in_b > 0) {
      if (in_a != in_b) return in_a < in_b;
      if (const auto order = a.substr(0, in_a).compare(b.substr(0, in_b)); order != 0) {
        return order < 0;
      }
      a.remove_prefix(in_a);
      b.remove_prefix(in_b);
      continue;
    }
    if (a.front() != b.front()) return a.front() < b.front();
    a.remove_prefix(1);
    b.remove_prefix(1);
  }
  return a.size() < b.size();
}

/// The nearest rank.
core::duration quantile_of(std::vector<core::duration>& values, double quantile) {
  const auto rank = static_cast<std::size_t>(quantile * static_cast<double>(values.size()));
  const auto at = values.begin() + static_cast<std::ptrdiff_t>(std::min(rank, values.size() - 1));
  std::ranges::nth_element(values, at);
  return *at;
}

}  // namespace

live_table::row& live_table::use(const std::string& name) {
  auto& found = rows_[name];
  found.name = name;
  return found;
}

void live_table::add(const event_trace& trace, core::time_point now,
                     std::chrono::system_clock::time_point wall) {
  // A Kyma is named after its runtime; of "namespace/name".
  const auto& name =
      trace.kyma.empty() ? trace.runtime : trace.kyma.substr(trace.kyma.find('/') + 1);
  auto& found = use(name);
  ++found.events;
  found.at = now;
  found.latency = trace.to_reconcile;
  // The time of day of "2026-11-21T09:00:00.123456Z".
  const auto& object = trace.event.watched;
  found.latest = k8s::format_micro_time(wall).substr(11, 8) + " ";
  if (trace.resync) {
    found.latest.append("any object (").append(to_string(*trace.resync)) += ')';
  } else {
    found.latest +=
        trace.event.gvk.kind + " " + object.name + (object.ns.empty() ? "" : " in " + object.ns);
  }
  if (seconds_.empty() || now - seconds_.back().first >= std::chrono::seconds(1)) {
    seconds_.emplace_back(now, 0);
  }
  ++seconds_.back().second;
  while (now - seconds_.front().first >= rate_window) seconds_.pop_front();
  if (!trace.to_reconcile) return;
  latencies_.emplace_back(now, *trace.to_reconcile);
  if (latencies_.size() > most_latencies) latencies_.pop_front();
}

void live_table::set_runtimes(const std::vector<runtime_brief>& all) {
  has_manager_ = true;
  ++round_;
  for (const auto& row : all) {
    auto& found = use(row.name);
    found.state = row.state;
    found.heartbeat = row.heartbeat;
    found.reason = row.reason;
    found.seen_in = round_;
  }
  if (rows_.size() > all.size()) {
    std::erase_if(rows_, [this](const auto& each) { return each.second.seen_in != round_; });
  }
}

int live_table::severity(const row& of) {
  if (of.heartbeat == "silent" || of.state == "unreachable" || of.state == "failed") return 2;
  return of.heartbeat == "degraded" || of.state == "not_ready" ? 1 : 0;
}

bool live_table::precedes(const row* a, const row* b) {
  if (severity(*a) != severity(*b)) return severity(*a) > severity(*b);
  if (a->at != b->at) return a->at > b->at;
  return name_precedes(a->name, b->name);
}

std::vector<const live_table::row*> live_table::sorted() const {
  std::vector<const row*> out;
  out.reserve(rows_.size());
  for (const auto& [name, each] : rows_) out.push_back(&each);
  const auto first = std::min(most_rows, out.size());
  std::ranges::partial_sort(out, out.begin() + static_cast<std::ptrdiff_t>(first), precedes);
  return out;
}

/// Returns a summary of the rows that are not shown.
std::string live_table::rest(std::vector<const row*>::const_iterator from,
                             std::vector<const row*>::const_iterator to) const {
  auto out = "and " + std::to_string(to - from) + " more";
  if (!has_manager_) return out;
  const auto is_up = [](const row* row) {
    return row->state == "installed" && row->heartbeat == "live";
  };
  const auto up = std::count_if(from, to, is_up);
  if (up == to - from) return out + ", all live";
  const auto errors = std::count_if(from, to, [](const row* row) { return severity(*row) > 0; });
  out += ": " + std::to_string(up) + " live";
  if (errors > 0) out += ", " + std::to_string(errors) + " with an error";
  const auto rest = to - from - up - errors;
  if (rest > 0) out += ", " + std::to_string(rest) + " not live yet";
  return out;
}

/// Returns the last line: what concerns all runtimes, the most important first.
std::string live_table::totals(core::time_point now) const {
  std::string out;
  if (has_manager_) {
    const auto with = [this](std::string_view heartbeat) {
      return std::ranges::count_if(
          rows_, [heartbeat](const auto& each) { return each.second.heartbeat == heartbeat; });
    };
    for (const std::string_view heartbeat : {"live", "degraded", "silent"}) {
      out += std::to_string(with(heartbeat)) + " " + std::string(heartbeat) +
             (heartbeat == "silent" ? "; " : ", ");
    }
  }
  std::size_t events = 0;
  for (const auto& [second, count] : seconds_) {
    if (now - second < rate_window) events += count;
  }
  out += one_decimal(static_cast<double>(events) / static_cast<double>(rate_window.count())) +
         " events/s";
  std::vector<core::duration> recent;
  for (auto at = latencies_.rbegin(); at != latencies_.rend(); ++at) {
    if (now - at->first >= latency_window) break;
    recent.push_back(at->second);
  }
  if (recent.empty()) return out;
  return out + "; median " + milliseconds_of(quantile_of(recent, 0.5)) + ", 99th " +
         milliseconds_of(quantile_of(recent, 0.99)) + " ms (1 min)";
}

std::string live_table::line_for(const row& of, std::size_t name_width) const {
  auto out = left_cell(of.name, name_width);
  if (has_manager_) {
    out += left_cell(std::string(of.state), state_width) +
           left_cell(std::string(of.heartbeat), heartbeat_width);
  }
  out += right_cell(std::to_string(of.events), events_width);
  if (has_manager_)
    out += right_cell(of.latency ? milliseconds_of(*of.latency) : "", latency_width);
  if (severity(of) > 0 && !of.reason.empty()) out += of.reason + (of.latest.empty() ? "" : "; ");
  return out + of.latest;
}

/// The only place that adds control characters: what a line is made of may come from a runtime.
std::string live_table::finish(const std::string& line, std::size_t columns,
                               std::string_view colour) const {
  auto out = core::printable(line).substr(0, columns);
  out.erase(out.find_last_not_of(' ') + 1);
  if (!colours_ || colour.empty()) return out;
  return std::string(colour) + out + std::string(plain_text);
}

std::string live_table::render(screen_size size, core::time_point now) const {
  constexpr std::size_t around = 3;  // the header, the summary of other rows, the totals
  const auto last = finish(totals(now), size.columns, {});
  // One row is left for the lines above.
  const auto fitting = size.rows > around + 1 ? size.rows - around - 1 : 0;
  if (fitting == 0) return last;
  if (rows_.empty()) {
    const auto text = has_manager_ ? "no runtimes are known" : "no events yet";
    return finish(text, size.columns, {}) + "\n" + last;
  }
  const auto all = sorted();
  const auto shown = std::min({fitting, most_rows, all.size()});
  const auto end = all.begin() + static_cast<std::ptrdiff_t>(shown);
  std::size_t name_width = std::string_view("RUNTIME").size();
  for (auto at = all.begin(); at != end; ++at)
    name_width = std::max(name_width, (*at)->name.size());
  name_width = std::min(name_width, longest_name);
  auto header = left_cell("RUNTIME", name_width);
  if (has_manager_) {
    header += left_cell("WATCHER", state_width) + left_cell("HEARTBEAT", heartbeat_width);
  }
  header += right_cell("EVENTS", events_width);
  if (has_manager_) header += right_cell("MS", latency_width);
  auto out = finish(header + "LATEST EVENT", size.columns, bold) + "\n";
  for (auto at = all.begin(); at != end; ++at) {
    const std::string_view colour = severity(**at) == 2   ? red
                                    : severity(**at) == 1 ? yellow
                                                          : std::string_view();
    out += finish(line_for(**at, name_width), size.columns, colour) + "\n";
  }
  if (shown < all.size()) out += finish(rest(end, all.end()), size.columns, {}) + "\n";
  return out + last;
}

std::string live_table::render(screen_size size, const startup_progress& progress) const {
  std::string out = "starting: KCP's API server";
  std::string missing;
  const auto add = [&](bool is_up, const std::string& part) {
    if (is_up) {
      out += ", " + part;
    } else if (missing.empty()) {
      missing = part;
    }
  };
  add(progress.issuer, "issuer");
  if (!progress.without_manager) {
    add(progress.manager, "manager");
    add(progress.gateway, "gateway");
  }
  if (progress.prepared == 0) {
    if (!missing.empty()) out += "; waiting for: " + missing;
    return finish(out, size.columns, {});
  }
  const auto with = [this](auto member, std::string_view value) {
    return std::to_string(std::ranges::count_if(
        rows_, [&](const auto& each) { return each.second.*member == value; }));
  };
  out = "starting: KCP is up; " + std::to_string(progress.prepared) + " of " +
        std::to_string(progress.runtimes) + " runtimes prepared";
  if (has_manager_) {
    out += ", " + with(&row::state, "installed") + " installed, " + with(&row::heartbeat, "live") +
           " live";
  }
  return finish(out, size.columns, {});
}

}  // namespace rw::dev
