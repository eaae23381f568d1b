#include "rw/reactors/events/heartbeat_sender.hpp"

#include "rw/core/text.hpp"
#include "rw/core/within.hpp"

#include <boost/asio/error.hpp>

#include <algorithm>
#include <array>
#include <cstring>
#include <utility>

namespace rw::heartbeats {
namespace {

namespace asio = boost::asio;

constexpr core::duration first_delay = std::chrono::seconds(1);  // at most
constexpr double jitter = 0.1;                                   // of the interval

core::counter& heartbeats(core::metrics& registry, const char* outcome) {
  return core::make_counter(registry, "rw_heartbeats_total", "Number of heartbeats sent to KCP",
                            {{"outcome", outcome}});
}

std::string make_boot_id(core::random_source& random) {
  const std::array numbers{random(), random()};
  std::array<unsigned char, sizeof numbers> bytes{};
  std::memcpy(bytes.data(), numbers.data(), bytes.size());
  return core::hex(bytes);
}

/// True if KCP should learn of the difference before the next heartbeat is due.
bool has_news(const watcher_report& before, const watcher_report& now) {
  const auto& a = before.content;
  const auto& b = now.content;
  return a.watches != b.watches || a.more_watches != b.more_watches || a.source != b.source ||
         a.managers_digest != b.managers_digest || a.ca_digest != b.ca_digest ||
         a.certificate_digest != b.certificate_digest ||
         a.certificate_not_after != b.certificate_not_after || a.losses != b.losses ||
         before.upstream_open != now.upstream_open;
}

}  // namespace

sender::sender(asio::any_io_executor executor, sender_options options,
               sender_environment environment)
    : options_(options),
      environment_(std::move(environment)),
      random_(environment_.random),
      delivered_(heartbeats(environment_.metrics, "delivered")),
      failed_(heartbeats(environment_.metrics, "failed")),
      unsupported_(heartbeats(environment_.metrics, "unsupported")),
      boot_id_(make_boot_id(random_)),
      started_(environment_.clock.now()),
      calendar_(environment_.clock),
      reloaded_(std::move(executor)) {}

asio::awaitable<void> sender::run() {
  auto due = environment_.clock.now() + core::shortened(first_delay, 1, random_());
  auto check = due;
  for (;;) {
    const auto until = std::min(due, check);
    const auto reloaded = co_await core::within(environment_.clock, until, reloaded_.wait());
    const auto now = environment_.clock.now();
    if (reloaded && now < due && !reloads_.try_take(now)) {
      check = std::min(check, now + std::chrono::seconds(1));
      continue;
    }
    check = now + options_.change_interval;
    auto next = environment_.report();
    if (now < due && !new_probe_ && !has_news(latest_, next)) continue;
    due = now + core::shortened(options_.interval, jitter, random_());
    prepare(std::move(next));
    const bool goes_on = co_await send(environment_.upstream);
    if (!goes_on) co_return;
  }
}

/// Sends the latest heartbeat, unless KCP is to be left alone. Returns false at the end.
asio::awaitable<bool> sender::send(http::client& over) {
  if (environment_.clock.now() < not_before_) co_return true;
  auto body = render_heartbeat(latest_.content);
  const auto sent = co_await post(over, std::move(body));
  if (sent == outcome::ended) co_return false;
  note(sent);
  if (sent != outcome::delivered) co_return true;
  error_.clear();
  reported_events_ = latest_.content.events.delivered;
  reported_time_ = latest_.delivery_time;
  co_return true;
}

asio::awaitable<void> sender::finish(http::client& over) {
  prepare(environment_.report());
  co_await send(over);
}

/// Makes it the latest heartbeat.
void sender::prepare(watcher_report next) {
  auto& content = next.content;
  content.boot_id = boot_id_;
  content.started = calendar_.at(started_);
  content.sent = calendar_.at(environment_.clock.now());
  content.sequence = latest_.content.sequence + 1;
  content.probes.assign(probes_.begin(), probes_.end());
  new_probe_ = false;
  content.interval = std::chrono::ceil<std::chrono::seconds>(options_.interval);
  if (const auto events = content.events.delivered - reported_events_; events > 0) {
    const auto mean = (next.delivery_time - reported_time_) / events;
    content.delivery = std::chrono::round<std::chrono::milliseconds>(mean);
  }
  latest_ = std::move(next);
}

probe_report sender::probed(std::string_view nonce) {
  if (!nonce.empty()) {
    probes_.emplace_back(nonce);
    if (probes_.size() > max_heartbeat_probes) probes_.pop_front();
    new_probe_ = true;
    not_before_ = core::time_point::min();  // who probes takes heartbeats, or soon will
  }
  return {.nonce = std::string(nonce), .boot_id = boot_id_, .upstream = error_};
}

asio::awaitable<sender::outcome> sender::post(http::client& over, std::string body) {
  http::request request;
  request.target = "/v2/" + std::string(heartbeat_component) + "/event";
  request.headers.add("content-type", heartbeat_media_type);
  request.body = std::move(body);
  http::response response;
  http::client_slot slot;
  auto error = co_await over.acquire(slot, options_.timeout);
  if (!error) error = co_await slot.exchange(request, response, {.limit = options_.timeout});
  if (error == asio::error::operation_aborted || error == http::client_error::shut_down) {
    co_return outcome::ended;
  }
  if (!error && response.status / 100 == 2) {
    delivered_.Increment();
    co_return outcome::delivered;
  }
  if (!error && response.status == 404) {
    unsupported_.Increment();
    error_ = "status 404: nothing routes heartbeats";
    co_return outcome::unsupported;
  }
  failed_.Increment();
  error_ = error ? error.message() : "status " + std::to_string(response.status);
  const bool connected =
      error != http::client_error::connect && error != http::client_error::handshake;
  if (error && !connected) error_ += ": " + over.connect_failure();
  environment_.log.limited(failure_log_, core::log_level::warning, "heartbeat not delivered",
                           {{"error", error_}});
  co_return outcome::failed;
}

/// Sets when the next heartbeat is sent at the earliest.
void sender::note(outcome sent) {
  if (sent != outcome::unsupported) {
    refusals_ = 0;
    not_before_ = core::time_point::min();
    return;
  }
  if (refusals_ == 0) {
    environment_.log.info("KCP takes no heartbeats, the next one is sent after a pause");
  }
  const auto pause = core::doubled(options_.retry_base, options_.retry_limit, refusals_);
  not_before_ = environment_.clock.now() + core::shortened(pause, jitter, random_());
  ++refusals_;
}

}  // namespace rw::heartbeats
