#pragma once

#include "rw/core/clock.hpp"
#include "rw/reactors/cli/app.hpp"
#include "rw/reactors/cli/doctor_pre_report.hpp"
#include "rw/reactors/cli/output.hpp"
#include "rw/reactors/cli/settings.hpp"

#include <boost/asio/awaitable.hpp>

#include <string>
#include <utility>
#include <vector>

namespace rw::cli {

/// The findings of `doctor --pre`, printed as they come (text) or at the end (JSON), and a line on
/// standard error about a check that takes more than a second, where that is a terminal. Used on
/// one executor.
class pre_journal {
 public:
  pre_journal(services& with, bool as_json, kcp_access kcp);

  /// Further findings belong to the group.
  void open(pre_group group) { group_ = group; }
  /// A check begins, such as "manifests: 3 of 27".
  void begin(std::string step);
  boost::asio::awaitable<void> report(finding found);
  /// Prints the summary, or all findings as JSON. Returns the exit code.
  boost::asio::awaitable<int> conclude();

  /// Runs until cancelled.
  boost::asio::awaitable<void> show_progress();
  void clear_progress();

 private:
  services& services_;
  const bool as_json_;
  const kcp_access kcp_;  ///< as the user has chosen it
  output output_;
  std::vector<std::pair<pre_group, finding>> findings_;
  pre_group group_ = pre_group::kcp;
  std::string step_;
  core::time_point step_begun_ = {};
  bool has_progress_line_ = false;
};

}  // namespace rw::cli
