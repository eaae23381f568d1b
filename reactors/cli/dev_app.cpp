#include "reactors/cli/dev_app.hpp"

#include "reactors/cli/certs.hpp"

namespace rw::cli {
namespace {

namespace asio = boost::asio;

constexpr auto runtime_id = "dev-runtime";

asio::awaitable<void> keep_code(asio::awaitable<int> run, int* code) {
  *code = co_await std::move(run);
}

}  // namespace

dev_app::dev_app(services& with, const dev_settings& settings)
    : app(with),
      settings_(settings),
      listener_services_(std::make_unique<services>(with.executor, core::log_level::info)) {
  make_dev_certificates(settings.dir, runtime_id);
  listen_settings listen;
  listen.address = {"127.0.0.1", settings.listen_port};
  listen.component = settings.component;
  listen.tls_cert = settings.dir + "/gateway.crt";
  listen.tls_key = settings.dir + "/gateway.key";
  listen.client_ca = settings.dir + "/ca.crt";
  listener_ = std::make_unique<listen_app>(*listener_services_, listen);

  webhook_settings webhook;
  webhook.bind_address = "127.0.0.1";
  webhook.webhook_port = settings.webhook_port;
  webhook.metrics_port = settings.metrics_port;
  webhook.ca_cert = settings.dir + "/ca.crt";
  webhook.tls_cert = settings.dir + "/webhook.crt";
  webhook.tls_key = settings.dir + "/webhook.key";
  webhook.kcp = {"127.0.0.1", listener_->address().port()};
  webhook_ = std::make_unique<webhook_app>(with, webhook);
}

asio::awaitable<int> dev_app::run() {
  int listener_code = 0;
  int webhook_code = 0;
  core::task_group listener(services_.executor, fail_on_exception());
  core::task_group webhook(services_.executor, fail_on_exception());
  listener.spawn(keep_code(listener_->run(), &listener_code));
  webhook.spawn(keep_code(webhook_->run(), &webhook_code));
  services_.log.info("try it: curl --cacert " + settings_.dir +
                     "/ca.crt -H 'content-type: application/json' --data @REVIEW.json "
                     "https://localhost:" +
                     std::to_string(webhook_->port()) + "/validate/" + settings_.component);
  co_await stop_.wait();
  // The receiver outlives the sender, so that what was accepted arrives.
  webhook_->stop();
  co_await webhook.join();
  listener_->stop();
  co_await listener.join();
  rethrow_failure();
  co_return std::max(listener_code, webhook_code);
}

}  // namespace rw::cli
