#include "rw/reactors/events/admission.hpp"

#include "rw/core/json/json_view.hpp"
#include "rw/core/within.hpp"
#include "rw/reactors/events/review.hpp"
#include "rw/reactors/shared/heartbeat.hpp"
#include "rw/reactors/shared/probe.hpp"

#include <boost/asio/error.hpp>

#include <array>
#include <exception>
#include <span>
#include <string>
#include <utility>

namespace rw::admission {
namespace {

namespace asio = boost::asio;

constexpr std::string_view prefix = "/validate/";
constexpr std::size_t max_logged = 256;       // bytes of a path
constexpr std::size_t max_probe = 64u << 10;  // bytes of a review that is read for its nonce
constexpr std::string_view overflow_warning =
    "the change is made, but the control plane may hear of it late: runtime-watcher's queue is "
    "full";

constexpr std::span<const std::string> no_subresources;

core::counter& reviews(core::metrics& registry, const char* verdict) {
  return core::make_counter(registry, "rw_admission_reviews_total",
                            "Number of AdmissionReviews, by verdict", {{"verdict", verdict}});
}

core::counter& unidentified(core::metrics& registry, const char* reason) {
  return core::make_counter(registry, "rw_admission_unidentified_total",
                            "Number of reviews of changes without an event, as they name no object",
                            {{"reason", reason}});
}

}  // namespace

struct webhook::counters {
  explicit counters(core::metrics& r)
      : requests(core::make_counter(r, "watcher_admission_request_total",
                                    "Number of requests to the webhook")),
        errors(core::make_counter(r, "watcher_admission_request_error_total",
                                  "Number of rejected requests to the webhook")),
        last_duration(core::make_gauge(r, "watcher_request_duration",
                                       "Duration of the latest request in seconds")),
        invalid_subresource(core::make_counter(r, "watcher_failed_kcp_total",
                                               "Number of events not sent to KCP",
                                               {{"error_reason", "invalid-subresource"}})),
        overflow(core::make_counter(r, "rw_admission_overflow_total",
                                    "Number of events dropped because the channel was full")),
        unknown_manager(core::make_counter(r, "rw_admission_unknown_manager_total",
                                           "Number of reviews for a manager that is not in the "
                                           "managers' file")),
        duration(
            core::make_histogram(r, "rw_admission_duration_seconds",
                                 "Time from the end of the request to its response, in seconds", {},
                                 core::latency_bounds())),
        verdicts{&reviews(r, "event"),
                 &reviews(r, "no_change"),
                 &reviews(r, "invalid_subresource"),
                 &reviews(r, "connect_unsupported"),
                 &reviews(r, "dry_run"),
                 &reviews(r, "unknown_operation"),
                 &reviews(r, "unidentified"),
                 &reviews(r, "unidentified"),
                 &reviews(r, "unknown_manager")},
        nameless(unidentified(r, "missing")),
        name_too_long(unidentified(r, "too_long")) {}

  core::counter& requests;
  core::counter& errors;
  core::gauge& last_duration;
  core::counter& invalid_subresource;
  core::counter& overflow;
  core::counter& unknown_manager;
  core::histogram& duration;
  const std::array<core::counter*, 9> verdicts;  ///< indexed by `verdict`
  core::counter& nameless;
  core::counter& name_too_long;
  // Of this webhook; others may share its metrics.
  std::atomic<std::uint64_t> events = 0;
  std::atomic<std::uint64_t> overflowed = 0;
};

struct webhook::kept_reader {
  reader read;
  review_decision decided;
};

/// A reader for the length of one review. The webhook keeps the latest one used; concurrent reviews
/// in other threads make their own.
class webhook::borrowed_reader {
 public:
  explicit borrowed_reader(webhook& owner)
      : owner_(owner), reader_(owner.spare_reader_.exchange(nullptr, std::memory_order_acquire)) {
    if (!reader_) reader_ = std::make_unique<kept_reader>();
  }
  ~borrowed_reader() {
    delete owner_.spare_reader_.exchange(reader_.release(), std::memory_order_acq_rel);
  }
  borrowed_reader(const borrowed_reader&) = delete;
  borrowed_reader& operator=(const borrowed_reader&) = delete;

  reader* operator->() const noexcept { return &reader_->read; }
  review_decision& decided() const noexcept { return reader_->decided; }

 private:
  webhook& owner_;
  std::unique_ptr<kept_reader> reader_;
};

/// An event that waits for room in the channel. The destructor counts it as lost if its connection
/// ended first.
class webhook::waiting_event {
 public:
  waiting_event(webhook& owner, review_decision decision, const http::request& from)
      : decided(std::move(decision)), peer(from.peer.address.address()), owner_(&owner) {}
  waiting_event(waiting_event&& other) noexcept
      : decided(std::move(other.decided)),
        peer(other.peer),
        owner_(std::exchange(other.owner_, nullptr)) {}
  waiting_event& operator=(waiting_event&&) = delete;
  ~waiting_event() {
    if (owner_ != nullptr) owner_->lose(*this, "the connection ended");
  }

  /// Only the first call counts.
  void settle(boost::system::error_code error) {
    auto* const owner = std::exchange(owner_, nullptr);
    if (error && owner != nullptr) owner->lose(*this, error.message());
  }

  const review_decision decided;
  const asio::ip::address peer;

 private:
  webhook* owner_;
};

std::string_view manager_of(std::string_view target, bool& wrong) noexcept {
  wrong = false;
  target = target.substr(0, target.find('?'));
  if (!target.starts_with(prefix)) return {};
  target.remove_prefix(prefix.size());
  if (target.empty()) return {};
  wrong = !is_path_segment(target);
  return wrong ? std::string_view() : target;
}

webhook::webhook(webhook_options options, core::channel<watch_event>& events, core::clock& time,
                 core::logger& log, core::metrics& metrics)
    : options_(std::move(options)),
      events_(events),
      clock_(time),
      log_(log),
      counters_(std::make_unique<counters>(metrics)) {}

webhook::~webhook() {
  delete spare_reader_.load();
}

std::size_t webhook::body_limit(const http::request&) const {
  return options_.body_limit;
}

void webhook::refused(unsigned) noexcept {
  counters_->requests.Increment();
  counters_->errors.Increment();
}

admission_statistics webhook::statistics() const {
  return {counters_->events, counters_->overflowed};
}

asio::awaitable<void> webhook::handle(http::request& from, http::response& into) {
  const auto start = clock_.now();
  counters_->requests.Increment();
  bool wrong = false;
  const auto manager = manager_of(from.target, wrong);
  if (wrong) {
    refuse(from, into, 400, "the manager in /validate/<manager> must be a plain name");
  } else if (manager.empty()) {
    refuse(from, into, 404, "not found: reviews are taken at /validate/<manager>");
  } else if (from.method != "POST") {
    into.headers.add("allow", "POST");
    refuse(from, into, 405, "reviews are taken with POST");
  } else {
    auto rest = decide(from, into, manager, start);
    if (rest.valid()) return rest;
  }
  finish(start);
  return {};
}

void webhook::finish(core::time_point start) {
  const std::chrono::duration<double> took = clock_.now() - start;
  counters_->duration.Observe(took.count());
  counters_->last_duration.Set(took.count());
}

asio::awaitable<void> webhook::decide(const http::request& from, http::response& into,
                                      std::string_view manager, core::time_point start) {
  const auto known = options_.managers != nullptr ? options_.managers->current() : nullptr;
  const auto* const watched = known ? known->find(manager) : nullptr;
  const borrowed_reader review(*this);
  auto& decided = review.decided();
  const auto read = review->read_into(decided, from.body,
                                      watched != nullptr ? std::span(*watched) : no_subresources);
  if (read.has_error()) {
    refuse(from, into, 400, reason(read.error()));
    return {};
  }
  if (decided.effect != review_effect::no_change) decided.event.manager = manager;
  if (is_probe(manager)) {
    respond_to_probe(from, decided, into);
    return {};
  }
  if (known && watched == nullptr) {
    decided.effect = review_effect::unknown_manager;
    counters_->unknown_manager.Increment();
    log_.limited(unknown_manager_log_, core::log_level::warning,
                 "no event: the managers' file does not name the manager",
                 {{"manager", manager}, {"peer", from.peer.address.address().to_string()}});
  }
  count(decided, from);
  if (decided.effect == review_effect::event) {
    observe(decided.event);
    ++counters_->events;
    const auto sent = events_.try_send(decided.event);
    if (sent != core::send_status::sent) {  // a closed channel ends the wait at once
      return wait_for_room(waiting_event(*this, std::move(decided), from), &into, start);
    }
  }
  respond(decided, into);
  return {};
}

bool webhook::is_probe(std::string_view manager) const {
  return options_.probe && manager == heartbeat_component;
}

void webhook::respond_to_probe(const http::request& from, const review_decision& decided,
                               http::response& into) const {
  std::string nonce;
  if (from.body.size() <= max_probe) {
    const core::json_document review(from.body);
    nonce = probe_nonce(review.root().find({"request", "name"}).string());
  }
  const auto warning = options_.probe(nonce);
  respond(decided, into, std::array{std::string_view(warning)});
}

void webhook::observe(const watch_event& event) noexcept {
  const auto warn = [this](std::string_view error) {
    log_.limited(observer_log_, core::log_level::error, "observer of events failed",
                 {{"error", error}});
  };
  try {
    if (options_.on_event) options_.on_event(event);
  } catch (const std::exception& e) {
    warn(e.what());
  } catch (...) {
    warn("an exception of unknown type");
  }
}

/// Counts a review, and logs a change that gives no event.
void webhook::count(const review_decision& decided, const http::request& from) {
  counters_->verdicts[static_cast<std::size_t>(decided.effect)]->Increment();
  if (decided.effect == review_effect::invalid_subresource)
    counters_->invalid_subresource.Increment();
  if (decided.effect == review_effect::unidentified) counters_->nameless.Increment();
  if (decided.effect == review_effect::name_too_long) counters_->name_too_long.Increment();
  if (decided.effect != review_effect::unidentified &&
      decided.effect != review_effect::name_too_long) {
    return;
  }
  log_.limited(no_event_log_, core::log_level::warning, "no event of a change",
               {{"reason", message(decided.effect)},
                {"manager", decided.event.manager},
                {"namespace", decided.event.watched.ns},
                {"name", decided.event.watched.name},
                {"peer", from.peer.address.address().to_string()}});
}

asio::awaitable<void> webhook::wait_for_room(waiting_event waiting, http::response* into,
                                             core::time_point start) {
  const auto until = clock_.now() + options_.wait;
  bool sent = false;
  auto sending = send(&waiting, &sent);
  co_await core::within(clock_, until, std::move(sending));
  waiting.settle(make_error_code(boost::system::errc::timed_out));
  if (sent) {
    respond(waiting.decided, *into);
  } else {
    respond(waiting.decided, *into, std::array{overflow_warning});
  }
  finish(start);
}

/// Settles the event unless it is cancelled first: then its caller says why.
asio::awaitable<bool> webhook::send(waiting_event* waiting, bool* sent) {
  auto event = waiting->decided.event;
  const auto error = co_await events_.send(std::move(event));
  *sent = !error;
  if (error != asio::error::operation_aborted) waiting->settle(error);
  co_return true;
}

void webhook::lose(const waiting_event& waiting, std::string_view error) {
  const auto& event = waiting.decided.event;
  counters_->overflow.Increment();
  ++counters_->overflowed;
  const bool replaced = options_.on_loss && options_.on_loss(event);
  log_.limited(overflow_log_, core::log_level::error,
               replaced ? "no capacity for a review, its resource is listed instead"
                        : "event dropped, no capacity left",
               {{"manager", event.manager},
                {"kind", event.gvk.kind},
                {"namespace", event.watched.ns},
                {"name", event.watched.name},
                {"peer", waiting.peer.to_string()},
                {"error", error}});
}

void webhook::respond(const review_decision& decided, http::response& into,
                      std::span<const std::string_view> warnings) const {
  into.headers.add("content-type", "application/json");
  into.headers.add("strict-transport-security", "max-age=31536000; includeSubDomains");
  into.headers.add("content-security-policy", "default-src 'self'");
  append_response(into.body, decided, warnings);
}

void webhook::refuse(const http::request& from, http::response& into, unsigned status,
                     std::string_view reason) {
  counters_->errors.Increment();
  into.text(status, reason);
  log_.limited(refusal_log_, core::log_level::warning, "review refused",
               {{"status", std::uint64_t{status}},
                {"reason", reason},
                {"path", std::string_view(from.target).substr(0, max_logged)},
                {"peer", from.peer.address.address().to_string()}});
}

}  // namespace rw::admission
