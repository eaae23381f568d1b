#include "rw/k8s/controller/plan_reconciler.hpp"

#include "rw/k8s/objects/types.hpp"

namespace rw::k8s {
namespace {

namespace asio = boost::asio;
namespace json = boost::json;

/// Generation says that the desired state changed; a kind without it says nothing.
bool is_new_generation(const delta& change) {
  if (!change.before || !change.now || change.before.uid() != change.now.uid()) return true;
  const auto before = change.before.parse();
  const auto now = change.now.parse();
  return generation_of(now) == 0 || generation_of(now) != generation_of(before) ||
         is_being_deleted(now) != is_being_deleted(before);
}

/// A conflict, or an object that is gone: the watch tells what there is.
reconcile_result outdated() {
  return reconcile_result::requeue_after(std::chrono::milliseconds(200));
}

bool is_outdated(const failure& error) {
  return error.is(errc::conflict) || error.is(errc::not_found);
}

}  // namespace

controller::mapping<delta> keys_of_changed(const operator_plan& plan) {
  return [every = plan.every_change](const delta& change, controller::keys& keys) {
    if (every || is_new_generation(change)) keys.push_back(change.latest().key());
  };
}

controller::mapping<delta> keys_of_owners(const resource_type& type) {
  return [type](const delta& change, controller::keys& keys) {
    const auto object = change.latest().parse();
    for (const auto& owner : owners_of(object)) {
      group_version_kind gvk{.group = {}, .version = {}, .kind = owner.kind};
      if (!owner.controller || !parse_api_version(owner.api_version, gvk)) continue;
      if (gvk.group != type.gvk.group || gvk.kind != type.gvk.kind) continue;
      keys.push_back({type.namespaced ? std::string(change.latest().ns()) : "", owner.name});
    }
  };
}

operator_scope plan_reconciler::scope_of(json::value object) const {
  return {plan_.type, std::move(object), api_, &events_};
}

asio::awaitable<reconcile_result> plan_reconciler::reconcile(object_key key) {
  auto object = objects_.objects().get(key).parse();
  if (object.is_null()) co_return reconcile_result::done();
  if (is_being_deleted(object)) co_return co_await finalize(std::move(object));
  if (!plan_.finalizer.empty() && add_finalizer(object, plan_.finalizer)) {
    auto written = co_await write_finalizers(object);
    if (!written && is_outdated(written.error())) co_return outdated();
    if (!written) co_return reconcile_result::error(written.error());
    object = std::move(*written);
  }
  auto work = plan_.reconcile(scope_of(std::move(object)));
  co_return co_await std::move(work);
}

asio::awaitable<reconcile_result> plan_reconciler::finalize(json::value object) {
  if (plan_.finalizer.empty() || !has_finalizer(object, plan_.finalizer)) {
    co_return reconcile_result::done();
  }
  auto work = plan_.finalize(scope_of(object));
  auto ended = co_await std::move(work);
  if (ended.type != reconcile_result::kind::done) co_return ended;
  remove_finalizer(object, plan_.finalizer);
  const auto written = co_await write_finalizers(object);
  if (written || written.error().is(errc::not_found)) co_return reconcile_result::done();
  if (is_outdated(written.error())) co_return outdated();
  co_return reconcile_result::error(written.error());
}

asio::awaitable<result<json::value>> plan_reconciler::write_finalizers(json::value object) {
  const auto* const finalizers = find(object, {"metadata", "finalizers"});
  json::value change{{"metadata",
                      {{"resourceVersion", resource_version_of(object)},
                       {"finalizers", finalizers == nullptr ? json::value() : *finalizers}}}};
  auto api = api_;
  auto written =
      co_await api.patch(plan_.type, key_of(object), patch_type::merge, std::move(change));
  co_return written;
}

}  // namespace rw::k8s
