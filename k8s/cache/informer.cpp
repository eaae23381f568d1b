#include "k8s/cache/informer.hpp"

#include "core/task_group.hpp"
#include "core/wake.hpp"
#include "k8s/cache/informer_metrics.hpp"
#include "k8s/cache/list_decoder.hpp"
#include "k8s/cache/reflector.hpp"
#include "k8s/cache/subscribers.hpp"
#include "k8s/cache/watch_decoder.hpp"
#include "k8s/objects/object_set.hpp"

#include <boost/asio/error.hpp>
#include <boost/system/system_error.hpp>

#include <array>
#include <exception>
#include <utility>

namespace rw::k8s {
namespace {

namespace asio = boost::asio;
using action = reflector::action;
using phase = informer_metrics::phase;

reflector_options reflect(const informer_options& options) {
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

/// A watch that is under way: has what comes decoded, and knows how long it has lasted.
struct watch_attempt final : watch_sink {
  watch_attempt(asio::any_io_executor executor, core::clock& time, watch_decoder with,
                std::function<void()> after)
      : clock(time), decoder(std::move(with)), after_bytes(std::move(after)), over(executor) {}

  void begin() override {
    if (!began) began = clock.now();
  }
  bool take(std::string_view bytes) override {
    begin();
    const bool go_on = decoder.feed(bytes);
    after_bytes();
    return go_on;
  }
  void end(boost::system::error_code how) override {
    if (how != http::client_error::abandoned) error = how;  // it had enough
    over.set();
  }
  /// Since its answer's head came: the time until then says nothing good of the server.
  core::duration lasted() const { return began ? clock.now() - *began : core::duration::zero(); }

  core::clock& clock;
  watch_decoder decoder;
  const std::function<void()> after_bytes;
  std::optional<core::time_point> began;
  boost::system::error_code error;  ///< that an opened one ended with
  core::wake over;                  ///< set when an opened one has ended
};

}  // namespace

class informer::implementation : public std::enable_shared_from_this<implementation> {
 public:
  implementation(std::shared_ptr<api_source> api, resource_type of, informer_options how,
                 informer_environment environment)
      : type(std::move(of)),
        api_(std::move(api)),
        options_(std::move(how)),
        clock_(environment.clock),
        log_(environment.log),
        metrics_(environment.metrics, type),
        format_(type, options_.what.metadata_only, options_.any_version),
        reflector_(reflect(options_), shared(std::move(environment.random))) {}

  static asio::awaitable<void> run(std::shared_ptr<implementation> self);
  static asio::awaitable<bool> wait_synced(std::shared_ptr<implementation> self);

  /// Nothing comes any more.
  void end();
  void report() { metrics_.report(objects.size(), listeners.pending()); }

  const std::string& resource_version() const noexcept { return reflector_.resource_version(); }

  const resource_type type;
  store objects;
  subscribers listeners{[this] { report(); }};
  bool synced = false;

 private:
  static asio::awaitable<void> work(std::shared_ptr<implementation> self);
  asio::awaitable<action> probe();
  // These take what `work` keeps until they have ended: a frame for each of thousands of informers
  // is worth being small.
  asio::awaitable<action> list(const action& what);
  asio::awaitable<action> watch(const action& what);
  asio::awaitable<action> pause(const action& what);

  bool take(const watch_event& event);
  action page_failed(phase where, const failure& why);
  action watch_ended(const watch_attempt& attempt, failure why);

  void begin_listing();
  void put(object next);
  void remove(const object& last);
  void end_listing();
  void tell_failure(std::string_view what, const failure& why, const action& next);

  const std::shared_ptr<api_source> api_;
  const informer_options options_;
  core::clock& clock_;
  core::logger& log_;
  core::log_limit log_limit_;
  informer_metrics metrics_;
  const object_format format_;
  reflector reflector_;
  object_set unseen_;  ///< while listing: what was there before and has not been listed yet
  core::wake_list waiting_{api_->get_executor()};  ///< for the first list
  bool ended_ = false;
};

asio::awaitable<void> informer::implementation::run(std::shared_ptr<implementation> self) {
  core::task_group tasks(self->api_->get_executor());
  self->listeners.run_in(&tasks);
  tasks.spawn(work(self));
  std::exception_ptr failure;
  try {
    co_await tasks.join();
  } catch (...) {
    failure = std::current_exception();
  }
  self->end();
  if (failure) std::rethrow_exception(failure);
}

void informer::implementation::end() {
  ended_ = true;
  listeners.run_in(nullptr);
  listeners.close();
  waiting_.wake_all();
  report();
}

asio::awaitable<bool> informer::implementation::wait_synced(std::shared_ptr<implementation> self) {
  if (!self->synced && !self->ended_) co_await self->waiting_.wait();
  co_return self->synced;
}

asio::awaitable<void> informer::implementation::work(std::shared_ptr<implementation> self) {
  auto next = self->reflector_.begin();
  for (;;) {
    switch (next.what) {
      case action::kind::probe:
        next = co_await self->probe();
        break;
      case action::kind::list:
        next = co_await self->list(next);
        break;
      case action::kind::watch:
        next = co_await self->watch(next);
        break;
      case action::kind::wait:
        next = co_await self->pause(next);
        break;
    }
    if (next.whole) self->end_listing();
    self->report();
  }
}

asio::awaitable<action> informer::implementation::pause(const action& what) {
  const auto alarm = clock_.make_timer(api_->get_executor());
  alarm->expires_at(clock_.now() + what.delay);
  const bool due = co_await alarm->wait();
  if (!due) throw_cancelled();
  co_return reflector_.waited();
}

asio::awaitable<action> informer::implementation::probe() {
  const auto version = co_await api_->server_version();
  if (version) co_return reflector_.version(version->first, version->second);
  metrics_.failure(phase::probe);
  auto next = reflector_.failed(version.error());
  tell_failure("the server does not tell its version", version.error(), next);
  co_return next;
}

asio::awaitable<action> informer::implementation::list(const action& what) {
  if (what.anew) begin_listing();
  const auto body = co_await api_->list_text(type, options_.what, what.page);
  if (!body) co_return page_failed(phase::list, body.error());
  auto page = decode_list(*body, format_, options_.keep);
  if (!page) {
    auto why = page.error();
    why.message = "cannot list " + type.plural + ": the answer " + why.message;
    co_return page_failed(phase::decode, why);
  }
  for (auto& each : page->items) put(std::move(each));
  co_return reflector_.listed(page->resource_version, page->continue_token);
}

action informer::implementation::page_failed(phase where, const failure& why) {
  metrics_.failure(where);
  auto next = reflector_.failed(why);
  tell_failure("a list failed", why, next);
  return next;
}

asio::awaitable<action> informer::implementation::watch(const action& what) {
  if (what.anew) begin_listing();
  watch_decoder decoder(format_, options_.keep, options_.event_bytes,
                        [this](const watch_event& event) { return take(event); });
  watch_attempt attempt(api_->get_executor(), clock_, std::move(decoder), [this] { report(); });
  auto bounds = what.watch;
  bounds.silence = options_.silence;
  const auto opened = co_await api_->open_watch(type, options_.what, std::move(bounds), attempt);
  if (!opened) co_return watch_ended(attempt, opened.error());
  if (*opened) {
    const auto cancelled = co_await attempt.over.wait();
    if (cancelled) throw_cancelled();
  }
  failure why;
  if (attempt.error) {
    why = {.code = errc_of(attempt.error),
           .message = "cannot watch " + type.plural + ": " + attempt.error.message()};
  }
  co_return watch_ended(attempt, std::move(why));
}

bool informer::implementation::take(const watch_event& event) {
  metrics_.event(event.what);
  switch (reflector_.event(event)) {
    case reflector::verdict::apply:
      if (event.what == watch_event::kind::deleted) {
        remove(event.subject);
      } else {
        put(event.subject);
      }
      return true;
    case reflector::verdict::nothing:
      return true;
    case reflector::verdict::whole:
      end_listing();
      return true;
    case reflector::verdict::stop:
      break;
  }
  return false;
}

/// `why` has no code if the watch ended in order, as far as its transport knows.
action informer::implementation::watch_ended(const watch_attempt& attempt, failure why) {
  using how = reflector::watch_end;
  using label = informer_metrics::watch_end;
  auto ended = how::in_order;
  auto counted = label::ended;
  if (attempt.decoder.problem().code) {
    ended = how::bad_event;
    counted = label::bad_event;
    why = attempt.decoder.problem();
    why.message = "cannot watch " + type.plural + ": " + why.message;
    metrics_.failure(phase::decode);
  } else if (reflector_.error_event().code) {
    ended = how::broken;
    why = reflector_.error_event();
    counted = why.is(errc::gone) ? label::expired : label::refused;
  } else if (why.code) {
    ended = how::broken;
    const bool silent = why.is(errc::timed_out) && attempt.began;
    counted = why.is(errc::gone) ? label::expired
              : why.status != 0  ? label::refused
              : silent           ? label::silent
                                 : label::broken;
  }
  metrics_.watch(counted);
  auto next = reflector_.watch_ended(ended, why, attempt.lasted());
  if (ended != how::in_order) {
    if (ended != how::bad_event) metrics_.failure(phase::watch);
    tell_failure("a watch broke off", why, next);
  }
  return next;
}

void informer::implementation::begin_listing() {
  metrics_.list();
  unseen_.clear();
  unseen_.reserve(objects.size());
  objects.for_each([this](const object& each) { unseen_.insert(each); });
}

void informer::implementation::put(object next) {
  if (!unseen_.empty()) unseen_.erase(next);
  const auto before = objects.put(next);
  if (!before || !same_state(before, next)) listeners.tell(before, next);
}

void informer::implementation::remove(const object& last) {
  if (!unseen_.empty()) unseen_.erase(last);
  const auto before = objects.erase(last.ns(), last.name());
  if (before) listeners.tell(before, {});
}

void informer::implementation::end_listing() {
  const auto gone = std::exchange(unseen_, {});
  for (const auto& each : gone) remove(each);
  if (!std::exchange(synced, true)) waiting_.wake_all();
  report();
}

void informer::implementation::tell_failure(std::string_view what, const failure& why,
                                            const action& next) {
  using std::chrono::duration_cast;
  using std::chrono::milliseconds;
  log_.limited(log_limit_, core::log_level::warning, "informer is set back",
               {{"resource", type.plural},
                {"what", what},
                {"error", why.message},
                {"next", action_texts.at(static_cast<std::size_t>(next.what))},
                {"pause_ms", duration_cast<milliseconds>(next.delay).count()}});
}

informer::informer(std::shared_ptr<api_source> api, resource_type type, informer_options options,
                   informer_environment environment)
    : impl_(std::make_shared<implementation>(std::move(api), std::move(type), std::move(options),
                                             std::move(environment))) {}

informer::~informer() {
  impl_->end();
}

asio::awaitable<void> informer::run() {
  return implementation::run(impl_);
}

informer::subscription informer::subscribe(std::size_t capacity) {
  auto added = impl_->listeners.add(capacity, impl_->objects);
  impl_->report();
  return added;
}

bool informer::synced() const noexcept {
  return impl_->synced;
}

asio::awaitable<bool> informer::wait_synced() {
  return implementation::wait_synced(impl_);
}

const store& informer::objects() const noexcept {
  return impl_->objects;
}

void informer::add_index(const std::string& name, store::index_function by) {
  impl_->objects.add_index(name, std::move(by));
}

void informer::remove_index(const std::string& name) {
  impl_->objects.remove_index(name);
}

const std::string& informer::resource_version() const noexcept {
  return impl_->resource_version();
}

const resource_type& informer::type() const noexcept {
  return impl_->type;
}

}  // namespace rw::k8s
