#pragma once

#include "rw/core/http/client.hpp"
#include "rw/reactors/cli/app.hpp"

#include <boost/asio/awaitable.hpp>
#include <boost/json/value.hpp>

#include <memory>
#include <string>

namespace rw::cli {

/// Reads `/runtimes` at a manager's admin port. On one executor.
class runtimes_client {
 public:
  struct answer {
    boost::json::value runtimes = {};  ///< all pages as one
    std::string error = {};            ///< empty: there is a response
  };

  /// `token_file`: the manager's --admin-token-file; may be empty.
  runtimes_client(services& with, core::host_port address, std::string token_file);

  /// Reads all pages of a query ("/runtimes?limit=5000&state=failed"). Throws setting_error if the
  /// token is unreadable.
  boost::asio::awaitable<answer> ask(std::string query);

  boost::asio::awaitable<void> close() { return client_.close(); }

 private:
  boost::asio::awaitable<std::string> get(const std::string* target, boost::json::value* into);

  const core::host_port address_;
  const std::string token_file_;
  const std::unique_ptr<core::transport> plain_;
  http::client client_;
};

}  // namespace rw::cli
