#include "rw/reactors/cli/doctor_pre_journal.hpp"

#include "rw/core/text.hpp"
#include "rw/reactors/cli/kcp_commands.hpp"

#include <boost/json/array.hpp>
#include <boost/json/object.hpp>
#include <boost/json/serialize.hpp>

#include <algorithm>
#include <cstdio>
#include <unistd.h>

namespace rw::cli {
namespace {

namespace asio = boost::asio;
namespace json = boost::json;

constexpr auto slow_check = std::chrono::seconds(1);

}  // namespace

pre_journal::pre_journal(services& with, bool as_json, kcp_access kcp)
    : services_(with),
      as_json_(as_json),
      kcp_(std::move(kcp)),
      output_(with.executor, STDOUT_FILENO) {}

void pre_journal::begin(std::string step) {
  step_ = std::move(step);
  step_begun_ = services_.clock.now();
}

void pre_journal::clear_progress() {
  if (std::exchange(has_progress_line_, false)) std::fputs("\r\x1b[K", stderr);
}

/// Shows which check is under way, where it takes long and a person watches.
asio::awaitable<void> pre_journal::show_progress() {
  if (::isatty(STDERR_FILENO) != 1) co_return;
  const auto timer = services_.clock.make_timer(services_.executor);
  for (;;) {
    timer->expires_at(services_.clock.now() + std::chrono::milliseconds(200));
    const bool due = co_await timer->wait();
    if (!due) co_return;
    if (step_.empty() || services_.clock.now() - step_begun_ < slow_check) continue;
    std::fputs(("\r\x1b[K" + step_ + " ...").c_str(), stderr);
    has_progress_line_ = true;
  }
}

asio::awaitable<void> pre_journal::report(finding found) {
  clear_progress();
  found = with_kcp_flags(std::move(found), kcp_);
  found.message = core::printable(found.message);
  found.remedy = core::printable(found.remedy);
  const bool is_first = findings_.empty() || findings_.back().first != group_;
  findings_.emplace_back(group_, std::move(found));
  if (as_json_) co_return;
  auto text = is_first ? std::string(heading_of(group_)) + "\n" : std::string();
  text += text_of(findings_.back().second);
  co_await output_.write(std::move(text));
}

asio::awaitable<int> pre_journal::conclude() {
  clear_progress();
  std::vector<finding> all;
  json::array checks;
  for (const auto& [group, found] : findings_) {
    all.push_back(found);
    checks.push_back(json_of(group, found));
  }
  auto text = as_json_ ? json::serialize(json::object{{"checks", std::move(checks)}}) + "\n"
                       : summary_of(all);
  co_await output_.write(std::move(text));
  co_return std::ranges::count(all, finding_state::failed, &finding::state) > 0 ? 3 : 0;
}

}  // namespace rw::cli
