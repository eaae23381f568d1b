#include "rw/reactors/watcher_controller/watcher_controller.hpp"

#include "rw/core/backoff.hpp"
#include "rw/k8s/objects/types.hpp"
#include "rw/reactors/shared/explanations.hpp"
#include "rw/reactors/shared/managers_file.hpp"

#include <boost/json/array.hpp>
#include <boost/json/object.hpp>

#include <optional>
#include <utility>
#include <vector>

namespace rw::watcher_controller {
namespace {

namespace asio = boost::asio;
namespace json = boost::json;
using k8s::reconcile_result;

/// Maximum delay of another client's change on its way from the API server.
constexpr auto catch_up = std::chrono::milliseconds(200);

json::value metadata_change(const json::value& watcher) {
  return {{"metadata", json::object{{"resourceVersion", k8s::resource_version_of(watcher)}}}};
}

/// Returns a merge patch that sets the finalizers to those of `to`, at the resourceVersion of
/// `from`.
json::value finalizers_change(const json::value& from, const json::value& to) {
  auto change = metadata_change(from);
  const auto* const all = k8s::find(to, {"metadata", "finalizers"});
  change.at("metadata").as_object()["finalizers"] = all == nullptr ? json::array() : *all;
  return change;
}

/// Returns true for failures of this process rather than of the object: it no longer leads, or is
/// about to end.
bool is_our_own(const k8s::failure& error) {
  return error.is(k8s::errc::fenced) || error.is(k8s::errc::shut_down);
}

std::optional<watcher> watcher_of(const std::optional<own_component>& own) {
  if (!own) return {};
  watcher out;
  out.key = own->key;
  out.manager = own->name;
  out.receiver = own->service;
  return out;
}

}  // namespace

watcher_controller::watcher_controller(asio::any_io_executor executor,
                                       watcher_controller_sources sources,
                                       watcher_controller_options options,
                                       watcher_controller_environment environment)
    : sources_(sources),
      options_(std::move(options)),
      environment_(environment),
      writes_(core::make_counter(
          environment.metrics, "rw_watcher_virtual_service_writes_total",
          "Number of writes of VirtualServices that differed from their Watchers")),
      own_(watcher_of(options_.own)),
      set_(sources.watchers, sources.virtual_services),
      own_writes_(environment.clock),
      core_(executor, {.name = "watcher", .concurrent = options_.concurrent}, *this,
            {environment.clock, environment.watchdog, environment.log, environment.metrics,
             core::make_random_source()}) {
  core_.watch(sources_.watchers, [this](const k8s::delta& change, auto& keys) {
    keys.push_back(change.latest().key());
    // Another that did not fit may fit now.
    for (const auto& [refused, error] : set_.current().refused) keys.push_back(refused);
  });
  core_.watch(sources_.gateways,
              [this](const k8s::delta& change, auto& keys) { map_gateway(change, keys); });
  core_.watch(sources_.virtual_services, [this](const k8s::delta& change, auto& keys) {
    auto key = change.latest().key();
    if (is_own(key) || sources_.watchers.objects().get(key)) keys.push_back(std::move(key));
  });
}

/// Adds the Watchers that select the Gateway in its current or previous state, and the own
/// component if it is its Gateway.
void watcher_controller::map_gateway(const k8s::delta& change, k8s::controller::keys& keys) const {
  if (own_ && change.latest().name() == options_.own->gateway) keys.push_back(own_->key);
  const auto before = change.before.parse();
  const auto now = change.now.parse();
  sources_.watchers.objects().for_each([&](const k8s::object& object) {
    const auto view = read_watcher(object.parse());
    if (view.has_error()) return;
    const auto selects = [&](const json::value& gateway) {
      return !gateway.is_null() &&
             view->gateways.matches(k8s::find(gateway, {"metadata", "labels"}));
    };
    if (selects(before) || selects(now)) keys.push_back(object.key());
  });
}

std::vector<json::value> watcher_controller::gateways() const {
  std::vector<json::value> found;
  sources_.gateways.objects().for_each([&](const k8s::object& object) {
    if (object.ns() == options_.gateway_namespace) found.push_back(object.parse());
  });
  return found;
}

asio::awaitable<reconcile_result> watcher_controller::reconcile(k8s::object_key key) {
  const auto found = sources_.watchers.objects().get(key);
  if (!found) {
    own_writes_.forget(key);
    faults_.erase(key);
    if (is_own(key)) {
      auto configured = co_await configure_own();
      co_return configured;
    }
    repairs_.erase(key);
    co_return reconcile_result::done();
  }
  auto watcher = own_writes_.newest(found);
  if (k8s::is_being_deleted(watcher)) {
    auto released = co_await release(&watcher);
    co_return released;
  }
  const auto ended = co_await begin(&watcher);
  if (ended) co_return *ended;
  auto configured = co_await configure(&watcher);
  co_return configured;
}

/// Keeps the VirtualService of the own component. Without its Gateway nothing is to be done: the
/// Gateway's creation is a reason to come again.
asio::awaitable<reconcile_result> watcher_controller::configure_own() {
  const auto gateway =
      sources_.gateways.objects().get({options_.gateway_namespace, options_.own->gateway});
  if (!gateway) co_return reconcile_result::done();
  auto desired = virtual_service_through(*own_, gateway.parse());
  if (desired.has_error()) {
    co_return reconcile_result::error(desired.error().message, desired.error().reason);
  }
  const auto live = sources_.virtual_services.objects().get(own_->key);
  if (live && is_as_desired(live.parse(), *desired)) co_return reconcile_result::done();
  auto written = co_await write_virtual_service(own_->key, std::move(*desired));
  if (!written) co_return reconcile_result::requeue_after(options_.repair_pause);
  if (written->has_error()) co_return reconcile_result::error(written->error());
  co_return reconcile_result::done();
}

/// Adds the finalizer before anything is made for a Watcher: it keeps the Watcher until that is
/// deleted.
watcher_controller::step watcher_controller::begin(json::value* watcher) {
  auto kept = *watcher;
  if (k8s::add_finalizer(kept, watcher_finalizer)) {
    const auto ended = co_await write(watcher, finalizers_change(*watcher, kept), {});
    if (ended) co_return ended;
  }
  if (!state_of(*watcher).empty()) co_return std::nullopt;
  const auto ended = co_await tell(watcher, processing());
  co_return ended;
}

asio::awaitable<reconcile_result> watcher_controller::configure(json::value* watcher) {
  const auto view = read_watcher(*watcher);
  if (view.has_error()) {
    static_assert(find_entry(watcher_invalid) != nullptr);
    const watcher_error invalid{std::string(watcher_invalid), view.error().message};
    auto result = co_await give_up(watcher, invalid, failed(invalid),
                                   reconcile_result::terminal(invalid.message, invalid.reason));
    co_return result;
  }
  const auto& refused = set_.current().refused;
  if (const auto found = refused.find(view->key); found != refused.end()) {
    const watcher_error error{"LimitExceeded"_reason, found->second};
    auto result = co_await give_up(watcher, error, failed(error),
                                   reconcile_result::requeue_after(options_.revisit));
    co_return result;
  }
  auto desired = virtual_service_for(*view, gateways(), options_.gateway_namespace);
  if (desired.has_error()) {
    const auto& cause = desired.error();
    auto result = co_await give_up(watcher, cause, failed(cause),
                                   reconcile_result::error(cause.message, cause.reason));
    co_return result;
  }
  faults_.erase(view->key);  // also where its write fails next
  k8s::set_annotation(*desired, last_valid_annotation, last_valid_text(*watcher));
  const auto live = sources_.virtual_services.objects().get(view->key);
  if (!live || !is_as_desired(live.parse(), *desired)) {
    const auto ended = co_await apply(watcher, std::move(*desired));
    if (ended) co_return *ended;
  }
  // Whether Secrets are observed is a setting of the watchers on the runtimes.
  const auto watch = watch_of(*view);
  const auto next = ready(unobserved_reason(watch, true), watch.field == "status");
  const auto ended = co_await tell(watcher, next);
  if (ended) co_return *ended;
  co_return reconcile_result::requeue_after(options_.revisit);
}

/// Writes a VirtualService. Returns nothing if it was repaired too often.
asio::awaitable<std::optional<k8s::result<json::value>>> watcher_controller::write_virtual_service(
    k8s::object_key key, json::value desired) {
  const std::chrono::duration<double> pause = options_.repair_pause;
  auto& repairs = repairs_.use(key, 1 / pause.count(), options_.repairs);
  if (!repairs.try_take(environment_.clock.now())) co_return std::nullopt;
  auto written =
      co_await environment_.api.apply(virtual_services_type(), std::move(desired),
                                      {.field_manager = options_.field_manager, .force = true});
  if (written.has_error()) {
    repairs_.erase(key);  // not written: the backoff of the next try is enough
    co_return written;
  }
  writes_.Increment();
  log_write("VirtualService written", key);
  co_return written;
}

watcher_controller::step watcher_controller::apply(json::value* watcher, json::value desired) {
  const auto written = co_await write_virtual_service(k8s::key_of(*watcher), std::move(desired));
  if (!written) co_return contested(*watcher);
  if (!written->has_error()) co_return std::nullopt;
  const auto& failure = written->error();
  const watcher_error error{"VirtualServiceNotApplied"_reason, failure.message};
  auto result = reconcile_result::error(failure);
  if (is_our_own(failure)) co_return result;
  result = co_await give_up(watcher, error, failed(error), std::move(result));
  co_return result;
}

/// A dry run has changed nothing.
void watcher_controller::log_write(std::string_view text, const k8s::object_key& key) const {
  if (environment_.api.is_dry()) return;
  environment_.log.info(text, {{"namespace", key.ns}, {"name", key.name}});
}

/// Stops immediate repairs: two controllers with opposite writes would repeat them at full speed.
reconcile_result watcher_controller::contested(const json::value& watcher) const {
  constexpr auto text =
      "another client changes the VirtualService after each repair; the next repair is delayed";
  environment_.events.warning(k8s::reference_to(watcher), "WatcherVirtualServiceContested"_reason,
                              text);
  auto result = reconcile_result::error(text);
  result.after = options_.repair_pause;
  return result;
}

asio::awaitable<reconcile_result> watcher_controller::release(json::value* watcher) {
  if (!k8s::has_finalizer(*watcher, watcher_finalizer)) co_return reconcile_result::done();
  auto ended = co_await tell(watcher, deleting());
  if (ended) co_return *ended;
  ended = co_await remove_virtual_service(watcher);
  if (ended) co_return *ended;
  auto released = *watcher;
  k8s::remove_finalizer(released, watcher_finalizer);
  ended = co_await write(watcher, finalizers_change(*watcher, released), {});
  if (ended) co_return *ended;
  const auto key = k8s::key_of(*watcher);
  log_write("Watcher released", key);
  co_return reconcile_result::done();
}

watcher_controller::step watcher_controller::remove_virtual_service(json::value* watcher) {
  // The store may be older than this controller's own writes.
  const auto key = k8s::key_of(*watcher);
  auto live = co_await environment_.api.get(virtual_services_type(), key);
  std::optional<k8s::failure> failure;
  if (live.has_error()) {
    failure = live.error();
  } else if (is_owned_by(*live, k8s::uid_of(*watcher))) {
    auto removed = co_await environment_.api.remove(virtual_services_type(), key,
                                                    {.uid = std::string(k8s::uid_of(*live))});
    if (removed.has_error()) failure = removed.error();
  }
  if (!failure || failure->is(k8s::errc::not_found)) co_return std::nullopt;
  auto result = reconcile_result::error(*failure);
  if (is_our_own(*failure)) co_return result;
  const watcher_error error{"VirtualServiceNotDeleted"_reason, failure->message};
  result = co_await give_up(watcher, error, deleting(error), std::move(result));
  co_return result;
}

/// Writes the Watcher at its resourceVersion, with a merge patch. After a conflict the informer
/// delivers the newer state.
watcher_controller::step watcher_controller::write(json::value* watcher, json::value change,
                                                   std::string subresource) {
  const bool of_status = !subresource.empty();
  auto written = co_await environment_.api.patch(watchers_type(), k8s::key_of(*watcher),
                                                 k8s::patch_type::merge, std::move(change),
                                                 {.subresource = std::move(subresource)});
  if (written.has_value()) {
    own_writes_.wrote(*written);
    *watcher = std::move(*written);
    co_return std::nullopt;
  }
  const auto& error = written.error();
  own_writes_.forget(k8s::key_of(*watcher));
  // Deleted, unless only the status subresource is missing.
  const bool there = of_status && sources_.watchers.objects().get(k8s::key_of(*watcher));
  if (error.is(k8s::errc::not_found) && !there) co_return reconcile_result::done();
  if (error.is(k8s::errc::conflict)) co_return reconcile_result::requeue_after(catch_up);
  if (of_status && !is_our_own(error)) {
    environment_.events.warning(k8s::reference_to(*watcher), "WatcherStatusUpdate"_reason,
                                error.message);
  }
  co_return reconcile_result::error(error);
}

watcher_controller::step watcher_controller::tell(json::value* watcher, desired_status to) {
  auto status = next_status(*watcher, to, environment_.clock.wall());
  if (!status) co_return std::nullopt;
  const bool news = state_of(*watcher) != to.state;
  auto change = metadata_change(*watcher);
  change.as_object()["status"] = std::move(*status);
  const auto ended = co_await write(watcher, std::move(change), "status");
  if (ended) co_return ended;
  if (news && !environment_.api.is_dry()) {
    const auto key = k8s::key_of(*watcher);
    environment_.log.info("Watcher changed its state",
                          {{"namespace", key.ns}, {"name", key.name}, {"state", to.state}});
  }
  co_return std::nullopt;
}

/// Reports an error, if it is new, and returns `then`.
asio::awaitable<reconcile_result> watcher_controller::give_up(json::value* watcher,
                                                              watcher_error error,
                                                              desired_status to,
                                                              reconcile_result then) {
  auto& fault = faults_[k8s::key_of(*watcher)];
  if (fault.error.reason != error.reason) fault.since = environment_.clock.wall();
  fault.error = error;
  const bool news = next_status(*watcher, to, environment_.clock.wall()).has_value();
  const auto ended = co_await tell(watcher, std::move(to));
  if (ended) co_return *ended;
  if (news) {
    environment_.events.warning(k8s::reference_to(*watcher), "Watcher" + error.reason,
                                error.message);
  }
  co_return then;
}

}  // namespace rw::watcher_controller
