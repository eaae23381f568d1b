#pragma once

#include "core/http/client.hpp"
#include "reactors/cli/app.hpp"
#include "reactors/cli/output.hpp"

#include <boost/asio/awaitable.hpp>
#include <boost/json/value.hpp>

#include <memory>
#include <string>

namespace rw::cli {

/// The runtimes as a table: of the parsed answer of `/runtimes`, all pages of it. `wide` adds the
/// certificate, the bundle and the message. After it a line with the counts and, while a CA
/// rotation is under way, one that says what it waits for.
std::string runtimes_table(const boost::json::value& runtimes, bool wide,
                           std::chrono::system_clock::time_point now);

/// `runtime-watcher status`: asks a manager's admin port for the runtimes, and prints them. Exit
/// code 0: every runtime that was asked for is installed; 3: some are not; 1: no answer.
class status_app final : public app {
 public:
  status_app(services& with, status_settings settings);

  boost::asio::awaitable<int> run() override;

 private:
  struct answer {
    boost::json::value runtimes = {};  ///< all pages as one
    std::string error = {};            ///< empty: there is one
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
