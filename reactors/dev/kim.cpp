#include "rw/reactors/dev/kim.hpp"

#include "rw/core/task_group.hpp"
#include "rw/k8s/objects/manifests.hpp"
#include "rw/k8s/objects/types.hpp"
#include "rw/reactors/bootstrapper/desired_set.hpp"
#include "rw/reactors/bootstrapper/resource.hpp"
#include "rw/reactors/shared/bootstrapper_mode.hpp"
#include "rw/reactors/shared/kyma_resources.hpp"

#include <boost/json/array.hpp>
#include <boost/json/object.hpp>

#include <utility>

namespace rw::dev {
namespace {

namespace asio = boost::asio;
namespace json = boost::json;
using k8s::reconcile_result;

constexpr auto binary_name = "manager";  // the field manager of updates and creates
constexpr auto config_manager = "kim-bootstrapper";
constexpr auto install_manager = "infrastructure-manager";
constexpr auto requeue = std::chrono::milliseconds(100);
constexpr auto held_poll = std::chrono::seconds(1);
constexpr auto status_requeue = std::chrono::seconds(30);

/// Returns the content of an object of KCP, under another name.
json::value copy_of(const json::value& from, const k8s::object_key& to) {
  json::object metadata{{"name", to.name}};
  if (!to.ns.empty()) metadata["namespace"] = to.ns;
  json::object out{{"metadata", std::move(metadata)}};
  for (const auto* field : {"apiVersion", "kind", "type", "data", "binaryData", "spec"}) {
    if (const auto* const found = k8s::find(from, {field})) out[field] = *found;
  }
  return out;
}

asio::awaitable<k8s::result<void>> write(k8s::client* api, json::value object, bool install) {
  const auto version = std::string(k8s::find_string(object, {"apiVersion"}));
  const auto kind = std::string(k8s::find_string(object, {"kind"}));
  auto type = k8s::well_known_type(version, kind);
  if (!type) {
    k8s::group_version_kind gvk{.group = {}, .version = {}, .kind = kind};
    k8s::parse_api_version(version, gvk);
    auto found = co_await api->find(std::move(gvk));
    if (!found) co_return found.error();
    type = std::move(*found);
  }
  if (install) {
    const k8s::write_options by{.field_manager = binary_name};
    const auto created = co_await api->create(*type, object, by);
    if (created) co_return k8s::result<void>();
    if (!created.error().is(k8s::errc::already_exists)) co_return created.error();
  }
  const k8s::apply_options by{.field_manager = install ? install_manager : config_manager,
                              .force = true};
  const auto applied = co_await api->apply(*type, std::move(object), by);
  if (!applied) co_return applied.error();
  co_return k8s::result<void>();
}

}  // namespace

asio::awaitable<k8s::result<void>> configure_as_kim(k8s::client* runtime, source_watch* sources) {
  const bootstrapper::target_names names;
  const auto bundle = sources->get(source::trust_bundle);
  const auto secret = sources->get(source::pull_secret);
  const auto config = sources->get(source::config);
  const auto manifests = sources->get(source::manifests);
  std::vector<json::value> copies;
  if (bundle) copies.push_back(copy_of(bundle.parse(), {{}, std::string(bundle.name())}));
  if (secret) copies.push_back(copy_of(secret.parse(), {names.ns, names.pull_secret}));
  if (config) copies.push_back(copy_of(config.parse(), {names.ns, names.configuration}));
  for (auto& copy : copies) {
    const auto written = co_await write(runtime, std::move(copy), false);
    if (!written) co_return written.error();
  }
  if (!manifests) co_return k8s::result<void>();
  const auto value = manifests.parse();
  const std::string text(k8s::find_string(value, {"data", bootstrapper::manifests_key}));
  auto objects = k8s::parse_manifests(text);
  if (!objects) {
    co_return k8s::failure{.code = make_error_code(k8s::errc::invalid),
                           .message = "manifests: " + objects.error().message()};
  }
  k8s::sort_for_apply(*objects);
  for (auto& object : *objects) {
    const auto written = co_await write(runtime, std::move(object), true);
    if (!written) co_return written.error();
  }
  co_return k8s::result<void>();
}

kim::kim(k8s::client& kcp, source_watch& sources, configure_function configure, kim_options options,
         kim_environment environment)
    : kcp_(kcp),
      sources_(sources),
      configure_(std::move(configure)),
      options_(std::move(options)),
      environment_(std::move(environment)),
      runtimes_(kcp, runtimes_type(), {.objects = {.ns = std::string(kcp_namespace)}},
                {environment_.clock, environment_.log, environment_.metrics, environment_.random}),
      source_updated_(environment_.executor),
      controller_(environment_.executor,
                  {.name = "dev-kim",
                   .concurrent = options_.workers,
                   .shutdown = std::chrono::milliseconds(100)},
                  *this,
                  {environment_.clock, environment_.watchdog, environment_.log,
                   environment_.metrics, environment_.random}) {
  controller_.watch(runtimes_);
}

kim::~kim() = default;

asio::awaitable<void> kim::run() {
  const auto subscription = sources_.subscribe([this] { on_source_change(); });
  core::task_group tasks(environment_.executor);
  tasks.spawn(runtimes_.run());
  tasks.spawn(controller_.run());
  tasks.spawn(watch_config());
  co_await tasks.join();
}

asio::awaitable<bool> kim::pause(core::duration by) {
  if (options_.vary) by = options_.vary(by);
  const auto timer = environment_.clock.make_timer(environment_.executor);
  timer->expires_at(environment_.clock.now() + by);
  const bool due = co_await timer->wait();
  co_return due;
}

asio::awaitable<reconcile_result> kim::reconcile(k8s::object_key key) {
  if (options_.held) co_return reconcile_result::requeue_after(held_poll);
  // Read from the server: the cache may still have a mark that was removed just now.
  const auto found = co_await kcp_.get(runtimes_type(), key, false);
  if (!found && !found.error().is(k8s::errc::not_found)) {
    co_return reconcile_result::error(found.error());
  }
  if (!found) shoots_.erase(key.name);
  if (!found || k8s::is_being_deleted(*found)) co_return reconcile_result::done();
  const auto state = k8s::find_string(*found, {"status", "state"});
  const bool at_rest = state == "Ready" || state == "Failed";
  const auto generation = k8s::generation_of(*found);
  const auto [at, fresh] = shoots_.try_emplace(key.name);
  if (fresh && at_rest) at->second.generation = generation;
  const bool marked = carries_mark(*found);
  const bool patch = !is_suspended(*found) && (marked || at->second.generation < generation);
  if (!patch && at_rest) co_return reconcile_result::done();
  if (patch) {
    const auto then = co_await patch_shoot(*found, marked);
    if (then == next::stop) co_return reconcile_result::done();
    if (then == next::requeue) co_return reconcile_result::requeue_after(requeue);
  }
  const auto& shoot = shoots_[key.name];
  const auto now = environment_.clock.now();
  if (now < shoot.ready_at) co_return reconcile_result::requeue_after(shoot.ready_at - now);
  const bool due = co_await pause(options_.work / 2);
  if (!due) co_return reconcile_result::error("cancelled");
  if (shoots_[key.name].fails) {
    co_await set_state(key, "Failed");
    co_return reconcile_result::done();
  }
  if (options_.bootstrapper) {
    const auto configured = co_await configure_(*found);
    if (!configured) {
      environment_.log.debug("dev-kim: a runtime can't be configured",
                             {{"name", key.name}, {"error", configured.error().message}});
      co_await set_state(key, "Pending");
      co_return reconcile_result::requeue_after(status_requeue);
    }
  }
  const bool done = co_await pause(options_.work / 2);
  if (!done) co_return reconcile_result::error("cancelled");
  co_await set_state(key, "Ready");
  co_return reconcile_result::done();
}

asio::awaitable<kim::next> kim::patch_shoot(json::value runtime, bool marked) {
  const auto key = k8s::key_of(runtime);
  const bool due = co_await pause(options_.patch);
  if (!due) co_return next::requeue;
  const auto outcome = options_.outcome ? options_.outcome(key.name) : kim_outcome::unchanged;
  if (outcome == kim_outcome::fails_before) {
    co_await set_state(key, "Failed");
    co_return next::stop;
  }
  if (marked) {
    runtime.at("metadata").at("annotations").as_object().erase(force_reconciliation_mark);
    const k8s::write_options by{.field_manager = binary_name};
    const auto taken = co_await kcp_.update(runtimes_type(), runtime, by);
    if (!taken) co_return next::requeue;
  }
  ++reconciles_;
  auto& shoot = shoots_[key.name];
  const auto generation = k8s::generation_of(runtime);
  const bool changed = outcome == kim_outcome::changed || shoot.generation < generation;
  shoot = {.generation = generation, .fails = outcome == kim_outcome::fails_after};
  if (!changed) co_return next::configure;
  const auto wait = options_.vary ? options_.vary(options_.wait) : options_.wait;
  shoot.ready_at = environment_.clock.now() + wait;
  co_await set_state(key, "Pending");
  co_return next::configure;
}

/// Retries until the state is stored. (The original may lose its final state to a conflict, and
/// does not reconcile a Runtime again that still shows Ready.)
asio::awaitable<void> kim::set_state(k8s::object_key key, std::string_view state) {
  for (;;) {
    auto found = co_await kcp_.get(runtimes_type(), key);
    if (!found && found.error().is(k8s::errc::not_found)) co_return;
    if (found) {
      set_status(*found, state);
      const k8s::write_options by{.field_manager = binary_name, .subresource = "status"};
      const auto written = co_await kcp_.update(runtimes_type(), std::move(*found), by);
      if (written) co_return;
    }
    const bool due = co_await pause(requeue);
    if (!due) co_return;
  }
}

void kim::set_status(json::value& runtime, std::string_view state) const {
  auto& object = runtime.as_object();
  if (!object["status"].is_object()) object["status"] = json::object();
  object["status"].as_object()["state"] = state;
  if (!options_.bootstrapper || state == "Pending") return;
  const bool ready = state == "Ready";
  const k8s::condition condition{
      .type = "RuntimeBootstrapperReady",
      .status = ready ? "True" : "False",
      .reason = ready ? "RuntimeBootstrapperConfigured" : "RuntimeBootstrapperConfigurationFailed",
      .message = ready ? "Runtime bootstrapper installation completed" : std::string(state)};
  k8s::set_condition(runtime, condition, environment_.clock.wall());
}

/// The config watcher reacts to updates only: neither to creation nor to deletion.
void kim::on_source_change() {
  for (const auto source : all_sources) {
    auto now = sources_.get(source);
    auto& known = known_.at(static_cast<std::size_t>(source));
    const bool updated = known && now && known.uid() == now.uid() && !k8s::same_state(known, now);
    known = std::move(now);
    if (updated && options_.config_watcher && options_.bootstrapper && !options_.held) {
      source_updated_.set();
    }
  }
}

asio::awaitable<void> kim::watch_config() {
  for (;;) {
    const auto cancelled = co_await source_updated_.wait();
    if (cancelled) co_return;
    bool all = co_await mark_all();
    while (!all) {
      const bool due = co_await pause(requeue);
      if (!due) co_return;
      all = co_await mark_all();
    }
  }
}

asio::awaitable<bool> kim::mark_all() {
  const auto listed = co_await kcp_.list(runtimes_type(), {.ns = std::string(kcp_namespace)});
  if (!listed) co_return false;
  bool all = true;
  for (const auto& item : listed->at("items").as_array()) {
    if (carries_mark(item)) continue;
    auto runtime = item;
    const auto& type = runtimes_type();
    runtime.as_object()["apiVersion"] = type.gvk.api_version();
    runtime.as_object()["kind"] = type.gvk.kind;
    runtime.at("metadata").as_object().erase("managedFields");
    k8s::set_annotation(runtime, force_reconciliation_mark, "true");
    const auto applied = co_await kcp_.apply(type, std::move(runtime),
                                             {.field_manager = "config-watcher", .force = true});
    if (!applied) all = false;
  }
  co_return all;
}

}  // namespace rw::dev
