#pragma once

#include "rw/core/channel.hpp"
#include "rw/core/http/client.hpp"
#include "rw/reactors/heartbeat/health.hpp"
#include "rw/reactors/intake/listener.hpp"

#include "tests/simulation/history.hpp"
#include "tests/simulation/network.hpp"
#include <cstdint>
#include <map>
#include <memory>
#include <set>
#include <string>
#include <string_view>
#include <vector>

namespace rw::simulation {

/// KCP: the gateway, which names the sender in a header and routes by path, the listener of each
/// manager, whose events are told to the history, and the listener for heartbeats, with what the
/// manager concludes from them.
class control_plane final : public http::handler {
 public:
  /// A listener refuses an object, or all.
  struct refusal {
    unsigned status;
    std::string part;  ///< of the request's body; empty: of each
  };
  struct state {
    unsigned failing = 0;  ///< status of all answers of the gateway; 0: none
    bool portal = false;   ///< something in front of listeners answers 200 to resyncs itself
    std::map<std::string, bool> away;         ///< managers without a leader that takes events
    std::map<std::string, refusal> refusals;  ///< by manager
  };

  /// Those of `without_resyncs` are as the Go listener: 404 to a resync, or 200 to whatever comes.
  control_plane(environment& in, history& told, const std::vector<std::string>& managers,
                const std::set<std::string>& without_resyncs, bool http2);
  ~control_plane() override;

  /// What is known of the runtime, as of now.
  const heartbeats::runtime_health& health();

  state now;

 private:
  struct component;

  std::size_t body_limit(const http::request&) const override { return 2 << 20; }
  listener::listener_options listener_of(const std::string& manager, std::uint16_t port);
  boost::asio::awaitable<void> handle(http::request& from, http::response& into) override;
  boost::asio::awaitable<void> forward(http::request* from, http::response* into, component* to);
  boost::asio::awaitable<void> receive(component* of);
  boost::asio::awaitable<void> receive_heartbeats();
  heartbeats::moment moment() const { return {in_.now(), in_.clock.wall()}; }
  boost::asio::awaitable<void> close_clients();

  environment& in_;
  history& history_;
  const std::set<std::string> without_resyncs_;
  core::metrics metrics_;
  const std::unique_ptr<core::transport> inside_ = core::make_plain_transport();
  const std::unique_ptr<core::transport> outside_;
  const std::shared_ptr<core::channel<received_heartbeat>> heartbeats_ =
      std::make_shared<core::channel<received_heartbeat>>(64);
  heartbeats::fleet_health fleet_{{}};
  std::map<std::string, std::unique_ptr<component>> components_;
  http::server gateway_;
  core::task_group tasks_;
};

}  // namespace rw::simulation
