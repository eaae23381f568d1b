// The begin and the end of a RuntimeBootstrapper.

#include "rw/k8s/objects/types.hpp"
#include "rw/reactors/bootstrapper/direct_sync.hpp"
#include "rw/reactors/shared/definition.hpp"
#include "rw/reactors/shared/explanations.hpp"
#include "rw/reactors/shared/kyma_resources.hpp"

#include <boost/json/array.hpp>
#include <boost/json/object.hpp>

#include <algorithm>
#include <utility>

namespace rw::bootstrapper {
namespace {

namespace asio = boost::asio;
namespace json = boost::json;

}  // namespace

asio::awaitable<k8s::reconcile_result> direct_sync::create(k8s::object_key key) {
  const auto runtime = kcp_.runtime_of(key);
  if (runtime.is_null()) co_return result::done();
  // Read again: what is created for a Runtime that is gone by now goes with it, at once, and would
  // be created again until its deletion is heard of.
  k8s::selection same_name{
      .ns = key.ns, .fields = "metadata.name=" + key.name, .metadata_only = true};
  const auto found = co_await environment_.kcp.list(runtimes_type(), std::move(same_name));
  if (!found) co_return result::error(found.error());
  const auto* const items = k8s::find_array(*found, {"items"});
  const bool same = items != nullptr && std::ranges::any_of(*items, [&](const json::value& each) {
                      return k8s::uid_of(each) == k8s::uid_of(runtime);
                    });
  if (!same) co_return result::done();
  const auto made = co_await environment_.kcp.create(runtime_bootstrappers_type(),
                                                     resource_for(runtime, options_.defaults));
  if (made || made.error().is(k8s::errc::already_exists)) co_return result::done();
  co_return result::error(made.error());
}

asio::awaitable<k8s::reconcile_result> direct_sync::undeploy_all(pass* in) {
  const auto& key = in->to.key;
  const auto done = co_await remove_runtime(
      &in->to, &in->resource, kcp_.client_name(key), kcp_.kubeconfig_of(key),
      [this, in] { return removal_left(in->resource); },
      [this, in](std::shared_ptr<k8s::client> api) { return undeploy(in, std::move(api)); });
  if (done.ended) {
    auto released = co_await release(in, done.abandoned);
    co_return released;
  }
  in->input.failed = "the bootstrapper can't be removed from the runtime: " + in->to.error;
  auto reported = co_await report(in, result::error(in->input.failed, "removal failed"));
  co_return reported;
}

asio::awaitable<k8s::result<void>> direct_sync::undeploy(pass* in,
                                                         std::shared_ptr<k8s::client> api) {
  const auto& key = in->to.key;
  const auto done = co_await bootstrapper::undeploy(
      std::move(api), &options_.apply, read_state(in->resource).objects,
      [this, key] { return may(key, action::undeploy); });
  if (!done) co_return done.error();
  writes_.Increment(static_cast<double>(*done));
  co_return k8s::result<void>();
}

/// Notes on the Runtime that nobody wants its resource, which was created for it, and deleted by
/// hand. Returns the Runtime; null: that is not so.
asio::awaitable<k8s::result<json::value>> direct_sync::opt_out(const pass* in, k8s::client kcp) {
  const auto& key = in->to.key;
  const auto runtime = kcp_.runtime_of(key);
  if (k8s::annotation(in->resource, auto_created_annotation) != "true" || runtime.is_null() ||
      k8s::is_being_deleted(runtime) || kcp_.facts_of(key).of_former_runtime) {
    co_return json::value();
  }
  // Of a deleted definition nobody has decided about this runtime.
  const auto definition = co_await find_definition_state(
      environment_.kcp, runtime_bootstrappers_type(), times_of(in->resource));
  const bool is_over = removal_left(in->resource) <= core::duration::zero();
  if (!definition && !is_over) co_return definition.error();
  if (!definition || is_by_definition(*definition)) co_return json::value();
  json::object annotations;
  annotations[opt_out_annotation] = "true";
  json::value change{{"metadata", {{"annotations", std::move(annotations)}}}};
  auto written = co_await kcp.patch(runtimes_type(), key, k8s::patch_type::merge, std::move(change),
                                    {.field_manager = options_.apply.field_manager});
  if (!written && written.error().is(k8s::errc::not_found)) co_return json::value();
  co_return written;
}

/// Lets the resource go. `abandoned`: why objects may be left on the runtime; empty: none are.
asio::awaitable<k8s::reconcile_result> direct_sync::release(pass* in, std::string abandoned) {
  const auto& key = in->to.key;
  const auto opted_out = co_await opt_out(in, environment_.kcp);
  if (!opted_out) co_return result::error(opted_out.error());
  if (!opted_out->is_null()) kcp_.wrote_runtime(*opted_out);
  const auto ended = co_await writer_.set_finalizer(&in->resource, std::string(finalizer), false);
  if (ended && ended->type != result::kind::done) co_return *ended;
  forget(key);
  note_removed(in->resource, abandoned);
  co_return result::done();
}

void direct_sync::forget(const k8s::object_key& key) {
  rejected_.erase(key);
  invalid_.forget(key.name);
  forget_runtime(key, kcp_.client_name(key));
}

/// Counts the runtime. One in mode direct that nothing is written to, and that KIM need not
/// configure, is reported.
void direct_sync::note_decision(const k8s::object_key& key, const runtime_facts& facts,
                                const sync_decision& decided) {
  const bool syncs = decided.next == action::sync;
  if (syncs && contents_.state(key) == "current") return;
  if (syncs) {
    contents_.set(key, "outdated", environment_.clock.wall());
    return;
  }
  const bool unmanaged = facts.mode == bootstrapper_mode::direct && !facts.deleting &&
                         !decided.reason.empty() && decided.next != action::undeploy;
  if (!unmanaged) return contents_.forget(key);
  if (!contents_.set(key, decided.reason, environment_.clock.wall())) return;
  const auto runtime = kcp_.runtime_of(key);
  const auto& type = runtimes_type().gvk;
  // Where only metadata are watched, the object says that it is PartialObjectMetadata.
  environment_.events.warning(
      {.api_version = type.api_version(),
       .kind = type.kind,
       .ns = key.ns,
       .name = key.name,
       .uid = std::string(k8s::uid_of(runtime))},
      "BootstrapperUnmanaged"_reason,
      "The mode is direct, but nothing is written to the runtime: " + decided.message);
}

}  // namespace rw::bootstrapper
