#pragma once

#include "core/http/client.hpp"
#include "reactors/listener/listener.hpp"

#include "tests/simulation/history.hpp"
#include "tests/simulation/network.hpp"
#include <cstdint>
#include <map>
#include <memory>
#include <string>
#include <vector>

namespace rw::simulation {

/// KCP: the gateway, which names the sender in a header and routes by path, and the listener of
/// each manager, whose events are told to the history.
class control_plane final : public http::handler {
 public:
  struct state {
    unsigned failing = 0;              ///< status of all answers of the gateway; 0: none
    std::map<std::string, bool> away;  ///< managers without a leader that takes events
  };

  control_plane(environment& in, history& told, const std::vector<std::string>& managers,
                bool http2);
  ~control_plane() override;

  state now;

 private:
  struct component;

  std::size_t body_limit(const http::request&) const override { return 2 << 20; }
  boost::asio::awaitable<void> handle(http::request& from, http::response& into) override;
  boost::asio::awaitable<void> forward(http::request* from, http::response* into, component* to);
  boost::asio::awaitable<void> receive(component* of);
  boost::asio::awaitable<void> close_clients();

  environment& in_;
  history& history_;
  core::metrics metrics_;
  const std::unique_ptr<core::transport> inside_ = core::make_plain_transport();
  const std::unique_ptr<core::transport> outside_;
  std::map<std::string, std::unique_ptr<component>> components_;
  http::server gateway_;
  core::task_group tasks_;
};

}  // namespace rw::simulation
