#include "reactors/cli/direct_runtimes.hpp"

#include "core/backoff.hpp"
#include "core/task_group.hpp"
#include "reactors/kyma_resources.hpp"
#include "reactors/runtime_rollout/runtime_rollout.hpp"
#include "reactors/trust_bundles_type.hpp"

#include <boost/asio/cancellation_type.hpp>
#include <boost/asio/error.hpp>
#include <boost/asio/this_coro.hpp>
#include <boost/system/system_error.hpp>

#include <utility>

namespace rw::cli {
namespace {

namespace asio = boost::asio;

constexpr std::chrono::minutes ask_again(1);  // whether ClusterTrustBundles are served

k8s::informer_options of_kcp(std::string labels = {}) {
  return {.what = {.ns = std::string(kcp_namespace), .labels = std::move(labels)}};
}

}  // namespace

/// As long as ClusterTrustBundles are served in one way.
class direct_runtimes::term {
 public:
  term(direct_runtimes& of, const bundles_type& bundles)
      : bootstrappers_(of.in_.watching, bootstrapper::runtime_bootstrappers_type(), of_kcp(),
                       environment(of.services_)),
        rollouts_(of.in_.watching, runtime_rollout::runtime_rollouts_type(), of_kcp(),
                  environment(of.services_)),
        config_maps_(of.in_.watching, config_maps_type(), of_kcp(), environment(of.services_)),
        // Kubeconfigs, of which there are thousands, are watched apart from the others.
        secrets_(of.in_.watching, secrets_type(), of_kcp("!" + std::string(kyma_name_label)),
                 environment(of.services_)) {
    if (bundles) {
      bundles_.emplace(of.in_.watching, *bundles, k8s::informer_options{},
                       environment(of.services_));
    }
    rollout_.emplace(
        of.services_.executor, runtime_rollout::options{.usual = of.settings_.rollout},
        runtime_rollout::environment{of.in_.writing,
                                     rollouts_,
                                     bootstrappers_,
                                     of.in_.runtimes,
                                     of.in_.events,
                                     {of.services_.clock, of.services_.watchdog, of.services_.log,
                                      of.services_.metrics, core::make_random_source()}});
    reactor_.emplace(
        of.services_.executor, of.options(),
        bootstrapper::sources{bootstrappers_, of.in_.runtimes, of.in_.kubeconfigs, config_maps_,
                              secrets_, bundles_ ? &*bundles_ : nullptr},
        bootstrapper::environment{of.in_.writing, of.in_.pool, of.in_.events, of.services_.clock,
                                  of.services_.watchdog, of.services_.log, of.services_.metrics,
                                  core::make_random_source()},
        &*rollout_);
  }
  term(const term&) = delete;
  term& operator=(const term&) = delete;

  void begin(core::task_group& tasks) {
    for (auto* const each : {&bootstrappers_, &rollouts_, &config_maps_, &secrets_}) {
      tasks.spawn(each->run());
    }
    if (bundles_) tasks.spawn(bundles_->run());
    tasks.spawn(rollout_->run());
    tasks.spawn(reactor_->run());
  }

 private:
  static k8s::informer_environment environment(services& with) {
    return {with.clock, with.log, with.metrics, core::make_random_source()};
  }

  k8s::informer bootstrappers_;
  k8s::informer rollouts_;
  k8s::informer config_maps_;
  k8s::informer secrets_;
  std::optional<k8s::informer> bundles_;
  std::optional<runtime_rollout::runtime_rollout> rollout_;
  std::optional<bootstrapper::direct_sync> reactor_;
};

direct_runtimes::direct_runtimes(services& with, const runtime_config_settings& settings,
                                 environment in)
    : services_(with), settings_(settings), in_(in) {}

direct_runtimes::~direct_runtimes() = default;

bootstrapper::options direct_runtimes::options() const {
  bootstrapper::options out;
  out.defaults = settings_.sources;
  out.mode = settings_.mode;
  out.create_for_runtimes = settings_.create_bootstrappers;
  out.allow_inline_manifests = settings_.allow_inline_manifests;
  out.state_namespace = settings_.state_namespace;
  out.watch_runtimes = settings_.watch_runtimes;
  out.concurrent = settings_.concurrent;
  out.trust_at_once = settings_.trust_at_once;
  return out;
}

asio::awaitable<void> direct_runtimes::pause(core::duration by) {
  const auto alarm = services_.clock.make_timer(services_.executor);
  alarm->expires_at(services_.clock.now() + by);
  co_await alarm->wait();
}

asio::awaitable<direct_runtimes::bundles_type> direct_runtimes::find_bundles() {
  core::backoff backoff(std::chrono::seconds(1), std::chrono::seconds(30),
                        core::make_random_source());
  for (;;) {
    auto found = co_await find_trust_bundles(in_.watching);
    if (found) co_return std::move(*found);
    services_.log.limited(log_limit_, core::log_level::warning,
                          "it can't be found out whether ClusterTrustBundles are served; runtimes "
                          "are written to when that is known",
                          {{"error", found.error().message}});
    co_await pause(backoff.next());
  }
}

/// Ends `all` when ClusterTrustBundles are another resource than `present`. Where they are not
/// served any more, what is known of them stands.
asio::awaitable<void> direct_runtimes::end_with_another(core::task_group* all,
                                                        const bundles_type* present) {
  for (;;) {
    co_await pause(ask_again);
    const auto found = co_await find_trust_bundles(in_.watching);
    if (found && *found && *found != *present) co_return all->cancel();
  }
}

asio::awaitable<void> direct_runtimes::lead() {
  const auto cancellation = co_await asio::this_coro::cancellation_state;
  const auto cancelled = [&] { return cancellation.cancelled() != asio::cancellation_type::none; };
  for (;;) {
    const auto bundles = co_await find_bundles();
    services_.log.info("runtimes can be written to directly",
                       {{"trustBundles", bundles ? bundles->gvk.api_version() : "not served"}});
    term now(*this, bundles);
    core::task_group tasks(services_.executor);
    // From here on the tasks have to be joined, also where the cancellation came together with what
    // was waited for last.
    co_await asio::this_coro::throw_if_cancelled(false);
    now.begin(tasks);
    tasks.spawn(end_with_another(&tasks, &bundles));
    if (cancelled()) tasks.cancel();
    co_await tasks.join();
    co_await asio::this_coro::throw_if_cancelled(true);
    if (cancelled()) throw boost::system::system_error(asio::error::operation_aborted);
  }
}

}  // namespace rw::cli
