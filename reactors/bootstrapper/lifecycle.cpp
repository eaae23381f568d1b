// The begin and the end of a RuntimeBootstrapper.

#include "core/within.hpp"
#include "k8s/rfc3339.hpp"
#include "k8s/types.hpp"
#include "reactors/bootstrapper/pass.hpp"
#include "reactors/kyma_resources.hpp"

#include <boost/json/object.hpp>

#include <utility>

namespace rw::bootstrapper {
namespace {

namespace asio = boost::asio;
namespace json = boost::json;

}  // namespace

core::duration removal_left(const json::value& resource, core::duration limit,
                            std::chrono::system_clock::time_point now) {
  const auto since =
      k8s::parse_rfc3339(k8s::find_string(resource, {"metadata", "deletionTimestamp"}));
  return since ? limit - std::chrono::duration_cast<core::duration>(now - *since)
               : core::duration::zero();
}

asio::awaitable<k8s::reconcile_result> direct_sync::create(k8s::object_key key) {
  const auto runtime = from_.runtimes.objects().get(key);
  if (!runtime) co_return result::done();
  const auto made = co_await in_.kcp.create(runtime_bootstrappers_type(),
                                            resource_for(runtime.parse(), with_.defaults));
  if (made || made.error().is(k8s::errc::already_exists)) co_return result::done();
  co_return result::error(made.error());
}

asio::awaitable<k8s::reconcile_result> direct_sync::undeploy_all(pass* in) {
  const auto& key = in->key;
  progress_.leave(key);
  drift_.unwatch(key);
  const auto left = removal_left(in->resource, with_.removal_limit, in_.clock.wall());
  std::string error;
  const bool connected = co_await connect(in);
  if (connected) {
    auto work = bootstrapper::undeploy(in->api, &with_.apply, read_state(in->resource).objects,
                                       [this, key] { return may(key, action::undeploy); });
    const auto until = in_.clock.now() + with_.runtime_limit;
    const auto got = co_await core::within(in_.clock, until, std::move(work));
    const bool silent = !got || (got->has_error() && k8s::is_sick(got->error()));
    if (!silent) runtimes_.set_healthy(key);
    if (got && *got) {
      writes_.Increment(static_cast<double>(**got));
      auto released = co_await release(in, {});
      co_return released;
    }
    error = got ? got->error().message : std::string("it did not answer in time");
    if (silent) {
      in_.runtimes.evict(in->client_name);
      runtimes_.set_sick(key, error);
    }
  } else {
    error = runtimes_.complaint(key);
  }
  if (left <= core::duration::zero()) {
    auto released = co_await release(in, error);
    co_return released;
  }
  controller_.add_after(key, left + std::chrono::milliseconds(10));  // the backoff may be longer
  in->input.failed = "the bootstrapper can't be removed from the runtime: " + error;
  auto reported = co_await report(in, result::error(in->input.failed, "removal failed"));
  co_return reported;
}

/// Lets the resource go. `abandoned`: why objects may be left on the runtime; empty: none are.
asio::awaitable<k8s::reconcile_result> direct_sync::release(pass* in, std::string abandoned) {
  const auto runtime = from_.runtimes.objects().get(in->key);
  const bool opt_out = k8s::annotation(in->resource, auto_created_annotation) == "true" &&
                       runtime && !k8s::is_being_deleted(runtime.parse()) &&
                       !kcp_.facts_of(in->key).of_former_runtime;
  if (opt_out) {
    json::object annotations;
    annotations[opt_out_annotation] = "true";
    json::value change{{"metadata", {{"annotations", std::move(annotations)}}}};
    const auto written =
        co_await in_.kcp.patch(runtimes_type(), in->key, k8s::patch_type::merge, std::move(change),
                               {.field_manager = with_.apply.field_manager});
    if (!written && !written.error().is(k8s::errc::not_found)) {
      co_return result::error(written.error());
    }
  }
  auto released = in->resource;
  k8s::remove_finalizer(released, finalizer);
  const auto ended = co_await writer_.write_finalizers(&in->resource, std::move(released));
  if (ended) co_return *ended;
  forget(in->key);
  reporter_.note_removed(in->resource, abandoned);
  co_return result::done();
}

void direct_sync::forget(const k8s::object_key& key) {
  progress_.leave(key);
  progress_.differs(key, false);
  drift_.unwatch(key);
  runtimes_.forget(key);
  backoff_.forget(key);
  rejections_.forget(key);
  in_.runtimes.evict(kcp_.client_name(key));
}

}  // namespace rw::bootstrapper
