#pragma once

#include "rw/core/task_group.hpp"
#include "rw/k8s/devserver/server.hpp"

#include <boost/asio/any_io_executor.hpp>
#include <boost/asio/awaitable.hpp>
#include <boost/asio/ip/tcp.hpp>

#include <memory>
#include <string>
#include <utility>
#include <vector>

namespace rw::k8s::test {

/// An embedded API server that can be ended and begun anew at the same address, with what it has
/// stored.
class restartable_server {
 public:
  restartable_server(boost::asio::any_io_executor executor, devserver::server_options options,
                     devserver::server_environment environment)
      : executor_(std::move(executor)), options_(std::move(options)), environment_(environment) {
    // Nobody else gets the port while the server is away: a socket is bound to it that never
    // listens, which a server that reuses addresses does not mind.
    place_.open(options_.address.protocol());
    place_.set_option(boost::asio::ip::tcp::socket::reuse_address(true));
    place_.bind(options_.address);
    options_.address = place_.local_endpoint();
  }

  /// `protocols` as with devserver::server_options.
  void begin(std::vector<std::string> protocols) {
    options_.protocols = std::move(protocols);
    server_ = std::make_unique<devserver::server>(executor_, options_, environment_, memory_);
    memory_ = server_->memory();
    tasks_ = std::make_unique<core::task_group>(executor_);
    tasks_->spawn(server_->run());
  }

  /// Ends it, gently or not; connections to it are refused from then on.
  boost::asio::awaitable<void> end(bool gently) {
    if (gently) {
      server_->drain();
    } else {
      tasks_->cancel();
    }
    co_await tasks_->join();
    tasks_.reset();
    server_.reset();
  }

  devserver::server* operator->() const noexcept { return server_.get(); }

 private:
  const boost::asio::any_io_executor executor_;
  devserver::server_options options_;
  const devserver::server_environment environment_;
  std::shared_ptr<devserver::server_memory> memory_;
  boost::asio::ip::tcp::socket place_{executor_};
  std::unique_ptr<devserver::server> server_;
  std::unique_ptr<core::task_group> tasks_;
};

}  // namespace rw::k8s::test
