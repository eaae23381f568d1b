// What `dev` prints, and what its table shows.

#include "rw/core/text.hpp"
#include "rw/k8s/objects/qualified_name.hpp"
#include "rw/reactors/cli/runtimes_view.hpp"
#include "rw/reactors/cli/shell_word.hpp"
#include "rw/reactors/dev/dev_app.hpp"
#include "rw/reactors/dev/manifests.hpp"

#include <cstdio>
#include <filesystem>
#include <sstream>
#include <system_error>

namespace rw::dev {

namespace asio = boost::asio;
namespace {

/// The program for the commands: beside this one, or else on the path.
std::string program() {
  std::error_code error;
  const auto own = std::filesystem::read_symlink("/proc/self/exe", error);
  const auto path = own.parent_path() / "runtime-watcher";
  return !error && std::filesystem::exists(path, error) ? path.string() : "runtime-watcher";
}

}  // namespace

/// Returns what the progress of the start, and the table, are made of.
live_state dev_app::read_state() const {
  live_state out;
  if (prepared_ < nodes_.size()) {
    out.progress = {.issuer = infrastructure_.has_root(),
                    .manager = managing_.size() > 0,
                    .gateway = infrastructure_.serves(),
                    .without_manager = !manager_,
                    .prepared = prepared_,
                    .runtimes = nodes_.size()};
  }
  if (!manager_) return out;
  out.runtimes.emplace();
  manager_->for_each_runtime([&](const cli::runtime_summary& runtime_summary) {
    out.runtimes->push_back({runtime_summary.kyma.name, runtime_summary.state,
                             runtime_summary.heartbeat, std::string(runtime_summary.reason)});
  });
  return out;
}

asio::awaitable<void> dev_app::end_table() {
  if (!live_) co_return;
  showing_.cancel();
  co_await showing_.join();
  live_->end();
  live_->print("stopping: no new events, delivering what was accepted\n");
}

void dev_app::print(const std::string& text) const {
  if (live_) return live_->print(text);
  std::printf("%s", text.c_str());
  std::fflush(stdout);
}

/// Prints a line of which parts come from runtimes.
void dev_app::say(const std::string& line) const {
  if (live_) return live_->print(core::printable(line) + "\n");
  std::printf("%s\n", line.c_str());
  std::fflush(stdout);
}

void dev_app::show(const event_trace& trace) const {
  const auto now = services_.clock.wall();
  if (live_) live_->add(trace);
  say(settings_.json ? json_line_of(trace, now) : line_of(trace, now));
}

void dev_app::show(const arrival& arrival) const {
  const auto now = services_.clock.wall();
  if (settings_.json) return say(json_line_of(arrival, now));
  if (is_milestone(arrival)) say(line_of(arrival, now));
}

/// Returns what starts the manager that the gateway sends events to.
std::string dev_app::manager_to_start() const {
  const auto& listens = settings_.backends;
  const bool direct = configuration_ && settings_.bootstrapper == bootstrapper_mode::direct;
  return "Start a manager" +
         (listens.empty() ? std::string(" (no event reaches it without --backend)") : "") +
         ":\n  " + cli::shell_word(program()) + " manager --allow-local-runtimes --kubeconfig " +
         cli::shell_word(clusters_.kcp().file) +
         (listens.empty() ? "" : " --listen-address " + to_string(listens.front())) +
         (configuration_ ? " --bootstrapper-mode " + std::string(to_string(settings_.bootstrapper))
                         : "") +
         (direct ? " --create-runtime-bootstrappers" : "") + "\n";
}

/// Returns what shows the manager's view. Its Pod is proxied by the embedded API server alone; it
/// has none where the host's name is no Pod's.
std::string dev_app::commands_to_try() const {
  const auto pod = manager_->proxied_pod();
  const bool is_proxied =
      clusters_.kcp().embedded && k8s::dns_subdomain_errors(pod.substr(0, pod.find(':'))).empty();
  std::ostringstream page;
  page << admin_.address();
  const auto command = [&](const std::string& words, const std::string& address) {
    return "  " + cli::shell_word(program()) + " " + words + " --kubeconfig " +
           cli::shell_word(clusters_.kcp().file) +
           (is_proxied || address.empty() ? "" : " " + address + " " + page.str()) + "\n";
  };
  return "See what the manager knows of it, check it, and see how roll-outs stand:\n" +
         command("status", "--address") + command("doctor", "--address") +
         command("rollout status", "") + "See all of it in a browser:\n  http://" + page.str() +
         "/\n";
}

void dev_app::say_what_to_try() const {
  services_.log.info("the system is up", {{"runtimes", nodes_.size()}, {"dir", settings_.dir}});
  if (settings_.json) return;
  const auto& first = clusters_.runtimes().front();
  const auto kcp = "  kubectl --kubeconfig " + cli::shell_word(clusters_.kcp().file);
  const auto dir = cli::shell_word(settings_.dir);
  std::string text = "KCP and " + std::to_string(nodes_.size()) + " runtimes are up. ";
  if (settings_.bare) {
    text += "Watch something, and add a runtime to KCP:\n" + kcp + " apply -f " + dir +
            "/watcher.yaml -f " + dir + "/access-" + first.name + ".yaml -f " + dir + "/kyma-" +
            first.name + ".yaml" +
            (configuration_ ? " -f " + dir + "/runtime-" + first.name + ".yaml" : "") + "\n";
  } else {
    text += "How they are:\n" + kcp + " get watchers,kymas,events -A\n";
  }
  if (!manager_) text += manager_to_start();
  text +=
      "Change what is watched on a runtime, and see the event here:\n  kubectl --kubeconfig " +
      cli::shell_word(first.file) +
      " -n kyma-system patch kyma default --type merge -p '{\"spec\":{\"channel\":\"fast\"}}'\n";
  if (configuration_) text += what_to_try(kcp, dir, settings_.bootstrapper, first.name);
  if (manager_) text += commands_to_try();
  print(text);
}

}  // namespace rw::dev
