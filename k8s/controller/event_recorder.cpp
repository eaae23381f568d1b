#include "rw/k8s/controller/event_recorder.hpp"

#include "rw/k8s/client/retry.hpp"

#include <algorithm>
#include <utility>

namespace rw::k8s {
namespace {

namespace asio = boost::asio;
namespace json = boost::json;

core::counter& outcome(core::metrics& registry, const std::string& component, const char* result) {
  return core::make_counter(registry, "rw_events_total", "Number of Kubernetes Events, by outcome",
                            {{"component", component}, {"outcome", result}});
}

}  // namespace

/// Counts the notes left when the coroutine ends, however it ends.
struct event_recorder::on_exit {
  event_recorder& in;
  ~on_exit() { in.give_up_rest(); }
};

event_recorder::event_recorder(asio::any_io_executor executor, std::shared_ptr<object_api> api,
                               event_recorder_options options,
                               event_recorder_environment environment)
    : api_(std::move(api)),
      options_(std::move(options)),
      environment_(std::move(environment)),
      created_(outcome(environment_.metrics, options_.component, "created")),
      repeated_(outcome(environment_.metrics, options_.component, "repeated")),
      spam_(outcome(environment_.metrics, options_.component, "spam")),
      dropped_(outcome(environment_.metrics, options_.component, "dropped")),
      failed_(outcome(environment_.metrics, options_.component, "failed")),
      abandoned_(outcome(environment_.metrics, options_.component, "abandoned")),
      notes_(std::max<std::size_t>(options_.queue, 1)),
      correlator_(options_.component, options_.instance, options_.limits),
      alarm_(environment_.clock.make_timer(std::move(executor))) {}

void event_recorder::record(event_note note) noexcept {
  if (environment_.log.enabled(core::log_level::debug)) {
    environment_.log.debug("event", {{"kind", note.about.kind},
                                     {"namespace", note.about.ns},
                                     {"name", note.about.name},
                                     {"reason", note.reason},
                                     {"message", note.message}});
  }
  if (notes_.try_send(note) == core::send_status::sent) return;
  dropped_.Increment();
  environment_.log.limited(drop_log_, core::log_level::warning,
                           "event dropped: too many wait to be written",
                           {{"reason", note.reason}, {"name", note.about.name}});
}

asio::awaitable<void> event_recorder::run() {
  const on_exit end{*this};
  for (;;) {
    auto note = co_await notes_.receive();
    if (note.has_error()) co_return;
    auto decided = correlator_.next(*note, environment_.clock.now(), environment_.clock.wall());
    if (!decided) {
      spam_.Increment();
      continue;
    }
    writing_ = true;
    co_await write(std::move(*decided));
    writing_ = false;
  }
}

asio::awaitable<void> event_recorder::write(event_correlator::write pending) {
  core::backoff pause(options_.backoff_base, options_.backoff_limit, environment_.random);
  for (unsigned tried = 1;; ++tried) {
    const auto result = co_await attempt(pending);
    if (result.has_value()) {
      (pending.repeated ? repeated_ : created_).Increment();
      co_return;
    }
    // A repeated create does no harm: the event has a name of its own.
    const auto& error = result.error();
    const bool again = worth_another_try(error, {}) && tried < options_.tries;
    if (!again) {
      failed_.Increment();
      environment_.log.limited(failure_log_, core::log_level::warning,
                               "event could not be written; it is dropped",
                               {{"event", find_string(pending.object, {"metadata", "name"})},
                                {"tries", tried},
                                {"error", error.message}});
      co_return;
    }
    const auto wait = std::max(pause.next(), core::duration(error.retry_after));
    if (wait > options_.backoff_limit) {
      environment_.log.limited(delay_log_, core::log_level::info,
                               "events are delayed by the server's Retry-After",
                               {{"seconds", error.retry_after.count()}, {"error", error.message}});
    }
    alarm_->expires_at(environment_.clock.now() + wait);
    co_await alarm_->wait();
  }
}

asio::awaitable<result<json::value>> event_recorder::attempt(event_correlator::write pending) {
  if (pending.repeated) {
    auto key = key_of(pending.object);
    auto change = pending.change();
    auto merged = co_await api_->merge(events_type(), std::move(key), std::move(change));
    // The API server deletes events after an hour.
    if (merged.has_value() || !merged.error().is(errc::not_found)) co_return merged;
  }
  auto object = pending.object;
  auto made = co_await api_->create(events_type(), std::move(object));
  const bool there = made.has_error() && made.error().is(errc::already_exists);
  if (there && !pending.repeated) co_return pending.object;  // an earlier try has succeeded
  co_return made;
}

void event_recorder::give_up_rest() {
  std::size_t left = writing_ ? 1 : 0;
  while (notes_.try_receive()) ++left;
  if (left == 0) return;
  abandoned_.Increment(static_cast<double>(left));
  environment_.log.warning("events were not written before the end", {{"events", left}});
}

}  // namespace rw::k8s
