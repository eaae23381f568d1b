// What a pass writes to the control plane and reports, and the end of a RuntimeBootstrapper.

#include "core/within.hpp"
#include "k8s/rfc3339.hpp"
#include "k8s/types.hpp"
#include "reactors/bootstrapper/pass.hpp"
#include "reactors/kyma_resources.hpp"

#include <boost/json/array.hpp>
#include <boost/json/object.hpp>

#include <utility>

namespace rw::bootstrapper {
namespace {

namespace asio = boost::asio;
namespace json = boost::json;

constexpr auto conflict_pause = std::chrono::milliseconds(200);
/// So many repairs in a row are a fight.
constexpr unsigned contested_after = 3;

}  // namespace

json::value finalizers_of(const json::value& resource) {
  const auto* const all = k8s::find(resource, {"metadata", "finalizers"});
  return {{"metadata", {{"finalizers", all == nullptr ? json::value(json::array()) : *all}}}};
}

core::duration removal_left(const json::value& resource, core::duration limit,
                            std::chrono::system_clock::time_point now) {
  const auto since =
      k8s::parse_rfc3339(k8s::find_string(resource, {"metadata", "deletionTimestamp"}));
  return since ? limit - std::chrono::duration_cast<core::duration>(now - *since)
               : core::duration::zero();
}

void warn_not_stored(unit_status& unit, const k8s::failure& error) {
  unit.warnings.push_back("the content of the sources can't be stored for a fall-back: " +
                          error.message);
}

/// Changes the resource as it is at its version. After a failure `in->then` says how the pass ends;
/// after a conflict nothing is lost, since the informer brings the newer state.
asio::awaitable<k8s::result<void>> direct_sync::patch(pass* in, json::value change,
                                                      std::string subresource) {
  auto& metadata = change.as_object()["metadata"];
  if (!metadata.is_object()) metadata = json::object();
  metadata.as_object()["resourceVersion"] = k8s::resource_version_of(in->resource);
  auto written =
      co_await in_.kcp.patch(runtime_bootstrappers_type(), in->key, k8s::patch_type::merge,
                             std::move(change), {.subresource = std::move(subresource)});
  if (written) {
    own_writes_.wrote(*written);
    in->resource = std::move(*written);
    co_return k8s::result<void>();
  }
  const auto& error = written.error();
  own_writes_.forget(in->key);
  in->kcp_failed = true;
  in->then = error.is(k8s::errc::not_found)  ? result::done()
             : error.is(k8s::errc::conflict) ? result::requeue_after(conflict_pause)
                                             : result::error(error);
  co_return error;
}

asio::awaitable<k8s::reconcile_result> direct_sync::report(pass* in, result then) {
  auto status = next_status(in->resource, in->input, in_.clock.wall());
  if (!status) co_return then;
  // A member that is gone has to be removed by name (RFC 7386).
  const auto* const before = k8s::find(in->resource, {"status"});
  if (before != nullptr && before->is_object()) {
    for (const auto& [name, unused] : before->get_object()) {
      status->as_object().emplace(name, nullptr);
    }
  }
  json::value change{{"status", std::move(*status)}};
  const auto written = co_await patch(in, std::move(change), "status");
  co_return written ? then : in->then;
}

asio::awaitable<k8s::result<void>> direct_sync::record(pass* in, unit of, inventory objects) {
  json::value change{{"status", applying_status(in->resource, of, objects)}};
  auto written = co_await patch(in, std::move(change), "status");
  co_return written;
}

// --- the end of a RuntimeBootstrapper --------------------------------------------------

asio::awaitable<k8s::reconcile_result> direct_sync::undeploy_all(pass* in) {
  const auto& key = in->key;
  progress_.leave(key);
  drift_.unwatch(key);
  const auto left = removal_left(in->resource, with_.removal_limit, in_.clock.wall());
  std::string error;
  const bool connected = co_await connect(in);
  if (connected) {
    writing_.insert(key);
    auto work = bootstrapper::undeploy(in->api, &with_.apply, read_state(in->resource).objects,
                                       [this, key] { return may(key, action::undeploy); });
    const auto until = in_.clock.now() + with_.runtime_limit;
    const auto got = co_await core::within(in_.clock, until, std::move(work));
    writing_.erase(key);
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
  if (in->kcp_failed) co_return in->then;
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
                       runtime && !k8s::is_being_deleted(runtime.parse());
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
  const auto about = k8s::reference_to(in->resource);
  auto released = in->resource;
  k8s::remove_finalizer(released, finalizer);
  const auto written = co_await patch(in, finalizers_of(released), {});
  if (!written) co_return in->then;
  forget(in->key);
  if (!abandoned.empty()) {
    in_.log.warning("bootstrapper removal abandoned",
                    {{"namespace", in->key.ns}, {"name", in->key.name}, {"reason", abandoned}});
    in_.events.warning(about, "BootstrapperRemovalAbandoned",
                       "The bootstrapper may still be on the runtime: " + abandoned);
  } else {
    in_.events.normal(about, "BootstrapperRemoved", "The bootstrapper is removed from the runtime");
  }
  co_return result::done();
}

// --- events and metrics ----------------------------------------------------------------

/// Emits the event of a state when it begins.
void direct_sync::note(pass* in, runtime_state state, const std::string& reason,
                       const std::string& message, bool changed) {
  if (!runtimes_.set(in->key, state, reason, changed)) return;
  const auto about = k8s::reference_to(in->resource);
  switch (state) {
    case runtime_state::installed:
      return in_.events.normal(about, "BootstrapperReady",
                               "The bootstrapper runs with both units in place; version " +
                                   (message.empty() ? std::string("unknown") : message));
    case runtime_state::not_ready:
      return in_.events.normal(about, "BootstrapperNotReady",
                               "The bootstrapper is not ready on the runtime: " + message);
    case runtime_state::failed:
      return in_.events.warning(about, "BootstrapperFailed",
                                "The runtime does not have the desired revision: " + message);
    case runtime_state::unreachable:
      return in_.events.warning(about, "RuntimeUnreachable",
                                "The runtime does not answer: " + message);
  }
}

void direct_sync::note_repair(pass* in) {
  const auto& report = *in->input.report;
  bool repaired = false;
  bool changed = false;
  std::string difference;
  for (const auto& each : report.units) {
    repaired = repaired || each.repaired;
    changed = changed || each.changed;
    if (each.repaired && !each.differences.empty()) difference = each.differences.front();
  }
  count_result(!blocked_by(in->input).empty() ? "refused"
               : repaired                     ? "repaired"
               : changed                      ? "changed"
                                              : "unchanged");
  if (!repaired) return;
  const auto repairs = backoff_.repaired(in->key, in_.clock.now());
  if (repairs != contested_after) return;
  in_.log.warning("repairs on a runtime are undone",
                  {{"namespace", in->key.ns}, {"name", in->key.name}, {"difference", difference}});
  in_.events.warning(k8s::reference_to(in->resource), "BootstrapperContested",
                     "Repairs on the runtime are undone, " + std::to_string(repairs) +
                         " times in a row by now, last " + difference +
                         "; they are made less and less often");
}

void direct_sync::count_result(const char* label) {
  core::make_counter(in_.metrics, "rw_bootstrapper_syncs_total",
                     "Number of passes over runtimes by result", {{"result", label}})
      .Increment();
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
