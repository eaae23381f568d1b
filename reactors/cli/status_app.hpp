#pragma once

#include "core/http/client.hpp"
#include "reactors/cli/app.hpp"
#include "reactors/cli/output.hpp"

#include <boost/asio/awaitable.hpp>
#include <boost/json/value.hpp>

#include <memory>
#include <string>

namespace rw::cli {

/// Formats runtimes as a table, from the parsed response of `/runtimes`, all its pages. `wide` adds
/// the certificate, the bundle and the message. Then follows a line with the counts and, during a
/// CA rotation, one with what that waits for.
std::string runtimes_table(const boost::json::value& runtimes, bool wide,
                           std::chrono::system_clock::time_point now);

/// `runtime-watcher status`: requests the runtimes from a manager's admin port, and prints them.
/// Exit code 0: every requested runtime is installed; 3: some are not; 1: no response.
class status_app final : public app {
 public:
  status_app(services& with, status_settings settings);

  boost::asio::awaitable<int> run() override;

 private:
  struct answer {
    boost::json::value runtimes = {};  ///< all pages as one
    std::string error = {};            ///< empty: there is a response
  };

  boost::asio::awaitable<int> show();
  boost::asio::awaitable<answer> ask();
  boost::asio::awaitable<std::string> get(const std::string* target, boost::json::value* into);

  const status_settings settings_;
  const std::string query_;
  const std::unique_ptr<core::transport> plain_;
  http::client client_;
  output output_;
};

}  // namespace rw::cli
