#pragma once

#include "rw/reactors/cli/app.hpp"
#include "rw/reactors/cli/output.hpp"
#include "rw/reactors/cli/runtimes_client.hpp"

#include <boost/asio/awaitable.hpp>
#include <boost/json/value.hpp>

#include <string>

namespace rw::cli {

/// Formats why no leader computes the differences, and what to do, as `status` and `doctor` say it.
std::string diff_failure(const runtimes_client::answer& of, const leader_access& way);

/// Returns what to do about a pass that fails: the step that the leader's verdict has for the
/// runtime's reason, or the command that checks the runtime. `runtimes`: the leader's `/runtimes`
/// with the row of the Kyma; valid UTF-8.
std::string next_step_of_diff(const boost::json::value& runtimes, const std::string& kyma);

/// `runtime-watcher diff`: prints what the next passes of the manager would write to one runtime.
/// The leader computes it; nothing is written. Where a pass fails, the next step is that of the
/// leader's verdict for the runtime, as `status` prints it. Exit code 0: nothing differs; 3:
/// something does; 1: no leader responds, KCP has no such Kyma, or the runtime has not answered.
class diff_app final : public app {
 public:
  diff_app(services& with, diff_settings settings);

  boost::asio::awaitable<int> run() override;

 private:
  boost::asio::awaitable<int> show();
  boost::asio::awaitable<runtimes_client::answer> ask_status();

  const diff_settings settings_;
  runtimes_client manager_;
  output output_;
  output errors_;
};

}  // namespace rw::cli
