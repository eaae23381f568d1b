#include "rw/reactors/cli/command_line.hpp"
#include "rw/reactors/dev/dev_app.hpp"
#include "rw/reactors/dev/settings.hpp"
#include "rw/reactors/dev/terminal.hpp"
#include "rw/reactors/kube_devserver/api_server_app.hpp"

#include <algorithm>

namespace {

using namespace rw;

constexpr auto about =
    "Runtime Watcher to try and to test, without a cluster: `dev` is the whole system in one "
    "process, clusters included. `api-server` is a Kubernetes API server in memory.";

}  // namespace

int main(int argc, char** argv) {
  dev::dev_settings whole;
  kube_devserver::api_server_settings server;
  server.dir = "rw-api";
  server.clusters = {"kcp"};
  dev::terminal terminal(dev::terminal_options::of_process());
  const std::vector<cli::command> commands{
      {.name = "dev",
       .help = "Runs the whole system in one process, clusters included",
       .describe = [&](CLI::App& app) { dev::describe_dev(app, whole); },
       .check = [&](CLI::App&, const cli::command_line&) { dev::check_dev(whole); },
       .make =
           [&](cli::services& with) {
             return std::make_unique<dev::dev_app>(with, whole, terminal);
           },
       .log_to =
           [&](core::log_level& least) {
             const bool shared = dev::shows_table(whole, terminal) && terminal.shows_errors();
             if (shared) least = std::max(least, core::log_level::warning);
             return [&terminal](std::string_view line) { terminal.log(line); };
           }},
      {.name = "api-server",
       .help =
           "Runs an API server in memory that kubectl, controllers and webhooks (called at their "
           "clientConfig.url) can be tried on: the program kube-devserver",
       .describe = [&](CLI::App& app) { kube_devserver::describe_api_server(app, server); },
       .make =
           [&](cli::services& with) {
             return std::make_unique<kube_devserver::api_server_app>(
                 with, kube_devserver::plan_of(server));
           }},
  };
  return cli::run_program("runtime-watcher-dev", about, commands, argc, argv);
}
