#include "reactors/config_sync/target_keeper.hpp"

#include "k8s/types.hpp"
#include "reactors/kyma_resources.hpp"

#include <algorithm>
#include <utility>
#include <vector>

namespace rw::config_sync {
namespace {

namespace asio = boost::asio;

// What stands behind the digest of a state that the sources do not keep, so that no state that they
// keep looks like it, after a restart either.
constexpr std::string_view noticed = "?";  ///< not told; the next one that is has its number
constexpr std::string_view passing = "~";  ///< told before the sources were still

k8s::object_key record_key() {
  return {std::string(kcp_namespace), std::string(record_name)};
}

}  // namespace

target_keeper::target_keeper(asio::any_io_executor executor, source_watch& sources,
                             k8s::informer& runtimes, keeper_options options,
                             keeper_environment environment,
                             std::function<void(const target&)> tell)
    : executor_(std::move(executor)),
      sources_(sources),
      runtimes_(runtimes),
      options_(std::move(options)),
      environment_(std::move(environment)),
      tell_(std::move(tell)),
      wake_(executor_),
      backoff_(std::chrono::milliseconds(200), std::chrono::seconds(30), environment_.random) {}

/// Notices each change of the content at once, so that none is missed while something is awaited.
void target_keeper::look() {
  auto digest = sources_.digest();
  if (digest.empty() || digest == seen_) return;
  if (!seen_.empty()) ++changes_;
  seen_ = std::move(digest);
  changed_at_ = environment_.clock.now();
  if (!unsettled_since_) unsettled_since_ = changed_at_;
  wake_.set();
}

bool target_keeper::is_passing() const noexcept {
  return current_ && current_->of.digest.ends_with(passing);
}

asio::awaitable<void> target_keeper::run() {
  const auto listening = sources_.subscribe([this] { look(); });
  look();
  bool go_on = co_await await_known();
  if (go_on) go_on = co_await load();
  while (go_on) {
    if (is_final()) {
      const auto cancelled = co_await wake_.wait();
      go_on = !cancelled;
      continue;
    }
    const bool is_news = current_ && !is_noticed();
    if (is_news) {
      go_on = co_await notice();
      continue;
    }
    go_on = co_await await_settled();
    if (go_on) go_on = co_await keep();
  }
}

/// Says from time to time what it waits for.
asio::awaitable<bool> target_keeper::await_known() {
  constexpr auto poll_period = std::chrono::milliseconds(500);
  constexpr auto complaint_period = std::chrono::seconds(30);
  auto complain_at = environment_.clock.now() + complaint_period;
  while (!known()) {
    const bool due = co_await pause(poll_period);
    if (!due) co_return false;
    if (known() || environment_.clock.now() < complain_at) continue;
    complain_at += complaint_period;
    environment_.log.warning("Runtimes are not signalled: not all is known of the sources yet",
                             {{"missing", sources_.not_ready()}, {"runtimes", runtimes_.synced()}});
  }
  co_return true;
}

asio::awaitable<bool> target_keeper::pause(core::duration by) {
  const auto alarm = environment_.clock.make_timer(executor_);
  alarm->expires_at(environment_.clock.now() + by);
  const bool due = co_await alarm->wait();
  co_return due;
}

asio::awaitable<bool> target_keeper::await_settled() {
  for (;;) {
    const auto since = unsettled_since_.value_or(changed_at_);
    const auto until = std::min(still_at(), since + options_.settle_limit);
    const auto now = environment_.clock.now();
    if (now >= until) co_return true;
    const bool due = co_await pause(until - now);
    if (!due) co_return false;
  }
}

asio::awaitable<bool> target_keeper::fail(std::string_view what, k8s::failure why) {
  // Where this process does not lead any more, or ends, others will do it.
  const bool is_our_own = why.is(k8s::errc::fenced) || why.is(k8s::errc::shut_down);
  if (!is_our_own) {
    environment_.log.limited(log_limit_, core::log_level::error, what,
                             {{"error", why.message}, {"next", "it is tried again"}});
  }
  const core::duration asked_for = why.retry_after;
  const bool due = co_await pause(std::max(backoff_.next(), asked_for));
  co_return due;
}

/// Reads the record. What it says is the target where there is none yet.
asio::awaitable<bool> target_keeper::load() {
  for (;;) {
    auto found = co_await environment_.api.get(config_maps_type(), record_key());
    const bool absent = found.has_error() && found.error().is(k8s::errc::not_found);
    if (found.has_error() && !absent) {
      const bool again =
          co_await fail("the record of what was signalled can't be read", found.error());
      if (!again) co_return false;
      continue;
    }
    backoff_.reset();
    stored_ = absent ? boost::json::value() : std::move(*found);
    const auto said = read_record(stored_);
    if (!absent && !said) {
      environment_.log.warning(
          "the record of what was signalled says nothing; what the Runtimes say counts",
          {{"configMap", k8s::to_string(record_key())}});
    }
    // What changed since then is a change like any other.
    if (said && !current_) {
      answers_ = said->of.digest == seen_;
      publish(*said);
    }
    co_return true;
  }
}

bool target_keeper::is_noticed() const {
  const auto said = read_record(stored_);
  return said && said->of.digest.ends_with(noticed);
}

target target_keeper::wanted() const {
  const auto now = environment_.clock.wall();
  if (current_) {
    auto next = next_target(*current_, seen_, now);
    const auto said = read_record(stored_);
    if (!said) return next;
    next.of.number = std::max(next.of.number, said->of.number + (is_noticed() ? 0 : 1));
    return next;
  }
  std::vector<std::string> said;
  runtimes_.objects().for_each([&](const k8s::object& one) {
    const auto runtime = one.parse();
    if (const auto text = k8s::annotation(runtime, signalled_annotation)) said.emplace_back(*text);
  });
  // A change that was seen before the first state could be recorded is one all the same: runtimes
  // have what was there before it, which is the first.
  const bool changed_first = said.empty() && changes_ > 0;
  if (changed_first) return next_target({.of = {.number = 1, .digest = {}}}, seen_, now);
  return recover_target(said, seen_, now);
}

/// Records that the sources have changed. One try.
asio::awaitable<bool> target_keeper::notice() {
  auto next = wanted();
  next.of.digest += noticed;
  auto written = co_await write(std::move(next));
  if (written.has_value()) co_return true;
  const bool go_on = co_await repair(written.error());
  co_return go_on;
}

/// Records the target that the sources ask for, and tells it. One try.
asio::awaitable<bool> target_keeper::keep() {
  const auto changes = changes_;
  auto next = wanted();
  if (environment_.clock.now() < still_at()) next.of.digest += passing;
  auto written = co_await write(next);
  if (written.has_error()) {
    const bool go_on = co_await repair(written.error());
    co_return go_on;
  }
  kept_changes_ = changes;
  answers_ = true;
  unsettled_since_.reset();
  if (changes_ != changes) unsettled_since_ = changed_at_;
  publish(std::move(next));
  co_return true;
}

asio::awaitable<k8s::result<void>> target_keeper::write(target now) {
  auto object = write_record(now, stored_);
  const k8s::write_options by{.field_manager = options_.field_manager};
  auto& api = environment_.api;
  auto request = stored_.is_null() ? api.create(config_maps_type(), std::move(object), by)
                                   : api.update(config_maps_type(), std::move(object), by);
  auto written = co_await std::move(request);
  if (written.has_error()) co_return written.error();
  backoff_.reset();
  stored_ = std::move(*written);
  co_return k8s::result<void>();
}

/// After a write that failed: waits, and reads the record where somebody else has changed it.
asio::awaitable<bool> target_keeper::repair(k8s::failure why) {
  const bool moved = why.is(k8s::errc::conflict) || why.is(k8s::errc::not_found) ||
                     why.is(k8s::errc::already_exists);
  const bool due =
      co_await fail("the record of what is to be signalled can't be written", std::move(why));
  if (!due || !moved) co_return due;
  const bool loaded = co_await load();
  co_return loaded;
}

void target_keeper::publish(target now) {
  current_ = std::move(now);
  tell_(*current_);
}

}  // namespace rw::config_sync
