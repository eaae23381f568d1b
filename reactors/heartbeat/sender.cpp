#include "rw/reactors/heartbeat/sender.hpp"

#include "rw/core/task_group.hpp"
#include "rw/core/text.hpp"
#include "rw/core/within.hpp"
#include "rw/reactors/shared/events.hpp"

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
         a.ledger != b.ledger || a.managers_digest != b.managers_digest ||
         a.ca_digest != b.ca_digest || a.certificate_digest != b.certificate_digest ||
         a.certificate_not_after != b.certificate_not_after || a.events.lost != b.events.lost ||
         a.gaps != b.gaps || before.upstream_open != now.upstream_open;
}

}  // namespace

sender::sender(asio::any_io_executor executor, sender_options options,
               sender_environment environment)
    : executor_(executor),
      options_(options),
      environment_(std::move(environment)),
      random_(environment_.random),
      delivered_(heartbeats(environment_.metrics, "delivered")),
      failed_(heartbeats(environment_.metrics, "failed")),
      unsupported_(heartbeats(environment_.metrics, "unsupported")),
      boot_id_(make_boot_id(random_)),
      started_(environment_.clock.now()),
      calendar_(environment_.clock),
      reloaded_(executor),
      managers_turn_(executor) {}

asio::awaitable<void> sender::run() {
  core::task_group tasks(executor_);
  tasks.spawn(send_to_kcp());
  tasks.spawn(send_to_managers());
  co_await tasks.join();
}

asio::awaitable<void> sender::send_to_kcp() {
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
    const bool goes_on = co_await post_to_kcp();
    if (!goes_on) co_return;
    managers_turn_.set();
  }
}

/// Sends the latest heartbeat, unless KCP is to be left alone. Returns false at the end.
asio::awaitable<bool> sender::post_to_kcp() {
  if (environment_.clock.now() < kcp_.not_before) co_return true;
  auto body = render_heartbeat(latest_.content);
  const auto sent = co_await post(std::string(heartbeat_component), std::move(body));
  if (sent == outcome::ended) co_return false;
  note(heartbeat_component, kcp_, sent);
  if (sent != outcome::delivered) co_return true;
  if (environment_.on_reported) environment_.on_reported();
  kcp_error_.clear();
  reported_events_ = latest_.content.events.delivered;
  reported_time_ = latest_.delivery_time;
  note_told(heartbeat_component, latest_.content);
  note_told({}, latest_.content);
  co_return true;
}

asio::awaitable<void> sender::finish() {
  prepare(environment_.report());
  co_await post_to_kcp();
}

asio::awaitable<void> sender::send_to_managers() {
  for (;;) {
    const auto aborted = co_await managers_turn_.wait();
    if (aborted) co_return;
    const auto due = due_managers();
    for (const auto& manager : due) {
      const auto content = content_for(manager);
      auto body = render_heartbeat(content);
      const auto sent = co_await post(manager, std::move(body));
      if (sent == outcome::ended) co_return;
      if (sent == outcome::delivered) note_told(manager, content);
      note(manager, managers_[manager], sent == outcome::timed_out ? outcome::unsupported : sent);
    }
  }
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
    kcp_.not_before = core::time_point::min();  // who probes takes heartbeats, or soon will
  }
  return {.nonce = std::string(nonce), .boot_id = boot_id_, .upstream = kcp_error_};
}

/// Those that offer to take heartbeats and are not paused. Forgets the others.
std::vector<std::string> sender::due_managers() {
  auto names = environment_.managers();
  names.resize(std::min(names.size(), options_.managers));
  std::erase_if(managers_, [&](const auto& known) {
    return std::ranges::find(names, known.first) == names.end();
  });
  const auto now = environment_.clock.now();
  std::erase_if(names, [&](const auto& name) { return managers_[name].not_before > now; });
  return names;
}

/// The latest heartbeat with the watches and gaps of a manager.
heartbeat sender::content_for(std::string_view manager) const {
  auto content = latest_.content;
  std::erase_if(content.watches, [&](const auto& each) { return each.manager != manager; });
  if (!content.gaps) return content;
  std::erase_if(content.gaps->managers,
                [&](const auto& each) { return each.manager != manager && !each.manager.empty(); });
  return content;
}

/// A manager has learned of its gaps.
void sender::note_told(std::string_view manager, const heartbeat& sent) const {
  if (!environment_.on_gap_told || !sent.gaps) return;
  const auto& all = sent.gaps->managers;
  const auto found = std::ranges::find(all, manager, &manager_gaps::manager);
  if (found != all.end()) environment_.on_gap_told(found->manager, found->count);
}

asio::awaitable<sender::outcome> sender::post(std::string component, std::string body) {
  http::request request;
  request.target = "/v2/" + component + "/event";
  request.headers.add("content-type", heartbeat_media_type);
  request.body = std::move(body);
  http::response response;
  http::client_slot slot;
  auto error = co_await environment_.upstream.acquire(slot, options_.timeout);
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
    if (component == heartbeat_component) kcp_error_ = "status 404: nothing routes heartbeats";
    co_return outcome::unsupported;
  }
  failed_.Increment();
  auto reason = error ? error.message() : "status " + std::to_string(response.status);
  const bool connected =
      error != http::client_error::connect && error != http::client_error::handshake;
  if (error && !connected) reason += ": " + environment_.upstream.connect_failure();
  environment_.log.limited(failure_log_, core::log_level::warning, "heartbeat not delivered",
                           {{"component", component}, {"error", reason}});
  if (component == heartbeat_component) kcp_error_ = std::move(reason);
  co_return error == http::client_error::timed_out ? outcome::timed_out : outcome::failed;
}

/// Sets when the component gets its next heartbeat at the earliest.
void sender::note(std::string_view component, receiver& of, outcome sent) {
  if (sent != outcome::unsupported) {
    of = {};
    return;
  }
  if (of.refusals == 0) {
    environment_.log.info("component takes no heartbeats, it gets one in a while",
                          {{"component", component}});
  }
  const auto pause = core::doubled(options_.retry_base, options_.retry_limit, of.refusals);
  of.not_before = environment_.clock.now() + core::shortened(pause, jitter, random_());
  ++of.refusals;
}

}  // namespace rw::heartbeats
