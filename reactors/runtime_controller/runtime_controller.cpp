#include "rw/reactors/runtime_controller/runtime_controller.hpp"

#include "rw/k8s/objects/types.hpp"
#include "rw/reactors/shared/definition.hpp"
#include "rw/reactors/shared/kyma_resources.hpp"

#include <algorithm>

namespace rw {
namespace {

namespace asio = boost::asio;
using k8s::object_key;

k8s::controller_options controller_options_of(const std::string& name, const runtime_options& of) {
  k8s::controller_options out{.name = name, .concurrent = of.concurrent};
  // Each wait in a reconcile has a limit of its own; this one is an upper bound of them.
  out.reconcile_limit = 4 * (of.runtime_limit + of.unhealthy_probe) + std::chrono::minutes(2);
  out.queue.retry_base = of.backoff_base;
  out.queue.retry_limit = of.backoff_limit;
  out.queue.retries_per_second = 0;  // each runtime has its own backoff
  return out;
}

/// True if it says nothing about the runtime.
bool is_own(const k8s::failure& error) {
  return error.is(k8s::errc::fenced) || error.is(k8s::errc::shut_down);
}

k8s::failure out_of_time() {
  return {.code = k8s::errc::timed_out, .message = "it did not respond in time"};
}

}  // namespace

runtime_controller::runtime_controller(asio::any_io_executor executor, runtime_names names,
                                       const runtime_options& options, runtime_environment in,
                                       k8s::resource_type resources)
    : environment_(std::move(in)),
      resources_(std::move(resources)),
      writer_(environment_.kcp, resources_),
      runtimes_(environment_.metrics, names.metrics, names.subject),
      names_(std::move(names)),
      options_(options),
      permits_(environment_.metrics, names_.metrics,
               std::max<std::size_t>(options_.unhealthy_concurrent, 1),
               [this](const object_key& key) { return requeue(key); }),
      controller_(executor, controller_options_of(names_.controller, options_), *this,
                  {environment_.clock, environment_.watchdog, environment_.log,
                   environment_.metrics, environment_.random}),
      drift_(executor,
             {.metrics = names_.metrics,
              .delay = options_.drift_delay,
              .backoff = {.base = options_.drift_delay, .limit = options_.resync_period}},
             [this](const object_key& key, core::duration wait) {
               controller_.add_after(key, wait);  // does not postpone a pending reconcile
             },
             {environment_.clock, environment_.metrics, environment_.random}) {}

bool runtime_controller::requeue(const object_key& key, core::duration after) {
  const auto added = controller_.add_after(key, after);
  return added == core::add_result::added || added == core::add_result::merged;
}

asio::awaitable<bool> runtime_controller::connect(contact* to, std::string client_name,
                                                  k8s::result<std::string> kubeconfig) {
  to->client_name = std::move(client_name);
  const bool unhealthy = runtimes_.unhealthy(to->key);
  if (!unhealthy) to->permit = {};
  if (unhealthy && !to->permit) to->permit = permits_.acquire(to->key);
  if (unhealthy && !to->permit) {
    // It is enqueued in its turn, in the same state as before.
    to->error = runtimes_.error(to->key);
    to->deferred = unreachable(to->error);
    co_return false;
  }
  auto api = kubeconfig ? environment_.runtimes.get(to->client_name, *kubeconfig)
                        : k8s::result<std::shared_ptr<k8s::client>>(kubeconfig.error());
  if (!api) {
    to->has_access = false;
    to->error = api.error().message;
    co_return false;
  }
  const auto limit = unhealthy ? runtimes_.probe_timeout(to->key, options_.unhealthy_probe,
                                                         options_.runtime_limit / 2)
                               : options_.probe_timeout;
  auto probe = (*api)->get(namespaces_type(), {{}, std::string(skr_namespace)}, true);
  const auto got =
      co_await core::within(environment_.clock, environment_.clock.now() + limit, std::move(probe));
  if (got && (*got || !k8s::is_unhealthy(got->error()))) {
    to->api = environment_.dry ? k8s::dry(*api, environment_.dry) : std::move(*api);
    co_return true;
  }
  if (got) {
    set_unreachable(to, got->error());
  } else if (unhealthy) {
    set_unreachable(to, out_of_time());
  } else {
    // The state is still unknown, so nothing is reported. The connection may be broken.
    environment_.runtimes.evict(to->client_name);
    defer(to, out_of_time().message);
  }
  co_return false;
}

asio::awaitable<k8s::result<std::shared_ptr<k8s::client>>> runtime_controller::contact_for_preview(
    std::string client_name, k8s::result<std::string> kubeconfig,
    std::shared_ptr<k8s::write_preview> into) {
  if (!kubeconfig) co_return kubeconfig.error();
  const auto api = environment_.runtimes.get(client_name, *kubeconfig);
  if (!api) co_return api.error();
  auto probe = (*api)->get(namespaces_type(), {{}, std::string(skr_namespace)}, true);
  const auto got = co_await core::within(
      environment_.clock, environment_.clock.now() + options_.unhealthy_probe, std::move(probe));
  auto error = !got ? out_of_time() : *got ? k8s::failure() : got->error();
  if (got && (*got || !k8s::is_unhealthy(error))) co_return k8s::previewing(*api, std::move(into));
  error.message = "the runtime is unreachable: " + error.message;
  co_return error;
}

asio::awaitable<runtime_controller::removal> runtime_controller::remove_runtime(
    contact* to, const boost::json::value* resource, std::string client_name,
    k8s::result<std::string> kubeconfig, std::function<core::duration()> left,
    std::function<work<k8s::result<void>>(std::shared_ptr<k8s::client>)> undeploy) {
  drift_.unwatch(to->key);
  const auto definition =
      co_await find_definition_state(environment_.kcp, resources_, times_of(*resource));
  const bool is_known = definition.has_value();
  if (is_known && is_by_definition(*definition)) {
    co_return removal{.ended = true,
                      .by_definition = true,
                      .abandoned = "the definition of " + resources_.plural + " is deleted"};
  }
  bool connected = false;
  bool failed = false;
  if (is_known) {
    connected = co_await connect(to, std::move(client_name), std::move(kubeconfig));
    failed = !connected && !to->deferred;
  } else {
    to->error = definition.error().message;
  }
  if (connected) {
    auto requests = undeploy(to->api);
    const auto removed = co_await bounded(to, std::move(requests));
    if (removed) co_return removal{.ended = true};
    to->error = removed.error().message;
    failed = !to->deferred && !is_own(removed.error());
  }
  const auto rest = left();
  if (rest <= core::duration::zero()) {
    co_return removal{.ended = true, .by_definition = !is_known, .abandoned = to->error};
  }
  // The backoff may be longer.
  controller_.add_after(to->key, rest + std::chrono::milliseconds(10));
  co_return removal{.failed = failed};
}

void runtime_controller::set_unreachable(contact* of, const k8s::failure& error) {
  environment_.runtimes.evict(of->client_name);
  drift_.unwatch(of->key);
  runtimes_.set_unhealthy(of->key, error.message);
  of->error = error.message;
  of->reason = k8s::is_access_rejected(error) ? status_reason::access_rejected
                                              : status_reason::runtime_unreachable;
}

k8s::reconcile_result runtime_controller::unreachable(const std::string& error) const {
  auto out = result::error("the runtime is unreachable: " + error, "unreachable");
  out.after = with_jitter(runtimes_.turn(options_.reconnect_rate, options_.resync_period));
  return out;
}

/// Defers the rest of the reconcile until there is a permit.
void runtime_controller::defer(contact* of, std::string error) {
  of->error = error;
  drift_.unwatch(of->key);
  runtimes_.set_unhealthy(of->key, std::move(error));
  permits_.request(of->key);
  of->deferred = result::requeue_after(options_.backoff_limit);  // it is enqueued earlier
}

core::duration runtime_controller::limit_of(const contact& of) const {
  return of.permit ? options_.runtime_limit
                   : std::min(options_.prompt_limit, options_.runtime_limit);
}

k8s::failure runtime_controller::missed_limit(contact* of) {
  auto error = out_of_time();
  if (of->permit) {
    set_unreachable(of, error);
  } else {
    defer(of, error.message);
  }
  return error;
}

void runtime_controller::settle(contact* of, std::optional<k8s::failure> failed,
                                core::duration taken) {
  if (failed && k8s::is_unhealthy(*failed)) return set_unreachable(of, *failed);
  if (failed && is_own(*failed)) return;
  if (taken <= options_.prompt_limit) {
    runtimes_.set_healthy(of->key);
  } else {
    of->error = "it responds slowly";
    of->reason = status_reason::runtime_slow;
    runtimes_.set_unhealthy(of->key, of->error);
  }
  of->permit = {};
}

void runtime_controller::note(const boost::json::value& resource, runtimes::status now,
                              bool changed) {
  const auto key = k8s::key_of(resource);
  const auto state = *now.state;
  const auto reason = now.reason;
  const auto message = now.message;
  now.since = environment_.clock.wall();
  if (!runtimes_.set(key, std::move(now), changed)) return;
  const auto text = names_.subject + " on a runtime: " + std::string(to_string(state));
  const std::initializer_list<core::log_field> fields = {{"namespace", key.ns},
                                                         {"name", key.name},
                                                         {"reason", to_string(reason)},
                                                         {"message", message}};
  const bool is_well = state == runtime_state::installed ||
                       (state == runtime_state::not_ready && is_progress(reason));
  // The controller logs errors itself.
  if (is_well) environment_.log.info(text, fields);
  if (!is_well && state == runtime_state::not_ready) environment_.log.warning(text, fields);
  const auto& event = reason == status_reason::removal_failed
                          ? names_.removal_failed
                          : names_.events[static_cast<std::size_t>(state)];
  const auto about = k8s::reference_to(resource);
  if (is_well) {
    environment_.events.normal(about, event.reason, event.text + message);
  } else {
    environment_.events.warning(about, event.reason, event.text + message);
  }
}

void runtime_controller::note_removed(const boost::json::value& resource,
                                      const std::string& abandoned) {
  const auto key = k8s::key_of(resource);
  const auto about = k8s::reference_to(resource);
  const auto& subject = names_.subject;
  const auto text = "The " + subject +
                    (abandoned.empty() ? " is removed from" : " may still be on") + " the runtime";
  if (abandoned.empty()) return environment_.events.normal(about, names_.removed, text);
  environment_.log.warning(subject + " removal abandoned",
                           {{"namespace", key.ns}, {"name", key.name}, {"reason", abandoned}});
  environment_.events.warning(about, names_.removal_abandoned, text + ": " + abandoned);
}

void runtime_controller::watch_drift(const contact& of, watched_set left) {
  if (options_.watch_runtimes) drift_.watch(of.key, of.api, std::move(left));
}

void runtime_controller::forget_runtime(const object_key& key, const std::string& client_name) {
  drift_.forget(key);
  runtimes_.forget(key);
  environment_.runtimes.evict(client_name);
}

core::duration runtime_controller::next_pause(const object_key& key, bool starting) {
  const auto times = std::min(runtimes_.inspected(key, starting), 10U);
  const auto resync = with_jitter(options_.resync_period);
  if (!starting) return resync;
  const auto pause = options_.ready_interval * (1U << times);
  return std::min(resync, with_jitter(std::min(pause, options_.ready_interval_limit)));
}

void runtime_controller::spread(std::vector<object_key> all, keys& rest) {
  const auto count = static_cast<core::duration::rep>(all.size());
  const auto within = std::min(options_.spread * count, options_.spread_limit);
  for (auto& key : all) {
    const auto added = controller_.add_after(key, random_below(within));
    if (added == core::add_result::full) rest.push_back(std::move(key));  // its source waits
  }
}

core::duration runtime_controller::removal_left(const boost::json::value& resource) const {
  const auto since =
      k8s::parse_rfc3339(k8s::find_string(resource, {"metadata", "deletionTimestamp"}));
  if (!since) return core::duration::zero();
  return options_.removal_limit -
         std::chrono::duration_cast<core::duration>(environment_.clock.wall() - *since);
}

core::duration runtime_controller::random_below(core::duration most) const {
  const auto range = static_cast<std::uint64_t>(std::max<core::duration::rep>(most.count(), 0)) + 1;
  return core::duration(static_cast<core::duration::rep>(environment_.random() % range));
}

}  // namespace rw
