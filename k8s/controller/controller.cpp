#include "rw/k8s/controller/controller.hpp"

#include "rw/k8s/cache/informer.hpp"

#include <boost/asio/bind_cancellation_slot.hpp>
#include <boost/asio/cancellation_signal.hpp>
#include <boost/asio/co_spawn.hpp>
#include <boost/asio/post.hpp>
#include <boost/asio/this_coro.hpp>
#include <boost/asio/use_awaitable.hpp>

#include <algorithm>
#include <exception>
#include <stdexcept>

namespace rw::k8s {
namespace {

namespace asio = boost::asio;

/// The bounds of controller-runtime.
const std::vector<double>& reconcile_bounds() {
  static const std::vector<double> bounds = {
      0.005, 0.01, 0.025, 0.05, 0.1,  0.15, 0.2,  0.25, 0.3, 0.35, 0.4, 0.45, 0.5, 0.6,
      0.7,   0.8,  0.9,   1.0,  1.25, 1.5,  1.75, 2.0,  2.5, 3.0,  3.5, 4.0,  4.5, 5,
      6,     7,    8,     9,    10,   15,   20,   25,   30,  40,   50,  60};
  return bounds;
}

controller_options usable(controller_options options) {
  if (options.name.empty()) throw std::invalid_argument("a controller needs a name");
  options.concurrent = std::max<std::size_t>(options.concurrent, 1);
  options.queue.name = options.name;
  return options;
}

/// Returns an exception's text; nothing if it is a cancellation.
std::optional<std::string> what_of(const std::exception_ptr& thrown) {
  try {
    std::rethrow_exception(thrown);
  } catch (const boost::system::system_error& e) {
    if (e.code() == asio::error::operation_aborted) return std::nullopt;
    return e.what();
  } catch (const std::exception& e) {
    return e.what();
  } catch (...) {
    return "something that is no std::exception";
  }
}

/// Waits for a group's tasks even if this coroutine is cancelled again, which cancels them.
asio::awaitable<void> await_end(core::task_group* of) {
  co_await asio::this_coro::throw_if_cancelled(false);
  try {
    co_await of->join();
  } catch (const boost::system::system_error&) {  // cancelled again; the tasks have ended
  }
}

}  // namespace

struct controller::numbers {
  numbers(core::metrics& r, const core::labels& own)
      : success(total(r, own, "success")),
        requeue_after(total(r, own, "requeue_after")),
        error(total(r, own, "error")),
        errors(core::make_counter(r, "controller_runtime_reconcile_errors_total",
                                  "Number of reconciles that ended in an error", own)),
        terminal(core::make_counter(r, "controller_runtime_terminal_reconcile_errors_total",
                                    "Number of reconciles that ended in an error without a retry",
                                    own)),
        panics(core::make_counter(r, "controller_runtime_reconcile_panics_total",
                                  "Number of reconciles that ended in an exception", own)),
        timeouts(core::make_counter(r, "rw_controller_reconcile_timeouts_total",
                                    "Number of reconciles cancelled at their time limit", own)),
        time(core::make_histogram(r, "controller_runtime_reconcile_time_seconds",
                                  "Duration of reconciles in seconds", own, reconcile_bounds())),
        most(core::make_gauge(r, "controller_runtime_max_concurrent_reconciles",
                              "How many reconciles may run at once", own)),
        active(
            core::make_gauge(r, "controller_runtime_active_workers", "Reconciles that run", own)),
        failing(core::make_gauge(r, "rw_controller_failing_keys",
                                 "Number of keys whose last reconcile ended in an error", own)) {}

  static core::counter& total(core::metrics& r, core::labels own, const char* result) {
    own.emplace("result", result);
    return core::make_counter(r, "controller_runtime_reconcile_total", "Reconciles", own);
  }

  core::counter& success;
  core::counter& requeue_after;
  core::counter& error;
  core::counter& errors;
  core::counter& terminal;
  core::counter& panics;
  core::counter& timeouts;
  core::histogram& time;
  core::gauge& most;
  core::gauge& active;
  core::gauge& failing;
};

/// Takes keys and runs their reconciles. `give_up` cancels the running one.
struct controller::worker {
  asio::cancellation_signal give_up;
  core::time_point until{};  ///< of the reconcile that runs
  bool timed_out = false;
  core::deadline limit;
};

controller::controller(asio::any_io_executor executor, controller_options options,
                       reconciler& target, controller_environment environment)
    : executor_(std::move(executor)),
      options_(usable(std::move(options))),
      target_(target),
      environment_(std::move(environment)),
      own_watchdog_(environment_.watchdog, environment_.clock, executor_),
      numbers_(std::make_unique<numbers>(environment_.metrics,
                                         core::labels{{"controller", options_.name}})),
      queue_(executor_, options_.queue,
             {environment_.clock, environment_.metrics, environment_.random}),
      failing_(queue_.capacity()),
      end_(executor_),
      sources_(executor_, [this](std::exception_ptr thrown) { fail(std::move(thrown)); }),
      background_(executor_, [this](std::exception_ptr thrown) { fail(std::move(thrown)); }),
      workers_(executor_, [this](std::exception_ptr thrown) { fail(std::move(thrown)); }) {
  numbers_->most.Set(static_cast<double>(options_.concurrent));
}

controller::~controller() = default;

core::time_point controller::now() const {
  return environment_.clock.now();
}

asio::awaitable<void> controller::run() {
  background_.spawn(own_watchdog_.run());
  background_.spawn(queue_.run());
  background_.spawn(warn_unsynced());
  for (const auto& start : to_run_) sources_.spawn(start());
  try {
    const bool synced = co_await await_sync();
    if (synced) {
      start_workers();
      // Cancelling this coroutine does not cancel the workers; stop() awaits them.
      co_await end_.wait();
    }
  } catch (...) {
    if (what_of(std::current_exception())) fail(std::current_exception());
  }
  co_await asio::this_coro::throw_if_cancelled(false);
  co_await stop();
  if (failure_) std::rethrow_exception(failure_);
}

void controller::start_workers() {
  const core::thread_owner::scope here(owner_);
  started_ = true;
  environment_.log.info("controller started", {{"controller", options_.name}});
  for (std::size_t i = 0; i < options_.concurrent; ++i) {
    auto* const worker = &all_workers_.emplace_back();
    worker->limit = environment_.watchdog->watch(executor_, [this, worker] {
      if (now() < worker->until) return;  // the limit of an earlier reconcile
      worker->timed_out = true;
      numbers_->timeouts.Increment();
      worker->give_up.emit(asio::cancellation_type::terminal);
    });
    workers_.spawn(work(worker));
  }
}

/// Records an exception of a coroutine that must not throw.
void controller::fail(std::exception_ptr thrown) {
  if (!failure_) failure_ = std::move(thrown);
  end_.set();
}

/// Returns false if an informer will never be synced.
asio::awaitable<bool> controller::await_sync() {
  for (auto* const informer : informers_) {
    const bool synced = co_await informer->wait_synced();
    if (synced) continue;
    const auto state = co_await asio::this_coro::cancellation_state;
    if (state.cancelled() != asio::cancellation_type::none) co_return false;
    environment_.log.error("controller does not start: an informer ended before it was synced",
                           {{"controller", options_.name}, {"resource", informer->type().plural}});
    co_return false;
  }
  co_return true;
}

/// Logs periodically while the controller waits for its informers.
asio::awaitable<void> controller::warn_unsynced() {
  const auto alarm = environment_.clock.make_timer(executor_);
  while (!started_) {
    alarm->expires_at(now() + std::chrono::seconds(30));
    const bool due = co_await alarm->wait();
    if (!due || started_) co_return;
    for (const auto* const informer : informers_) {
      if (informer->synced()) continue;
      environment_.log.warning(
          "controller waits for an informer to be synced",
          {{"controller", options_.name}, {"resource", informer->type().plural}});
    }
  }
}

asio::awaitable<void> controller::stop() {
  stopping_ = true;
  for (const auto& subscription : subscriptions_) subscription->close();
  sources_.cancel();
  co_await await_end(&sources_);
  queue_.shut_down();
  core::task_group bound(executor_);
  bound.spawn(give_up_in_time());
  co_await await_end(&workers_);
  bound.cancel();
  co_await await_end(&bound);
  all_workers_.clear();
  background_.cancel();
  co_await await_end(&background_);
  queue_.publish();
  if (queue_.queued() > 0) {
    environment_.log.info("controller ended with keys still queued",
                          {{"controller", options_.name}, {"keys", queue_.queued()}});
  }
}

/// Cancels the reconciles that do not end within the shutdown period.
asio::awaitable<void> controller::give_up_in_time() {
  const auto alarm = environment_.clock.make_timer(executor_);
  alarm->expires_at(now() + options_.shutdown);
  const bool due = co_await alarm->wait();
  if (!due) co_return;
  environment_.log.warning("reconciles cancelled at the end of the shutdown period",
                           {{"controller", options_.name}, {"reconciles", queue_.processing()}});
  for (auto& worker : all_workers_) worker.give_up.emit(asio::cancellation_type::terminal);
}

asio::awaitable<bool> controller::put(keys* batch) {
  const auto level = started_ ? core::priority::normal : core::priority::low;
  for (const auto& key : *batch) {
    while (queue_.add(key, level) == core::add_result::full) {
      environment_.log.limited(flood_log_, core::log_level::warning,
                               "the work queue is full; a source waits",
                               {{"controller", options_.name}, {"keys", queue_.size()}});
      const bool room = co_await queue_.wait_for_room();
      if (!room) co_return false;
    }
  }
  co_return !stopping_;
}

asio::awaitable<void> controller::work(worker* self) {
  constexpr unsigned at_once = 16;
  for (unsigned done = 1; !stopping_; ++done) {
    // Reconciles that never suspend must not starve the executor's other tasks.
    if (done % at_once == 0) co_await asio::post(executor_, asio::use_awaitable);
    auto item = queue_.try_get();
    if (!item) item = co_await queue_.get();
    if (!item || stopping_) break;
    co_await process(self, std::move(item));
  }
}

asio::awaitable<void> controller::process(worker* self, work_queue::item item) {
  numbers_->active.Increment();
  const auto begin = now();
  self->timed_out = false;
  self->until = begin + options_.reconcile_limit;
  self->limit.arm(self->until);
  const auto result = co_await call(self, item.key());
  self->limit.disarm();
  const std::chrono::duration<double> took = now() - begin;
  numbers_->time.Observe(took.count());
  numbers_->active.Decrement();
  queue_.time_has_passed();
  if (result) settle(item, *result);
}

/// Calls the reconciler with a cancellation signal of its own: cancelling this coroutine does not
/// cancel the reconcile. Returns nothing if the reconcile was cancelled at shutdown.
asio::awaitable<std::optional<reconcile_result>> controller::call(worker* self, object_key key) {
  std::exception_ptr thrown;
  try {
    auto work = target_.reconcile(std::move(key));
    auto result = co_await asio::co_spawn(
        executor_, std::move(work),
        asio::bind_cancellation_slot(self->give_up.slot(), asio::use_awaitable));
    co_return result;
  } catch (...) {
    thrown = std::current_exception();
  }
  if (const auto text = what_of(thrown)) {
    numbers_->panics.Increment();
    co_return reconcile_result::error("exception: " + *text);
  }
  if (!self->timed_out && stopping_) co_return std::nullopt;
  if (!self->timed_out) co_return reconcile_result::error("the reconcile cancelled itself");
  co_return reconcile_result::error("the reconcile did not end within its time limit");
}

void controller::settle(const work_queue::item& item, const reconcile_result& result) {
  const core::thread_owner::scope here(owner_);
  const auto& key = item.key();
  switch (result.type) {
    case reconcile_result::kind::done:
      numbers_->success.Increment();
      queue_.forget(key);
      tell_success(key);
      break;
    case reconcile_result::kind::requeue_after:
      numbers_->requeue_after.Increment();
      queue_.forget(key);
      queue_.add_after(key, result.after, item.priority());
      tell_success(key);
      break;
    case reconcile_result::kind::error:
      numbers_->error.Increment();
      numbers_->errors.Increment();
      queue_.add_rate_limited(key, item.priority(), result.after);
      tell_error(key, result);
      break;
    case reconcile_result::kind::terminal:
      numbers_->error.Increment();
      numbers_->errors.Increment();
      numbers_->terminal.Increment();
      queue_.forget(key);
      tell_error(key, result);
      break;
  }
}

void controller::tell_error(const object_key& key, const reconcile_result& result) {
  const auto& state = result.reason.empty() ? result.text : result.reason;
  const bool news = failing_.failed(key, state, now());
  numbers_->failing.Set(static_cast<double>(failing_.size()));
  if (!news) return;
  const bool again = result.type == reconcile_result::kind::error;
  environment_.log.error(again ? "reconcile failed; it will be repeated until it succeeds"
                               : "reconcile failed; it is not repeated until something changes",
                         {{"controller", options_.name},
                          {"namespace", key.ns},
                          {"name", key.name},
                          {"retry_after_s", std::chrono::duration<double>(result.after).count()},
                          {"reason", result.reason},
                          {"error", result.text}});
}

void controller::tell_success(const object_key& key) {
  const auto over = failing_.succeeded(key);
  if (!over) return;
  numbers_->failing.Set(static_cast<double>(failing_.size()));
  const std::chrono::duration<double> lasted = now() - over->since;
  environment_.log.info("reconcile succeeds again", {{"controller", options_.name},
                                                     {"namespace", key.ns},
                                                     {"name", key.name},
                                                     {"failures", over->tries},
                                                     {"seconds", lasted.count()}});
}

void controller::watch(informer& from) {
  watch(from, [](const delta& change, keys& batch) { batch.push_back(change.latest().key()); });
}

void controller::watch(informer& from, mapping<delta> map) {
  informers_.push_back(&from);
  add_source([this, &from, map = std::move(map)] {
    auto subscription = from.subscribe();
    subscriptions_.push_back(subscription);
    return forward<delta>(std::move(subscription), map);
  });
}

}  // namespace rw::k8s
