// What comes before the first write to a runtime, and after the last one.

#include "core/within.hpp"
#include "k8s/rfc3339.hpp"
#include "k8s/types.hpp"
#include "reactors/bootstrapper/direct_sync.hpp"
#include "reactors/kyma_resources.hpp"

#include <boost/json/array.hpp>
#include <boost/json/object.hpp>

#include <utility>

namespace rw::bootstrapper {
namespace {

namespace asio = boost::asio;
namespace json = boost::json;
using k8s::object_key;

/// A merge patch that makes the finalizers those of `to`, as long as the object is at its version:
/// the whole list is replaced.
json::value finalizers_change(const json::value& to) {
  const auto* const all = k8s::find(to, {"metadata", "finalizers"});
  return {{"metadata",
           {{"resourceVersion", k8s::resource_version_of(to)},
            {"finalizers", all == nullptr ? json::value(json::array()) : *all}}}};
}

}  // namespace

direct_sync::step direct_sync::add_finalizer(json::value* resource) {
  auto marked = *resource;
  if (!k8s::add_finalizer(marked, finalizer)) co_return std::nullopt;
  auto ended = co_await write(resource, finalizers_change(marked), {});
  co_return ended;
}

asio::awaitable<k8s::reconcile_result> direct_sync::drop_finalizer(json::value* resource) {
  auto released = *resource;
  k8s::remove_finalizer(released, finalizer);
  const auto ended = co_await write(resource, finalizers_change(released), {});
  co_return ended.value_or(result::done());
}

/// Undeploys; none on success, else why not.
asio::awaitable<std::optional<std::string>> direct_sync::clean(resource_view view,
                                                               std::string kubeconfig,
                                                               places::place* kept) {
  const auto key = view.key;
  if (runtimes_.sick(key)) {
    if (!*kept) *kept = places_.take(key);
    if (!*kept) co_return runtimes_.complaint(key);
    auto silent = co_await sign_of_life(key, kubeconfig);
    if (silent) give_up_client(key);
    if (silent) co_return silent;
  }
  auto api = client_of(key, kubeconfig);
  if (!api) co_return api.error().message;
  auto allowed = [this, view] {
    const auto runtime = runtime_of(view);
    return mode_of(view, runtime) == bootstrapper_mode::direct &&
           why_waiting(view, runtime).empty() && mismatch(view, runtime).empty();
  };
  std::optional<at_work> writing(std::in_place, *this, runtime_of(view));
  auto work = undeploy(*api, &with_.how, to_string(key), std::move(allowed), in_.clock.wall());
  const auto until = in_.clock.now() + with_.runtime_limit;
  const auto done = co_await core::within(in_.clock, until, std::move(work));
  writing.reset();
  if (done && !(done->has_error() && k8s::is_sick(done->error()))) runtimes_.set_healthy(key);
  if (done && *done) {
    writes_.Increment(static_cast<double>(**done));
    co_return std::nullopt;
  }
  auto why = done ? done->error().message : std::string("it did not answer in time");
  if (!done || k8s::is_sick(done->error())) {
    give_up_client(key);
    runtimes_.set_sick(key, why);
  }
  co_return why;
}

asio::awaitable<k8s::reconcile_result> direct_sync::keep_removed(json::value resource,
                                                                 places::place* kept) {
  problems unused;
  auto view = read_resource(resource, with_.usual, unused);
  view.suspended = false;  // it holds up changes, not the end
  progress_.leave(view.key);
  if (!k8s::has_finalizer(resource, finalizer)) co_return result::done();
  const auto runtime = runtime_of(view);
  situation seen{.mode = mode_of(view, runtime), .deleting = true};
  std::optional<std::string> why;
  const bool runtime_gone = !view.runtime.empty() && !runtime;
  const auto other = mismatch(view, runtime);
  const bool ours = seen.mode == bootstrapper_mode::direct && other.empty() && !other_owner(view);
  const auto kubeconfig = access_to(view, runtime);
  const auto waiting = ours ? why_waiting(view, runtime) : std::string();
  if (!waiting.empty()) {
    why = waiting;
  } else if (ours && kubeconfig) {
    why = co_await clean(view, *kubeconfig, kept);
  } else if (ours) {
    why = kubeconfig.error().message;
  } else {
    why = runtime_gone    ? "there is no Runtime " + view.runtime
          : other.empty() ? "the runtime's mode is " + std::string(to_string(seen.mode))
                          : other;
  }
  const auto since =
      k8s::parse_rfc3339(k8s::find_string(resource, {"metadata", "deletionTimestamp"}));
  const core::duration passed = since ? in_.clock.wall() - *since : with_.removal_limit;
  if (why && ours && has_access(view, runtime) && passed < with_.removal_limit) {
    // The backoff must not outlast the limit.
    controller_.add_after(view.key, with_.removal_limit - passed + std::chrono::milliseconds(10));
    seen.failed = "the bootstrapper can't be removed from the runtime: " + *why;
    const auto then =
        waiting.empty() ? result::error(seen.failed, "removal failed") : result::done();
    auto stopped = co_await stop_at(&resource, std::move(seen), then);
    co_return stopped;
  }
  const auto about = k8s::reference_to(resource);
  auto dropped = co_await drop_finalizer(&resource);
  if (dropped.what != result::kind::done) co_return dropped;
  forget(view.key);
  if (why) {
    in_.log.warning("runtime is left as it is, its RuntimeBootstrapper is gone",
                    {{"namespace", view.key.ns}, {"name", view.key.name}, {"reason", *why}});
    in_.events.warning(about, "BootstrapperRemovalGivenUp",
                       "The bootstrapper may still be on the runtime: " + *why);
  } else {
    in_.events.normal(about, "BootstrapperRemoved", "The bootstrapper is removed from the runtime");
  }
  co_return dropped;
}

/// A Runtime of that name gets a RuntimeBootstrapper, where that is asked for and it has none.
asio::awaitable<k8s::reconcile_result> direct_sync::create_for(object_key key) {
  const auto runtime = from_.runtimes.objects().get(key);
  if (!with_.create_for_runtimes || !runtime) co_return result::done();
  const auto value = runtime.parse();
  const auto mode = rw::mode_of(value, with_.mode);
  const bool asks = mode == bootstrapper_mode::direct || mode == bootstrapper_mode::shadow;
  resource_view like{.key = key, .runtime = key.name};
  // Under whatever name.
  like.key.name = "~";
  if (!asks || k8s::is_being_deleted(value) || other_owner(like)) co_return result::done();
  const auto made =
      co_await in_.kcp.create(runtime_bootstrappers_type(), resource_for(value, with_.usual));
  if (made || made.error().is(k8s::errc::already_exists)) co_return result::done();
  co_return result::error(made.error());
}

}  // namespace rw::bootstrapper
