#include "tests/simulation/control_plane.hpp"

#include "rw/reactors/shared/resync.hpp"
#include "rw/tls/issuer.hpp"

#include "tests/simulation/runtime.hpp"
#include <utility>

namespace rw::simulation {
namespace {

namespace asio = boost::asio;

constexpr std::uint16_t first_listener = 9001;
constexpr auto late_answer = seconds(8);
const k8s::object_key kyma{"kcp-system", "runtime-1"};

/// What the gateway says of the runtime's client certificate.
const std::string& client_certificate() {
  static const auto header = [] {
    // Long enough for each step of the wall clock.
    constexpr auto years = std::chrono::hours(24 * 3650);
    const auto made = tls::issuer::create({.common_name = "runtime-1",
                                           .not_before = std::chrono::system_clock::now() - years,
                                           .validity = 2 * years});
    std::string text = "Cert=\"";
    for (const char each : made->certificate_pem()) {
      static constexpr std::string_view digits = "0123456789ABCDEF";
      const auto byte = static_cast<unsigned char>(each);
      text += {'%', digits[byte >> 4], digits[byte & 15]};
    }
    return text + '"';
  }();
  return header;
}

http::client_options listener_client(const std::string& manager, std::uint16_t port) {
  http::client_options options;
  options.name = manager;
  options.host = "127.0.0.1";
  options.port = port;
  options.limits.connections = 8;
  return options;
}

}  // namespace

/// A manager's listener, and the gateway's connections to it.
struct control_plane::component {
  component(control_plane& of, const std::string& named, std::uint16_t port)
      : manager(named),
        registered(
            listener::register_component(of.in_.executor(), of.listener_of(named, port),
                                         {of.in_.clock, of.in_.watchdog, of.in_.log, of.metrics_})),
        client(of.in_.executor(), listener_client(named, port),
               {*of.inside_, of.in_.watchdog, of.in_.log, of.metrics_}) {}

  const std::string manager;
  listener::registration registered;
  http::client client;
};

listener::listener_options control_plane::listener_of(const std::string& manager,
                                                      std::uint16_t port) {
  listener::listener_options options;
  options.address = {asio::ip::address_v4::loopback(), port};
  options.component = manager;
  options.takes_events = [&away = now.away[manager]] { return !away; };
  options.trusted_proxies = "::/0";
  options.resyncs = !without_resyncs_.contains(manager);
  if (manager == heartbeat_component) options.heartbeats = heartbeats_;
  return options;
}

control_plane::control_plane(environment& in, history& told,
                             const std::vector<std::string>& managers,
                             const std::set<std::string>& without_resyncs, bool http2)
    : in_(in),
      history_(told),
      without_resyncs_(without_resyncs),
      outside_(make_transport(http2)),
      gateway_(in.executor(),
               {"gateway", {asio::ip::address_v4::loopback(), runtime::gateway_port}, {}}, *this,
               {*outside_, in.watchdog, in.log, metrics_}),
      tasks_(in.executor()) {
  auto port = first_listener;
  for (const auto& manager : managers) {
    auto& made = components_[manager];
    made = std::make_unique<component>(*this, manager, port++);
    tasks_.spawn(made->registered.runnable->run());
    tasks_.spawn(receive(made.get()));
  }
  fleet_.listen({in_.now() - seconds(1), in_.clock.wall()});
  tasks_.spawn(receive_heartbeats());
  tasks_.spawn(gateway_.run());
  fleet_.expect(kyma, moment());
}

control_plane::~control_plane() {
  in_.finish(tasks_);
  core::task_group last(in_.executor());
  last.spawn(close_clients());
  in_.settle();
  in_.finish(last);
}

asio::awaitable<void> control_plane::close_clients() {
  for (const auto& [manager, each] : components_) co_await each->client.close();
}

asio::awaitable<void> control_plane::receive(component* of) {
  for (;;) {
    const auto got = co_await of->registered.events->receive();
    if (got.has_error()) co_return;
    if (got->runtime_id != "runtime-1") history_.violate("a sender has another's name");
    // What an operator takes while it ends is gone with it.
    if (now.away[of->manager]) continue;
    if (got->resync) {
      history_.told(of->manager, *got->resync);
    } else {
      history_.told(got->event);
    }
  }
}

asio::awaitable<void> control_plane::receive_heartbeats() {
  for (;;) {
    const auto got = co_await heartbeats_->receive();
    if (got.has_error()) co_return;
    if (got->runtime_id != "runtime-1") history_.violate("a heartbeat has another's name");
    if (!fleet_.accepts(kyma, got->content, moment())) continue;
    const auto lost = fleet_.receive(kyma, got->content, moment()).lost;
    in_.note("heartbeat " + std::to_string(got->content.sequence) +
             (lost ? ": " + lost.message() : ""));
  }
}

const heartbeats::runtime_health& control_plane::health() {
  fleet_.poll(moment(), [this](const heartbeats::fleet_health::change& change) {
    in_.note("runtime is " + std::string(to_string(change.now.state)));
  });
  return *fleet_.find(kyma);
}

asio::awaitable<void> control_plane::handle(http::request& from, http::response& into) {
  if (now.failing != 0) {
    into.text(now.failing, "simulated");
    return {};
  }
  // "/v2/<manager>/event", and what begins so, as the VirtualService matches.
  const auto begin = from.target.find('/', 1) + 1;
  const auto manager = from.target.substr(begin, from.target.find('/', begin) - begin);
  const auto at = components_.find(manager);
  if (at == components_.end()) {
    into.text(404, "no route");
    return {};
  }
  const bool is_resync = !from.headers.get(resync_header).empty();
  if (is_resync && now.portal) return {};
  const auto refused = now.refusals.find(manager);
  if (refused != now.refusals.end() && from.body.find(refused->second.part) != std::string::npos) {
    // A listener splits what it refuses in part, here the sender does.
    const bool is_batch = from.body.starts_with('[') && !refused->second.part.empty();
    into.text(is_batch ? 400 : refused->second.status, "refused");
    return {};
  }
  return forward(&from, &into, at->second.get());
}

asio::awaitable<void> control_plane::forward(http::request* from, http::response* into,
                                             component* to) {
  http::request request;
  request.method = from->method;
  request.target = from->target;
  request.body = from->body;
  request.headers.add("content-type", from->headers.get("content-type"));
  request.headers.add("x-forwarded-client-cert", client_certificate());
  const auto reason = from->headers.get(resync_header);
  if (!reason.empty()) request.headers.add(resync_header, reason);
  http::client_slot slot;
  auto error = co_await to->client.acquire(slot);
  http::response answer;
  if (!error) error = co_await slot.exchange(request, answer);
  // An operator may have read everything long before its answer is back.
  if (!reason.empty()) co_await in_.sleep(in_.chance.up_to(late_answer));
  // As Envoy answers for an upstream that it cannot reach.
  if (error) co_return into->text(503, "upstream connect error");
  into->status = answer.status;
  into->body = std::move(answer.body);
  for (std::size_t i = 0; i < answer.headers.size(); ++i) {
    const auto [name, value] = answer.headers[i];
    const bool passes = name == batch_offer_header || name == resync_header;
    if (passes || name == "retry-after") into->headers.add(name, value);
  }
}

}  // namespace rw::simulation
