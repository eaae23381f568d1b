#include "rw/reactors/cli/command_line.hpp"
#include "rw/reactors/kube_devserver/api_server_app.hpp"
#include "rw/reactors/kube_devserver/etcd_app.hpp"

#include <filesystem>

// One program with three names: that of the file decides, so that a folder with links to it serves
// as KUBEBUILDER_ASSETS.

namespace {

using namespace rw;
using namespace rw::kube_devserver;

constexpr auto variables = "KUBE_DEVSERVER_";

int run_kube_apiserver(int argc, char** argv) {
  kube_apiserver_settings settings;
  cli::command command;
  command.describe = [&](CLI::App& app) { describe_kube_apiserver(app, settings); };
  command.check = [&](CLI::App& app, const cli::command_line&) {
    note_unknown_flags(app, settings);
  };
  command.make = [&](cli::services& with) {
    return std::make_unique<api_server_app>(with, plan_of(settings));
  };
  command.variable_prefix = variables;
  return cli::run_program("kube-apiserver", "kube-apiserver of kube-devserver, for envtest.",
                          {command}, argc, argv);
}

int run_etcd(int argc, char** argv) {
  etcd_settings settings;
  cli::command command;
  command.describe = [&](CLI::App& app) { describe_etcd(app, settings); };
  command.make = [&](cli::services& with) { return std::make_unique<etcd_app>(with, settings); };
  command.variable_prefix = variables;
  return cli::run_program("etcd", "etcd of kube-devserver, for envtest.", {command}, argc, argv);
}

int run_kube_devserver(int argc, char** argv) {
  api_server_settings settings;
  cli::command command;
  command.describe = [&](CLI::App& app) { describe_api_server(app, settings); };
  command.make = [&](cli::services& with) {
    return std::make_unique<api_server_app>(with, plan_of(settings));
  };
  command.variable_prefix = variables;
  return cli::run_program(
      "kube-devserver",
      "Kubernetes API servers in memory, any number in one process, for tests and trials of "
      "controllers, webhooks and kubectl.",
      {command}, argc, argv);
}

}  // namespace

int main(int argc, char** argv) {
  const auto name = std::filesystem::path(argv[0]).filename();
  if (name == "kube-apiserver") return run_kube_apiserver(argc, argv);
  if (name == "etcd") return run_etcd(argc, argv);
  return run_kube_devserver(argc, argv);
}
