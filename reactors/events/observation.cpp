#include "rw/reactors/events/observation.hpp"

#include "rw/reactors/events/plan.hpp"

#include <boost/asio/post.hpp>
#include <boost/asio/this_coro.hpp>
#include <boost/asio/use_awaitable.hpp>

#include <algorithm>
#include <utility>

namespace rw::observation {
namespace {

namespace asio = boost::asio;

constexpr auto tick = std::chrono::seconds(1);        // of metrics and managers
constexpr auto quiet_tick = std::chrono::seconds(5);  // where nothing is observed
constexpr std::size_t reviews_at_once = 256;
constexpr std::size_t lists_at_once = 2;  // each has its pages in memory

/// Nothing is observed.
observation_plan of_reviews(const known_managers& managers) {
  observation_plan out;
  for (const auto& watch : managers.watches()) out.unobserved.push_back({watch, "no watches"});
  return out;
}

}  // namespace

observation::observation(asio::any_io_executor executor, observation_options options,
                         core::channel<watch_event>& reviews, observation_environment environment)
    : observer_(options.observer, environment.objects),
      executor_(executor),
      options_(std::move(options)),
      reviews_(reviews),
      environment_(std::move(environment)),
      calendar_(environment_.clock),
      random_(environment_.random),
      metrics_(environment_.metrics),
      timer_(environment_.clock.make_timer(executor)),
      space_(executor),
      turns_(std::make_shared<list_turns>(executor, lists_at_once)) {}

asio::awaitable<void> observation::run() {
  core::task_group tasks(executor_);
  tasks_ = &tasks;
  tasks.spawn(read_reviews());
  tasks.spawn(drive());
  std::exception_ptr failure;
  try {
    co_await tasks.join();
  } catch (...) {
    failure = std::current_exception();
  }
  tasks_ = nullptr;
  environment_.dispatcher.close();
  publish();
  if (failure) std::rethrow_exception(failure);
}

asio::awaitable<void> observation::read_reviews() {
  std::vector<watch_event> taken;
  for (;;) {
    taken.clear();
    const auto got = co_await reviews_.receive_some(taken, reviews_at_once);
    if (got.has_error()) break;
    const auto now = environment_.clock.now();
    update_plan();  // a review of a Watcher may come before the tick that finds it
    bool passed = false;
    for (auto& review : taken) {
      if (observer_.passes(review)) {
        metrics_.reviews.Increment();
        observer_.sending(review);
        environment_.dispatcher.offer(std::move(review));
        passed = true;
      } else {
        observer_.accept(std::move(review), now);
      }
    }
    if (passed) environment_.dispatcher.pump();
    // Reviews come from an API server that is alive, or from any client: feeds bound this.
    for (const auto& each : feeds_) each->try_early();
    if (observer_.waiting() > 0) wake();
    while (observer_.full()) co_await space_.wait();
    if (taken.size() == reviews_at_once) co_await asio::post(executor_, asio::use_awaitable);
  }
  observer_.close();
  wake();
}

/// Does what the observer says: the only place that asks it.
asio::awaitable<void> observation::drive() {
  for (;;) {
    const auto now = environment_.clock.now();
    if (now >= tick_) on_tick(now);
    auto next = observer_.poll(now);
    if (!observer_.full()) space_.set();
    if (next.send) {
      metrics_.reviews.Increment();
      environment_.dispatcher.offer(std::move(*next.send));
    } else if (next.confirm) {
      tasks_->spawn(confirm(std::move(*next.confirm)));
    } else if (next.list) {
      list_again(*next.list);
    } else if (observer_.drained()) {
      tasks_->cancel();
      co_return;
    } else {
      environment_.dispatcher.pump();
      timer_->expires_at(needs_tick() ? std::min(next.until, tick_) : next.until);
      co_await timer_->wait();
    }
  }
}

asio::awaitable<void> observation::confirm(observer::confirmation read) {
  using kind = observer::confirm_result::kind;
  const auto limit = std::chrono::duration_cast<std::chrono::milliseconds>(options_.read_timeout);
  auto found =
      co_await environment_.api->get(read.type, read.review.watched, false, {.deadline = limit});
  observer::confirm_result result;
  if (found) {
    result = {kind::found, std::move(*found)};
  } else if (found.error().is(k8s::errc::not_found)) {
    result = {kind::not_found};
  } else {
    metrics_.failed.Increment();
    environment_.log.limited(read_log_, core::log_level::warning,
                             "object not readable, its resource is listed instead",
                             {{"kind", read.type.gvk.kind},
                              {"namespace", read.review.watched.ns},
                              {"name", read.review.watched.name},
                              {"error", found.error().message}});
  }
  const auto ended = observer_.confirm(read, result, environment_.clock.now());
  if (ended == observer::confirmed::not_persisted) {
    ++not_persisted_;
    metrics_.not_persisted.Increment();
  }
  if (ended == observer::confirmed::missed) {
    metrics_.missed.Increment();
    environment_.log.limited(lag_log_, core::log_level::warning, "watch lags behind, listing again",
                             {{"kind", read.type.gvk.kind},
                              {"namespace", read.review.watched.ns},
                              {"name", read.review.watched.name}});
  }
  wake();
}

void observation::list_again(const managed_watch& watch) {
  metrics_.lists.Increment();
  for (const auto& each : feeds_) {
    const auto& watches = each->resource().watches;
    if (std::ranges::find(watches, watch) != watches.end()) each->list_again();
  }
}

/// Lists and watches have brought something.
void observation::on_input() {
  environment_.dispatcher.pump();
  if (observer_.waiting() > 0 || observer_.wants_list()) wake();
}

void observation::on_tick(core::time_point now) {
  tick_ = now + (observes() || observer_.waiting() > 0 ? tick : quiet_tick);
  update_plan();
  publish();
}

bool observation::observes() const {
  return environment_.api != nullptr && environment_.managers != nullptr && options_.watches;
}

/// Without a managers' file, and where nothing happens, the process sleeps.
bool observation::needs_tick() const {
  return environment_.managers != nullptr || observer_.waiting() > 0 ||
         metrics_.waiting.Value() > 0;
}

void observation::update_plan() {
  auto current = environment_.managers != nullptr ? environment_.managers->current() : nullptr;
  if (current == managers_) return;
  managers_ = std::move(current);
  const auto next = observes() ? make_plan(*managers_, options_.secrets) : of_reviews(*managers_);
  observer_.set_watches(next, environment_.clock.now());
  environment_.dispatcher.pump();
  for (const auto& other : next.unobserved) {
    if (!observes()) break;
    environment_.log.info("Watcher not observed, its events come from reviews alone",
                          {{"manager", other.watch.manager},
                           {"resource", other.watch.watched.plural},
                           {"field", other.watch.field},
                           {"reason", other.reason}});
  }
  const feed_options options{options_.retry_base, options_.retry_limit};
  std::vector<std::shared_ptr<feed>> feeds;
  for (auto resource : next.resources) {
    // Those that stay are not listed again.
    for (auto& each : feeds_) {
      const bool goes_on =
          each && each->resource().same_selection(resource) && each->retain(resource.watches);
      if (!goes_on) continue;
      std::erase_if(resource.watches, [&](const auto& watch) { return each->has(watch); });
      feeds.push_back(std::exchange(each, nullptr));
    }
    if (resource.watches.empty()) continue;
    feeds.push_back(std::make_shared<feed>(
        std::move(resource), options,
        feed_environment{environment_.clock, environment_.log, environment_.metrics,
                         [this] { return random_(); }, *environment_.api, observer_,
                         [this] { on_input(); }, turns_}));
    tasks_->spawn(feed::run(feeds.back()));
  }
  for (const auto& each : feeds_) {
    if (each) each->end();
  }
  feeds_ = std::move(feeds);
}

bool observation::missed(const watch_event& review) {
  const auto now = environment_.clock.now();
  const bool covered = observer_.missed(review, now);
  if (!covered) environment_.objects.drop_review(review.manager, now);
  wake();
  return covered;
}

observation_statistics observation::statistics() const {
  return {.not_persisted = not_persisted_};
}

watch_report observation::report_of(const managed_watch& watch) const {
  watch_report out{watch.manager, watch.watched.group, watch.watched.plural, watch.field};
  if (!observes()) {
    out.reason = "no watches, or no API server";
    return out;
  }
  out.reason = unobserved_reason(watch, options_.secrets);
  if (!out.reason.empty()) return out;
  out.state = observer_.is_live(watch) ? watch_state::live : watch_state::catching_up;
  for (const auto& each : feeds_) {
    const auto& watches = each->resource().watches;
    if (std::ranges::find(watches, watch) == watches.end()) continue;
    const auto since = each->live_since();
    // What is not served has no objects, so nothing is missed.
    if (each->is_absent()) out.state = watch_state::live;
    if (out.state == watch_state::live && since) out.live_since = calendar_.at(*since);
    out.reason = each->given_up();
    if (!out.reason.empty() && !each->is_absent()) out.state = watch_state::unobserved;
    if (!each->is_suspect() || !out.reason.empty()) continue;
    out.state = watch_state::catching_up;
    out.reason = "its watches end without having brought anything";
  }
  return out;
}

void observation::publish() {
  const auto& objects = environment_.objects;
  const auto count = [](core::counter& into, std::uint64_t& published, std::uint64_t now) {
    into.Increment(static_cast<double>(now - std::exchange(published, now)));
  };
  count(metrics_.by_watch, published_live_, objects.taken_live());
  count(metrics_.by_list, published_listed_, objects.taken_listed());
  metrics_.objects.Set(static_cast<double>(objects.size()));
  std::size_t suspect = 0;
  for (const auto& each : feeds_) {
    if (!each->is_suspect()) continue;
    suspect += static_cast<std::size_t>(std::ranges::count_if(
        each->resource().watches, [this](const auto& watch) { return observer_.is_live(watch); }));
  }
  metrics_.live.Set(static_cast<double>(observer_.live_watches() - suspect));
  metrics_.unobserved.Set(static_cast<double>(observer_.unobserved_watches()));
  metrics_.undelivered.Set(static_cast<double>(objects.undelivered()));
  metrics_.waiting.Set(static_cast<double>(observer_.waiting()));
}

}  // namespace rw::observation
