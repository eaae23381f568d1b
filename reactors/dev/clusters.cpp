#include "rw/reactors/dev/clusters.hpp"

#include "rw/k8s/config/config.hpp"
#include "rw/reactors/cli/write_file.hpp"
#include "rw/reactors/dev/folder_lock.hpp"
#include "rw/reactors/dev/kubeconfig_text.hpp"

#include <algorithm>
#include <chrono>
#include <filesystem>
#include <utility>

namespace rw::dev {

using namespace cli;
namespace {

k8s::devserver::server_options options_of(const dev_settings& settings,
                                          k8s::devserver::service_resolver services,
                                          k8s::devserver::pod_resolver pods) {
  k8s::devserver::server_options out;
  out.name = "api-server";
  out.address = {boost::asio::ip::address_v4::loopback(), settings.api_port};
  out.services = std::move(services);
  out.pods = std::move(pods);
  return out;
}

/// Reads the kubeconfig of an API server outside this process; of no file: empty.
std::string read_outside(const std::string& file, const std::string& name) {
  if (file.empty()) return {};
  const auto config = k8s::load_kubeconfig({file});
  if (!config) throw setting_error(config.error().message);
  auto text = kubeconfig_text(*config, name);
  if (!text) throw setting_error(text.error().message);
  return std::move(*text);
}

std::string name_of_runtime(std::size_t index) {
  return "runtime-" + std::to_string(index + 1);
}

}  // namespace

clusters::clusters(services& with, const dev_settings& settings,
                   k8s::devserver::service_resolver services, k8s::devserver::pod_resolver pods)
    : dir_(settings.dir),
      server_(with.executor, options_of(settings, std::move(services), std::move(pods)),
              {with.clock, with.watchdog, with.log, with.metrics}) {
  // All are read before anything is removed: one may be a file that an earlier dev wrote here.
  auto outside_kcp = read_outside(settings.kcp_kubeconfig, "kcp");
  std::vector<std::string> outside;
  for (const auto& each : settings.skr_kubeconfigs) {
    outside.push_back(read_outside(each, name_of_runtime(outside.size())));
  }
  outside.resize(std::max<std::size_t>(settings.runtimes, outside.size()));
  remove_earlier_files(dir_);
  kcp_ = add("kcp", std::move(outside_kcp));
  for (auto& each : outside) {
    runtimes_.push_back(add(name_of_runtime(runtimes_.size()), std::move(each)));
  }
}

void clusters::hang(const std::string& name) {
  server_.faults(name).decide = [](const std::string&, const std::string&) {
    return k8s::devserver::fault{.latency = std::chrono::hours(24)};
  };
}

/// `outside`: the kubeconfig of a server outside this process; empty: an embedded one is added.
cluster clusters::add(const std::string& name, std::string outside) {
  cluster out{.name = name, .embedded = outside.empty()};
  if (out.embedded) {
    server_.add_cluster(name);
    out.kubeconfig = server_.kubeconfig(name);
  } else {
    out.kubeconfig = std::move(outside);
  }
  const auto file = name == "kcp" ? std::string("kcp.yaml") : "skr-" + name + ".yaml";
  write_file(dir_, file, out.kubeconfig, 0600);
  out.file = (std::filesystem::path(dir_) / file).string();
  return out;
}

}  // namespace rw::dev
