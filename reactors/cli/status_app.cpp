#include "rw/reactors/cli/status_app.hpp"

#include "rw/core/text.hpp"
#include "rw/k8s/objects/types.hpp"
#include "rw/k8s/objects/url.hpp"
#include "rw/reactors/cli/kcp_commands.hpp"
#include "rw/reactors/cli/near_names.hpp"
#include "rw/reactors/cli/yaml_text.hpp"
#include "rw/reactors/shared/fleet_verdict.hpp"
#include "rw/reactors/shared/kyma_resources.hpp"

#include <boost/json/array.hpp>
#include <boost/json/object.hpp>
#include <boost/json/serialize.hpp>

#include <algorithm>
#include <array>
#include <cstdlib>
#include <map>
#include <stdexcept>
#include <sys/ioctl.h>
#include <tuple>
#include <unistd.h>
#include <utility>
#include <vector>

namespace rw::cli {
namespace {

namespace asio = boost::asio;
namespace json = boost::json;

std::string query_of(const status_settings& of) {
  std::string out = "/runtimes?limit=5000";
  const auto add = [&](std::string_view name, const std::string& value) {
    if (value.empty()) return;
    out.append("&").append(name).append("=");
    k8s::append_percent_encoded(out, value, "");
  };
  const auto joined = [](const std::vector<std::string>& list) {
    std::string all;
    for (const auto& text : list) all += (all.empty() ? "" : ",") + text;
    return all;
  };
  add("state", joined(of.states));
  add("heartbeat", joined(of.heartbeats));
  add("reason", of.reason);
  add("name", of.name);
  add("kyma", of.kyma);
  const auto seconds = std::chrono::ceil<std::chrono::seconds>(of.at_least).count();
  if (seconds > 0) add("for", std::to_string(seconds));
  return out;
}

/// Formats an age as kubectl does: "45s", "7m", "3h", "2d".
std::string age(std::string_view since, std::chrono::system_clock::time_point now) {
  const auto then = k8s::parse_rfc3339(since);
  if (!then) return "-";
  const auto seconds =
      std::max<std::int64_t>(std::chrono::floor<std::chrono::seconds>(now - *then).count(), 0);
  if (seconds < 120) return std::to_string(seconds) + "s";
  if (seconds < 2 * 3600) return std::to_string(seconds / 60) + "m";
  if (seconds < 2 * 86400) return std::to_string(seconds / 3600) + "h";
  return std::to_string(seconds / 86400) + "d";
}

std::string number_at(const json::value& object, std::string_view name) {
  const auto* const at = k8s::find(object, {name});
  return at == nullptr ? "-" : json::serialize(*at);
}

std::string cell(std::string_view text) {
  return text.empty() ? "-" : std::string(text);
}

/// The text of the installation's state, or of the heartbeats' where only those are not well.
std::string text_of(const json::value& runtime, std::string_view name) {
  const auto of_heartbeats = k8s::find_string(runtime, {"heartbeat", name});
  const bool installed = k8s::find_string(runtime, {"state"}) == "installed";
  return cell(installed && !of_heartbeats.empty() ? of_heartbeats
                                                  : k8s::find_string(runtime, {name}));
}

bool is_well(const json::value& runtime) {
  const auto condition = k8s::find_string(runtime, {"condition"});
  return condition == to_string(runtime_condition::well) ||
         condition == to_string(runtime_condition::left_out);
}

/// The ill by the number of those with their reason, then those that are under way or unknown.
std::vector<const json::value*> ill_first(const json::array& runtimes) {
  std::map<std::string, std::size_t> counts;
  for (const auto& runtime : runtimes) ++counts[text_of(runtime, "reason")];
  const auto rank = [&](const json::value& of) {
    const auto condition = k8s::find_string(of, {"condition"});
    const int order = condition == "ill" ? 0 : is_well(of) ? 2 : 1;
    const auto reason = order == 2 ? std::string() : text_of(of, "reason");
    const auto rest = order == 2 ? 0 : runtimes.size() - counts[reason];
    return std::tuple(order, rest, reason, std::string(k8s::find_string(of, {"kyma"})));
  };
  std::vector<const json::value*> out;
  for (const auto& runtime : runtimes) out.push_back(&runtime);
  std::ranges::sort(out, {}, [&](const json::value* runtime) { return rank(*runtime); });
  return out;
}

constexpr std::string_view end_colour = "\x1b[0m";

std::string colour_of(const json::value& runtime) {
  if (is_well(runtime)) return {};
  return k8s::find_string(runtime, {"condition"}) == "ill" ? "\x1b[31m" : "\x1b[33m";
}

/// Formats why no leader tells the runtimes.
std::string text_of_failure(runtimes_client::answer of, std::string_view format,
                            const kcp_access& kcp) {
  of.error = with_kcp_flags(of.error, kcp);
  of.next = with_kcp_flags(of.next, kcp);
  const auto verdict = runtimes_client::verdict_without(of);
  if (format == "json" || format == "yaml") {
    json::object out{{"verdict", json_of(verdict, {})}};
    if (!of.next.empty()) out["fix"] = of.next;
    return format == "json" ? json::serialize(out) + "\n" : yaml_text(out);
  }
  return text_of(verdict) + (of.next.empty() ? "" : "  fix: " + of.next + "\n");
}

/// "kyma.operator.kyma-project.io/runtime-1", a line for each runtime, as kubectl's `-o name`.
std::string names_of(const json::value& runtimes) {
  std::string out;
  for (const auto& runtime : runtimes.at("runtimes").as_array()) {
    out.append("kyma.").append(kymas_type().gvk.group).append("/");
    out.append(k8s::find_string(runtime, {"kyma"})).append("\n");
  }
  return out;
}

/// That of standard output: a terminal has colours, unless NO_COLOR or TERM say otherwise.
table_format format_of(const status_settings& settings) {
  table_format out{.wide = settings.format == "wide", .headers = !settings.no_headers};
  out.kcp = settings.kcp;
  if (::isatty(STDOUT_FILENO) != 1) return out;
  const auto* const none = std::getenv("NO_COLOR");
  const auto* const terminal = std::getenv("TERM");
  out.colours = (none == nullptr || *none == 0) &&
                (terminal == nullptr || std::string_view(terminal) != "dumb");
  ::winsize size{};
  if (::ioctl(STDOUT_FILENO, TIOCGWINSZ, &size) == 0) out.width = size.ws_col;
  return out;
}

}  // namespace

std::string runtimes_table(const json::value& runtimes, const table_format& format,
                           std::chrono::system_clock::time_point now) {
  std::vector<std::vector<std::string>> rows = {
      {"KYMA", "RUNTIME", "STATE", "SINCE", "HEARTBEAT", "REASON"}};
  if (format.wide) {
    rows.front().insert(rows.front().end(), {"CERTIFICATE-END", "CAS", "LAST-HEARTBEAT", "PROBE",
                                             "DELIVERY", "LOSSES", "VERSION", "MESSAGE"});
  }
  const auto text = [](const json::value& of, std::initializer_list<std::string_view> path) {
    return cell(k8s::find_string(of, path));
  };
  const auto sorted = ill_first(runtimes.at("runtimes").as_array());
  for (const auto* const runtime : sorted) {
    rows.push_back({text(*runtime, {"kyma"}), text(*runtime, {"runtimeId"}),
                    text(*runtime, {"state"}), age(k8s::find_string(*runtime, {"since"}), now),
                    text(*runtime, {"heartbeat", "state"}), text_of(*runtime, "reason")});
    if (!format.wide) continue;
    const auto* const beat = k8s::find(*runtime, {"heartbeat"});
    const auto number = [&](std::string_view name) {
      return beat == nullptr ? "-" : number_at(*beat, name);
    };
    const auto delivery = number("deliveryMilliseconds");
    rows.back().insert(
        rows.back().end(),
        {text(*runtime, {"certificate", "notAfter"}), number_at(*runtime, "authorities"),
         age(k8s::find_string(*runtime, {"heartbeat", "last"}), now),
         text(*runtime, {"heartbeat", "probe", "stage"}),
         delivery == "-" ? delivery : delivery + "ms", number("losses"),
         text(*runtime, {"heartbeat", "version"}), text_of(*runtime, "message")});
  }
  if (!format.headers) rows.erase(rows.begin());
  std::vector<std::size_t> widths(rows.empty() ? 0 : rows.front().size());
  for (const auto& row : rows) {
    for (std::size_t i = 0; i < row.size(); ++i) widths[i] = std::max(widths[i], row[i].size());
  }
  std::string out;
  const std::size_t first = format.headers ? 1 : 0;
  for (std::size_t at = 0; at < rows.size(); ++at) {
    const auto& row = rows[at];
    std::string line;
    for (std::size_t i = 0; i < row.size(); ++i) {
      line += row[i];
      if (i + 1 < row.size()) line.append(widths[i] - row[i].size() + 3, ' ');
    }
    if (format.width > 0) line = std::string(core::first_bytes(line, format.width));
    const auto colour = at < first || !format.colours ? "" : colour_of(*sorted[at - first]);
    out += colour + line + (colour.empty() ? "" : std::string(end_colour)) + "\n";
  }
  if (!format.headers) return out;
  out += number_at(runtimes, "matching") + " of " + number_at(runtimes, "total") +
         (number_at(runtimes, "total") == "1" ? " runtime" : " runtimes");
  const auto* before = "; ";
  for (const auto& [state, count] : runtimes.at("states").as_object()) {
    out += std::exchange(before, " ") + std::string(state) + " " + json::serialize(count);
  }
  if (const auto* const beats = k8s::find(runtimes, {"heartbeats"}); beats != nullptr) {
    out += "; heartbeats";
    for (const auto& [state, count] : beats->as_object()) {
      out += " " + std::string(state) + " " + json::serialize(count);
    }
  }
  out += '\n';
  // What the verdict names is not named twice.
  const auto verdict = read_verdict(runtimes);
  const auto is_told = [&](std::string_view message) {
    return std::ranges::any_of(verdict.causes, [&](const fleet_cause& cause) {
      return cause.message.find(message) != std::string::npos;
    });
  };
  const auto* const conditions = k8s::find(runtimes, {"conditions"});
  if (conditions != nullptr && conditions->is_array()) {
    for (const auto& condition : conditions->get_array()) {
      if (is_told(k8s::find_string(condition, {"message"}))) continue;
      out += text(condition, {"type"}) + " (" + text(condition, {"reason"}) +
             "): " + text(condition, {"message"}) + "\n";
    }
  }
  const auto waiting = k8s::find_string(runtimes, {"rotation", "waiting"});
  if (!waiting.empty() && !is_told(waiting)) {
    const auto reason = k8s::find_string(runtimes, {"rotation", "reason"});
    out += "CA rotation (" +
           (reason.empty() ? text(runtimes, {"rotation", "phase"}) : std::string(reason)) +
           "): " + std::string(waiting);
    const auto until = k8s::find_string(runtimes, {"rotation", "next"});
    out += (until.empty() ? "" : ", next step not before " + std::string(until)) + "\n";
  }
  out += with_kcp_flags(text_of(verdict), format.kcp);
  const auto page = k8s::find_string(runtimes, {"page"});
  return page.empty() ? out : out + "page: " + with_kcp_flags(page, format.kcp) + "\n";
}

status_app::status_app(services& with, status_settings settings)
    : app(with),
      settings_(std::move(settings)),
      manager_(with, settings_, "runtime-watcher-status"),
      output_(with.executor, STDOUT_FILENO),
      errors_(with.executor, STDERR_FILENO) {}

std::string status_app::render(const runtimes_client::answer& got) const {
  const auto& format = settings_.format;
  if (format == "name") return got.error.empty() ? names_of(got.runtimes) : std::string();
  if (!got.error.empty()) return text_of_failure(got, format, settings_.kcp);
  if (format == "json") return json::serialize(got.runtimes) + "\n";
  if (format == "yaml") return yaml_text(got.runtimes);
  return runtimes_table(got.runtimes, format_of(settings_), services_.clock.wall());
}

/// Throws if KCP has no Kyma of the name that was given: filters leave out others, too.
asio::awaitable<void> status_app::check_name() {
  const auto got = co_await manager_.ask("/runtimes?limit=5000");
  if (!got.error.empty()) co_return;
  std::vector<std::string> known;
  for (const auto& row : got.runtimes.at("runtimes").as_array()) {
    known.emplace_back(k8s::find_string(row, {"kyma"}));
  }
  if (std::ranges::find(known, settings_.kyma) != known.end()) co_return;
  throw std::runtime_error(unknown_kyma(settings_.kyma, known));
}

asio::awaitable<int> status_app::show() {
  bool is_silent = false;
  for (bool first = true;; first = false) {
    const auto got = co_await manager_.ask(query_of(settings_));
    if (!got.warning.empty()) co_await errors_.write("warning: " + got.warning + "\n");
    int code = 1;
    if (got.error.empty()) {
      const auto& rows = got.runtimes.at("runtimes").as_array();
      if (rows.empty() && !settings_.kyma.empty()) co_await check_name();
      code = std::ranges::all_of(rows, is_well) ? 0 : 3;
      // As kubectl says "No resources found".
      const bool was_silent = std::exchange(is_silent, rows.empty() && settings_.format == "name");
      if (is_silent && !was_silent) co_await errors_.write("no runtime matches\n");
    } else if (settings_.format == "name") {
      co_await errors_.write(text_of_failure(got, settings_.format, settings_.kcp));
    }
    auto text = render(got);
    // A terminal shows the latest table only, a pipe all tables.
    if (settings_.watch && ::isatty(STDOUT_FILENO) == 1) text = "\x1b[H\x1b[2J" + text;
    if (settings_.watch && !first && ::isatty(STDOUT_FILENO) != 1) {
      text.insert(0, settings_.format == "yaml" ? "---\n" : "\n");
    }
    const auto failed = co_await output_.write(std::move(text));
    if (failed || !settings_.watch) co_return code;
    const auto pause = services_.clock.make_timer(services_.executor);
    pause->expires_at(services_.clock.now() + settings_.interval);
    const bool due = co_await pause->wait();
    if (!due) co_return code;
  }
}

asio::awaitable<int> status_app::run() {
  core::task_group background(services_.executor, fail_on_exception());
  core::task_group showing(services_.executor, fail_on_exception());
  background.spawn(services_.watchdog.run());
  int code = 1;
  const auto work = [](status_app* self, int* into) -> asio::awaitable<void> {
    *into = co_await self->show();
    self->stop();
  };
  showing.spawn(work(this, &code));
  co_await stop_.wait();
  showing.cancel();
  co_await showing.join();
  co_await manager_.close();
  background.cancel();
  co_await background.join();
  rethrow_failure();
  co_return code;
}

}  // namespace rw::cli
