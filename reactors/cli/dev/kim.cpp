#include "reactors/cli/dev/kim.hpp"

#include "core/task_group.hpp"
#include "core/within.hpp"
#include "k8s/manifests.hpp"
#include "k8s/types.hpp"
#include "reactors/bootstrapper/desired_set.hpp"
#include "reactors/bootstrapper/resource.hpp"
#include "reactors/config_sync/config_sync.hpp"
#include "reactors/kyma_resources.hpp"

#include <boost/json/object.hpp>

#include <utility>

namespace rw::cli::dev {
namespace {

namespace asio = boost::asio;
namespace json = boost::json;

constexpr auto configuring = "kim-bootstrapper";
constexpr auto installing = "infrastructure-manager";
constexpr auto not_known_yet = std::chrono::milliseconds(100);

/// The content of an object of KCP, in another name.
json::value copy_of(const json::value& from, const k8s::object_key& to) {
  json::object metadata{{"name", to.name}};
  if (!to.ns.empty()) metadata["namespace"] = to.ns;
  json::object out{{"metadata", std::move(metadata)}};
  for (const auto* field : {"apiVersion", "kind", "type", "data", "binaryData", "spec"}) {
    if (const auto* const found = k8s::find(from, {field})) out[field] = *found;
  }
  return out;
}

}  // namespace

kim::kim(services& with, k8s::client& kcp, source_watch& sources, runtime_client find,
         kim_options options)
    : services_(with),
      kcp_(kcp),
      sources_(sources),
      find_(std::move(find)),
      with_(options),
      runtimes_(kcp, runtimes_type(), config_sync::runtimes_informer(),
                {with.clock, with.log, with.metrics, core::make_random_source()}),
      controller_(with.executor,
                  {.name = "dev-kim",
                   .concurrent = with_.workers,
                   .shutdown = std::chrono::milliseconds(100)},
                  *this,
                  {with.clock, with.watchdog, with.log, with.metrics, core::make_random_source()}) {
  controller_.watch(runtimes_);
}

kim::~kim() = default;

asio::awaitable<void> kim::run() {
  core::task_group tasks(services_.executor);
  tasks.spawn(runtimes_.run());
  tasks.spawn(controller_.run());
  co_await tasks.join();
}

/// What a runtime is to have now. Sources that are not there are left out, and what came of them
/// stays as it is.
k8s::result<std::vector<kim::write>> kim::read_sources() const {
  const bootstrapper::target_names names;
  std::vector<write> out;
  const auto add = [&](source which, const k8s::object_key& to) {
    const auto found = sources_.get(which);
    if (found) out.push_back({copy_of(found.parse(), to), configuring});
  };
  add(source::trust_bundle, {{}, std::string(sources_.get(source::trust_bundle).name())});
  add(source::pull_secret, {names.ns, names.pull_secret});
  add(source::config, {names.ns, names.configuration});
  const auto manifests = sources_.get(source::manifests);
  if (!manifests) return out;
  const auto value = manifests.parse();
  const std::string text(k8s::find_string(value, {"data", bootstrapper::default_manifests_key}));
  auto objects = k8s::parse_manifests(text);
  if (!objects) {
    return k8s::failure{
        .code = make_error_code(k8s::errc::invalid),
        .message = sources_.name_of(source::manifests) + ": " + objects.error().message()};
  }
  k8s::sort_for_apply(*objects);
  for (auto& one : *objects) out.push_back({std::move(one), installing});
  return out;
}

asio::awaitable<k8s::result<void>> kim::configure(k8s::client* api, std::vector<write> what) {
  for (auto& one : what) {
    const auto version = std::string(k8s::find_string(one.object, {"apiVersion"}));
    const auto kind = std::string(k8s::find_string(one.object, {"kind"}));
    auto type = k8s::well_known_type(version, kind);
    if (!type) {
      k8s::group_version_kind gvk{.group = {}, .version = {}, .kind = kind};
      k8s::parse_api_version(version, gvk);
      auto found = co_await api->find(std::move(gvk));
      if (!found) co_return found.error();
      type = std::move(*found);
    }
    const k8s::apply_options how{.field_manager = one.field_manager, .force = true};
    const auto done = co_await api->apply(*type, std::move(one.object), how);
    if (!done) co_return done.error();
  }
  co_return k8s::result<void>();
}

asio::awaitable<k8s::result<void>> kim::take_mark_off(k8s::object_key key) {
  const json::object off{{force_reconciliation_mark, nullptr}};
  json::value change{{"metadata", {{"annotations", off}, {"labels", off}}}};
  const auto done = co_await kcp_.patch(runtimes_type(), std::move(key), k8s::patch_type::merge,
                                        std::move(change), {.field_manager = installing});
  if (done || done.error().is(k8s::errc::not_found)) co_return k8s::result<void>();
  co_return done.error();
}

asio::awaitable<k8s::reconcile_result> kim::reconcile(k8s::object_key key) {
  using result = k8s::reconcile_result;
  // Read anew: a mark that has just been taken off must not be seen again.
  const auto found = co_await kcp_.get(runtimes_type(), key, true);
  if (!found && found.error().is(k8s::errc::not_found)) {
    seen_.erase(key.name);
    co_return result::done();
  }
  if (!found) co_return result::error(found.error());
  const bool marked = carries_mark(*found);
  const bool fresh = !seen_.contains(key.name) && signals(mode_of(*found, with_.mode));
  if (k8s::is_being_deleted(*found) || is_suspended(*found)) co_return result::done();
  if (!marked && !fresh) co_return result::done();
  auto* const api = find_(key.name);
  if (api == nullptr) co_return result::terminal("there is no runtime of this name");
  if (!sources_.ready()) co_return result::requeue_after(not_known_yet);
  auto what = read_sources();
  if (!what) co_return result::error(what.error());
  if (marked) {
    const auto work = services_.clock.make_timer(services_.executor);
    work->expires_at(services_.clock.now() + with_.duration);
    const bool due = co_await work->wait();
    if (!due) co_return result::error("cancelled");
  }
  const auto until = services_.clock.now() + with_.limit;
  const auto configured =
      co_await core::within(services_.clock, until, configure(api, std::move(*what)));
  if (!configured) co_return result::error("the runtime does not answer in time");
  if (configured->has_error()) co_return result::error(configured->error());
  seen_.insert(key.name);
  if (!marked) co_return result::done();
  const auto done = co_await take_mark_off(key);
  co_return done ? result::done() : result::error(done.error());
}

}  // namespace rw::cli::dev
