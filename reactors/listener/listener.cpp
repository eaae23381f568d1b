#include "reactors/listener/listener.hpp"

#include "core/metrics.hpp"
#include "tls/transport.hpp"

#include <algorithm>
#include <atomic>
#include <stdexcept>

namespace rw::listener {
namespace {

namespace asio = boost::asio;

constexpr std::size_t event_limit = 16 * 1024;
constexpr std::size_t batch_limit = 1 << 20;
constexpr std::size_t batch_events = 512;

struct counters {
  explicit counters(core::metrics& r)
      : registry(r),
        requests(core::make_counter(r, "watcher_listener_requests_total",
                                    "Requests to the listener", server())),
        errors(core::make_counter(r, "watcher_listener_request_errors_total",
                                  "Requests that were not answered with success", server())),
        in_flight(core::make_gauge(r, "watcher_listener_inflight_requests",
                                   "Requests that are being answered", server())),
        duration(core::make_histogram(r, "watcher_listener_request_duration",
                                      "Seconds from the whole request to its answer", server(),
                                      core::latency_bounds())),
        too_large(core::make_counter(r, "watcher_listener_exceeding_size_limit_requests_total",
                                     "Requests that were too large", server())) {}

  static core::labels server() { return {{"server_name", "listener"}}; }
  core::counter& refused_by_verify(const std::string& path) {
    return core::make_counter(registry, "watcher_listener_failed_verification_requests_total",
                              "Events that the verify function refused",
                              {{"server_name", "listener"}, {"request_uri_label", path}});
  }

  core::metrics& registry;
  core::counter& requests;
  core::counter& errors;
  core::gauge& in_flight;
  core::histogram& duration;
  core::counter& too_large;
};

/// What a path asks for.
struct route {
  rw::contract contract = rw::contract::v2;
  bool batch = false;
};

/// False if the path is none of this component's.
bool find_route(std::string_view target, std::string_view component, route& into) {
  target = target.substr(0, target.find('?'));
  if (!target.starts_with('/')) return false;
  target.remove_prefix(1);
  const auto slash = target.find('/');
  if (!parse_contract(target.substr(0, slash), into.contract)) return false;
  target.remove_prefix(std::min(slash, target.size()));
  const auto rest = target.substr(std::min<std::size_t>(1, target.size()));
  if (!rest.starts_with(component)) return false;
  const auto form = rest.substr(component.size());
  into.batch = form == "/events";
  return into.batch || form == "/event";
}

}  // namespace

/// Answers the listener's requests.
class listener::endpoint final : public http::handler {
 public:
  endpoint(const listener_options& options, std::shared_ptr<core::channel<received_event>> events,
           const listener_environment& environment)
      : component_(options.component),
        verify_(options.verify),
        wait_(options.wait),
        events_(std::move(events)),
        environment_(environment),
        identifier_({options.tls != nullptr, network_list::parse(options.trusted_proxies),
                     options.client_ca},
                    environment.clock),
        counters_(environment.metrics) {}

  std::size_t body_limit(const http::request& head) const override {
    route where;
    const bool batch = find_route(head.target, component_, where) && where.batch;
    return batch ? batch_limit : event_limit;
  }

  void refused(unsigned status) noexcept override {
    counters_.requests.Increment();
    counters_.errors.Increment();
    if (status == 413) counters_.too_large.Increment();
  }

  asio::awaitable<void> handle(http::request& from, http::response& into) override;

 private:
  /// One element of a request on its way into the channel.
  struct element {
    received_event event;
    unsigned status = 200;
  };

  asio::awaitable<void> receive(const http::request& from, http::response& into);
  bool read(const http::request& from, const route& where, std::vector<element>& into,
            http::response& error) const;
  core::send_status take(received_event& event);
  void tell(const received_event& event);
  unsigned judge(const http::request& from, const watch_event& event, const sender& who,
                 const route& where);
  asio::awaitable<void> wait_for_room(std::vector<element> elements, bool batch,
                                      http::response* into);
  void answer(const std::vector<element>& elements, bool batch, http::response& into);
  void finish(core::time_point start, const http::response& into);
  asio::awaitable<void> finish_later(asio::awaitable<void> rest, core::time_point start,
                                     http::response* into);
  void refuse(http::response& into, unsigned status, std::string_view reason,
              const http::request& from);

  const std::string component_;
  const verify_function verify_;
  const std::chrono::milliseconds wait_;
  const std::shared_ptr<core::channel<received_event>> events_;
  const listener_environment environment_;
  identifier identifier_;
  counters counters_;
  core::log_limit refusal_log_;
};

asio::awaitable<void> listener::endpoint::handle(http::request& from, http::response& into) {
  const auto start = environment_.clock.now();
  counters_.requests.Increment();
  counters_.in_flight.Increment();
  auto rest = receive(from, into);
  if (rest.valid()) return finish_later(std::move(rest), start, &into);
  finish(start, into);
  return {};
}

asio::awaitable<void> listener::endpoint::finish_later(asio::awaitable<void> rest,
                                                       core::time_point start,
                                                       http::response* into) {
  co_await std::move(rest);
  finish(start, *into);
}

void listener::endpoint::finish(core::time_point start, const http::response& into) {
  counters_.in_flight.Decrement();
  if (into.status >= 300) counters_.errors.Increment();
  const std::chrono::duration<double> took = environment_.clock.now() - start;
  counters_.duration.Observe(took.count());
}

void listener::endpoint::refuse(http::response& into, unsigned status, std::string_view reason,
                                const http::request& from) {
  into.text(status, reason);
  environment_.log.limited(refusal_log_, core::log_level::warning, "request refused",
                           {{"status", std::uint64_t{status}},
                            {"reason", reason},
                            {"path", from.target},
                            {"peer", from.peer.address.address().to_string()}});
}

asio::awaitable<void> listener::endpoint::receive(const http::request& from, http::response& into) {
  route where;
  if (!find_route(from.target, component_, where)) {
    refuse(into, 404, "not found: events are taken at /v2/" + component_ + "/event", from);
    return {};
  }
  if (from.method != "POST") {
    into.headers.add("allow", "POST");
    refuse(into, 405, "events are taken with POST", from);
    return {};
  }
  const auto who = identifier_.identify(from);
  if (who.has_error()) {
    const bool nameless = who.error() == identity_error::nameless;
    refuse(into, nameless ? 400 : 401, who.error().message(), from);
    return {};
  }
  std::vector<element> elements;
  if (!read(from, where, elements, into)) return {};
  bool full = false;
  for (auto& one : elements) {
    if (one.status == 200) one.status = judge(from, one.event.event, **who, where);
    if (one.status != 200) continue;
    one.event.contract = where.contract;
    one.event.runtime_id = (*who)->runtime_id;
    one.event.event.manager = component_;
    const auto sent = full ? core::send_status::full : take(one.event);
    full = sent == core::send_status::full;
    if (sent != core::send_status::sent) one.status = 503;
  }
  if (full) return wait_for_room(std::move(elements), where.batch, &into);
  answer(elements, where.batch, into);
  return {};
}

/// Into the channel, if there is room; that is told in the log before the sender hears of it.
core::send_status listener::endpoint::take(received_event& event) {
  if (!environment_.log.enabled(core::log_level::debug)) return events_->try_send(event);
  const auto copy = event;
  const auto sent = events_->try_send(event);
  if (sent == core::send_status::sent) tell(copy);
  return sent;
}

void listener::endpoint::tell(const received_event& event) {
  if (!environment_.log.enabled(core::log_level::debug)) return;
  environment_.log.debug("event taken", {{"runtime_id", event.runtime_id},
                                         {"kind", event.event.gvk.kind},
                                         {"namespace", event.event.watched.ns},
                                         {"name", event.event.watched.name}});
}

/// Reads the body. False: the request as a whole was refused.
bool listener::endpoint::read(const http::request& from, const route& where,
                              std::vector<element>& into, http::response& error) const {
  if (!where.batch) {
    auto event = parse_wire_event(from.body, where.contract);
    if (event.has_error()) {
      error.text(400, event.error().message());
      return false;
    }
    into.emplace_back().event.event = std::move(*event);
    return true;
  }
  auto events = parse_wire_batch(from.body, where.contract, batch_events);
  if (events.has_error()) {
    const bool too_many = events.error() == make_error_code(wire_error::too_many_events);
    error.text(too_many ? 413 : 400, events.error().message());
    return false;
  }
  into.reserve(events->size());
  for (auto& event : *events) {
    auto& one = into.emplace_back();
    if (event.has_error()) {
      one.status = 400;
    } else {
      one.event.event = std::move(*event);
    }
  }
  return true;
}

unsigned listener::endpoint::judge(const http::request& from, const watch_event& event,
                                   const sender& who, const route& where) {
  if (!verify_ || verify_(from, event, who)) return 200;
  const auto path = "/" + std::string(to_string(where.contract)) + "/" + component_ +
                    (where.batch ? "/events" : "/event");
  counters_.refused_by_verify(path).Increment();
  environment_.log.limited(refusal_log_, core::log_level::warning, "event refused by verification",
                           {{"runtime_id", who.runtime_id},
                            {"namespace", event.watched.ns},
                            {"name", event.watched.name}});
  return 403;
}

asio::awaitable<void> listener::endpoint::wait_for_room(std::vector<element> elements, bool batch,
                                                        http::response* into) {
  const auto until = environment_.clock.now() + wait_;
  for (auto& one : elements) {
    if (one.status != 503) continue;
    auto copy = one.event;
    const auto error = co_await events_->send_until(std::move(copy), until);
    if (error) break;
    tell(one.event);
    one.status = 200;
  }
  answer(elements, batch, *into);
}

void listener::endpoint::answer(const std::vector<element>& elements, bool batch,
                                http::response& into) {
  into.headers.add(batch_offer_header, std::to_string(batch_events));
  const auto failed = [](const element& one) { return one.status != 200; };
  const auto failures = std::ranges::count_if(elements, failed);
  if (std::ranges::any_of(elements, [](const element& one) { return one.status == 503; })) {
    into.headers.add("retry-after", "1");
  }
  if (failures == 0) return;
  if (!batch) {
    const auto status = elements.front().status;
    into.text(status, status == 503 ? "the queue is full; come again" : "the event was refused");
    return;
  }
  into.status = 207;
  into.headers.add("content-type", "application/json");
  for (std::size_t i = 0; i < elements.size(); ++i) {
    if (!failed(elements[i])) continue;
    into.body += into.body.empty() ? "[" : ",";
    into.body += R"({"index":)" + std::to_string(i) + R"(,"status":)" +
                 std::to_string(elements[i].status) + '}';
  }
  into.body += ']';
}

http::server_limits listener_options::default_limits() {
  http::server_limits limits;
  limits.handshakes = 4096;    // all come back at once when the listener was restarted
  limits.connections = 16384;  // each of thousands of runtimes has one, where no gateway joins them
  limits.header_bytes = 64 * 1024;  // an X-Forwarded-Client-Cert may have 32 KiB
  return limits;
}

listener::listener(asio::any_io_executor executor, listener_options options,
                   std::shared_ptr<core::channel<received_event>> events,
                   listener_environment environment)
    : endpoint_(std::make_unique<endpoint>(options, events, environment)),
      events_(std::move(events)) {
  if (options.component.empty()) throw std::runtime_error("a listener needs a component's name");
  if (options.tls) {
    tls::server_options server;
    server.require_client_certificate = true;
    auto made = tls::make_server_transport(options.tls, server);
    if (made.has_error()) throw std::runtime_error("listener: " + made.error().message());
    transport_ = std::move(*made);
  } else {
    transport_ = core::make_plain_transport();
  }
  server_ = std::make_unique<http::server>(
      executor, http::server_options{"listener", options.address, options.limits}, *endpoint_,
      http::server_environment{*transport_, environment.watchdog, environment.log,
                               environment.metrics});
}

listener::~listener() = default;
asio::ip::tcp::endpoint listener::address() const {
  return server_->address();
}
void listener::drain() {
  server_->drain();
}

asio::awaitable<void> listener::run() {
  std::exception_ptr failure;
  try {
    co_await server_->run();
  } catch (...) {
    failure = std::current_exception();
  }
  events_->close();
  if (failure) std::rethrow_exception(failure);
}

registration register_component(asio::any_io_executor executor, listener_options options,
                                listener_environment environment) {
  auto events = std::make_shared<core::channel<received_event>>(options.channel_capacity);
  auto runnable =
      std::make_unique<listener>(std::move(executor), std::move(options), events, environment);
  return {std::move(runnable), std::move(events)};
}

}  // namespace rw::listener
