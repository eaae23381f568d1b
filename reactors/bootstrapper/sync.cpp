#include "rw/reactors/bootstrapper/sync.hpp"

#include "rw/k8s/client/client_pool.hpp"
#include "rw/k8s/objects/manifests.hpp"
#include "rw/k8s/objects/types.hpp"
#include "rw/reactors/bootstrapper/mutation_proof.hpp"
#include "rw/reactors/bootstrapper/rollout_turn.hpp"
#include "rw/reactors/bootstrapper/status.hpp"
#include "rw/reactors/runtime_controller/workload.hpp"
#include "rw/reactors/shared/field_owners.hpp"
#include "rw/reactors/shared/kyma_resources.hpp"

#include <boost/json/array.hpp>
#include <boost/json/object.hpp>

#include <algorithm>
#include <iterator>
#include <utility>

namespace rw::bootstrapper {
namespace {

namespace asio = boost::asio;
namespace json = boost::json;
using k8s::find_string;
using success = k8s::result<void>;

template <class T>
using work = asio::awaitable<k8s::result<T>>;

const inventory_entry* find(const inventory& all, const inventory_entry& entry) {
  const auto found = std::ranges::find_if(
      all, [&](const inventory_entry& each) { return each.same_object(entry); });
  return found == all.end() ? nullptr : &*found;
}

bool concerns_runtime(const k8s::failure& error) {
  return k8s::is_unhealthy(error) || error.is(k8s::errc::fenced) || error.is(k8s::errc::shut_down);
}

k8s::result<std::optional<rejection>> rejection_or_error(const k8s::failure& error) {
  if (!is_permanent(error)) return error;
  return std::optional(rejection{rejection::reason::rejected_by_runtime,
                                 "the runtime did not take it: " + error.message});
}

/// One runtime during one call of `sync` or `undeploy`. Each write first asks `may_write`, since
/// mode or leadership may change at any moment; one that must not be fails with `errc::fenced`.
class sync_pass {
 public:
  sync_pass(std::shared_ptr<k8s::client> api, const apply_settings& options, sync_request request,
            sync_state& out)
      : request_(std::move(request)), api_(std::move(api)), options_(options), out_(out) {}

  work<void> run() {
    auto done = co_await sync_unit(unit::credentials);
    if (done) done = co_await sync_unit(unit::bootstrapper);
    if (!done) co_return done.error();
    auto deployment = co_await api_->get(*k8s::well_known_type("apps/v1", "Deployment"),
                                         {request_.to.ns, request_.to.deployment});
    if (!deployment && !deployment.error().is(k8s::errc::not_found)) co_return deployment.error();
    if (deployment) out_.deployment = std::move(*deployment);
    const auto pods = co_await inspect_pods(api_.get(), out_.deployment);
    if (!pods && concerns_runtime(pods.error())) co_return pods.error();
    if (pods) out_.pod_error = pods->error();
    const auto& version = out_.at(unit::bootstrapper).version;
    if (!in_place_ || installation_of(out_.deployment, version) != installation::ready) {
      co_return done;
    }
    auto proof = co_await prove_mutation(api_.get(), request_.to, in_place_);
    if (!proof) co_return proof.error();
    out_.proof = std::move(*proof);
    co_return done;
  }

  /// Deletes objects that this field manager still manages, dependents first. Namespaces stay.
  work<void> remove(inventory objects) {
    std::ranges::sort(objects, {}, [](const inventory_entry& each) {
      return -k8s::apply_rank(each.gvk.api_version(), each.gvk.kind);
    });
    for (const auto& each : objects) {
      if (each.gvk.group.empty() && each.gvk.kind == "Namespace") continue;
      const auto type = co_await find_type(api_.get(), each.gvk);
      if (!type) co_return type.error();
      if (!*type) continue;  // the objects went with their definition
      const auto found = co_await api_->get(**type, each.key);
      if (!found && found.error().is(k8s::errc::not_found)) continue;
      if (!found) co_return found.error();
      const bool managed = std::ranges::any_of(managed_fields(*found), [&](const auto& entry) {
        return find_string(entry, {"manager"}) == options_.field_manager;
      });
      if (!managed) continue;  // made again by others
      const auto allowed = begin_write();
      if (!allowed) co_return allowed.error();
      const auto removed =
          co_await api_->remove(**type, each.key, {.uid = std::string(k8s::uid_of(*found))});
      if (!removed && !removed.error().is(k8s::errc::not_found)) co_return removed.error();
      if (out_.left.contains(**type, each.key)) watch(**type, each.key, {});
    }
    co_return success();
  }

 private:
  /// The unit's revisions, the desired one first, then the one that is in place, or was before the
  /// unit was cut short: rather than another one, it stays. Credentials that may be there already
  /// do not go back to that.
  static std::vector<revision_ptr> revisions(unit kind, const unit_state& of) {
    auto out = of.revisions;
    const auto& before = of.in_place.empty() && of.had ? of.had->digest : of.in_place;
    const auto& has = kind == unit::credentials && !of.applying.empty() ? of.applying : before;
    const auto in_place =
        std::ranges::find(out, has, [](const revision_ptr& each) { return each->digest; });
    if (in_place != out.end() && in_place != out.begin()) {
      std::rotate(out.begin() + 1, in_place, in_place + 1);
    }
    return out;
  }

  /// Fails only with what concerns the runtime as a whole.
  work<void> sync_unit(unit of) {
    auto& state = out_.at(of);
    const bool begun = of == unit::credentials && !state.applying.empty();  // in an earlier pass
    for (const auto& each : revisions(of, state)) {
      const bool in_place = each->digest == state.in_place;
      if (each->digest == state.skipped.digest) {
        if (!state.rejected) state.rejected = state.skipped.because;
        state.unrepaired = state.unrepaired || in_place;
        continue;
      }
      auto desired = each;
      auto rejected = co_await sync_to(of, &desired);
      if (!rejected) co_return note_failure(of, rejected.error());
      if (!*rejected) {
        if (state.lost) co_return success();
        // A revision that would be applied is not.
        if (request_.write) {
          state.applied = desired->digest;
          state.contents = digests_of(desired->contents);
          if (of == unit::bootstrapper) in_place_ = desired;
        }
        state.version = desired->version;
        state.repaired = state.changed && desired->digest == state.in_place;
        state.unrepaired = false;
        co_return success();
      }
      if (!state.rejected) state.rejected = std::move(**rejected);
      state.unrepaired = state.unrepaired || in_place;
    }
    if (!request_.write || !state.rejected) co_return success();
    state.kept = state.kept || (begun && state.applied.empty());
    if (state.applied.empty() && !state.kept) {
      const auto removed = co_await remove_created(of);
      if (!removed) co_return note_failure(of, removed.error());
    }
    const auto watched = co_await watch_as_is(of);
    if (!watched) co_return note_failure(of, watched.error());
    co_return success();
  }

  /// No revision is in place as a whole, nor can be. What was part of one stays, and what was taken
  /// over. Which credentials the runtime has had is not forgotten: they must not go back later.
  work<void> remove_created(unit of) {
    const auto is_created = [of](const inventory_entry& each) {
      return each.of == of && each.created;
    };
    inventory created;
    std::ranges::copy_if(out_.objects, std::back_inserter(created), is_created);
    const auto removed = co_await remove(std::move(created));
    if (!removed) co_return removed.error();
    std::erase_if(out_.objects, is_created);
    if (of != unit::credentials) out_.at(of).contents = {};
    co_return success();
  }

  /// The unit's objects as they are, where it gets no revision: a change of them may be what lets
  /// the rejected one be taken.
  work<void> watch_as_is(unit of) {
    const auto objects = out_.objects;
    for (const auto& each : objects) {
      if (each.of != of) continue;
      const auto type = co_await find_type(api_.get(), each.gvk);
      if (!type) co_return type.error();
      if (!*type || out_.left.contains(**type, each.key)) continue;
      const auto found = co_await api_->get(**type, each.key);
      if (!found && !found.error().is(k8s::errc::not_found)) co_return found.error();
      watch(**type, each.key, found ? *found : json::value());
    }
    co_return success();
  }

  /// Null: it does not exist. The watch sees only what is marked as ours.
  void watch(const k8s::resource_type& type, const k8s::object_key& key, const json::value& live) {
    const bool visible = k8s::label(live, synced_by_label) == synced_by;
    out_.left.add(type, key, visible ? k8s::resource_version_of(live) : std::string_view(),
                  {.labels = std::string(synced_by_label) + "=" + std::string(synced_by)});
  }

  /// What it has not written was left as the pass first read it, so that a change since then,
  /// which may end a rejection, is one that the watch tells of.
  void watch(const unit_plan& plan) {
    for (const auto& each : plan.objects) {
      if (each.written || !out_.left.contains(each.type, each.key)) {
        watch(each.type, each.key, each.live);
      }
    }
  }

  success note_failure(unit of, const k8s::failure& error) {
    out_.at(of).failed = error;
    return concerns_runtime(error) ? success(error) : success();
  }

  work<unit_plan> plan_for(revision_ptr desired) {
    auto plan = co_await make_plan(api_.get(), &options_, request_.to, request_.adopt,
                                   std::move(desired), out_.objects);
    co_return plan;
  }

  /// Where Kyma Infrastructure Manager has begun the newest revision, which is withheld, that one
  /// takes the place of `*desired` and of `*plan`, unless the runtime does not take it: nobody
  /// undoes what the other does, and the runtime is whole.
  work<void> follow_kim(unit of, unit_plan* plan, revision_ptr* desired) {
    auto& state = out_.at(of);
    if (!state.withheld || state.withheld->digest == state.skipped.digest) co_return success();
    if (!has_newer(*plan, *state.withheld, options_)) co_return success();
    auto newest = co_await plan_for(state.withheld);
    if (!newest && !is_permanent(newest.error())) co_return newest.error();
    if (!newest || newest->rejected) co_return success();
    state.ahead = true;
    *plan = std::move(*newest);
    *desired = std::exchange(state.withheld, nullptr);
    state.desired = (*desired)->digest;
    co_return success();
  }

  /// Valid credentials that Kyma Infrastructure Manager has written are newer than those that are
  /// known here, where the source has none: they stay, since credentials must not go back.
  bool leave_to_kim(unit of, const unit_plan& plan) {
    auto& state = out_.at(of);
    if (!state.sourceless || !has_other_credentials(plan, options_)) return false;
    state.lost = true;
    if (!request_.write) return true;
    state.applied.clear();
    state.applying.clear();
    state.contents = {};
    return true;
  }

  /// Credentials must not go back where the runtime rejects the newest: to what is older than those
  /// that it has, or may have since a pass was cut short, or than those that Kyma Infrastructure
  /// Manager has written. What is there as it is may stay.
  bool goes_back(unit of, const unit_plan& plan, const revision& desired) {
    auto& state = out_.at(of);
    const bool newest = !state.sourceless && desired.digest == state.desired;
    if (of != unit::credentials || newest || !changes_credentials(plan)) return false;
    const bool of_kim = has_other_credentials(plan, options_);
    if (!of_kim) {
      const auto& own = state.applying.empty() ? state.contents : state.applying_contents;
      const bool older = own != content_digests() && digests_of(desired.contents) != own;
      if (!older || desired.digest == state.newer) return false;
    } else if (request_.write) {
      state.applied.clear();
    }
    state.kept = true;
    return true;
  }

  /// None: the revision is in place, or would be.
  work<std::optional<rejection>> sync_to(unit of, revision_ptr* desired) {
    auto& state = out_.at(of);
    auto plan = co_await plan_for(*desired);
    if (!plan) co_return rejection_or_error(plan.error());
    if (plan->rejected) {
      watch(*plan);
      co_return std::move(plan->rejected);
    }
    if (leave_to_kim(of, *plan)) {
      watch(*plan);
      co_return std::optional<rejection>();
    }
    if (goes_back(of, *plan, **desired)) {
      watch(*plan);
      co_return rejection{rejection::reason::rejected_by_runtime,
                          "an earlier pull Secret does not take the place of a newer one"};
    }
    if (const auto followed = co_await follow_kim(of, &*plan, desired); !followed) {
      co_return followed.error();
    }
    if (state.differences.empty()) state.differences = std::move(plan->differences);
    state.warnings.insert(state.warnings.end(), plan->warnings.begin(), plan->warnings.end());
    inventory entries;
    for (const auto& each : plan->objects) {
      inventory_entry entry{of, each.type.gvk, each.key, each.live.is_null()};
      if (const auto* const known = find(out_.objects, entry)) entry.created |= known->created;
      entries.push_back(std::move(entry));
    }
    inventory obsolete;
    for (const auto& each : out_.objects) {
      if (each.of != of || find(entries, each) != nullptr) continue;
      const bool moved = std::ranges::any_of(out_.objects, [&](const inventory_entry& other) {
        return other.of != of && other.same_object(each);
      });
      if (!moved) obsolete.push_back(each);
    }
    for (const auto& each : obsolete) {
      state.differences.push_back(each.gvk.kind + " " + to_string(each.key) + " is obsolete");
    }
    if (request_.write) {
      const auto done = co_await execute(of, *desired, &*plan, entries, obsolete);
      watch(*plan);
      if (!done) co_return rejection_or_error(done.error());
      for (auto& each : entries) each.created = false;
      std::erase_if(out_.objects, [of](const inventory_entry& each) { return each.of == of; });
      out_.objects.insert(out_.objects.end(), entries.begin(), entries.end());
    }
    co_return std::optional<rejection>();
  }

  work<void> execute(unit of, revision_ptr desired, unit_plan* plan, inventory entries,
                     inventory obsolete) {
    if (std::ranges::none_of(plan->objects, &planned_object::write) && obsolete.empty()) {
      co_return success();
    }
    const auto may_begin = [&] { return !request_.may_begin || request_.may_begin(of, desired); };
    if (!may_begin()) co_return fenced();
    const auto recorded = co_await record(of, desired, std::move(entries));
    if (!recorded) co_return recorded.error();
    if (!may_begin()) co_return fenced();  // recording it takes its time
    out_.at(of).applied.clear();
    out_.at(of).changed = true;
    for (auto& each : plan->objects) {
      if (!each.write) continue;
      const auto written = co_await write(plan, &each);
      if (!written) co_return written.error();
    }
    auto done = co_await remove(std::move(obsolete));
    co_return done;
  }

  /// What may be there from now on must be known before it is.
  work<void> record(unit of, revision_ptr to, inventory entries) {
    auto& state = out_.at(of);
    const auto before = out_.objects.size();
    for (auto& each : entries) {
      if (find(out_.objects, each) == nullptr) out_.objects.push_back(std::move(each));
    }
    const bool known =
        to->digest == state.applied || (state.applied.empty() && to->digest == state.applying);
    const bool recorded_before = known && out_.objects.size() == before;
    if (request_.record && !recorded_before) {
      const auto recorded = co_await request_.record(of, to, out_.objects);
      if (!recorded) co_return recorded.error();
    }
    state.applying = to->digest;
    state.applying_contents = digests_of(to->contents);
    co_return success();
  }

  static k8s::failure fenced() {
    return {.code = k8s::errc::fenced, .message = "the runtime must no longer be written to"};
  }

  success begin_write() {
    if (request_.may_write && !request_.may_write()) return fenced();
    ++out_.writes;
    return {};
  }

  work<json::value> apply(k8s::resource_type type, json::value object) {
    const auto allowed = begin_write();
    if (!allowed) co_return allowed.error();
    auto applied = co_await api_->apply(std::move(type), std::move(object),
                                        {.field_manager = options_.field_manager, .force = true});
    co_return applied;
  }

  work<void> write(unit_plan* plan, planned_object* object) {
    auto& missing = plan->missing_namespaces;
    if (object->type == namespaces_type()) missing.erase(object->key.name);
    if (missing.erase(object->key.ns) > 0) {
      json::value ns{
          {"apiVersion", "v1"}, {"kind", "Namespace"}, {"metadata", {{"name", object->key.ns}}}};
      const auto made = co_await apply(namespaces_type(), std::move(ns));
      if (!made) co_return made.error();
    }
    auto applied = co_await apply(object->type, object->desired);
    if (!applied) co_return applied.error();
    object->live = std::move(*applied);
    object->written = true;
    auto released = co_await release_fields(object);
    co_return released;
  }

  /// Makes the fields of the desired object ours alone, so that a later revision without one of
  /// them removes it: Kyma Infrastructure Manager no longer owns them as well, whatever else it
  /// owns.
  work<void> release_fields(planned_object* object) {
    const auto own = applied_fields(object->live, options_.field_manager);
    json::array changes{{{"op", "test"},
                         {"path", "/metadata/resourceVersion"},
                         {"value", k8s::resource_version_of(object->live)}}};
    const auto& entries = managed_fields(object->live);
    for (auto i = entries.size(); i-- > 0;) {  // from the end, so that indexes stay valid
      const auto manager = find_string(entries[i], {"manager"});
      const auto& kims = options_.kim_managers;
      const auto* const fields = k8s::find(entries[i], {"fieldsV1"});
      if (std::ranges::find(kims, manager) == kims.end() || fields == nullptr ||
          !find_string(entries[i], {"subresource"}).empty()) {
        continue;
      }
      auto rest = subtract_fields(*fields, own);
      if (rest == *fields) continue;
      const auto path = "/metadata/managedFields/" + std::to_string(i);
      if (rest.is_null()) {
        changes.push_back({{"op", "remove"}, {"path", path}});
      } else {
        changes.push_back(
            {{"op", "replace"}, {"path", path + "/fieldsV1"}, {"value", std::move(rest)}});
      }
    }
    if (changes.size() == 1) co_return success();
    const auto allowed = begin_write();
    if (!allowed) co_return allowed.error();
    auto patched =
        co_await api_->patch(object->type, object->key, k8s::patch_type::json, std::move(changes),
                             {.field_manager = options_.field_manager});
    // Another writer was faster: then it stays a co-owner, which does no harm now.
    const bool lost = !patched && (patched.error().is(k8s::errc::conflict) ||
                                   patched.error().is(k8s::errc::invalid) ||
                                   patched.error().is(k8s::errc::not_found));
    if (!patched && !lost) co_return patched.error();
    if (patched) object->live = std::move(*patched);
    co_return success();
  }

  const sync_request request_;
  const std::shared_ptr<k8s::client> api_;
  const apply_settings& options_;
  sync_state& out_;
  revision_ptr in_place_;  ///< of unit `bootstrapper`; null: none is, as a whole
};

}  // namespace

asio::awaitable<k8s::result<void>> sync(std::shared_ptr<k8s::client> api,
                                        const apply_settings* options, sync_request request,
                                        sync_state* state) {
  sync_pass pass(std::move(api), *options, std::move(request), *state);
  auto done = co_await pass.run();
  co_return done;
}

asio::awaitable<k8s::result<std::size_t>> undeploy(std::shared_ptr<k8s::client> api,
                                                   const apply_settings* options, inventory objects,
                                                   std::function<bool()> may_write) {
  sync_state state;
  sync_pass pass(std::move(api), *options, {.may_write = std::move(may_write)}, state);
  const auto removed = co_await pass.remove(std::move(objects));
  if (!removed) co_return removed.error();
  co_return state.writes;
}

}  // namespace rw::bootstrapper
