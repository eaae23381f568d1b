#include "reactors/observation/observation.hpp"

#include "core/task_group.hpp"
#include "core/wake.hpp"
#include "reactors/observation/feed.hpp"
#include "reactors/observation/ledger_file.hpp"
#include "reactors/observation/plan.hpp"

#include <boost/asio/post.hpp>
#include <boost/asio/this_coro.hpp>
#include <boost/asio/use_awaitable.hpp>

#include <algorithm>
#include <array>
#include <utility>
#include <vector>

namespace rw::observation {
namespace {

namespace asio = boost::asio;

constexpr auto tick = std::chrono::seconds(1);  // of metrics, ledger and managers
constexpr std::size_t reviews_at_once = 256;
constexpr std::size_t lists_at_once = 2;  // each has its pages in memory

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
        sent{&events(r, "watch"), &events(r, "resync"), &events(r, "review"),
             &events(r, "unverified")},
        not_persisted(confirmations(r, "not_persisted")),
        missed(confirmations(r, "missed")),
        failed(confirmations(r, "failed")) {}

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
  const std::array<core::counter*, 4> sent;  ///< in the order of `cause`
  core::counter& not_persisted;
  core::counter& missed;
  core::counter& failed;
};

}  // namespace

class observation::implementation {
 public:
  implementation(asio::any_io_executor executor, observation_options options,
                 core::channel<watch_event>& reviews, core::channel<watch_event>& events,
                 observation_environment environment)
      : observer_(options.observer),
        executor_(executor),
        options_(std::move(options)),
        reviews_(reviews),
        events_(events),
        in_(std::move(environment)),
        random_(in_.random),
        metrics_(in_.metrics),
        ledger_(executor, options_.ledger, observer_.objects(),
                {in_.clock, in_.log, in_.metrics, in_.blocking}),
        timer_(in_.clock.make_timer(executor)),
        space_(executor),
        turns_(std::make_shared<list_turns>(executor, lists_at_once)) {}

  asio::awaitable<void> run();
  void delivered(const watch_event& event, std::uint64_t mark);
  void lost(const watch_event& event, std::uint64_t mark);
  asio::awaitable<void> save() { return ledger_.save(); }
  std::size_t waiting() const noexcept { return observer_.waiting(); }
  observation_statistics statistics() const;
  watch_report report_of(const managed_watch& watch) const;

 private:
  asio::awaitable<void> read_reviews();
  asio::awaitable<void> drive();
  asio::awaitable<void> confirm(observer::confirmation read);
  void wake() { timer_->cancel(); }
  void on_tick(core::time_point now);
  bool observes() const;
  bool needs_tick() const;
  void update_plan();
  void remember(const plan& first);
  void publish();

  observer observer_;
  const asio::any_io_executor executor_;
  const observation_options options_;
  core::channel<watch_event>& reviews_;
  core::channel<watch_event>& events_;
  const observation_environment in_;
  core::random_source random_;  ///< of all feeds
  series metrics_;
  core::log_limit lag_log_;
  core::log_limit read_log_;
  ledger_file ledger_;
  const std::unique_ptr<core::timer> timer_;
  core::wake space_;  ///< for reviews
  std::shared_ptr<const known_managers> managers_;
  const std::shared_ptr<list_turns> turns_;
  std::vector<std::shared_ptr<feed>> feeds_;
  core::time_point tick_ = core::time_point::min();
  std::uint64_t resyncs_ = 0;
  std::uint64_t not_persisted_ = 0;
  core::task_group* tasks_ = nullptr;
};

asio::awaitable<void> observation::implementation::run() {
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
  events_.close();
  publish();
  if (failure) std::rethrow_exception(failure);
}

asio::awaitable<void> observation::implementation::read_reviews() {
  std::vector<watch_event> taken;
  for (;;) {
    taken.clear();
    const auto got = co_await reviews_.receive_some(taken, reviews_at_once);
    if (got.has_error()) break;
    const auto now = in_.clock.now();
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
    const auto now = in_.clock.now();
    if (now >= tick_) on_tick(now);
    auto next = observer_.poll(now);
    if (next.send) {
      metrics_.sent.at(static_cast<std::size_t>(next.reason))->Increment();
      if (next.reason == cause::resync) ++resyncs_;
      if (events_.try_send(*next.send) == core::send_status::full) {
        const auto error = co_await events_.send(std::move(*next.send));
        if (error) co_return;
      }
      if (!observer_.full()) space_.set();
    } else if (next.confirm) {
      tasks_->spawn(confirm(std::move(*next.confirm)));
    } else if (observer_.drained()) {
      tasks_->cancel();
      co_return;
    } else {
      timer_->expires_at(needs_tick() ? std::min(next.until, tick_) : next.until);
      co_await timer_->wait();
    }
  }
}

asio::awaitable<void> observation::implementation::confirm(observer::confirmation read) {
  using kind = observer::confirm_result::kind;
  const auto limit = std::chrono::duration_cast<std::chrono::milliseconds>(options_.read_timeout);
  auto found = co_await in_.api->get(read.type, read.review.watched, false, {.deadline = limit});
  observer::confirm_result result;
  if (found) {
    result = {kind::found, std::move(*found)};
  } else if (found.error().is(k8s::errc::not_found)) {
    result = {kind::not_found};
  } else {
    metrics_.failed.Increment();
    in_.log.limited(read_log_, core::log_level::warning,
                    "object not readable, its event is sent unverified",
                    {{"kind", read.type.gvk.kind},
                     {"namespace", read.review.watched.ns},
                     {"name", read.review.watched.name},
                     {"error", found.error().message}});
  }
  const auto outcome = observer_.confirm(read, result, in_.clock.now());
  if (outcome.not_persisted) {
    ++not_persisted_;
    metrics_.not_persisted.Increment();
  }
  if (!outcome.lagging.empty()) {
    metrics_.missed.Increment();
    in_.log.limited(lag_log_, core::log_level::warning, "watch lags behind, restarted",
                    {{"kind", read.type.gvk.kind},
                     {"namespace", read.review.watched.ns},
                     {"name", read.review.watched.name}});
  }
  for (const auto& each : feeds_) {
    const auto& watches = each->resource().watches;
    const bool lags = std::ranges::find_first_of(watches, outcome.lagging) != watches.end();
    if (lags) each->restart_watch();
  }
  wake();
}

void observation::implementation::on_tick(core::time_point now) {
  tick_ = now + tick;
  update_plan();
  publish();
  if (ledger_.due(now)) tasks_->spawn(ledger_.save());
}

bool observation::implementation::observes() const {
  return in_.api != nullptr && in_.managers != nullptr &&
         options_.observer.source != event_source::webhook;
}

/// Where nothing is observed and nothing happens, the process sleeps.
bool observation::implementation::needs_tick() const {
  return observes() || observer_.waiting() > 0 || metrics_.waiting.Value() > 0;
}

void observation::implementation::update_plan() {
  if (!observes()) return;
  auto current = in_.managers->current();
  if (current == managers_) return;
  const bool first = managers_ == nullptr;
  managers_ = std::move(current);
  const auto next = make_plan(*managers_, options_.secrets);
  observer_.set_watches(next);
  if (first) remember(next);
  for (const auto& other : next.others) {
    in_.log.info("Watcher not observed, its events come from reviews alone",
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
        feed_environment{in_.clock, in_.log, in_.metrics, [this] { return random_(); }, *in_.api,
                         observer_, [this] { wake(); }, turns_}));
    tasks_->spawn(feed::run(feeds.back()));
  }
  feeds_ = std::move(feeds);
}

/// Compares with the ledger what the first lists bring.
void observation::implementation::remember(const plan& first) {
  const auto ledger = ledger_.load();
  if (ledger.empty()) return;
  auto& objects = observer_.objects();
  for (const auto& resource : first.resources) {
    for (const auto& watch : resource.watches) {
      const auto known = ledger.find(watch);
      if (known == ledger.end()) continue;
      auto& table = objects.add(watch);
      for (const auto& [key, delivered] : known->second) {
        if (objects.size() < options_.observer.objects) objects.remember(table, key, delivered);
      }
    }
  }
  ledger_.set_current();
  in_.log.info("ledger read", {{"file", options_.ledger}, {"objects", objects.size()}});
}

void observation::implementation::delivered(const watch_event& event, std::uint64_t mark) {
  observer_.delivered(event, mark);
  if (observer_.objects().undelivered() > 0) wake();
}

void observation::implementation::lost(const watch_event& event, std::uint64_t mark) {
  observer_.lost(event, mark, in_.clock.now());
  wake();
}

observation_statistics observation::implementation::statistics() const {
  observation_statistics out{.not_persisted = not_persisted_, .resyncs = resyncs_};
  if (observes()) out.ledger = ledger_.state();
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
    if (each->given_up().empty() || std::ranges::find(watches, watch) == watches.end()) continue;
    out.state = watch_state::unobserved;
    out.reason = each->given_up();
  }
  return out;
}

void observation::implementation::publish() {
  const auto& objects = observer_.objects();
  metrics_.objects.Set(static_cast<double>(objects.size()));
  metrics_.live.Set(static_cast<double>(observer_.live_watches()));
  metrics_.unobserved.Set(static_cast<double>(observer_.unobserved_watches()));
  metrics_.undelivered.Set(static_cast<double>(objects.undelivered()));
  metrics_.waiting.Set(static_cast<double>(observer_.waiting()));
}

observation::observation(asio::any_io_executor executor, observation_options options,
                         core::channel<watch_event>& reviews, core::channel<watch_event>& events,
                         observation_environment environment)
    : impl_(std::make_unique<implementation>(std::move(executor), std::move(options), reviews,
                                             events, std::move(environment))) {}
observation::~observation() = default;
asio::awaitable<void> observation::run() {
  return impl_->run();
}
void observation::delivered(const watch_event& event, std::uint64_t mark) {
  impl_->delivered(event, mark);
}
void observation::lost(const watch_event& event, std::uint64_t mark) {
  impl_->lost(event, mark);
}
asio::awaitable<void> observation::save() {
  return impl_->save();
}
std::size_t observation::waiting() const noexcept {
  return impl_->waiting();
}
observation_statistics observation::statistics() const {
  return impl_->statistics();
}
watch_report observation::report_of(const managed_watch& watch) const {
  return impl_->report_of(watch);
}

}  // namespace rw::observation
