#include "rw/reactors/dev/dev_app.hpp"

#include "rw/reactors/cli/write_file.hpp"
#include "rw/reactors/dev/apply.hpp"
#include "rw/reactors/dev/manifests.hpp"
#include "rw/reactors/dev/runtime_log.hpp"

#include <boost/asio/error.hpp>
#include <boost/system/system_error.hpp>

#include <algorithm>
#include <filesystem>
#include <sys/resource.h>
#include <utility>

namespace rw::dev {

using namespace cli;
namespace {

namespace asio = boost::asio;

constexpr std::size_t prepared_at_once = 16;
constexpr auto gateway_host = "localhost";
constexpr auto settle_limit = std::chrono::seconds(5);
constexpr auto poll_interval = std::chrono::milliseconds(5);

/// Raises the limit of descriptors: each runtime needs about ten, as both ends of its connections
/// are in this process. Beyond the hard limit only with the privilege to do so.
void allow_many_files(std::size_t runtimes) {
  const rlim_t needed = 1000 + 12 * runtimes;
  rlimit limit{};
  if (getrlimit(RLIMIT_NOFILE, &limit) != 0) return;
  limit.rlim_cur = std::max(limit.rlim_max, needed);
  rlimit raised{limit.rlim_cur, limit.rlim_cur};
  if (setrlimit(RLIMIT_NOFILE, &raised) == 0) return;
  limit.rlim_cur = limit.rlim_max;
  setrlimit(RLIMIT_NOFILE, &limit);
}

const dev_settings& prepared(const dev_settings& settings) {
  allow_many_files(settings.runtimes);
  return settings;
}

}  // namespace

dev_app::dev_app(services& with, const dev_settings& settings, terminal& on)
    : app(with),
      settings_(prepared(settings)),
      folder_(settings_.dir),
      manager_services_(std::make_unique<services>(with.executor, with.log.least(),
                                                   [&on](std::string_view line) { on.log(line); })),
      view_(with.clock, with.metrics, settings.manager,
            [this](const event_trace& trace) { show(trace); }),
      clusters_(with, settings_, find_webhooks(), find_manager()),
      infrastructure_(with, settings_, clusters_.kcp(), find_backends()),
      manager_(settings_.manager ? std::make_unique<manager_app>(*manager_services_,
                                                                 settings_of_manager(), &view_)
                                 : nullptr),
      plain_(core::make_plain_transport()),
      pages_(with.metrics, page_options()),
      admin_(with.executor,
             {"dev-admin", listening_address(settings_.metrics_address, "--metrics-address"), {}},
             pages_, {*plain_, with.watchdog, with.log, with.metrics}),
      webhook_pages_(webhook_metrics_, {}),
      webhook_admin_(with.executor, {"webhook-admin", {admin_.address().address(), 0}, {}},
                     webhook_pages_, {*plain_, with.watchdog, with.log, with.metrics}),
      showing_(with.executor, fail_on_exception()),
      serving_(with.executor, fail_on_exception()),
      supporting_(with.executor, fail_on_exception()),
      managing_(with.executor, fail_on_exception()),
      configuring_(with.executor, fail_on_exception()),
      running_(with.executor, fail_on_exception()),
      starting_(with.executor, fail_on_exception()) {
  if (settings_.bootstrapper != bootstrapper_mode::off) {
    configuration_ = std::make_unique<configuration_trial>(
        with, settings_, clusters_, infrastructure_.kcp(),
        [this](const std::string& name) { return find_runtime(name); },
        [this](const arrival& arrival) { show(arrival); },
        [this](const auto& before, const auto& now) {
          const auto line = rollout_line(before, now, services_.clock.wall(), settings_.json);
          if (!line.empty()) say(line);
        });
  }
  const auto observer = [this](const std::string& runtime, const watch_event& event) {
    view_.changed(runtime, event);
  };
  for (const auto& runtime : clusters_.runtimes()) {
    node::options options{.runtime = runtime.name,
                          .kubeconfig = runtime.kubeconfig,
                          .pod_address = settings_.pod_address,
                          .kubelet_delay = settings_.kubelet_delay,
                          .log_level = services_.log.least(),
                          .log_to = name_runtime(runtime.name, on),
                          .on_event = observer};
    nodes_.push_back(std::make_unique<node>(with, webhook_metrics_, std::move(options)));
    nodes_by_name_.emplace(runtime.name, nodes_.back().get());
  }
  if (shows_table(settings_, on)) {
    live_ =
        std::make_unique<live_view>(with.executor, with.clock, on, [this] { return read_state(); });
  }
  write_manifests();
}

manager_settings dev_app::settings_of_manager() const {
  manager_settings out;
  out.kcp.kubeconfig = clusters_.kcp().file;
  out.listening.address = {"127.0.0.1", 0};
  out.metrics_address = {"127.0.0.1", 0};
  out.pin_san = true;
  out.local_runtimes = k8s::local_servers::allowed;
  out.success_interval = settings_.success_interval;
  out.ca_grace = settings_.ca_grace;
  out.ca_propagation = settings_.kubelet_delay + std::chrono::seconds(1);
  out.drain_timeout = settings_.drain_timeout / 2;
  out.runtime_config.mode = settings_.bootstrapper;
  out.runtime_config.direct.create_for_runtimes = true;
  out.runtime_config.rollout.soak = std::chrono::seconds(1);
  return out;
}

/// The manager's page, with the metrics of what surrounds it.
admin::page_options dev_app::page_options() {
  auto out = manager_ ? manager_->page_options() : admin::page_options();
  out.not_ready = [this] {
    return std::string(prepared_ < clusters_.runtimes().size() ? "starting\n" : "");
  };
  return out;
}

/// Resolves the Services of the runtimes: their pods are the nodes' webhooks.
k8s::devserver::service_resolver dev_app::find_webhooks() {
  return [this](std::string_view cluster, std::string_view service) {
    const auto at = nodes_by_name_.find(cluster);
    return at == nodes_by_name_.end() ? k8s::devserver::service_route() : at->second->find(service);
  };
}

/// Resolves the manager's Pod, whose pages KCP's API server proxies.
k8s::devserver::pod_resolver dev_app::find_manager() {
  return [this](std::string_view cluster, std::string_view pod) -> http::handler* {
    const bool is_manager = manager_ && cluster == clusters_.kcp().name &&
                            pod == std::string(kcp_namespace) + "/" + manager_->proxied_pod();
    return is_manager ? &pages_ : nullptr;
  };
}

/// Resolves the Services of KCP: the backend of any Watcher is the manager's listener.
dev_gateway::service_resolver dev_app::find_backends() {
  return [this](const dev_gateway::service_port& of) -> std::optional<asio::ip::tcp::endpoint> {
    if (of.ns != kcp_namespace) return {};  // all Services that there are lie in it
    if (manager_) return manager_->address();
    if (settings_.backends.empty()) return {};
    const auto& backend = settings_.backends[next_backend_++ % settings_.backends.size()];
    return listening_address(backend, "--backend");
  };
}

k8s::client* dev_app::find_runtime(const std::string& name) {
  const auto at = nodes_by_name_.find(name);
  return at == nodes_by_name_.end() ? nullptr : &at->second->api();
}

bool dev_app::hangs(std::size_t runtime) const {
  return runtime + settings_.hanging_runtimes >= nodes_.size();
}

void dev_app::write_manifests() const {
  write_file(settings_.dir, "watcher.yaml", sample_watcher(), 0644);
  if (configuration_) {
    write_file(settings_.dir, "bootstrapper-sources.yaml", sample_bootstrapper_sources(), 0600);
  }
  for (const auto& runtime : clusters_.runtimes()) {
    if (configuration_) {
      write_file(settings_.dir, "runtime-" + runtime.name + ".yaml", runtime_manifest(runtime),
                 0644);
    }
    write_file(settings_.dir, "kyma-" + runtime.name + ".yaml", kyma_manifest(runtime), 0644);
    write_file(settings_.dir, "access-" + runtime.name + ".yaml", access_manifest(runtime), 0600);
  }
}

/// Starts the parts in the order of their dependencies.
asio::awaitable<void> dev_app::start() {
  auto* const clock = &services_.clock;
  auto* const kcp = &infrastructure_.kcp();
  co_await apply_manifests(kcp, clock, definitions());
  const auto port = infrastructure_.gateway().port();
  co_await apply_manifests(kcp, clock, kcp_manifests(gateway_host, port));
  if (configuration_) {
    co_await apply_manifests(kcp, clock, configuration_->sources());
    configuring_.spawn(configuration_->run());
  }
  supporting_.spawn(infrastructure_.run());
  // Parts that start too early recover, but log errors.
  co_await wait_for([this] { return infrastructure_.has_root(); });
  if (manager_) {
    managing_.spawn(run_manager());
    co_await wait_for([this] { return infrastructure_.serves(); });
  }
  if (!settings_.bare) co_await apply_manifests(kcp, clock, sample_watcher());
  for (std::size_t i = 0; i < prepared_at_once; ++i) starting_.spawn(start_runtimes());
}

/// Waits for a condition that should hold soon; bounded, since the start continues without it.
asio::awaitable<void> dev_app::wait_for(std::function<bool()> condition) {
  const auto until = services_.clock.now() + settle_limit;
  const auto pause = services_.clock.make_timer(services_.executor);
  while (!condition() && services_.clock.now() < until) {
    pause->expires_at(services_.clock.now() + poll_interval);
    const bool due = co_await pause->wait();
    if (!due) throw boost::system::system_error(asio::error::operation_aborted);
  }
}

/// One of several workers that each prepare the next runtime.
asio::awaitable<void> dev_app::start_runtimes() {
  auto* const clock = &services_.clock;
  auto* const kcp = &infrastructure_.kcp();
  while (next_runtime_ < nodes_.size()) {
    const auto i = next_runtime_++;
    auto* const api = &nodes_[i]->api();
    if (!hangs(i)) running_.spawn(nodes_[i]->run());
    co_await apply_manifests(api, clock, definitions(), "Kyma");
    co_await apply_manifests(api, clock, runtime_manifests());
    const auto& runtime = clusters_.runtimes()[i];
    if (hangs(i)) clusters_.hang(runtime.name);
    if (configuration_ && !hangs(i)) configuration_->add(*nodes_[i]);
    if (!settings_.bare) {
      auto text = access_manifest(runtime) + "---\n" + kyma_manifest(runtime);
      if (configuration_) text += "---\n" + runtime_manifest(runtime);
      co_await apply_manifests(kcp, clock, text);
    }
    if (++prepared_ == nodes_.size()) say_what_to_try();
  }
}

asio::awaitable<void> dev_app::run_manager() {
  manager_code_ = co_await manager_->run();
  stop();
}

asio::awaitable<int> dev_app::run() {
  core::task_group background(services_.executor, fail_on_exception());
  background.spawn(services_.watchdog.run());
  background.spawn(admin_.run());
  background.spawn(webhook_admin_.run());
  serving_.spawn(clusters_.run());
  log_listening(services_.log, "api-server", clusters_.address());
  log_listening(services_.log, "gateway", infrastructure_.gateway());
  log_listening(services_.log, "dev-admin", admin_.address());
  log_listening(services_.log, "webhook-admin", webhook_admin_.address());
  if (live_) showing_.spawn(live_->run());
  starting_.spawn(start());

  co_await stop_.wait();

  co_await end_table();
  services_.log.info("stopping: no new events, delivering what was accepted");
  const auto end = services_.clock.now() + settings_.drain_timeout;
  co_await end_in_order(end);
  background.cancel();
  co_await background.join();
  rethrow_failure();
  std::size_t lost = 0;
  for (const auto& node : nodes_) lost += node->lost();
  services_.log.info("stopped", {{"undelivered", lost}});
  co_return lost == 0 ? manager_code_ : 1;
}

/// Ends senders before receivers, and the API servers last.
asio::awaitable<void> dev_app::end_in_order(core::time_point end) {
  const auto share = settings_.drain_timeout / 4;
  starting_.cancel();
  co_await starting_.join();
  configuring_.cancel();
  co_await configuring_.join();
  for (const auto& node : nodes_) node->stop();
  co_await join_by(running_, end - 3 * share);
  for (std::size_t i = 0; i < nodes_.size(); ++i) {
    if (hangs(i)) co_await nodes_[i]->api().close();
  }
  if (manager_) manager_->stop();
  co_await join_by(managing_, end - share);
  infrastructure_.drain();
  co_await join_by(supporting_, end - share / 2);
  co_await infrastructure_.kcp().close();
  clusters_.drain();
  co_await join_by(serving_, end);
}

}  // namespace rw::dev
