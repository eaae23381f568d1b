#include "rw/reactors/cli/diff_app.hpp"

#include "rw/core/text.hpp"
#include "rw/k8s/objects/types.hpp"
#include "rw/k8s/objects/url.hpp"
#include "rw/reactors/cli/doctor_report.hpp"
#include "rw/reactors/cli/kcp_commands.hpp"
#include "rw/reactors/cli/runtime_diff.hpp"
#include "rw/reactors/shared/fleet_verdict.hpp"
#include "rw/reactors/shared/status_reason.hpp"

#include <boost/json/array.hpp>
#include <boost/json/object.hpp>
#include <boost/json/serialize.hpp>

#include <cstdint>
#include <stdexcept>
#include <string>
#include <string_view>
#include <unistd.h>

namespace rw::cli {

namespace asio = boost::asio;
namespace json = boost::json;

namespace {

/// JSON in ASCII, since a terminal shows it, and runtimes chose some of its texts. `text` is valid
/// UTF-8 (RFC 8259, section 7).
std::string in_ascii(std::string_view text) {
  std::string out;
  const auto escape = [&out](std::uint32_t unit) {
    constexpr std::string_view digits = "0123456789abcdef";
    out += "\\u";
    for (int shift = 12; shift >= 0; shift -= 4) out += digits[(unit >> shift) & 0xFU];
  };
  for (std::size_t at = 0; at < text.size();) {
    const auto first = static_cast<unsigned char>(text[at++]);
    if (first < 0x80) {
      first == 0x7F ? escape(first) : out.push_back(text[at - 1]);
      continue;
    }
    std::uint32_t point = first < 0xE0   ? first & 0x1FU
                          : first < 0xF0 ? first & 0x0FU
                                         : first & 0x07U;
    for (; at < text.size() && (static_cast<unsigned char>(text[at]) & 0xC0U) == 0x80; ++at) {
      point = (point << 6) | (static_cast<unsigned char>(text[at]) & 0x3FU);
    }
    if (point >= 0x10000) escape(0xD7C0 + (point >> 10));
    escape(point >= 0x10000 ? 0xDC00 + (point & 0x3FFU) : point);
  }
  return out;
}

}  // namespace

std::string diff_failure(const runtimes_client::answer& of, const leader_access& way) {
  const bool leaderless = of.no_way && of.next.empty() && !of.other_leads;
  const auto next =
      leaderless ? lease_remedy({way.lease_namespace, way.lease_name}) : std::string(of.next);
  const auto text = (leaderless ? "no leader: " : "") + core::printable(of.error) +
                    (next.empty() ? "" : "\n  fix: " + next);
  return with_kcp_flags(text, way.kcp);
}

std::string next_step_of_diff(const json::value& runtimes, const std::string& kyma) {
  for (const auto& row : runtimes.at("runtimes").as_array()) {
    const auto reason = parse_status_reason(k8s::find_string(row, {"reason"}));
    const bool is_ill = k8s::find_string(row, {"condition"}) == to_string(runtime_condition::ill);
    if (!is_ill || !reason || *reason == status_reason::none) continue;
    return std::string(read_verdict(runtimes).next_step_of(*reason));
  }
  return "runtime-watcher doctor " + kyma;
}

diff_app::diff_app(services& with, diff_settings settings)
    : app(with),
      settings_(std::move(settings)),
      manager_(with, settings_, "runtime-watcher-diff"),
      output_(with.executor, STDOUT_FILENO),
      errors_(with.executor, STDERR_FILENO) {}

/// Reads what `status` shows of the runtime.
asio::awaitable<runtimes_client::answer> diff_app::ask_status() {
  std::string query = "/runtimes?limit=1&kyma=";
  k8s::append_percent_encoded(query, settings_.kyma, "");
  auto got = co_await manager_.ask(std::move(query));
  co_return got;
}

asio::awaitable<int> diff_app::show() {
  std::string target = "/diff?runtime=";
  k8s::append_percent_encoded(target, settings_.kyma, "");
  auto got = co_await manager_.ask_object(std::move(target));
  if (!got.warning.empty()) co_await errors_.write("warning: " + got.warning + "\n");
  if (!got.error.empty()) {
    throw std::runtime_error(diff_failure(got, settings_));
  }
  auto& diff = got.runtimes;
  const auto error = k8s::find_string(diff, {"error"});
  if (!error.empty()) throw std::runtime_error(core::printable(error));
  if (k8s::find_array(diff, {"components"}) == nullptr) {
    const auto status = co_await ask_status();
    throw std::runtime_error(status.error.empty() ? "the leader does not respond as a manager does"
                                                  : diff_failure(status, settings_));
  }
  const auto code = exit_code_of(diff);
  std::string next;
  if (code == 1) {
    const auto status = co_await ask_status();
    if (status.error.empty()) next = next_step_of_diff(status.runtimes, settings_.kyma);
    next = with_kcp_flags(next, settings_.kcp);
  }
  std::string text;
  if (settings_.format == "json") {
    if (!next.empty()) diff.as_object()["fix"] = next;
    text = in_ascii(json::serialize(diff)) + "\n";
  } else {
    text = diff_text(diff, settings_.kcp) + (next.empty() ? "" : "# fix: " + next + "\n");
  }
  const auto failed = co_await output_.write(std::move(text));
  co_return failed ? 1 : code;
}

asio::awaitable<int> diff_app::run() {
  auto code = co_await run_to_end(show(), manager_.close());
  co_return code;
}

}  // namespace rw::cli
