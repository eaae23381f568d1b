#include "rw/reactors/events/dispatch.hpp"

#include "rw/core/json/json_view.hpp"
#include "rw/core/text.hpp"
#include "rw/core/wake.hpp"
#include "rw/reactors/shared/heartbeat.hpp"
#include "rw/reactors/shared/resync.hpp"

#include <boost/asio/error.hpp>
#include <boost/asio/post.hpp>
#include <boost/asio/this_coro.hpp>
#include <boost/asio/use_awaitable.hpp>

#include <algorithm>
#include <array>
#include <charconv>
#include <utility>

namespace rw::dispatch {
namespace {

namespace asio = boost::asio;

constexpr auto publish_changes_after = std::chrono::milliseconds(100);
constexpr std::string_view html_type = "text/html";
constexpr auto publish_ages_every = std::chrono::seconds(1);

/// What a receiver says of the elements of a batch that it did not take (status 207):
/// `[{"index":3,"status":403}]`. False if it is something else.
bool read_partial(const std::string& body, std::vector<unsigned>& statuses) {
  const core::json_document document(body);
  bool fits = document.root().is_array();
  document.root().elements([&](core::json_view element) {
    const auto index = element.find("index").unsigned_integer();
    const auto status = element.find("status").integer();
    fits = fits && index && *index < statuses.size() && status;
    if (fits) statuses[*index] = static_cast<unsigned>(*status);
  });
  return fits;
}

/// Whose failure an exchange's error is, once there was a connection.
delivery_failure failure_of(boost::system::error_code error) {
  using http::client_error;
  if (error == client_error::timed_out || error == client_error::response_too_large) {
    return delivery_failure::timeout;
  }
  const bool broke = error == client_error::closed || error == client_error::protocol ||
                     error.category() != http::client_category();
  return broke ? delivery_failure::stream : delivery_failure::unprocessed;
}

/// A limit of zero would mean to stand still.
dispatch_options usable(dispatch_options options) {
  options.requests = std::max<std::size_t>(options.requests, 1);
  options.batch_events = std::max<std::size_t>(options.batch_events, 1);
  return options;
}

}  // namespace

dispatcher::dispatcher(asio::any_io_executor executor, dispatch_options options,
                       dispatch_environment environment)
    : executor_(executor),
      options_(usable(std::move(options))),
      clock_(environment.clock),
      log_(environment.log),
      objects_(environment.objects),
      metrics_(environment.metrics, environment.log),
      schedule_(
          options_.schedule, std::move(environment.random),
          [this](loss loss, const watch_event& event) {
            metrics_.lost(loss, event);
            if (loss == loss::overflow) objects_.drop_review(event.manager, clock_.now());
          },
          environment.objects),
      client_(executor, options_.upstream,
              {environment.transport, environment.watchdog, environment.log, environment.metrics}),
      timer_(clock_.make_timer(executor)),
      tasks_(executor) {
  schedule_.connected(concurrency(false));
}

/// What is kept from request to request. A request for which a connection with many streams is
/// there goes its way without a coroutine; the others are `work`'s.
struct dispatcher::worker {
  explicit worker(const asio::any_io_executor& executor) : woken(executor) {}
  core::wake woken;
  bool works = false;  ///< `work` was begun, and waits for loads
  std::unique_ptr<schedule::batch> load;
  std::unique_ptr<http::opened_exchange> exchange;  ///< under way without a coroutine
  http::request request;
  http::response response;
  batch_response received;  ///< as far as it says what becomes of the events
};

std::size_t dispatcher::concurrency(bool multiplexed) const {
  if (multiplexed) return options_.requests;
  return std::min(options_.requests, options_.upstream.limits.connections);
}

asio::awaitable<void> dispatcher::run() {
  running_ = true;
  tasks_.spawn(keep_time());
  pump();
  try {
    co_await tasks_.join();
  } catch (...) {
    failure_ = std::current_exception();
  }
  running_ = false;
  for (auto& each : workers_) each.exchange.reset();
  co_await asio::this_coro::throw_if_cancelled(false);
  co_await client_.close();
  abandon();
  metrics_.publish(schedule_, objects_, clock_.now());
  if (failure_) std::rethrow_exception(failure_);
}

/// Gives up what is left at the end. The changes of observed objects stay theirs.
void dispatcher::abandon() {
  const auto now = clock_.now();
  for (auto& each : workers_) {
    if (each.load) schedule_.failed(std::move(each.load), delivery_failure::unprocessed, now);
  }
  const auto left = schedule_.size();
  if (left > 0) log_.error("events were not delivered before the end", {{"events", left}});
  abandoned_ = schedule_.abandon(now);
}

/// Does what the schedule says. Called after whatever may have changed its mind: input, the end of
/// a request, and time.
void dispatcher::pump() {
  if (!running_) return;
  const auto time = clock_.now();
  auto next = schedule_.poll(time);
  for (; next.send; next = schedule_.poll(time)) start(std::move(next.send));
  const auto until = std::min(next.until, publish(time));
  if (until < due_) {
    due_ = until;
    timer_->cancel();
  }
  if (input_ended_ && schedule_.empty()) tasks_.cancel();
}

void dispatcher::offer(watch_event event) {
  if (schedule_.offer(std::move(event), clock_.now())) metrics_.coalesced.Increment();
}

void dispatcher::close() {
  input_ended_ = true;
  schedule_.close();
  pump();
}

/// Sets the gauges, unless that was a moment ago; returns when to come again.
core::time_point dispatcher::publish(core::time_point time) {
  if (published_ != core::time_point::min() && time < published_ + publish_changes_after) {
    return published_ + publish_changes_after;
  }
  metrics_.publish(schedule_, objects_, time);
  published_ = time;
  return schedule_.empty() ? core::time_point::max() : time + publish_ages_every;
}

asio::awaitable<void> dispatcher::keep_time() {
  for (;;) {
    timer_->expires_at(due_);
    const bool due = co_await timer_->wait();
    if (!due) continue;
    due_ = core::time_point::max();
    pump();
  }
}

void dispatcher::start(std::unique_ptr<schedule::batch> load) {
  if (idle_.empty()) idle_.push_back(&workers_.emplace_back(executor_));
  auto& next = *idle_.back();
  idle_.pop_back();
  next.load = std::move(load);
  if (send_at_once(next)) return;
  next.woken.set();
  if (!std::exchange(next.works, true)) tasks_.spawn(work(&next));
}

/// False if there is no connection that takes it now, on which many requests can be under way.
bool dispatcher::send_at_once(worker& self) {
  http::client_slot slot;
  if (!client_.try_acquire(slot) || !slot.multiplexed()) return false;
  schedule_.connected(concurrency(true));  // the caller polls again
  write_request(self);
  self.exchange = slot.begin(self.request, self.response, {}, [this, &self](auto error) {
    try {
      ended(self, error);
    } catch (...) {
      failure_ = std::current_exception();
      tasks_.cancel();
    }
  });
  if (self.exchange) metrics_.request_of(self.load->events.size());
  return self.exchange != nullptr;
}

void dispatcher::ended(worker& self, boost::system::error_code error) {
  self.exchange.reset();
  if (error == http::client_error::shut_down) return;
  if (error) fail(self, failure_of(error), error);
  if (!error) finish(self);
  idle_.push_back(&self);
  pump();
}

asio::awaitable<void> dispatcher::work(worker* self) {
  for (;;) {
    // Left set by a load that came before the wait.
    while (!self->load || self->exchange) co_await self->woken.wait();
    http::client_slot slot;
    boost::system::error_code error;
    if (!client_.try_acquire(slot)) error = co_await client_.acquire(slot);
    if (error == asio::error::operation_aborted) co_return;
    if (error) {
      fail(*self, delivery_failure::connect, error);
    } else {
      if (schedule_.connected(concurrency(slot.multiplexed()))) pump();
      write_request(*self);
      metrics_.request_of(self->load->events.size());
      error = co_await slot.exchange(self->request, self->response);
      slot = http::client_slot();
      if (error == http::client_error::shut_down) co_return;
      if (error) fail(*self, failure_of(error), error);
      if (!error) finish(*self);
    }
    idle_.push_back(self);
    pump();
  }
}

void dispatcher::fail(worker& self, delivery_failure cause, boost::system::error_code error) {
  const auto manager = cause == delivery_failure::connect ? std::string() : *self.load->manager;
  if (self.load->resync) metrics_.on_resync(resync_account::outcome::failed);
  if (cause != delivery_failure::connect) {
    metrics_.retried.Increment(static_cast<double>(self.load->events.size()));
  }
  const bool counts = schedule_.failed(std::move(self.load), cause, clock_.now());
  if (counts && cause != delivery_failure::unprocessed) metrics_.failed(manager, error.message());
}

void dispatcher::write_request(worker& self) const {
  auto& request = self.request;
  const auto& load = *self.load;
  request.clear();
  self.response.clear();
  request.method = "POST";
  request.target = contract_path;
  request.target += *load.manager;
  request.target += load.as_batch ? "/events" : "/event";
  request.headers.add("content-type", "application/json");
  if (load.resync) {
    request.headers.add(resync_header, to_string(*load.resync));
    request.body = "[]";
    return;
  }
  char before = '[';
  auto oldest = core::time_point::max();
  for (const auto& event : load.events) {
    oldest = std::min(oldest, event.first_accepted());
    if (load.as_batch) request.body += std::exchange(before, ',');
    append_wire_json(request.body, event.key());
  }
  if (load.as_batch) request.body += ']';
  const auto age = std::chrono::floor<std::chrono::milliseconds>(clock_.now() - oldest);
  std::array<char, 24> text;
  const auto end = std::to_chars(text.begin(), text.end(), age.count()).ptr;
  request.headers.add(event_age_header, {text.begin(), end});
}

void dispatcher::read_response(worker& self) const {
  const auto& response = self.response;
  auto& received = self.received;
  const auto offer = response.headers.get(batch_offer_header);
  received.status = response.status;
  received.retry_after = retry_after(response.headers.get("retry-after"));
  received.batch_offer = 1;
  std::from_chars(offer.data(), offer.data() + offer.size(), received.batch_offer);
  received.batch_offer = std::min(received.batch_offer, options_.batch_events);
  const auto resync = response.headers.get(resync_header);
  received.offers_resyncs = resync == resync_offer;
  received.resync_taken = resync == resync_taken;
  received.statuses.clear();
  if (!self.load->as_batch || self.load->resync || response.status != 207) return;
  received.statuses.resize(self.load->events.size(), 200);
  // An answer that makes no sense is none.
  if (!read_partial(response.body, received.statuses)) std::ranges::fill(received.statuses, 502);
}

void dispatcher::finish(worker& self) {
  read_response(self);
  const auto time = clock_.now();
  const auto& received = self.received;
  const auto& manager =
      *self.load->manager;  // its destination is there at least until the next poll
  for (std::size_t i = 0; i < self.load->events.size(); ++i) {
    if (verdict_of(received.status_of(i)) != delivery_verdict::delivered) continue;
    metrics_.delivered_after(time - self.load->events[i].first_accepted());
  }
  note_sender(self);
  if (self.load->resync) metrics_.on_resync(outcome_of(received));
  const auto result = schedule_.on_response(std::move(self.load), received, time);
  metrics_.on_response(manager, received.status, result);
}

/// Says it once where a 2xx comes from what is no listener, such as a captive portal: it is
/// believed, as its events may have been delivered (reactors/README, "the guarantee").
void dispatcher::note_sender(const worker& self) {
  const auto& response = self.response;
  if (response.status / 100 != 2) return;
  const auto type = response.headers.get("content-type");
  const bool is_page = http::iequals(type.substr(0, html_type.size()), html_type);
  constexpr std::size_t most = 32;  // anybody may invent one
  const auto& manager = *self.load->manager;
  if (!is_page) {
    if (!page_managers_.empty()) page_managers_.erase(manager);
    return;
  }
  if (page_managers_.size() == most || !page_managers_.insert(manager).second) return;
  log_.limited(page_log_, core::log_level::warning,
               "events are answered with a web page, so whether a listener has them is unknown",
               {{"manager", manager},
                {"status", std::uint64_t{response.status}},
                {"content_type", core::printable(type)}});
}

dispatch_statistics dispatcher::statistics() const {
  dispatch_statistics out{.counts = metrics_.counts(), .upstream_open = schedule_.upstream_open()};
  const auto now = clock_.now();
  auto refused_since = core::time_point::max();
  schedule_.report([&](const schedule::figures& destination) {
    if (destination.oldest == core::time_point::max()) return;
    const auto age = now - destination.oldest;
    out.oldest = std::max(out.oldest, age);
    if (destination.refused == nullptr) {
      if (age <= out.oldest_other) return;
      out.oldest_other = age;
      out.oldest_manager = destination.manager;
    } else if (destination.oldest < refused_since) {
      refused_since = destination.oldest;
      out.refused = *destination.refused;
    }
  });
  return out;
}

dispatcher::~dispatcher() = default;

}  // namespace rw::dispatch
