#include "rw/reactors/intake/listener.hpp"

#include "rw/core/text.hpp"
#include "rw/reactors/intake/listener_counters.hpp"
#include "rw/reactors/intake/route.hpp"
#include "rw/reactors/shared/most_runtimes.hpp"
#include "rw/tls/transport.hpp"

#include <boost/asio/post.hpp>

#include <algorithm>
#include <stdexcept>
#include <utility>

namespace rw::listener {
namespace {

namespace asio = boost::asio;

constexpr std::size_t event_limit = 16 * 1024;
constexpr std::size_t batch_limit = 1 << 20;
constexpr std::size_t batch_events = 512;
constexpr std::size_t max_logged = 256;  // bytes of a path

struct decrement {
  void operator()(core::gauge* gauge) const { gauge->Decrement(); }
};

bool is_heartbeat_type(const http::request& from) {
  const auto type = from.headers.get("content-type");
  return core::iequals(type.substr(0, type.find(';')), heartbeat_media_type);
}

constexpr std::string_view full_queue = "the queue is full; come again";
constexpr std::string_view closed_channel = "events are no longer taken";
constexpr std::string_view full_share = "this runtime's part of the queue is full; come again";

}  // namespace

/// One event of a request, with the status of its response.
struct listener::element {
  watch_event* event = nullptr;  ///< in the exchange's, if it could be read
  unsigned status = 200;
  std::string_view reason = {};  ///< of another status; static storage
};

/// A request under way. Its destructor ends it, even if the connection is closed first.
struct listener::exchange {
  const http::request* request;
  http::response* response;
  core::time_point start;
  std::unique_ptr<core::gauge, decrement> in_flight;
  std::shared_ptr<const event_sender> peer = {};
  route target = {};
  std::vector<wire_result> events = {};  ///< as they were read
  std::vector<element> elements = {};    ///< one for each
};

listener::listener(asio::any_io_executor executor, listener_options options,
                   listener_environment environment)
    : executor_(executor),
      component_(options.component),
      verify_(options.verify),
      takes_events_(options.takes_events),
      drain_requests_(options.drain_requests),
      queue_(options.runtime_events, options.events),
      takes_resyncs_(options.resyncs),
      next_set_(executor),
      events_(std::make_shared<core::channel<received_event>>(channel_capacity)),
      heartbeats_(std::move(options.heartbeats)),
      heartbeat_component_(heartbeats_ ? std::move(options.heartbeat_component) : std::string()),
      environment_(environment),
      own_watchdog_(environment_.watchdog, environment_.clock, executor_),
      identifier_(std::make_shared<identifier>(
          identity_options{options.tls != nullptr, network_list::parse(options.trusted_proxies),
                           options.tls ? options.tls : options.client_ca},
          environment.clock)),
      counters_(std::make_unique<counters>(environment.metrics)),
      requests_end_(
          environment_.watchdog->watch(executor, [this] { server_->drop_connections(); })),
      interval_end_(environment_.watchdog->watch(executor, [this] { fill_channel(); })) {
  if (!is_path_segment(component_)) {
    throw std::runtime_error("a listener's component must be one element of a path, not: " +
                             component_);
  }
  if (heartbeats_ && !is_path_segment(heartbeat_component_)) {
    throw std::runtime_error("heartbeat_component must be one element of a path, not: " +
                             heartbeat_component_);
  }
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
      executor, http::server_options{"listener", options.address, options.limits},
      static_cast<http::handler&>(*this),
      http::server_environment{*transport_, environment_.watchdog, environment.log,
                               environment.metrics});
}

std::size_t listener::body_limit(const http::request& head) const {
  const auto target = find_route(head.target, component_, heartbeat_component_);
  return target && target->batch ? batch_limit : event_limit;
}

void listener::refused(unsigned status) noexcept {
  counters_->requests.Increment();
  counters_->errors.Increment();
  if (status == 413) counters_->too_large.Increment();
}

asio::awaitable<void> listener::handle(http::request& from, http::response& into) {
  const core::thread_owner::scope here(owner_);
  counters_->requests.Increment();
  counters_->in_flight.Increment();
  const auto start = environment_.clock.now();
  exchange current{.request = &from,
                   .response = &into,
                   .start = start,
                   .in_flight = std::unique_ptr<core::gauge, decrement>(&counters_->in_flight)};
  receive(current);
  finish(current);
  return {};
}

void listener::finish(exchange& current) {
  if (current.response->status != 200) counters_->errors.Increment();
  const std::chrono::duration<double> took = environment_.clock.now() - current.start;
  counters_->duration.Observe(took.count());
  counters_->last_duration.Set(took.count());
}

void listener::refuse(exchange& current, unsigned status, std::string_view reason) {
  current.response->text(status, reason);
  log_refusal(current, reason, 0);
}

void listener::log_refusal(const exchange& current, std::string_view reason, std::size_t events) {
  const auto& request = *current.request;
  environment_.log.limited(
      refusal_log_, core::log_level::warning, "request refused",
      {{"status", std::uint64_t{current.response->status}},
       {"reason", reason},
       {"path", std::string_view(request.target).substr(0, max_logged)},
       {"peer", request.peer.address.address().to_string()},
       {"runtime_id", current.peer ? std::string_view(current.peer->runtime_id) : ""},
       {"events", events}});
}

/// Puts the events of a request into the queue and writes the response.
void listener::receive(exchange& current) {
  const auto target = find_route(current.request->target, component_, heartbeat_component_);
  if (!target && is_heartbeat_type(*current.request)) {
    // Senders offer heartbeats to KCP without being asked, and try seldom where there is no
    // receiver.
    return current.response->text(404, "heartbeats are not taken here");
  }
  if (!target) {
    return refuse(current, 404, "not found: events are taken at /v2/" + component_ + "/event");
  }
  current.target = *target;
  if (current.request->method != "POST") {
    current.response->headers.add("allow", "POST");
    return refuse(current, 405, "events are taken with POST");
  }
  if (takes_events_ && !takes_events_()) {
    current.response->headers.add("retry-after", "1");
    // A gateway keeps its connections, and would stay with this replica as long as it answers.
    current.response->last = true;
    return refuse(current, 503, "another replica takes the events");
  }
  if (current.target.heartbeats) return receive_heartbeat(current);
  current.events.swap(memory_);
  if (!identify(current) || !read(current)) return;
  if (current.events.empty() && current.request->headers.has(resync_header)) {
    return receive_resync(current);
  }
  const auto age = parse_event_age(current.request->headers.get(event_age_header));
  if (age) counters_->delivery.Observe(std::chrono::duration<double>(*age).count());
  for (auto& part : current.elements) {
    if (part.status == 200) judge(current, part);
    if (part.status == 200) accept(current, part);
  }
  fill_channel();
  respond(current);
  current.events.clear();
  memory_.swap(current.events);
}

/// Puts an event into the queue, or rejects it for now.
void listener::accept(exchange& current, element& of) {
  log_event(current, *of.event);
  const auto reject = [&](core::counter& count, std::string_view reason) {
    count.Increment();
    of.status = 503;
    of.reason = reason;
  };
  if (events_->is_closed()) return reject(counters_->closed, closed_channel);
  const auto offered = queue_.offer(current.peer->runtime_id, std::move(*of.event), current.start);
  if (offered == offer_result::merged) counters_->coalesced.Increment();
  if (offered == offer_result::share_full) reject(counters_->share_full, full_share);
  if (offered == offer_result::full) reject(counters_->full, full_queue);
}

/// Moves events and resyncs into the channel until that is full. They take turns, so that neither
/// a runtime's flood of events nor a resync of each runtime holds up the other.
void listener::fill_channel() {
  const auto now = environment_.clock.now();
  while (!next_) {
    const bool resync_waits = !std::exchange(turn_of_events_, false);
    if (resync_waits && take_resync(now)) {
      turn_of_events_ = true;
    } else if (!take_event(now) && resync_waits) {
      break;
    }
  }
  interval_end_.arm(resyncs_.next());
  counters_->pending.Set(static_cast<double>(pending_events()));
  counters_->in_channel.Set(static_cast<double>(events_->size()));
}

/// Sends a resync that is due. Returns false if none is.
bool listener::take_resync(core::time_point now) {
  auto taken = resyncs_.take(now);
  if (!taken) return false;
  counters_->resyncs_handed_over.Increment();
  send({.runtime_id = std::move(taken->runtime_id),
        .event = {.manager = component_, .gvk = {}, .watched = {}},
        .resync = taken->reason});
  return true;
}

/// Sends the next event of the queue. Returns false if that is empty.
bool listener::take_event(core::time_point now) {
  auto taken = queue_.take();
  if (!taken) return false;
  counters_->waited.Observe(core::seconds(now - taken->since));
  taken->event.event.manager = component_;
  send(std::move(taken->event));
  return true;
}

/// Sends into the channel. Without room there it is the next to be sent.
void listener::send(received_event&& event) {
  if (events_->try_send(event) == core::send_status::sent) return;
  next_ = std::move(event);
  next_set_.set();
}

/// Waits for room in the channel whenever there is none. Ends with the channel, or after the last
/// event.
asio::awaitable<void> listener::hand_over() {
  while (next_ || !served_) {
    const auto cancelled = co_await next_set_.wait();
    if (cancelled) co_return;
    while (next_) {
      const auto error = co_await events_->send(std::move(*next_));
      if (error) co_return;  // it still counts as pending
      next_.reset();
      fill_channel();
    }
  }
}

/// Identifies the sender. Returns false if the request as a whole is rejected.
bool listener::identify(exchange& current) {
  auto sender = identifier_->identify(*current.request);
  if (sender.has_value()) {
    current.peer = std::move(*sender);
    return true;
  }
  counters_->unidentified[static_cast<std::size_t>(sender.error())]->Increment();
  const bool nameless = sender.error() == identity_error::nameless;
  refuse(current, nameless ? 400 : 401, reason(sender.error()));
  if (sender.error() == identity_error::outdated) {
    drop_outdated();
    current.response->status = 0;
  }
  return false;
}

/// Sends a heartbeat to its channel and writes the response.
void listener::receive_heartbeat(exchange& current) {
  if (!is_heartbeat_type(*current.request)) {
    return refuse(current, 415, "only heartbeats are taken here");
  }
  if (!identify(current)) return;
  auto content = parse_heartbeat(current.request->body);
  if (content.has_error()) return refuse(current, 400, "no heartbeat: " + content.error().message);
  if (!is_verified(current)) return;
  received_heartbeat received{current.peer->runtime_id, std::move(*content)};
  if (heartbeats_->try_send(std::move(received)) == core::send_status::sent) return;
  current.response->headers.add("retry-after", "1");
  current.response->last = heartbeats_->is_closed();
  refuse(current, 503, full_queue);
}

/// Accepts a resync, which always has room, and writes the response.
void listener::receive_resync(exchange& current) {
  auto& into = *current.response;
  if (!takes_resyncs_) return into.text(404, "resyncs are not taken here");  // as senders expect
  const auto reason = parse_resync_reason(current.request->headers.get(resync_header));
  if (!reason)
    return refuse(current, 400, "a resync's reason is 1 to 32 lower-case letters and '-'");
  if (!is_verified(current)) return;
  if (events_->is_closed()) {
    counters_->closed.Increment();
    into.headers.add("retry-after", "1");
    into.last = true;
    return refuse(current, 503, closed_channel);
  }
  const bool added = resyncs_.add(current.peer->runtime_id, *reason, current.start);
  if (!added) counters_->resyncs_merged.Increment();
  environment_.log.debug("resync received", {{"runtime_id", current.peer->runtime_id},
                                             {"reason", to_string(*reason)}});
  fill_channel();
  into.headers.add(batch_offer_header, std::to_string(batch_events));
  into.headers.add(resync_header, resync_taken);
}

/// Calls the embedder's verification for a request without an event. Writes the response and
/// returns false if that rejects it.
bool listener::is_verified(exchange& current) {
  watch_event of_component;
  of_component.manager = component_;
  element claimed{&of_component};
  judge(current, claimed);
  if (claimed.status != 200) refuse(current, claimed.status, claimed.reason);
  return claimed.status == 200;
}

void listener::log_event(const exchange& current, const watch_event& event) {
  if (!environment_.log.enabled(core::log_level::debug)) return;
  environment_.log.debug("event received", {{"runtime_id", current.peer->runtime_id},
                                            {"kind", event.gvk.kind},
                                            {"namespace", event.watched.ns},
                                            {"name", event.watched.name}});
}

/// Reads the body. Returns false if the request as a whole is rejected.
bool listener::read(exchange& current) {
  const auto& body = current.request->body;
  if (current.target.batch) {
    const auto parsed = parse_wire_batch(body, batch_events, current.events);
    if (parsed.has_error()) {
      const bool too_many = parsed.error() == wire_error::too_many_events;
      refuse(current, too_many ? 413 : 400, reason(parsed.error()));
      return false;
    }
  } else {
    current.events.push_back(parse_wire_event(body));
  }
  current.elements.reserve(current.events.size());
  for (auto& event : current.events) {
    current.elements.push_back(event.has_value() ? element{&*event}
                                                 : element{nullptr, 400, reason(event.error())});
  }
  return true;
}

/// Calls the embedder's verification, and handles its exceptions.
void listener::judge(exchange& current, element& of) {
  const auto fail = [&](std::string_view error) {
    environment_.log.limited(failure_log_, core::log_level::error, "verification failed",
                             {{"error", error},
                              {"runtime_id", current.peer->runtime_id},
                              {"namespace", of.event->watched.ns},
                              {"name", of.event->watched.name}});
    of.status = 500;
    of.reason = "verification failed";
  };
  try {
    if (!verify_ || verify_(*current.request, *of.event, *current.peer)) return;
    const auto path = current.request->target.substr(0, current.request->target.find('?'));
    counters_->refused_by_verify(path).Increment();
    of.status = 403;
    of.reason = "the event was refused by verification";
  } catch (const std::exception& e) {
    fail(e.what());
  } catch (...) {
    fail("an exception of unknown type");
  }
}

void listener::respond(exchange& current) {
  auto& into = *current.response;
  into.headers.add(batch_offer_header, std::to_string(batch_events));
  if (takes_resyncs_) into.headers.add(resync_header, resync_offer);
  std::string list;
  const element* first = nullptr;
  std::size_t failures = 0;
  bool full = false;
  for (std::size_t i = 0; i < current.elements.size(); ++i) {
    const auto& part = current.elements[i];
    if (part.status == 200) continue;
    if (failures++ == 0) first = &part;
    full |= part.status == 503;
    list += (list.empty() ? R"([{"index":)" : R"(,{"index":)") + std::to_string(i) +
            R"(,"status":)" + std::to_string(part.status) + '}';
  }
  if (full) into.headers.add("retry-after", "1");
  into.last = events_->is_closed();
  if (first == nullptr) return;
  if (current.target.batch) {
    into.status = 207;
    into.headers.add("content-type", "application/json");
    into.body = list + ']';
  } else {
    into.text(first->status, first->reason);
  }
  log_refusal(current, first->reason, failures);
}

http::server_limits listener_options::default_limits() {
  http::server_limits limits;
  limits.handshakes = 4096;            // all reconnect at once after a restart of the listener
  limits.connections = most_runtimes;  // without a gateway, one of each
  limits.header_bytes = 64 * 1024;     // an X-Forwarded-Client-Cert may have 32 KiB
  return limits;
}

listener::~listener() = default;

/// Trusts connections made after the drop, which is posted.
void listener::drop_outdated() {
  const auto generation = identifier_->generation();
  server_->drop_connections();
  asio::post(executor_,
             [identifier = identifier_, generation] { identifier->connected_since(generation); });
}

void listener::drain() {
  server_->drain();
  requests_end_.arm(environment_.watchdog->time().now() + drain_requests_);
}

asio::awaitable<void> listener::serve() {
  co_await server_->run();
  served_ = true;
  resyncs_.end_intervals();
  fill_channel();
  next_set_.set();
}

asio::awaitable<void> listener::run() {
  core::task_group background(executor_);
  background.spawn(own_watchdog_.run());
  core::task_group tasks(executor_);
  tasks.spawn(serve());
  tasks.spawn(hand_over());
  std::exception_ptr failure;
  try {
    co_await tasks.join();
  } catch (...) {
    failure = std::current_exception();
  }
  co_await asio::this_coro::throw_if_cancelled(false);
  background.cancel();
  try {
    co_await background.join();
  } catch (const boost::system::system_error&) {  // cancelled, and joined
  }
  requests_end_.disarm();
  interval_end_.disarm();
  events_->close();
  if (pending() > 0) {
    counters_->abandoned.Increment(static_cast<double>(pending()));
    environment_.log.error("accepted events lost at the end", {{"events", pending()}});
  }
  if (failure) std::rethrow_exception(failure);
}

registration register_component(asio::any_io_executor executor, listener_options options,
                                listener_environment environment) {
  auto runnable = std::make_unique<listener>(std::move(executor), std::move(options), environment);
  auto events = runnable->events();
  return {std::move(runnable), std::move(events)};
}

}  // namespace rw::listener
