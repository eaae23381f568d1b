#pragma once

#include "rw/core/config.hpp"
#include "rw/reactors/cli/settings.hpp"

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

namespace CLI {
class App;
}

namespace rw::kube_devserver {

/// What all three programs may set, kube-apiserver by variables: envtest passes flags of its own.
struct server_behaviour {
  bool refuse_unsupported = false;
  std::string version = "v1.32.0+devserver";
};

/// `kube-devserver`, and `runtime-watcher-dev api-server`.
struct api_server_settings {
  core::host_port address = {"127.0.0.1", 6443};
  std::string dir = "kube-devserver";
  std::vector<std::string> clusters = {"default"};
  std::size_t cluster_count = 0;  ///< cluster-1, cluster-2, ... in place of `clusters`; 0: those
  std::vector<std::string> host_names = {"localhost"};
  std::size_t history = 1000;
  bool http1 = false;  ///< HTTP/2 is not offered
  std::string authorization = "none";
  std::chrono::milliseconds storage_delay{0};
  bool controllers = true;
  bool running_deployments = false;
  server_behaviour behaviour;
};

/// `kube-apiserver` as envtest starts it.
struct kube_apiserver_settings {
  std::string bind_address = "0.0.0.0";
  std::uint16_t secure_port = 6443;
  std::string cert_dir = "/var/run/kubernetes";
  std::string certificate_file;  ///< empty: apiserver.crt of `cert_dir`, made if it is not there
  std::string key_file;
  std::string client_ca_file;
  std::string token_file;
  std::vector<std::string> authorization = {"AlwaysAllow"};
  std::vector<std::string> issuers;
  std::vector<std::string> audiences;    ///< empty: the issuers
  std::vector<std::string> ineffective;  ///< flags that it does not know
  server_behaviour behaviour;
};

/// `etcd` as envtest starts it.
struct etcd_settings {
  std::string listen_url = "http://localhost:2379";
};

// Add the options of a command.
void describe_api_server(CLI::App& app, api_server_settings& to);
void describe_kube_apiserver(CLI::App& app, kube_apiserver_settings& to);
void describe_etcd(CLI::App& app, etcd_settings& to);
/// Takes the flags that were accepted and are not known. Called after parsing.
void note_unknown_flags(CLI::App& app, kube_apiserver_settings& to);

}  // namespace rw::kube_devserver
