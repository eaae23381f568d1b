#include "reactors/dispatch/dispatch.hpp"

#include "core/task_group.hpp"
#include "core/wake.hpp"

#include <boost/asio/post.hpp>
#include <boost/asio/this_coro.hpp>
#include <boost/asio/use_awaitable.hpp>
#include <boost/json/parse.hpp>
#include <boost/json/value.hpp>
#include <boost/json/value_to.hpp>

#include <algorithm>
#include <charconv>
#include <deque>
#include <list>

namespace rw::dispatch {
namespace {

namespace asio = boost::asio;

core::counter& events_total(core::metrics& registry, const char* outcome) {
  return core::make_counter(registry, "rw_dispatch_events_total", "Events, by what became of them",
                            {{"outcome", outcome}});
}

struct counters {
  explicit counters(core::metrics& r)
      : delivered(events_total(r, "delivered")),
        coalesced(events_total(r, "coalesced")),
        retried(events_total(r, "retried")),
        rejected(events_total(r, "rejected")),
        expired(events_total(r, "expired")),
        abandoned(events_total(r, "abandoned")),
        known(core::make_gauge(r, "rw_dispatch_events", "Events that are not delivered yet",
                               {{"state", "known"}})),
        delayed(core::make_gauge(r, "rw_dispatch_events", "Events that are not delivered yet",
                                 {{"state", "delayed"}})),
        circuits(core::make_gauge(r, "rw_dispatch_open_circuits",
                                  "Circuit breakers that let only probes through")),
        batch(core::make_histogram(r, "rw_dispatch_batch_events", "Events in one request", {},
                                   {1, 2, 4, 8, 16, 32, 64, 128, 256, 512})),
        requests(core::make_counter(r, "watcher_kcp_requests_total", "Requests sent to KCP")),
        failed(core::make_counter(r, "watcher_failed_kcp_total", "Events that KCP did not get",
                                  {{"error_reason", "failed-request"}})) {
    // Reasons that alerts may name and that cannot come up here: settings are checked at the start,
    // and setting a request up does not fail.
    for (const char* reason : {"missing-address-or-contract", "request-setup"}) {
      core::make_counter(r, "watcher_failed_kcp_total", "Events that KCP did not get",
                         {{"error_reason", reason}});
    }
  }

  core::counter& delivered;
  core::counter& coalesced;
  core::counter& retried;
  core::counter& rejected;
  core::counter& expired;
  core::counter& abandoned;
  core::gauge& known;
  core::gauge& delayed;
  core::gauge& circuits;
  core::histogram& batch;
  core::counter& requests;
  core::counter& failed;
};

/// What a receiver says of the elements of a batch that it did not take (status 207):
/// `[{"index":3,"status":403}]`. False if it is something else.
bool read_partial(std::string_view body, std::vector<outcome>& outcomes) {
  boost::system::error_code error;
  const auto parsed = boost::json::parse(body, error);
  if (error || !parsed.is_array()) return false;
  for (const auto& element : parsed.get_array()) {
    const auto* object = element.if_object();
    const auto* index = object != nullptr ? object->if_contains("index") : nullptr;
    const auto* status = object != nullptr ? object->if_contains("status") : nullptr;
    if (index == nullptr || status == nullptr) return false;
    const auto i = index->is_int64() ? index->get_int64() : -1;
    const auto s = status->is_int64() ? status->get_int64() : 0;
    if (i < 0 || static_cast<std::size_t>(i) >= outcomes.size()) return false;
    outcomes[static_cast<std::size_t>(i)].what = judge(static_cast<unsigned>(s));
  }
  return true;
}

/// A limit of zero would mean to stand still.
dispatch_options usable(dispatch_options options) {
  options.requests = std::max<std::size_t>(options.requests, 1);
  options.batch_events = std::max<std::size_t>(options.batch_events, 1);
  return options;
}

}  // namespace

class dispatcher::implementation {
 public:
  implementation(asio::any_io_executor executor, dispatch_options options,
                 core::channel<watch_event>& events, dispatch_environment environment)
      : executor_(executor),
        options_(usable(std::move(options))),
        channel_(events),
        environment_(std::move(environment)),
        counters_(environment_.metrics),
        schedule_(options_.schedule, environment_.random),
        client_(executor, options_.upstream,
                {environment_.transport, environment_.watchdog, environment_.log,
                 environment_.metrics}),
        room_(executor),
        alarm_(environment_.clock.make_timer(executor)),
        tasks_(executor) {}

  asio::awaitable<void> run();
  void renew_connections() { client_.retire(); }
  std::size_t pending() const noexcept { return schedule_.size() + in_hand_; }

 private:
  /// What one worker keeps from request to request.
  struct desk {
    explicit desk(const asio::any_io_executor& executor) : woken(executor) {}
    core::wake woken;
    bool idle = false;
    shipment load;
    http::request request;
    http::response response;
    std::vector<outcome> outcomes;
  };

  core::time_point now() const { return environment_.clock.now(); }
  bool done() const { return input_ended_ && schedule_.empty(); }

  asio::awaitable<void> take_in();
  void refuse(const watch_event& event);
  asio::awaitable<void> keep_time();
  asio::awaitable<void> work(desk* mine);
  asio::awaitable<void> send(desk* mine);
  void fail(desk& mine, boost::system::error_code error, core::gate::ticket ticket);
  void write_request(desk& mine) const;
  void read_answer(desk& mine);
  void settle(desk& mine);
  void count(const settlement& result);
  void wake_worker(core::time_point when);
  void wake_worker() { wake_worker(now()); }
  void on_change();

  const asio::any_io_executor executor_;
  const dispatch_options options_;
  core::channel<watch_event>& channel_;
  const dispatch_environment environment_;
  counters counters_;
  schedule schedule_;
  http::client client_;
  core::log_limit failure_log_;
  core::log_limit loss_log_;
  std::list<desk> desks_;
  core::wake room_;  ///< set when the schedule is no longer full
  std::unique_ptr<core::timer> alarm_;
  unsigned unprocessed_ = 0;  ///< requests in a row that the upstream did not look at
  std::size_t in_hand_ = 0;   ///< events taken from the channel and not yet in the schedule
  bool input_ended_ = false;
  core::task_group tasks_;
};

asio::awaitable<void> dispatcher::implementation::run() {
  tasks_.spawn(take_in());
  tasks_.spawn(keep_time());
  std::exception_ptr failure;
  try {
    co_await tasks_.join();
  } catch (...) {
    failure = std::current_exception();
  }
  co_await asio::this_coro::throw_if_cancelled(false);
  co_await client_.close();
  const auto left = pending() + channel_.size();
  if (left > 0) {
    counters_.abandoned.Increment(static_cast<double>(left));
    environment_.log.error("events were not delivered before the end", {{"events", left}});
  }
  if (failure) std::rethrow_exception(failure);
}

/// Channel to schedule.
asio::awaitable<void> dispatcher::implementation::take_in() {
  std::vector<watch_event> taken;
  for (;;) {
    taken.clear();
    const auto got = co_await channel_.receive_some(taken, options_.batch_events);
    if (got.has_error()) break;
    const auto when = now();
    in_hand_ = taken.size();
    for (auto& event : taken) {
      auto result = schedule_.offer(event, when);
      while (result == schedule::offered::full) {
        wake_worker();
        co_await room_.wait();
        result = schedule_.offer(event, when);
      }
      --in_hand_;
      if (result == schedule::offered::merged) counters_.coalesced.Increment();
      if (result == schedule::offered::refused) refuse(event);
    }
    counters_.known.Set(static_cast<double>(schedule_.size()));
    // Only now, so that what came together can go together.
    wake_worker();
    // A channel that never runs dry must not keep the workers from their turn.
    if (taken.size() == options_.batch_events) {
      co_await asio::post(executor_, asio::use_awaitable);
    }
  }
  input_ended_ = true;
  on_change();
}

/// Somebody names ever new managers; real ones are few.
void dispatcher::implementation::refuse(const watch_event& event) {
  counters_.rejected.Increment();
  environment_.log.limited(
      loss_log_, core::log_level::error, "event dropped: too many managers with undelivered events",
      {{"manager", event.manager}, {"namespace", event.watched.ns}, {"name", event.watched.name}});
}

/// Wakes a worker when a backoff is over.
asio::awaitable<void> dispatcher::implementation::keep_time() {
  while (!done()) {
    // One time for both, lest something become ready in between and be seen by neither.
    const auto when = now();
    wake_worker(when);
    alarm_->expires_at(schedule_.next_time(when));
    co_await alarm_->wait();
  }
}

/// Gives work to one worker that has none, or to a new one.
void dispatcher::implementation::wake_worker(core::time_point when) {
  if (!schedule_.ready(when)) return;
  for (auto& one : desks_) {
    if (!one.idle) continue;
    one.idle = false;
    one.woken.set();
    return;
  }
  if (desks_.size() >= options_.requests) return;
  desks_.emplace_back(executor_);
  tasks_.spawn(work(&desks_.back()));
}

/// After anything that may have changed what is to be sent, or when.
void dispatcher::implementation::on_change() {
  counters_.known.Set(static_cast<double>(schedule_.size()));
  counters_.delayed.Set(static_cast<double>(schedule_.delayed()));
  counters_.circuits.Set(static_cast<double>(schedule_.open_circuits()));
  if (!schedule_.full()) room_.set();
  alarm_->cancel();
  if (!done()) {
    wake_worker();
    return;
  }
  for (auto& one : desks_) one.woken.set();
}

asio::awaitable<void> dispatcher::implementation::work(desk* mine) {
  while (!done()) {
    if (schedule_.ready(now())) {
      co_await send(mine);
      continue;
    }
    mine->idle = true;
    co_await mine->woken.wait();
    mine->idle = false;
  }
}

asio::awaitable<void> dispatcher::implementation::send(desk* mine) {
  const auto ticket = schedule_.upstream.enter();
  http::client_slot slot;
  auto error = co_await client_.acquire(slot);
  if (error) {
    schedule_.upstream.fail(ticket, now());
    counters_.failed.Increment();
    count(schedule_.expire(now()));
    on_change();
    co_return;
  }
  schedule_.set_share(slot.multiplexed() ? options_.requests / 4 : 2);
  if (!schedule_.next(now(), mine->load)) {
    schedule_.upstream.abandon(ticket);
    slot = http::client_slot();
    on_change();
    co_return;
  }
  wake_worker();
  write_request(*mine);
  counters_.requests.Increment();
  counters_.batch.Observe(static_cast<double>(mine->load.events.size()));
  error = co_await slot.exchange(mine->request, mine->response);
  if (!error) {
    schedule_.upstream.succeed();
    unprocessed_ = 0;
    settle(*mine);
  } else {
    fail(*mine, error, ticket);
  }
  slot = http::client_slot();
  on_change();
}

/// A request ended without an answer.
void dispatcher::implementation::fail(desk& mine, boost::system::error_code error,
                                      core::gate::ticket ticket) {
  // A connection that ended between two requests says nothing about the upstream's health; several
  // in a row do.
  const bool between_requests = error == http::client_error::not_processed ||
                                error == http::client_error::reused_connection_closed;
  if (between_requests && ++unprocessed_ < 4) {
    schedule_.upstream.abandon(ticket);
    count(schedule_.put_back(mine.load, now()));
    return;
  }
  counters_.failed.Increment();
  environment_.log.limited(failure_log_, core::log_level::warning,
                           "request to KCP failed; it will be repeated",
                           {{"manager", mine.load.manager}, {"error", error.message()}});
  // The gateway took the request and the operator behind it hangs or talks too much: its own lane
  // pays for that, not the others.
  const bool operators_fault =
      error == http::client_error::timed_out || error == http::client_error::response_too_large;
  if (operators_fault && !schedule_.upstream.open()) {
    schedule_.upstream.abandon(ticket);
    mine.outcomes.assign(mine.load.events.size(), {verdict::retry, {}});
    count(schedule_.settle(mine.load, mine.outcomes, now()));
    return;
  }
  schedule_.upstream.fail(ticket, now());
  count(schedule_.put_back(mine.load, now()));
}

void dispatcher::implementation::write_request(desk& mine) const {
  auto& request = mine.request;
  request.clear();
  mine.response.clear();
  request.method = "POST";
  request.target = "/";
  request.target += to_string(options_.contract);
  request.target += '/';
  request.target += mine.load.manager;
  request.target += mine.load.as_batch ? "/events" : "/event";
  request.headers.add("content-type", "application/json");
  if (mine.load.as_batch) {
    char before = '[';
    for (const auto& event : mine.load.events) {
      request.body += std::exchange(before, ',');
      append_wire_json(request.body, options_.contract, *event.key);
    }
    request.body += ']';
  } else {
    append_wire_json(request.body, options_.contract, *mine.load.events.front().key);
  }
}

void dispatcher::implementation::read_answer(desk& mine) {
  const auto& response = mine.response;
  outcome all{judge(response.status), retry_after(response.headers.get("retry-after"))};
  mine.outcomes.assign(mine.load.events.size(), all);
  if (mine.load.as_batch && response.status == 207 && !read_partial(response.body, mine.outcomes)) {
    mine.outcomes.assign(mine.load.events.size(), {verdict::retry, {}});
  }
}

void dispatcher::implementation::settle(desk& mine) {
  const auto& response = mine.response;
  const auto offer = response.headers.get(batch_offer_header);
  std::size_t batch = 1;
  std::from_chars(offer.data(), offer.data() + offer.size(), batch);
  const bool taken = response.status >= 200 && response.status < 300;
  if (taken) schedule_.set_batch(mine.load.manager, std::min(batch, options_.batch_events), now());
  const bool not_a_batch = response.status == 400 || response.status == 404 ||
                           response.status == 405 || response.status == 413;
  if (mine.load.as_batch && not_a_batch) {
    schedule_.split(mine.load, now());
    return;
  }
  read_answer(mine);
  const auto result = schedule_.settle(mine.load, mine.outcomes, now());
  count(result);
  if (result.retried == 0 && result.rejected == 0) return;
  counters_.failed.Increment();
  environment_.log.limited(failure_log_, core::log_level::warning, "KCP did not take events",
                           {{"manager", mine.load.manager},
                            {"status", std::uint64_t{response.status}},
                            {"to_be_repeated", result.retried},
                            {"rejected", result.rejected}});
}

void dispatcher::implementation::count(const settlement& result) {
  const auto add = [](core::counter& counter, std::size_t n) {
    if (n > 0) counter.Increment(static_cast<double>(n));
  };
  add(counters_.delivered, result.delivered);
  add(counters_.retried, result.retried);
  add(counters_.rejected, result.rejected);
  add(counters_.expired, result.expired);
  if (result.expired > 0) {
    environment_.log.limited(loss_log_, core::log_level::error,
                             "events were given up: KCP did not take them in time",
                             {{"events", result.expired}});
  }
}

dispatcher::dispatcher(asio::any_io_executor executor, dispatch_options options,
                       core::channel<watch_event>& events, dispatch_environment environment)
    : impl_(std::make_unique<implementation>(std::move(executor), std::move(options), events,
                                             std::move(environment))) {}
dispatcher::~dispatcher() = default;
asio::awaitable<void> dispatcher::run() {
  return impl_->run();
}
void dispatcher::renew_connections() {
  impl_->renew_connections();
}
std::size_t dispatcher::pending() const noexcept {
  return impl_->pending();
}

}  // namespace rw::dispatch
