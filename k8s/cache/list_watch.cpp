#include "rw/k8s/cache/list_watch.hpp"

#include "rw/core/early_pause.hpp"
#include "rw/core/task_group.hpp"
#include "rw/core/text.hpp"
#include "rw/k8s/cache/informer_metrics.hpp"
#include "rw/k8s/cache/list_decoder.hpp"
#include "rw/k8s/cache/reflector.hpp"
#include "rw/k8s/cache/watch_attempt.hpp"
#include "rw/k8s/cache/watch_decoder.hpp"
#include "rw/k8s/objects/read_json.hpp"

#include <boost/asio/bind_cancellation_slot.hpp>
#include <boost/asio/cancellation_signal.hpp>
#include <boost/asio/co_spawn.hpp>
#include <boost/asio/error.hpp>
#include <boost/asio/this_coro.hpp>
#include <boost/asio/use_awaitable.hpp>
#include <boost/system/system_error.hpp>

#include <array>
#include <cstdint>
#include <exception>
#include <optional>
#include <utility>

namespace rw::k8s {
namespace {

namespace asio = boost::asio;
using action = reflector::action;
using phase = informer_metrics::phase;

/// A streaming list without an object for so long comes to nothing (antrea-io/antrea#8123).
constexpr core::duration stall = std::chrono::seconds(30);

reflector_options reflect(const list_watch_options& options) {
  return {options.page, options.streaming_list, options.watch_timeout, options.backoff_base,
          options.backoff_limit};
}

/// One generator for all who draw: its state is larger than all else here.
core::random_source shared(core::random_source random) {
  auto source = std::make_shared<core::random_source>(std::move(random));
  return [source = std::move(source)] { return (*source)(); };
}

[[noreturn]] void throw_cancelled() {
  throw boost::system::system_error(asio::error::operation_aborted);
}

/// Of each action::kind, for the log.
constexpr std::array<std::string_view, 4> action_texts{"ask for the server's version", "list",
                                                       "watch", "wait"};

}  // namespace

class list_watch::implementation {
 public:
  implementation(std::shared_ptr<api_source> api, resource_type of, list_watch_options options,
                 list_watch_environment environment, object_sink& into)
      : type(std::move(of)),
        metrics(environment.metrics, type),
        reflector(reflect(options), shared(std::move(environment.random))),
        api_(std::move(api)),
        options_(std::move(options)),
        clock_(environment.clock),
        log_(environment.log),
        sink_(into),
        format_(type, options_.objects.metadata_only, options_.any_version) {}

  asio::awaitable<void> run();
  void list_again();
  void try_early() { pause_.end_early(); }
  std::optional<core::time_point> suspect_since() const noexcept;

  const resource_type type;
  informer_metrics metrics;
  k8s::reflector reflector;

 private:
  asio::awaitable<void> drive();
  asio::awaitable<action> probe();
  // These take what `run` keeps until they have ended: a frame for each of thousands of informers
  // is worth being small.
  asio::awaitable<action> list(action step);
  asio::awaitable<action> watch(action step);
  asio::awaitable<void> break_off_stalled();
  asio::awaitable<action> pause(action step);
  template <typename T>
  asio::awaitable<std::optional<T>> unless_given_up(asio::awaitable<T> request);

  bool take(const decoded_event& event);
  void put(object next);
  action page_failed(phase phase, const failure& error);
  action watch_ended(const watch_attempt& attempt, failure error);

  void begin_listing();
  void begin_streaming();
  void give_up_request();
  void note_health();
  void set_live(bool live);
  void tell_page_failure(phase phase, const failure& error, const action& next);
  void tell_failure(std::string_view message, const failure& error, const action& next);

  const std::shared_ptr<api_source> api_;
  const list_watch_options options_;
  core::clock& clock_;
  core::logger& log_;
  core::log_limit log_limit_;
  core::log_limit over_budget_log_;
  object_sink& sink_;
  const object_format format_;
  watch_attempt* watch_ = nullptr;                ///< under way
  asio::cancellation_signal* request_ = nullptr;  ///< likewise
  core::early_pause pause_{clock_};
  core::time_point streamed_at_ = {};  ///< a streaming list brought something
  std::optional<core::time_point> suspect_since_;
  bool again_ = false;         ///< what comes next is to be a list
  bool stalled_ = false;       ///< the streaming list is
  bool watched_over_ = false;  ///< streaming lists are, by `break_off_stalled`
  core::task_group* tasks_ = nullptr;
  bool live_ = false;
};

asio::awaitable<void> list_watch::implementation::run() {
  core::task_group tasks(api_->get_executor());
  tasks_ = &tasks;
  std::exception_ptr thrown;
  try {
    co_await drive();
  } catch (...) {
    thrown = std::current_exception();
  }
  tasks_ = nullptr;
  tasks.cancel();
  co_await asio::this_coro::throw_if_cancelled(false);
  co_await tasks.join();
  if (thrown) std::rethrow_exception(thrown);
}

asio::awaitable<void> list_watch::implementation::drive() {
  again_ = stalled_ = watched_over_ = false;
  auto next = reflector.begin();
  for (;;) {
    switch (next.type) {
      case action::kind::probe:
        next = co_await probe();
        break;
      case action::kind::list:
        next = co_await list(next);
        break;
      case action::kind::watch:
        next = co_await watch(next);
        break;
      case action::kind::wait:
        next = co_await pause(next);
        break;
    }
    if (again_ && next.type != action::kind::wait) {
      again_ = false;
      next = reflector.list_again();
    }
    if (next.whole) sink_.end_listing();
    sink_.after_input();
  }
}

asio::awaitable<action> list_watch::implementation::pause(action step) {
  const auto length = co_await pause_.wait(api_->get_executor(), step.delay, step.may_end_early);
  if (!length) throw_cancelled();
  co_return reflector.waited(*length);
}

asio::awaitable<action> list_watch::implementation::probe() {
  const auto version = co_await api_->server_version();
  if (version) co_return reflector.version(version->first, version->second);
  metrics.failure(phase::probe);
  auto next = reflector.failed(version.error());
  tell_failure("the server does not tell its version", version.error(), next);
  co_return next;
}

asio::awaitable<action> list_watch::implementation::list(action step) {
  if (step.anew) begin_listing();
  auto request = api_->list_text(type, options_.objects, step.page);
  const auto response = co_await unless_given_up(std::move(request));
  if (!response) co_return step;  // void
  const auto& body = *response;
  if (!body) co_return page_failed(phase::list, body.error());
  auto page = decode_list(*body, format_, options_.keep);
  if (!page) {
    auto error = page.error();
    error.message = "cannot list " + type.plural + ": the answer " + error.message;
    co_return page_failed(phase::decode, error);
  }
  const auto objects = page->items.size();
  std::uint64_t digest = 0;
  for (auto& each : page->items) {
    digest += k8s::reflector::digest_of(each, each.resource_version());
    put(std::move(each));
  }
  auto next = reflector.listed(page->resource_version, page->continue_token, objects, digest);
  if (next.error.code) {
    next.error.message = "cannot list " + type.plural + ": " + next.error.message;
    tell_page_failure(phase::list, next.error, next);
  }
  co_return next;
}

action list_watch::implementation::page_failed(phase phase, const failure& error) {
  auto next = reflector.failed(error);
  tell_page_failure(phase, error, next);
  return next;
}

void list_watch::implementation::tell_page_failure(phase phase, const failure& error,
                                                   const action& next) {
  set_live(false);
  metrics.failure(phase);
  sink_.request_failed(error);
  tell_failure("a list failed", error, next);
}

/// Ends a streaming list that brings nothing, and with the list.
asio::awaitable<void> list_watch::implementation::break_off_stalled() {
  const auto alarm = clock_.make_timer(api_->get_executor());
  while (reflector.state() == k8s::reflector::state::streaming) {
    // Until then it may wait for its turn.
    const bool answered = watch_ != nullptr && watch_->began;
    if (answered && clock_.now() - streamed_at_ >= stall) {
      stalled_ = true;
      give_up_request();
      break;
    }
    alarm->expires_at((answered ? streamed_at_ : clock_.now()) + stall);
    const bool due = co_await alarm->wait();
    if (!due) co_return;
  }
  watched_over_ = false;
}

asio::awaitable<action> list_watch::implementation::watch(action step) {
  if (step.anew && !api_->streams_lists()) co_return reflector.streams_ruled_out();
  if (step.anew) begin_streaming();
  watch_decoder decoder(format_, options_.keep, options_.event_bytes,
                        [this](const decoded_event& event) { return take(event); });
  // A streaming list is live once it is complete.
  const bool complete = !step.anew;
  watch_attempt attempt(
      api_->get_executor(), clock_, std::move(decoder),
      [this, complete] {
        if (complete) set_live(true);
        streamed_at_ = clock_.now();
      },
      [this] { sink_.after_input(); });
  const watch_guard guard(watch_, attempt);
  auto bounds = step.watch;
  bounds.silence = options_.silence;
  auto request = api_->open_watch(type, options_.objects, std::move(bounds), attempt);
  const auto opened = co_await unless_given_up(std::move(request));
  if (opened && !*opened && !attempt.given_up) co_return watch_ended(attempt, opened->error());
  if (opened && *opened && **opened) {
    const auto cancelled = co_await attempt.over.wait();
    if (cancelled) throw_cancelled();
  }
  if (std::exchange(stalled_, false)) {
    metrics.watch(informer_metrics::watch_end::silent);
    api_->rule_out_streaming_lists();
    auto next = reflector.streams_ruled_out();
    tell_failure("a streaming list does not end",
                 {.code = errc::timed_out,
                  .message = "cannot list " + type.plural + ": nothing came for 30 s"},
                 next);
    co_return next;
  }
  if (attempt.given_up) {
    metrics.watch(informer_metrics::watch_end::ended);
    co_return step;  // void
  }
  failure error;
  if (attempt.error) {
    error = {.code = errc_of(attempt.error),
             .message = "cannot watch " + type.plural + ": " + attempt.error.message()};
  }
  co_return watch_ended(attempt, std::move(error));
}

void list_watch::implementation::put(object next) {
  // A shorter text is within any budget: no byte takes more than 64 of memory.
  constexpr std::size_t always_within = json_budget().least_memory / 64;
  const auto text = next.text();
  const auto over = options_.any_cost || text.size() < always_within
                        ? std::string_view()
                        : over_budget(text, {.depth = max_object_depth});
  if (over.empty()) return sink_.put(std::move(next));
  metrics.failure(phase::decode);
  log_.limited(over_budget_log_, core::log_level::warning,
               "an object is not taken in, what was known of it stays",
               {{"resource", type.plural},
                {"namespace", core::printable(next.ns())},
                {"name", core::printable(next.name())},
                {"reason", "it " + std::string(over)}});
  sink_.keep(next);
}

bool list_watch::implementation::take(const decoded_event& event) {
  metrics.event(event.type);
  if (reflector.state() == k8s::reflector::state::streaming) streamed_at_ = clock_.now();
  switch (reflector.event(event)) {
    case k8s::reflector::verdict::apply:
      if (event.type == decoded_event::kind::deleted) {
        sink_.remove(event.subject);
      } else {
        put(event.subject);
      }
      return true;
    case k8s::reflector::verdict::nothing:
      return true;
    case k8s::reflector::verdict::whole:
      sink_.end_listing();
      set_live(true);
      return true;
    case k8s::reflector::verdict::stop:
      break;
  }
  return false;
}

/// `error` has no code if the watch ended in order, as far as its transport knows.
action list_watch::implementation::watch_ended(const watch_attempt& attempt, failure error) {
  set_live(false);
  using ending = k8s::reflector::watch_end;
  using label = informer_metrics::watch_end;
  auto ended = ending::in_order;
  auto counted = label::ended;
  if (attempt.decoder.error().code) {
    ended = ending::bad_event;
    counted = label::bad_event;
    error = attempt.decoder.error();
    error.message = "cannot watch " + type.plural + ": " + error.message;
    metrics.failure(phase::decode);
  } else if (reflector.error_event().code) {
    ended = ending::broken;
    error = reflector.error_event();
    counted = error.is(errc::gone) ? label::expired : label::refused;
  } else if (error.code) {
    ended = ending::broken;
    const bool silent = error.is(errc::timed_out) && attempt.began;
    counted = error.is(errc::gone) ? label::expired
              : error.status != 0  ? label::refused
              : silent             ? label::silent
                                   : label::broken;
  }
  const bool was_listing = reflector.state() == k8s::reflector::state::streaming;
  auto next = reflector.watch_ended(ended, error, attempt.lasted());
  const bool empty = ended == ending::in_order && reflector.was_fruitless();
  metrics.watch(empty ? label::empty : counted);
  note_health();
  if (ended != ending::in_order) {
    if (ended != ending::bad_event) metrics.failure(phase::watch);
    sink_.request_failed(error);
    tell_failure("a watch broke off", error, next);
  } else if (empty) {
    tell_failure("a watch ended without having brought anything",
                 {.code = errc::bad_response,
                  .message = "cannot watch " + type.plural +
                             ": the server, or what is before it, "
                             "ends the watch at once"},
                 next);
  } else if (was_listing) {
    tell_failure("a streaming list ended before it was complete",
                 {.code = errc::bad_response, .message = "cannot list " + type.plural}, next);
  }
  return next;
}

void list_watch::implementation::note_health() {
  if (!reflector.is_suspect()) {
    suspect_since_.reset();
  } else if (!suspect_since_) {
    suspect_since_ = clock_.now();
  }
}

std::optional<core::time_point> list_watch::implementation::suspect_since() const noexcept {
  if (!reflector.is_suspect()) return std::nullopt;
  const auto lasted = watch_ != nullptr ? watch_->lasted() : std::nullopt;
  return lasted && *lasted >= watch_health::proof_of_life ? std::nullopt : suspect_since_;
}

void list_watch::implementation::tell_failure(std::string_view message, const failure& error,
                                              const action& next) {
  using std::chrono::duration_cast;
  using std::chrono::milliseconds;
  log_.limited(log_limit_, core::log_level::warning, "informer is set back",
               {{"resource", type.plural},
                {"what", message},
                {"error", error.message},
                {"next", action_texts.at(static_cast<std::size_t>(next.type))},
                {"pause_ms", duration_cast<milliseconds>(next.delay).count()}});
}

void list_watch::implementation::begin_streaming() {
  begin_listing();
  streamed_at_ = clock_.now();
  stalled_ = false;
  if (!std::exchange(watched_over_, true)) tasks_->spawn(break_off_stalled());
}

void list_watch::implementation::begin_listing() {
  metrics.list();
  sink_.begin_listing();
}

void list_watch::implementation::set_live(bool live) {
  if (std::exchange(live_, live) != live) sink_.live(live);
}

/// Awaits a request that `list_again` cancels, or that ends with its caller. Nothing: it was given
/// up.
template <typename T>
asio::awaitable<std::optional<T>> list_watch::implementation::unless_given_up(
    asio::awaitable<T> request) {
  asio::cancellation_signal signal;
  const auto caller = co_await asio::this_coro::cancellation_state;
  auto slot = caller.slot();
  if (slot.is_connected()) {
    slot.assign([&signal](asio::cancellation_type type) { signal.emit(type); });
  }
  request_ = &signal;
  std::optional<T> response;
  std::exception_ptr thrown;
  bool given_up = false;
  try {
    response =
        co_await asio::co_spawn(api_->get_executor(), std::move(request),
                                asio::bind_cancellation_slot(signal.slot(), asio::use_awaitable));
  } catch (const boost::system::system_error& error) {
    thrown = std::current_exception();
    given_up = (again_ || stalled_) && error.code() == asio::error::operation_aborted;
  } catch (...) {
    thrown = std::current_exception();
  }
  // `list_again` may still be called when the driver has ended.
  request_ = nullptr;
  slot.clear();
  given_up = given_up && caller.cancelled() == asio::cancellation_type::none;
  if (thrown && !given_up) std::rethrow_exception(thrown);
  co_return response;
}

void list_watch::implementation::list_again() {
  again_ = true;
  give_up_request();
}

void list_watch::implementation::give_up_request() {
  if (watch_ != nullptr) {
    watch_->given_up = true;
    watch_->over.set();
  }
  if (request_ != nullptr) request_->emit(asio::cancellation_type::terminal);
}

list_watch::list_watch(std::shared_ptr<api_source> api, resource_type type,
                       list_watch_options options, list_watch_environment environment,
                       object_sink& into)
    : impl_(std::make_unique<implementation>(std::move(api), std::move(type), std::move(options),
                                             std::move(environment), into)) {}

list_watch::~list_watch() = default;

asio::awaitable<void> list_watch::run() {
  return impl_->run();
}

void list_watch::list_again() {
  impl_->list_again();
}

void list_watch::try_early() {
  impl_->try_early();
}

std::optional<core::time_point> list_watch::suspect_since() const noexcept {
  return impl_->suspect_since();
}

void list_watch::report(std::size_t objects, std::size_t pending) {
  impl_->metrics.report(objects, pending);
}

const std::string& list_watch::resource_version() const noexcept {
  return impl_->reflector.resource_version();
}

const resource_type& list_watch::type() const noexcept {
  return impl_->type;
}

}  // namespace rw::k8s
