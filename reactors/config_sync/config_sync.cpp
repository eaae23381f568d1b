#include "reactors/config_sync/config_sync.hpp"

#include "core/channel.hpp"
#include "core/hash.hpp"
#include "core/task_group.hpp"
#include "k8s/controller.hpp"
#include "k8s/own_writes.hpp"
#include "k8s/reconciler.hpp"
#include "k8s/types.hpp"
#include "reactors/config_sync/progress.hpp"
#include "reactors/config_sync/target_keeper.hpp"
#include "reactors/kyma_resources.hpp"

#include <boost/json/object.hpp>

#include <algorithm>
#include <array>
#include <optional>
#include <unordered_set>
#include <utility>

namespace rw::config_sync {
namespace {

namespace asio = boost::asio;
namespace json = boost::json;
using k8s::reconcile_result;

/// How long somebody else's change may be on its way from the API server.
constexpr auto catch_up = std::chrono::milliseconds(200);

/// How often it is asked whether a runtime is still being written to.
constexpr auto look_again = std::chrono::milliseconds(100);

/// For events: where only metadata are watched, the object says that it is PartialObjectMetadata.
k8s::object_reference reference_to_runtime(const json::value& runtime) {
  auto out = k8s::reference_to(runtime);
  out.api_version = runtimes_type().gvk.api_version();
  out.kind = runtimes_type().gvk.kind;
  return out;
}

std::string_view to_string(step next) {
  switch (next) {
    case step::nothing:
      return "nothing";
    case step::mark:
      return "mark";
    case step::tidy:
      return "tidy";
    case step::disown:
      return "disown";
  }
  return {};
}

k8s::controller_options controlled(const sync_options& options) {
  return {.name = "config-sync",
          .concurrent = options.concurrent,
          .queue = {.retry_base = std::chrono::milliseconds(200),
                    .retry_limit = std::chrono::minutes(2),
                    .retries_per_second = 50,
                    .retry_burst = 200}};
}

/// What is kept of a Runtime that was written: as the informer would show it.
json::value metadata_of(const json::value& runtime) {
  json::object metadata = runtime.at("metadata").as_object();
  metadata.erase("managedFields");
  return {{"apiVersion", runtimes_type().gvk.api_version()},
          {"kind", runtimes_type().gvk.kind},
          {"metadata", std::move(metadata)}};
}

}  // namespace

k8s::informer_options runtimes_informer() {
  return {.what = {.ns = std::string(kcp_namespace), .metadata_only = true},
          .keep = k8s::projection::metadata()};
}

class config_sync::implementation final : public k8s::reconciler {
 public:
  implementation(asio::any_io_executor executor, source_watch& sources, k8s::informer& runtimes,
                 sync_options options, sync_environment environment);

  asio::awaitable<void> run();

 private:
  using told = std::shared_ptr<core::channel<std::uint64_t>>;

  asio::awaitable<reconcile_result> reconcile(k8s::object_key key) override;
  asio::awaitable<reconcile_result> write(json::value runtime, step next, target now);
  reconcile_result refused(const json::value& runtime, const k8s::failure& why);
  bootstrapper_mode mode_for(const k8s::object_key& key, const json::value& runtime);
  void note(const k8s::object_key& key, standing how, const target& now);
  void forget(const k8s::object_key& key);
  core::duration still_to_wait(const k8s::object_key& key, const target& now) const;
  void tell(const target& now);

  const asio::any_io_executor executor_;
  k8s::informer& runtimes_;
  const sync_options options_;
  const sync_environment environment_;
  core::counter& marks_;
  core::counter& conflicts_;
  core::gauge& number_;
  std::array<core::counter*, 4> writes_{};
  progress progress_;
  k8s::own_writes own_writes_;
  using runtime_set = std::unordered_set<k8s::object_key, k8s::object_key_hash>;
  runtime_set wrong_modes_;
  runtime_set refused_;  ///< that an event says so of
  core::time_point told_at_{};
  std::uint64_t complete_ = 0;  ///< number of the last state that nobody waited for any more
  told told_;
  target_keeper keeper_;
  k8s::controller core_;
};

config_sync::implementation::implementation(asio::any_io_executor executor, source_watch& sources,
                                            k8s::informer& runtimes, sync_options options,
                                            sync_environment environment)
    : executor_(std::move(executor)),
      runtimes_(runtimes),
      options_(std::move(options)),
      environment_(std::move(environment)),
      marks_(core::make_counter(environment_.metrics, "rw_config_sync_marks_total",
                                "Runtimes that were marked for KIM")),
      conflicts_(core::make_counter(environment_.metrics, "rw_config_sync_conflicts_total",
                                    "Writes to Runtimes that somebody else's was faster than")),
      number_(core::make_gauge(environment_.metrics, "rw_config_sync_state",
                               "Number of the sources' state that all Runtimes are to have")),
      progress_(environment_.metrics),
      told_(std::make_shared<core::channel<std::uint64_t>>(1)),
      keeper_(executor_, sources, runtimes,
              {options_.settle, options_.settle_limit, options_.field_manager},
              {environment_.api, environment_.clock, environment_.log, environment_.random},
              [this](const target& now) { tell(now); }),
      core_(executor_, controlled(options_), *this,
            {environment_.clock, environment_.watchdog, environment_.log, environment_.metrics,
             environment_.random}) {
  for (const auto next : {step::mark, step::tidy, step::disown}) {
    writes_.at(static_cast<std::size_t>(next)) = &core::make_counter(
        environment_.metrics, "rw_config_sync_writes_total", "Writes to Runtimes, by what for",
        {{"step", std::string(to_string(next))}});
  }
  core_.watch(runtimes_);
  core_.watch<std::uint64_t>(told_, [this](const std::uint64_t&, k8s::controller::keys& keys) {
    runtimes_.objects().for_each([&](const k8s::object& one) { keys.push_back(one.key()); });
  });
}

asio::awaitable<void> config_sync::implementation::run() {
  core::task_group tasks(executor_);
  tasks.spawn(core_.run());
  tasks.spawn(keeper_.run());
  co_await tasks.join();
}

/// There is a new target: everybody is looked at. One notice that was not taken yet is enough.
void config_sync::implementation::tell(const target& now) {
  told_at_ = environment_.clock.now();
  number_.Set(static_cast<double>(now.of.number));
  environment_.log.info("Runtimes are compared with the configuration's newest state",
                        {{"state", now.of.number},
                         {"digest", now.of.digest},
                         {"runtimes", runtimes_.objects().size()}});
  told_->try_send(std::uint64_t{now.of.number});
}

void config_sync::implementation::forget(const k8s::object_key& key) {
  own_writes_.forget(key);
  wrong_modes_.erase(key);
  refused_.erase(key);
  progress_.forget(key);
}

bootstrapper_mode config_sync::implementation::mode_for(const k8s::object_key& key,
                                                        const json::value& runtime) {
  bool wrong = false;
  const auto mode = mode_of(runtime, options_.mode, &wrong);
  if (!wrong) {
    wrong_modes_.erase(key);
  } else if (wrong_modes_.insert(key).second) {
    const std::string name(bootstrapper_mode_annotation);
    environment_.log.warning("a Runtime's annotation names no mode; it is left alone",
                             {{"name", key.name},
                              {"annotation", name},
                              {"value", k8s::annotation(runtime, name).value_or("")}});
    environment_.events.warning(reference_to_runtime(runtime), "BootstrapperModeUnknown",
                                "the annotation " + name +
                                    " must be off, signal, shadow or direct; until it is, the "
                                    "runtime's configuration is left alone");
  }
  return mode;
}

void config_sync::implementation::note(const k8s::object_key& key, standing how,
                                       const target& now) {
  const auto wall = environment_.clock.wall();
  progress_.set(key, how, std::min(wall, now.since.value_or(wall)));
  const bool all = progress_.waiting() == 0 && progress_.size() == runtimes_.objects().size();
  if (!all || !keeper_.settled() || complete_ == now.of.number) return;
  complete_ = now.of.number;
  const std::chrono::duration<double> took = environment_.clock.now() - told_at_;
  environment_.log.info("no Runtime waits for the configuration's newest state",
                        {{"state", now.of.number},
                         {"current", progress_.count(standing::current)},
                         {"suspended", progress_.count(standing::suspended)},
                         {"apart", progress_.count(standing::apart)},
                         {"seconds", took.count()}});
}

/// How long it is until this Runtime's turn comes to be marked for the target.
core::duration config_sync::implementation::still_to_wait(const k8s::object_key& key,
                                                          const target& now) const {
  constexpr std::size_t places = 1024;
  const auto count = static_cast<core::duration::rep>(runtimes_.objects().size());
  const auto spread = std::min(options_.spread_each * count, options_.spread_limit);
  const auto hash = core::string_hash().add(key.name).add(std::to_string(now.of.number)).value();
  const auto place = static_cast<core::duration::rep>(hash % places);
  const auto due = told_at_ + spread * place / static_cast<core::duration::rep>(places);
  return std::max(due - environment_.clock.now(), core::duration::zero());
}

asio::awaitable<reconcile_result> config_sync::implementation::reconcile(k8s::object_key key) {
  // Without a target there is nothing to compare with; with one, everybody's turn comes.
  if (!keeper_.current()) co_return reconcile_result::done();
  const auto now = *keeper_.current();
  const auto found = runtimes_.objects().get(key);
  if (!found) {
    forget(key);
    co_return reconcile_result::done();
  }
  auto runtime = own_writes_.newest(found);
  const auto judged = judge(runtime, now, mode_for(key, runtime), options_.late);
  note(key, judged.how, now);
  if (judged.next == step::nothing) co_return reconcile_result::done();
  if (judged.next == step::mark) {
    if (keeper_.can_wait()) co_return reconcile_result::done();
    if (environment_.is_written && environment_.is_written(key)) {
      co_return reconcile_result::requeue_after(look_again);
    }
    const auto wait = still_to_wait(key, now);
    if (wait > core::duration::zero()) co_return reconcile_result::requeue_after(wait);
  }
  auto result = co_await write(std::move(runtime), judged.next, now);
  co_return result;
}

asio::awaitable<reconcile_result> config_sync::implementation::write(json::value runtime, step next,
                                                                     target now) {
  auto change = render(runtime, next, now, options_.forms);
  auto written = co_await environment_.api.apply(
      runtimes_type(), std::move(change), {.field_manager = options_.field_manager, .force = true});
  if (written.has_error()) co_return refused(runtime, written.error());
  writes_.at(static_cast<std::size_t>(next))->Increment();
  if (next == step::mark) marks_.Increment();
  const auto after = metadata_of(*written);
  own_writes_.wrote(after);
  const auto key = k8s::key_of(after);
  refused_.erase(key);
  environment_.log.debug("Runtime written",
                         {{"name", key.name}, {"step", to_string(next)}, {"state", now.of.number}});
  const auto judged = judge(after, now, mode_for(key, after), options_.late);
  note(key, judged.how, now);
  co_return reconcile_result::done();
}

reconcile_result config_sync::implementation::refused(const json::value& runtime,
                                                      const k8s::failure& why) {
  if (why.is(k8s::errc::not_found)) return reconcile_result::done();
  if (why.is(k8s::errc::conflict)) {
    own_writes_.forget(k8s::key_of(runtime));
    // The informer is about to tell what somebody else has done.
    conflicts_.Increment();
    return reconcile_result::requeue_after(catch_up);
  }
  const bool is_our_own = why.is(k8s::errc::fenced) || why.is(k8s::errc::shut_down);
  const bool is_news = !is_our_own && refused_.insert(k8s::key_of(runtime)).second;
  if (is_news) {
    environment_.events.warning(reference_to_runtime(runtime), "ConfigurationNotSignalled",
                                why.message);
  }
  return reconcile_result::error(why);
}

config_sync::config_sync(asio::any_io_executor executor, source_watch& sources,
                         k8s::informer& runtimes, sync_options options,
                         sync_environment environment)
    : impl_(std::make_unique<implementation>(std::move(executor), sources, runtimes,
                                             std::move(options), std::move(environment))) {}

config_sync::~config_sync() = default;

asio::awaitable<void> config_sync::run() {
  return impl_->run();
}

}  // namespace rw::config_sync
