#include "rw/reactors/cli/diff_app.hpp"

#include "rw/core/text.hpp"
#include "rw/k8s/objects/types.hpp"
#include "rw/k8s/objects/url.hpp"
#include "rw/reactors/cli/kcp_commands.hpp"
#include "rw/reactors/cli/runtime_diff.hpp"

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

diff_app::diff_app(services& with, diff_settings settings)
    : app(with),
      settings_(std::move(settings)),
      manager_(with, settings_, "runtime-watcher-diff"),
      output_(with.executor, STDOUT_FILENO),
      errors_(with.executor, STDERR_FILENO) {}

asio::awaitable<int> diff_app::show() {
  std::string target = "/diff?runtime=";
  k8s::append_percent_encoded(target, settings_.kyma, "");
  const auto got = co_await manager_.ask_object(std::move(target));
  if (!got.warning.empty()) co_await errors_.write("warning: " + got.warning + "\n");
  if (!got.error.empty()) {
    const bool leaderless = got.no_way && got.next.empty() && !got.other_leads;
    const auto text = (leaderless ? "no leader: " : "") + core::printable(got.error) +
                      (got.next.empty() ? "" : "\n  fix: " + got.next);
    throw std::runtime_error(with_kcp_flags(text, settings_.kcp));
  }
  const auto& diff = got.runtimes;
  const auto error = k8s::find_string(diff, {"error"});
  if (!error.empty()) throw std::runtime_error(core::printable(error));
  if (k8s::find_array(diff, {"components"}) == nullptr) {
    throw std::runtime_error("the leader does not respond as a manager does");
  }
  auto text = settings_.format == "json" ? in_ascii(json::serialize(diff)) + "\n"
                                         : diff_text(diff, settings_.kcp);
  const auto failed = co_await output_.write(std::move(text));
  co_return failed ? 1 : exit_code_of(diff);
}

asio::awaitable<int> diff_app::run() {
  auto code = co_await run_to_end(show(), manager_.close());
  co_return code;
}

}  // namespace rw::cli
