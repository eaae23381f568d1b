#pragma once

#include "rw/reactors/cli/app.hpp"
#include "rw/reactors/cli/output.hpp"
#include "rw/reactors/cli/runtimes_client.hpp"
#include "rw/reactors/cli/settings.hpp"

#include <boost/asio/awaitable.hpp>
#include <boost/json/value.hpp>

#include <string>

namespace rw::cli {

struct table_format {
  bool wide = false;      ///< adds the certificate, the bundle and the message
  bool headers = true;    ///< false: rows alone
  bool colours = false;   ///< of what is not well
  std::size_t width = 0;  ///< of a terminal, at which lines are cut off; 0: no limit
  kcp_access kcp = {};    ///< as the user has chosen it, for the commands below the table
};

/// Formats runtimes as a table, from the parsed response of `/runtimes`, all its pages: the ill
/// first, by their reasons. Then follows a line with the counts and, during a CA rotation, one with
/// what that waits for. The verdict on the landscape is last.
std::string runtimes_table(const boost::json::value& runtimes, const table_format& format,
                           std::chrono::system_clock::time_point now);

/// `runtime-watcher status`: requests the runtimes from the manager that leads, through KCP's API
/// server, or from a manager's admin port, and prints them.
/// Exit code 0: every requested runtime is well, or left out; 3: some are not; 1: no leader
/// responds, or KCP has no Kyma of that name.
class status_app final : public app {
 public:
  status_app(services& with, status_settings settings);

  boost::asio::awaitable<int> run() override;

 private:
  boost::asio::awaitable<int> show();
  boost::asio::awaitable<void> check_name();
  std::string render(const runtimes_client::answer& got) const;

  const status_settings settings_;
  runtimes_client manager_;
  output output_;
  output errors_;
};

}  // namespace rw::cli
