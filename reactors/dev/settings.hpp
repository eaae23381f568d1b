#pragma once

#include "rw/core/config.hpp"
#include "rw/reactors/shared/bootstrapper_mode.hpp"

#include <chrono>
#include <cstdint>
#include <string>
#include <vector>

namespace CLI {
class App;
}

namespace rw::dev {

/// When `dev` shows a table of its runtimes in place of lines alone.
enum class table_mode : std::uint8_t {
  automatic,  ///< on a terminal that can move its cursor
  always,
  never,
};

/// `runtime-watcher-dev dev`.
struct dev_settings {
  std::string dir = "rw-dev";
  std::size_t runtimes = 2;
  std::string kcp_kubeconfig;                ///< empty: an embedded API server
  std::vector<std::string> skr_kubeconfigs;  ///< of the first runtimes; the others are embedded
  bool bare = false;                         ///< neither Watcher nor Kymas
  bool json = false;                         ///< events on standard output as JSON
  table_mode table = table_mode::automatic;  ///< of no effect with `json`
  std::uint16_t api_port = 0;
  std::uint16_t gateway_port = 0;
  std::string pod_address = "127.0.0.1";  ///< where the webhooks listen
  std::chrono::milliseconds gateway_idle = std::chrono::minutes(3);
  core::host_port metrics_address = {"127.0.0.1", 0};

  bool manager = true;
  std::vector<core::host_port> backends;  ///< of the gateway, without a manager of its own
  std::chrono::milliseconds success_interval = std::chrono::hours(1);
  std::chrono::milliseconds ca_grace = std::chrono::seconds(10);
  std::chrono::milliseconds kubelet_delay{0};

  bootstrapper_mode bootstrapper = bootstrapper_mode::off;
  std::size_t kim_workers = 25;
  std::chrono::milliseconds kim_duration = std::chrono::seconds(2);
  bool kim_config_watcher = false;
  std::size_t kim_fails = 0;         ///< every N-th reconcile; 0: none
  std::size_t hanging_runtimes = 0;  ///< the last ones

  std::chrono::milliseconds rotate_root_every{0};  ///< 0: never
  std::size_t rotations = 0;                       ///< 0: unlimited
  std::chrono::milliseconds issuer_delay{0};

  std::chrono::milliseconds drain_timeout = std::chrono::seconds(10);
};

// Adds the options of a command; `check_dev` throws `cli::setting_error` for invalid combinations.
void describe_dev(CLI::App& app, dev_settings& to);
void check_dev(const dev_settings& of);

}  // namespace rw::dev
