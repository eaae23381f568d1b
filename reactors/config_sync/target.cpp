#include "reactors/config_sync/target.hpp"

#include "k8s/rfc3339.hpp"
#include "k8s/types.hpp"
#include "reactors/config_sync/runtime_signal.hpp"
#include "reactors/kyma_resources.hpp"

#include <boost/json/object.hpp>

#include <algorithm>
#include <charconv>
#include <utility>

namespace rw::config_sync {
namespace {

namespace asio = boost::asio;
namespace json = boost::json;

constexpr auto since_ever = "ever";

k8s::object_key record_key() {
  return {std::string(kcp_namespace), std::string(record_name)};
}

}  // namespace

std::optional<target> read_record(const json::value& config_map) {
  const auto number = k8s::find_string(config_map, {"data", "number"});
  const auto since = k8s::find_string(config_map, {"data", "since"});
  target out;
  out.of.digest = k8s::find_string(config_map, {"data", "digest"});
  const auto* const end = number.data() + number.size();
  const auto [stop, error] = std::from_chars(number.data(), end, out.of.number);
  if (error != std::errc() || stop != end || out.of.digest.empty()) return std::nullopt;
  if (since == since_ever) return out;
  out.since = k8s::parse_rfc3339(since);
  return out.since ? std::optional(out) : std::nullopt;
}

json::value write_record(const target& now, const json::value& before) {
  json::object metadata{{"name", record_name}, {"namespace", kcp_namespace}};
  const auto version = k8s::resource_version_of(before);
  if (!version.empty()) metadata["resourceVersion"] = version;
  return json::object{
      {"apiVersion", "v1"},
      {"kind", "ConfigMap"},
      {"metadata", std::move(metadata)},
      {"data", json::object{{"number", std::to_string(now.of.number)},
                            {"digest", now.of.digest},
                            {"since", now.since ? k8s::format_time(*now.since) : since_ever}}}};
}

target next_target(const target_input& in) {
  // Rounded up: the record has no fractions of a second, and must not antedate the change.
  const auto since = std::chrono::ceil<std::chrono::seconds>(in.now);
  const auto after = [&](const revision& last) {
    return target{{last.number + 1, in.digest}, since};
  };
  if (in.recorded) {
    const bool same = !in.changed && in.recorded->of.digest == in.digest;
    const bool signal_first = in.all_once && !in.recorded->since;
    return same && !signal_first ? *in.recorded : after(in.recorded->of);
  }
  if (in.signalled.empty()) {
    if (in.changed) return after({.number = 1});
    return {{1, in.digest}, in.all_once ? std::optional(since) : std::nullopt};
  }
  const auto last = std::ranges::max(in.signalled, {}, &revision::number);
  return last.digest == in.digest ? target{last, since} : after(last);
}

target_tracker::target_tracker(asio::any_io_executor executor, source_watch& sources,
                               k8s::informer& runtimes, tracker_options options,
                               tracker_environment environment, std::function<void()> publish)
    : executor_(std::move(executor)),
      sources_(sources),
      runtimes_(runtimes),
      options_(std::move(options)),
      environment_(std::move(environment)),
      publish_(std::move(publish)),
      wake_(executor_),
      backoff_(std::chrono::milliseconds(200), std::chrono::seconds(30), environment_.random) {}

/// Counts each change at once, so that none is missed while a request is under way.
void target_tracker::on_change() {
  auto digest = sources_.digest();
  if (digest.empty() || digest == digest_) return;
  if (!digest_.empty()) ++changes_;
  digest_ = std::move(digest);
  const auto now = environment_.clock.now();
  if (now >= still_at()) series_began_ = now;
  changed_at_ = now;
  wake_.set();
}

asio::awaitable<void> target_tracker::run() {
  const auto subscription = sources_.subscribe([this] { on_change(); });
  on_change();
  bool running = co_await runtimes_.wait_synced();
  while (running) {
    const bool idle = digest_.empty() || (current_ && changes_ == recorded_changes_);
    if (idle) {
      const auto cancelled = co_await wake_.wait();
      running = !cancelled;
      continue;
    }
    auto updated = co_await update();
    if (updated.has_error()) running = co_await wait_after(updated.error());
  }
}

/// Stores the target for the sources as they are, and publishes it. One try.
asio::awaitable<k8s::result<void>> target_tracker::update() {
  if (!stored_) {
    auto found = co_await environment_.api.get(config_maps_type(), record_key());
    const bool absent = found.has_error() && found.error().is(k8s::errc::not_found);
    if (found.has_error() && !absent) co_return found.error();
    stored_ = absent ? json::value() : std::move(*found);
  }
  const auto changes = changes_;
  const auto version = sources_.version();
  const auto recorded = read_record(*stored_);
  auto next = next_target({.recorded = recorded,
                           .signalled = recorded ? std::vector<revision>() : signalled(),
                           .digest = digest_,
                           .changed = changes != recorded_changes_,
                           .all_once = options_.signal_all_once,
                           .now = environment_.clock.wall()});
  if (recorded != next) {
    auto object = write_record(next, *stored_);
    const k8s::write_options by{.field_manager = options_.field_manager};
    auto& api = environment_.api;
    auto request = stored_->is_null() ? api.create(config_maps_type(), std::move(object), by)
                                      : api.update(config_maps_type(), std::move(object), by);
    auto written = co_await std::move(request);
    if (written.has_error()) {
      stored_.reset();
      co_return written.error();
    }
    stored_ = std::move(*written);
  }
  backoff_.reset();
  recorded_changes_ = changes;
  visible_at_ = version;
  const bool first = !current_;
  current_ = std::move(next);
  if (first) announce();
  publish_();
  co_return k8s::result<void>();
}

/// The revisions on Runtimes. A signal that can't be read still tells that this is no first start.
std::vector<revision> target_tracker::signalled() const {
  std::vector<revision> out;
  runtimes_.objects().for_each([&](const k8s::object& one) {
    const auto runtime = one.parse();
    const auto text = k8s::annotation(runtime, signalled_annotation);
    if (text) out.push_back(parse_signal(*text).value_or(signal{}).of);
  });
  return out;
}

void target_tracker::announce() const {
  auto& log = environment_.log;
  if (!current_->since) {
    log.info(
        "first start: no Runtime is marked, since all are taken to have the present "
        "configuration; --signal-all-once marks each of them once",
        {{"revision", current_->of.number}});
  } else if (options_.signal_all_once) {
    log.info("--signal-all-once: Runtimes are marked for this revision, unless they were already",
             {{"revision", current_->of.number}});
  }
}

asio::awaitable<bool> target_tracker::wait_after(k8s::failure error) {
  const bool is_our_own = error.is(k8s::errc::fenced) || error.is(k8s::errc::shut_down);
  if (!is_our_own) {
    environment_.log.limited(
        log_limit_, core::log_level::error,
        "the record of the signalled configuration can't be read or written",
        {{"configMap", k8s::to_string(record_key())}, {"error", error.message}, {"next", "retry"}});
  }
  const core::duration requested = error.retry_after;
  const auto timer = environment_.clock.make_timer(executor_);
  timer->expires_at(environment_.clock.now() + std::max(backoff_.next(), requested));
  const bool due = co_await timer->wait();
  co_return due;
}

}  // namespace rw::config_sync
