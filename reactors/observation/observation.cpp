#include "rw/reactors/observation/observation.hpp"

#include "rw/core/steady_calendar.hpp"
#include "rw/core/task_group.hpp"
#include "rw/core/wake.hpp"
#include "rw/reactors/observation/delivery_record.hpp"
#include "rw/reactors/observation/feed.hpp"
#include "rw/reactors/observation/plan.hpp"

#include <boost/asio/post.hpp>
#include <boost/asio/this_coro.hpp>
#include <boost/asio/use_awaitable.hpp>

#include <algorithm>
#include <map>
#include <utility>
#include <vector>

namespace rw::observation {
namespace {

namespace asio = boost::asio;

constexpr auto try_interval = std::chrono::seconds(30);  // of what receivers rejected for too long
constexpr auto tick = std::chrono::seconds(1);           // of metrics, journal and managers
constexpr std::size_t reviews_at_once = 256;
constexpr std::size_t lists_at_once = 2;  // each has its pages in memory
constexpr auto again_pause =
    std::chrono::minutes(10);  // from one sending of all objects to the next

struct series {
  explicit series(core::metrics& r)
      : objects(core::make_gauge(r, "rw_observation_objects",
                                 "Number of observed objects, for each Watcher")),
        live(core::make_gauge(r, "rw_observation_live_watches",
                              "Number of Watchers with a live watch")),
        unobserved(core::make_gauge(r, "rw_observation_unobserved_watches",
                                    "Number of Watchers whose events come from reviews alone")),
        undelivered(core::make_gauge(r, "rw_observation_undelivered",
                                     "Number of objects with an undelivered change")),
        waiting(core::make_gauge(r, "rw_observation_waiting_reviews",
                                 "Number of reviews whose event is not decided")),
        by_watch(events(r, "watch")),
        resyncs(events(r, "resync")),
        reviews(events(r, "review")),
        not_persisted(confirmations(r, "not_persisted")),
        missed(confirmations(r, "missed")),
        failed(confirmations(r, "failed")),
        lists(core::make_counter(r, "rw_observation_lists_total",
                                 "Number of lists that checked whether a watch shows all")) {}

  static core::counter& events(core::metrics& r, const char* cause) {
    return core::make_counter(r, "rw_observation_events_total",
                              "Number of events sent, by their cause", {{"cause", cause}});
  }
  static core::counter& confirmations(core::metrics& r, const char* result) {
    return core::make_counter(r, "rw_observation_confirmations_total",
                              "Number of objects read because no watch showed a review's write in "
                              "time",
                              {{"result", result}});
  }

  core::gauge& objects;
  core::gauge& live;
  core::gauge& unobserved;
  core::gauge& undelivered;
  core::gauge& waiting;
  core::counter& by_watch;
  core::counter& resyncs;
  core::counter& reviews;
  core::counter& not_persisted;
  core::counter& missed;
  core::counter& failed;
  core::counter& lists;
};

}  // namespace

class observation::implementation {
 public:
  implementation(asio::any_io_executor executor, observation_options options,
                 core::channel<watch_event>& reviews, observation_environment environment)
      : observer_(options.observer, environment.objects),
        executor_(executor),
        options_(std::move(options)),
        reviews_(reviews),
        environment_(std::move(environment)),
        calendar_(environment_.clock),
        random_(environment_.random),
        metrics_(environment_.metrics),
        record_(executor, observes() ? options_.journal : std::string(),
                {.clock = environment_.clock,
                 .log = environment_.log,
                 .metrics = environment_.metrics,
                 .random = [this] { return random_(); },
                 .boot_id = environment_.boot_id,
                 .blocking = environment_.blocking},
                {.objects = environment_.objects,
                 .gaps = environment_.gaps,
                 .on_recorded = [this] { environment_.dispatcher.pump(); }}),
        timer_(environment_.clock.make_timer(executor)),
        space_(executor),
        turns_(std::make_shared<list_turns>(executor, lists_at_once)) {}

  asio::awaitable<void> run();
  bool missed(const watch_event& review);
  delivery_record& record() noexcept { return record_; }
  std::size_t waiting() const noexcept { return observer_.waiting(); }
  observation_statistics statistics() const;
  watch_report report_of(const managed_watch& watch) const;

 private:
  asio::awaitable<void> read_reviews();
  asio::awaitable<void> drive();
  asio::awaitable<void> confirm(observer::confirmation read);
  void wake() { timer_->cancel(); }
  void list_again(const managed_watch& watch);
  void on_input();
  void on_tick(core::time_point now);
  bool observes() const;
  bool needs_tick() const;
  void update_plan();
  void tell_gaps(core::time_point now);
  void publish();

  observer observer_;
  const asio::any_io_executor executor_;
  const observation_options options_;
  core::channel<watch_event>& reviews_;
  const observation_environment environment_;
  const core::steady_calendar calendar_;
  core::random_source random_;  ///< of all feeds
  series metrics_;
  core::log_limit lag_log_;
  core::log_limit read_log_;
  delivery_record record_;
  std::map<std::string, core::time_point> sent_again_;  ///< by manager
  const std::unique_ptr<core::timer> timer_;
  core::wake space_;  ///< for reviews
  std::shared_ptr<const known_managers> managers_;
  const std::shared_ptr<list_turns> turns_;
  std::vector<std::shared_ptr<feed>> feeds_;
  core::time_point tick_ = core::time_point::min();
  core::time_point try_at_ = core::time_point::min();
  std::uint64_t not_persisted_ = 0;
  std::uint64_t published_live_ = 0;
  std::uint64_t published_resyncs_ = 0;
  core::task_group* tasks_ = nullptr;
};

asio::awaitable<void> observation::implementation::run() {
  core::task_group tasks(executor_);
  tasks_ = &tasks;
  record_.load();
  tasks.spawn(record_.run());
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

asio::awaitable<void> observation::implementation::read_reviews() {
  std::vector<watch_event> taken;
  for (;;) {
    taken.clear();
    const auto got = co_await reviews_.receive_some(taken, reviews_at_once);
    if (got.has_error()) break;
    const auto now = environment_.clock.now();
    update_plan();  // a review of a Watcher may come before the tick that finds it
    for (auto& review : taken) observer_.accept(std::move(review), now);
    wake();
    while (observer_.full()) co_await space_.wait();
    if (taken.size() == reviews_at_once) co_await asio::post(executor_, asio::use_awaitable);
  }
  observer_.close();
  wake();
}

/// Does what the observer says: the only place that asks it.
asio::awaitable<void> observation::implementation::drive() {
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

asio::awaitable<void> observation::implementation::confirm(observer::confirmation read) {
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

void observation::implementation::list_again(const managed_watch& watch) {
  metrics_.lists.Increment();
  for (const auto& each : feeds_) {
    const auto& watches = each->resource().watches;
    if (std::ranges::find(watches, watch) != watches.end()) each->list_again();
  }
}

/// Lists and watches have brought something.
void observation::implementation::on_input() {
  environment_.dispatcher.pump();
  if (observer_.waiting() > 0 || observer_.wants_list()) wake();
}

void observation::implementation::on_tick(core::time_point now) {
  tick_ = now + tick;
  update_plan();
  tell_gaps(now);
  if (now >= try_at_) {
    try_at_ = now + try_interval;
    environment_.objects.try_expired(now);
    environment_.dispatcher.pump();
  }
  publish();
}

bool observation::implementation::observes() const {
  return environment_.api != nullptr && environment_.managers != nullptr && options_.watches;
}

/// Where nothing is observed and nothing happens, the process sleeps.
bool observation::implementation::needs_tick() const {
  return observes() || observer_.waiting() > 0 || metrics_.waiting.Value() > 0;
}

void observation::implementation::update_plan() {
  if (!observes()) return;
  auto current = environment_.managers->current();
  if (current == managers_) return;
  managers_ = std::move(current);
  const auto next = make_plan(*managers_, options_.secrets);
  record_.keep_removed(next);
  for (const auto& added : observer_.set_watches(next)) {
    record_.take(added, next, [&](const auto& type) { observer_.set_type(added, type, false); });
  }
  record_.applied(next);
  for (const auto& other : next.unobserved) {
    environment_.log.info("Watcher not observed, its events come from reviews alone",
                          {{"manager", other.watch.manager},
                           {"resource", other.watch.watched.plural},
                           {"field", other.watch.field},
                           {"reason", other.reason}});
  }
  std::vector<std::shared_ptr<feed>> feeds;
  for (const auto& resource : next.resources) {
    const auto known = std::ranges::find_if(
        feeds_, [&](const auto& each) { return each && each->resource() == resource; });
    if (known != feeds_.end()) feeds.push_back(std::exchange(*known, nullptr));
  }
  for (const auto& each : feeds_) {
    if (each) each->end();
  }
  const feed_options options{options_.retry_base, options_.retry_limit};
  for (const auto& resource : next.resources) {
    const bool runs =
        std::ranges::any_of(feeds, [&](const auto& each) { return each->resource() == resource; });
    if (runs) continue;
    feeds.push_back(std::make_shared<feed>(
        resource, options,
        feed_environment{environment_.clock, environment_.log, environment_.metrics,
                         [this] { return random_(); }, *environment_.api, observer_,
                         [this] { on_input(); }, turns_}));
    tasks_->spawn(feed::run(feeds.back()));
  }
  feeds_ = std::move(feeds);
}

/// A manager whose receiver takes no heartbeats learns of its gaps by the events of all that
/// exists.
void observation::implementation::tell_gaps(core::time_point now) {
  if (environment_.gaps == nullptr) return;
  const auto informed = environment_.dispatcher.heartbeat_managers();
  const auto counts = environment_.gaps->counts();
  for (const auto& [manager, gaps] : counts) {
    const bool by_heartbeat =
        manager == heartbeat_component || std::ranges::find(informed, manager) != informed.end();
    if (!gaps.outstanding() || manager.empty() || by_heartbeat) continue;
    auto& last = sent_again_.try_emplace(manager, core::time_point::min()).first->second;
    if (last != core::time_point::min() && now < last + again_pause) continue;
    // Without observed Watchers KCP alone knows.
    if (!environment_.objects.send_again(manager, now)) continue;
    last = now;
    environment_.log.warning("events of a manager were lost, all its objects are sent again",
                             {{"manager", manager}});
    environment_.gaps->told(manager, gaps.raised);
  }
}

bool observation::implementation::missed(const watch_event& review) {
  const bool covered = observer_.missed(review, environment_.clock.now());
  if (covered) wake();
  return covered;
}

observation_statistics observation::implementation::statistics() const {
  observation_statistics out{.not_persisted = not_persisted_,
                             .resyncs = environment_.objects.taken_resyncs()};
  out.journal = record_.state();
  return out;
}

watch_report observation::implementation::report_of(const managed_watch& watch) const {
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
  }
  return out;
}

void observation::implementation::publish() {
  const auto& objects = environment_.objects;
  const auto count = [](core::counter& into, std::uint64_t& published, std::uint64_t now) {
    into.Increment(static_cast<double>(now - std::exchange(published, now)));
  };
  count(metrics_.by_watch, published_live_, objects.taken_live());
  count(metrics_.resyncs, published_resyncs_, objects.taken_resyncs());
  metrics_.objects.Set(static_cast<double>(objects.size()));
  metrics_.live.Set(static_cast<double>(observer_.live_watches()));
  metrics_.unobserved.Set(static_cast<double>(observer_.unobserved_watches()));
  metrics_.undelivered.Set(static_cast<double>(objects.undelivered()));
  metrics_.waiting.Set(static_cast<double>(observer_.waiting()));
}

observation::observation(asio::any_io_executor executor, observation_options options,
                         core::channel<watch_event>& reviews, observation_environment environment)
    : impl_(std::make_unique<implementation>(std::move(executor), std::move(options), reviews,
                                             std::move(environment))) {}
observation::~observation() = default;
asio::awaitable<void> observation::run() {
  return impl_->run();
}
bool observation::missed(const watch_event& review) {
  return impl_->missed(review);
}
void observation::record(const dispatch::observed_objects::table& of, std::string_view key,
                         state_hash delivered, core::time_point now) {
  impl_->record().record(of, key, delivered, now);
}
void observation::record(const std::string& manager, const gap_counts& now) {
  impl_->record().record_gap(manager, now);
}
asio::awaitable<void> observation::save() {
  return impl_->record().flush();
}
std::size_t observation::waiting() const noexcept {
  return impl_->waiting();
}
observation_statistics observation::statistics() const {
  return impl_->statistics();
}
void observation::reported() {
  impl_->record().reported();
}
watch_report observation::report_of(const managed_watch& watch) const {
  return impl_->report_of(watch);
}

}  // namespace rw::observation
