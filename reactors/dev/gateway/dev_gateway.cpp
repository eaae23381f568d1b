#include "rw/reactors/dev/gateway/dev_gateway.hpp"

#include "rw/core/lru_map.hpp"
#include "rw/core/task_group.hpp"
#include "rw/core/wake.hpp"
#include "rw/k8s/objects/types.hpp"
#include "rw/reactors/dev/gateway/backends.hpp"
#include "rw/reactors/dev/gateway/forwarding.hpp"
#include "rw/reactors/dev/gateway/handshakes.hpp"
#include "rw/reactors/dev/gateway/routes.hpp"
#include "rw/reactors/shared/trust_bundle.hpp"
#include "rw/tls/material.hpp"
#include "rw/tls/transport.hpp"
#include "rw/tls/xfcc.hpp"

#include <boost/asio/post.hpp>
#include <boost/asio/this_coro.hpp>

#include <exception>
#include <utility>

namespace rw::dev_gateway {
namespace {

namespace asio = boost::asio;

constexpr unsigned tries = 3;          // backends tried for one request
constexpr std::size_t clients = 4096;  // clients whose header is cached

backend_limits limits_of(const gateway_options& with) {
  backend_limits out{.client = {}, .backends = with.backends};
  out.client.connections = with.connections;
  out.client.body_bytes = with.answer_bytes;
  out.client.connect = with.connect;
  out.client.exchange = with.exchange;
  return out;
}

/// Parses the Secret; the failure names the entry.
tls::result<tls::material> material_of(const boost::json::value& secret) {
  const auto text = [&](std::string_view entry) {
    return k8s::secret_data(secret, entry).value_or(std::string());
  };
  const tls::material_text all{text(certificate_entry), text(key_entry), text(authorities_entry)};
  if (all.certificate.empty() || all.key.empty() || all.ca.empty()) {
    return tls::failure(tls::error::missing_material, "tls.crt, tls.key or ca.crt is missing");
  }
  return tls::material::from_text(all, {std::string(certificate_entry), std::string(key_entry),
                                        std::string(authorities_entry)});
}

}  // namespace

class gateway::implementation final : public http::handler,
                                      public std::enable_shared_from_this<implementation> {
 public:
  implementation(asio::any_io_executor executor, gateway_options with, gateway_sources from,
                 gateway_environment in)
      : executor_(executor),
        options_(std::move(with)),
        sources_(from),
        environment_(std::move(in)),
        handshakes_(environment_.metrics),
        transport_(handshakes_),
        server_(executor, {"dev-gateway", options_.address, options_.limits}, *this,
                {transport_, environment_.watchdog, environment_.log, environment_.metrics}),
        backends_(executor, limits_of(options_),
                  {environment_.watchdog, environment_.log, environment_.metrics}),
        ready_(executor),
        routes_gauge_(core::make_gauge(environment_.metrics, "rw_dev_gateway_routes",
                                       "Number of path prefixes that requests are routed by")),
        changes_(core::make_counter(environment_.metrics,
                                    "rw_dev_gateway_certificate_changes_total",
                                    "Number of replacements of certificate, key or client CAs")),
        failures_(core::make_counter(environment_.metrics,
                                     "rw_dev_gateway_certificate_failures_total",
                                     "Number of unusable states of the gateway's Secret")) {}

  asio::ip::tcp::endpoint address() const { return server_.address(); }
  asio::awaitable<void> run();
  void drain();
  std::string certificate() const;

  std::size_t body_limit(const http::request&) const override { return options_.request_bytes; }
  void refused(unsigned status) noexcept override { count(status); }
  asio::awaitable<void> handle(http::request& from, http::response& into) override {
    return answer(&from, &into);
  }

 private:
  asio::awaitable<void> serve();
  asio::awaitable<void> follow_secret();
  asio::awaitable<void> follow_routes();
  void use(const k8s::object& secret);
  void refuse(const std::string& reason);

  asio::awaitable<void> answer(const http::request* from, http::response* into);
  asio::awaitable<void> forward(const http::request* from, service_port to, http::response* into);
  const std::string& xfcc(const http::request& from);
  void give_up(http::response& into, unsigned status, std::string_view reason,
               const http::request& from);
  void count(unsigned status) noexcept;

  const asio::any_io_executor executor_;
  const gateway_options options_;
  const gateway_sources sources_;
  const gateway_environment environment_;
  handshake_counters handshakes_;
  counting_transport transport_;
  http::server server_;
  backends backends_;
  route_table routes_;
  std::shared_ptr<tls::credentials> own_;  ///< null before the first usable Secret
  core::wake ready_;                       ///< set once there is material, or at the end
  bool draining_ = false;
  core::lru_map<std::string, std::string> xfcc_{clients};  ///< by the client's certificate, DER
  core::gauge& routes_gauge_;
  core::counter& changes_;
  core::counter& failures_;
  core::log_limit failure_log_;
};

asio::awaitable<void> gateway::implementation::run() {
  core::task_group followers(executor_);
  followers.spawn(follow_secret());
  followers.spawn(follow_routes());
  std::exception_ptr failure;
  try {
    co_await serve();
  } catch (...) {
    failure = std::current_exception();
  }
  co_await asio::this_coro::throw_if_cancelled(false);
  followers.cancel();
  co_await followers.join();
  co_await backends_.close();
  if (failure) std::rethrow_exception(failure);
}

/// Begins to serve once there is material. Earlier connections wait in the system's queue.
asio::awaitable<void> gateway::implementation::serve() {
  if (!own_ && !draining_) {
    const auto cancelled = co_await ready_.wait();
    if (cancelled) co_return;
  }
  if (own_ && !draining_) co_await server_.run();
}

void gateway::implementation::drain() {
  server_.drain();
  asio::post(executor_, [weak = weak_from_this()] {
    const auto self = weak.lock();
    if (!self) return;
    self->draining_ = true;
    self->ready_.set();
  });
}

asio::awaitable<void> gateway::implementation::follow_secret() {
  const auto changes = sources_.secrets.subscribe();
  for (;;) {
    const auto got = co_await changes->receive();
    if (got.has_error()) co_return;
    if (got->latest().key() != options_.secret) continue;
    if (got->now) {
      use(got->now);
    } else {
      refuse("it was deleted");
    }
  }
}

void gateway::implementation::use(const k8s::object& secret) {
  auto made = material_of(secret.parse());
  if (!made) return refuse(made.error().message());
  if (own_ && own_->current()->digest() == made->digest()) return;
  const auto fingerprint = made->leaf()->fingerprint();
  const auto authorities = made->ca()->anchors().size();
  if (own_) {
    own_->replace(std::move(*made));
  } else {
    auto own = std::make_shared<tls::credentials>(std::move(*made));
    auto transport = tls::make_server_transport(own, {.require_client_certificate = true});
    if (!transport) return refuse(transport.error().message());
    transport_.use(std::move(*transport));
    own_ = std::move(own);
    ready_.set();
  }
  changes_.Increment();
  environment_.log.info("gateway: certificate in use",
                        {{"fingerprint", fingerprint}, {"client_authorities", authorities}});
}

void gateway::implementation::refuse(const std::string& reason) {
  failures_.Increment();
  environment_.log.error(
      own_ ? "gateway: the Secret cannot be used; what was there before stays in use"
           : "gateway: the Secret cannot be used; connections wait",
      {{"secret", to_string(options_.secret)}, {"error", reason}});
}

std::string gateway::implementation::certificate() const {
  return own_ ? own_->current()->leaf()->fingerprint() : std::string();
}

asio::awaitable<void> gateway::implementation::follow_routes() {
  const auto changes = sources_.virtual_services.subscribe();
  for (;;) {
    const auto got = co_await changes->receive();
    if (got.has_error()) co_return;
    if (got->now) {
      routes_.put(got->now.key(), got->now.parse());
    } else {
      routes_.erase(got->latest().key());
    }
    routes_gauge_.Set(static_cast<double>(routes_.size()));
  }
}

asio::awaitable<void> gateway::implementation::answer(const http::request* from,
                                                      http::response* into) {
  const auto* const found = routes_.find(from->headers.get("host"), from->target);
  if (found == nullptr) {
    give_up(*into, 404, "no VirtualService routes this path", *from);
  } else {
    co_await forward(from, *found, into);
  }
  count(into->status);
}

asio::awaitable<void> gateway::implementation::forward(const http::request* from, service_port to,
                                                       http::response* into) {
  http::request request;
  forward_request(*from, xfcc(*from), request);
  http::response got;
  std::optional<asio::ip::tcp::endpoint> avoided;
  bool any = false;
  bool busy = false;  // the backend returned 503, which is in `into`
  for (unsigned i = 0; i < tries; ++i) {
    const auto at = environment_.services(to);
    if (!at || at == avoided) break;
    any = true;
    got.clear();
    const auto outcome = co_await backends_.exchange(*at, &request, &got);
    if (!outcome.error) {
      into->clear();
      forward_answer(got, *into);
      busy = got.status == 503;
      if (!busy) co_return;
    }
    // Another backend may serve a request that this one did not process, or has no room for, as in
    // Istio.
    avoided.reset();
    if (!outcome.connected || busy) avoided = at;
    // Events may be sent twice, so a request on a kept connection that the backend closed is
    // repeated.
    if (!outcome.error || !outcome.connected ||
        outcome.error == http::client_error::not_processed ||
        outcome.error == http::client_error::reused_connection_closed) {
      continue;
    }
    const bool late = outcome.error == http::client_error::timed_out;
    into->clear();
    give_up(*into, late ? 504 : 502,
            late ? "the backend did not respond in time" : "the backend broke off", *from);
    co_return;
  }
  if (busy) co_return;
  give_up(*into, 503, any ? "the backend cannot be reached" : "the Service has no backend", *from);
}

const std::string& gateway::implementation::xfcc(const http::request& from) {
  const std::string der(from.peer.certificate);
  if (const auto* known = xfcc_.find(der)) return *known;
  const auto client = tls::certificate::from_der(der);
  // TLS has verified the certificate, so it parses; otherwise the backend gets no client name.
  return xfcc_.use(der, client ? tls::xfcc_of(*client, own_->current()->leaf()->uris()) : "");
}

void gateway::implementation::give_up(http::response& into, unsigned status,
                                      std::string_view reason, const http::request& from) {
  into.text(status, reason);
  environment_.log.limited(failure_log_, core::log_level::warning, "gateway: request not forwarded",
                           {{"target", from.target}, {"status", status}, {"reason", reason}});
}

void gateway::implementation::count(unsigned status) noexcept {
  core::make_counter(environment_.metrics, "rw_dev_gateway_requests_total",
                     "Number of requests, by the status of the response",
                     {{"code", std::to_string(status)}})
      .Increment();
}

gateway::gateway(asio::any_io_executor executor, gateway_options with, gateway_sources from,
                 gateway_environment in)
    : impl_(std::make_shared<implementation>(std::move(executor), std::move(with), from,
                                             std::move(in))) {}

gateway::~gateway() = default;

asio::ip::tcp::endpoint gateway::address() const {
  return impl_->address();
}

asio::awaitable<void> gateway::run() {
  return impl_->run();
}

void gateway::drain() {
  impl_->drain();
}

std::string gateway::certificate() const {
  return impl_->certificate();
}

}  // namespace rw::dev_gateway
