#include "rw/reactors/dev/infrastructure.hpp"

#include "rw/core/backoff.hpp"
#include "rw/core/task_group.hpp"
#include "rw/k8s/config/config.hpp"
#include "rw/reactors/certificates/rendering.hpp"
#include "rw/reactors/shared/kyma_resources.hpp"

#include <boost/asio/this_coro.hpp>

#include <utility>

namespace rw::dev {

using namespace cli;
namespace {

namespace asio = boost::asio;

k8s::config config_of(const cluster& kcp) {
  auto parsed = k8s::parse_kubeconfig(kcp.kubeconfig, kcp.file, ".");
  if (!parsed) throw setting_error(parsed.error().message);
  return std::move(*parsed);
}

dev_issuer::issuer_options issuer_options_of(const dev_settings& settings) {
  dev_issuer::issuer_options out;
  out.rotate_root_every = settings.rotate_root_every;
  out.rotations = settings.rotations;
  out.delay = settings.issuer_delay;
  return out;
}

dev_gateway::gateway_options gateway_options_of(const dev_settings& settings) {
  dev_gateway::gateway_options out;
  out.address = {asio::ip::address_v4::loopback(), settings.gateway_port};
  out.limits.idle = settings.gateway_idle;
  return out;
}

}  // namespace

infrastructure::infrastructure(services& with, const dev_settings& settings, const cluster& kcp,
                               dev_gateway::service_resolver backends)
    : kcp_(with.executor, config_of(kcp),
           {.name = "dev",
            .user_agent = "runtime-watcher-dev",
            .field_manager = "runtime-watcher-dev"},
           with.for_client()),
      virtual_services_(kcp_, virtual_services_type(), {}, with.for_informer()),
      secrets_(kcp_, secrets_type(), {.objects = {.ns = std::string(istio_namespace)}},
               with.for_informer()),
      certificates_(kcp_, certificates::certificates_type(certificates::issuer_kind::cert_manager),
                    {.objects = {.ns = std::string(istio_namespace)}}, with.for_informer()),
      issuer_(
          with.executor, issuer_options_of(settings), {certificates_, secrets_},
          {kcp_, with.clock, with.watchdog, with.log, with.metrics, core::make_random_source()}),
      gateway_(with.executor, gateway_options_of(settings), {virtual_services_, secrets_},
               {std::move(backends), with.clock, with.watchdog, with.log, with.metrics}) {}

bool infrastructure::has_root() const {
  return static_cast<bool>(secrets_.objects().get(istio_namespace, klm_watcher_name));
}

asio::awaitable<void> infrastructure::run() {
  const auto executor = co_await asio::this_coro::executor;
  co_await asio::this_coro::throw_if_cancelled(false);
  const auto fail = [this](std::exception_ptr thrown) {
    if (!failure_) failure_ = thrown;
    drain();
  };
  core::task_group background(executor, fail);
  core::task_group serving(executor, fail);
  background.spawn(virtual_services_.run());
  background.spawn(secrets_.run());
  background.spawn(certificates_.run());
  background.spawn(issuer_.run());
  serving.spawn(gateway_.run());
  co_await serving.join();
  background.cancel();
  co_await background.join();
  if (failure_) std::rethrow_exception(failure_);
}

}  // namespace rw::dev
