// What a revision needs on a runtime: discovery, reads and dry runs. Nothing is written.

#include "core/gather.hpp"
#include "k8s/objects/difference.hpp"
#include "k8s/objects/manifests.hpp"
#include "k8s/objects/types.hpp"
#include "reactors/bootstrapper/applier.hpp"
#include "reactors/bootstrapper/rollout_turn.hpp"
#include "reactors/shared/kyma_resources.hpp"
#include "reactors/shared/trust_bundles_type.hpp"

#include <boost/json/array.hpp>
#include <boost/json/object.hpp>
#include <boost/json/serialize.hpp>

#include <algorithm>
#include <set>
#include <utility>

namespace rw::bootstrapper {
namespace {

namespace json = boost::json;
using k8s::find_string;
using success = k8s::result<void>;

/// Bound on the text of the objects read for one plan: runtimes are not trusted, and one process
/// reads thousands.
constexpr std::size_t most_live = 16u << 20;

constexpr int trust_rank = 11;          ///< after definitions
constexpr int configuration_rank = 58;  ///< before workloads
constexpr int after_workloads = 65;

std::string name_of(const planned_object& object) {
  return object.type.gvk.kind + " " + to_string(object.key);
}

k8s::group_version_kind gvk_of(const json::value& object) {
  k8s::group_version_kind out;
  k8s::parse_api_version(find_string(object, {"apiVersion"}), out);
  out.kind = find_string(object, {"kind"});
  return out;
}

/// The resource that a definition in the revision will serve.
std::optional<k8s::resource_type> defined_in(const revision& desired,
                                             const k8s::group_version_kind& gvk) {
  for (const auto& each : desired.objects) {
    const auto& definition = each.object;
    if (find_string(definition, {"kind"}) != "CustomResourceDefinition" ||
        find_string(definition, {"spec", "group"}) != gvk.group ||
        find_string(definition, {"spec", "names", "kind"}) != gvk.kind) {
      continue;
    }
    return k8s::resource_type{gvk,
                              std::string(find_string(definition, {"spec", "names", "plural"})),
                              find_string(definition, {"spec", "scope"}) == "Namespaced"};
  }
  return std::nullopt;
}

/// The first field that is not as desired, without the bookkeeping of who applied what.
std::optional<std::string> find_reportable(json::value desired, const json::value& live) {
  auto& labels = desired.at("metadata").at("labels").as_object();
  labels.erase(synced_by_label);
  labels.erase(digest_label);
  return k8s::find_difference(desired, live);
}

/// True if an object has fields that somebody must have set.
bool has_content(const json::value& object) {
  const auto is_set = [](const json::value& value) {
    return !value.is_null() && !(value.is_array() && value.get_array().empty()) &&
           !(value.is_object() && value.get_object().empty());
  };
  for (const auto& [name, value] : object.as_object()) {
    const bool bookkeeping =
        name == "apiVersion" || name == "kind" || name == "metadata" || name == "status";
    if (!bookkeeping && is_set(value)) return true;
  }
  const auto* const labels = k8s::find(object, {"metadata", "labels"});
  const auto* const annotations = k8s::find(object, {"metadata", "annotations"});
  return (labels != nullptr && is_set(*labels)) || (annotations != nullptr && is_set(*annotations));
}

/// Without what other controllers, or each write, change; of the bookkeeping only the fields of one
/// manager.
json::value comparable(json::value object, std::string_view manager) {
  if (!object.is_object()) return object;
  auto owned = applied_fields(object, manager);
  object.as_object().erase("status");
  auto& metadata = object.at("metadata").as_object();
  for (const auto* name : {"resourceVersion", "generation"}) metadata.erase(name);
  metadata["managedFields"] = std::move(owned);
  return object;
}

}  // namespace

bool has_newer(const unit_plan& plan, const revision& newer) {
  return std::ranges::any_of(plan.objects, [&](const planned_object& each) {
    if (!each.write || each.live.is_null() || !find_reportable(each.desired, each.live)) {
      return false;
    }
    return std::ranges::any_of(newer.objects, [&](const desired_object& other) {
      const auto& object = other.object;
      return gvk_of(object) == each.type.gvk && k8s::key_of(object).name == each.key.name &&
             !find_reportable(object, each.live);
    });
  });
}

bool unit_plan::has_writes() const noexcept {
  return std::ranges::any_of(objects, &planned_object::write);
}

inventory unit_plan::entries(unit of) const {
  inventory out;
  for (const auto& each : objects) {
    out.push_back({of, each.type.gvk, each.key, each.live.is_null()});
  }
  return out;
}

/// None: the runtime does not serve the kind.
applier::work<std::optional<k8s::resource_type>> applier::find_type(k8s::group_version_kind gvk) {
  using found_type = std::optional<k8s::resource_type>;
  if (auto known = k8s::well_known_type(gvk.api_version(), gvk.kind)) co_return known;
  std::vector<std::string> versions{gvk.version};
  if (gvk.kind == trust_bundle_kind && gvk.group == "certificates.k8s.io") {
    // Any version has the same fields; the control plane's comes first.
    auto served = co_await api_->versions(gvk.group);
    if (!served) co_return served.error();
    const auto own = std::ranges::find(*served, gvk.version);
    if (own != served->end()) std::rotate(served->begin(), own, own + 1);
    versions = std::move(*served);
  }
  for (auto& version : versions) {
    gvk.version = std::move(version);
    auto found = co_await api_->find(gvk);
    if (found) co_return found_type(std::move(*found));
    if (!found.error().is(k8s::errc::not_found)) co_return found.error();
  }
  co_return found_type();
}

applier::work<void> applier::resolve(const revision& desired, unit_plan& plan) {
  std::set<std::string> identities;
  for (const auto& each : desired.objects) {
    const auto gvk = gvk_of(each.object);
    auto type = co_await find_type(gvk);
    if (!type) co_return type.error();
    if (!*type) *type = defined_in(desired, gvk);
    if (!*type) {
      plan.rejected = {rejection::reason::unknown_kind,
                       "the runtime does not serve the kind " + gvk.kind + " of " +
                           gvk.api_version() + " (" + k8s::key_of(each.object).name + ")"};
      co_return success();
    }
    planned_object object{
        .type = std::move(**type), .key = k8s::key_of(each.object), .desired = each.object};
    auto& metadata = object.desired.as_object()["metadata"].as_object();
    object.desired.as_object()["apiVersion"] = object.type.gvk.api_version();
    if (!object.type.namespaced) object.key.ns.clear();
    if (object.type.namespaced && object.key.ns.empty()) object.key.ns = to_.ns;
    metadata.erase("namespace");
    if (object.type.namespaced) metadata["namespace"] = object.key.ns;
    const auto rank = each.from == source_kind::trust_bundle ? trust_rank
                      : each.from == source_kind::config
                          ? configuration_rank
                          : k8s::apply_rank(object.type.gvk.api_version(), object.type.gvk.kind);
    object.order = {rank, plan.objects.size()};
    const auto identity = object.type.gvk.group + "/" + name_of(object);
    if (!identities.insert(identity).second) {
      plan.rejected = {rejection::reason::rejected_by_runtime,
                       name_of(object) + " is defined twice"};
      co_return success();
    }
    plan.objects.push_back(std::move(object));
  }
  co_return success();
}

applier::work<void> applier::read_live(unit_plan& plan) {
  std::size_t bytes = 0;
  for (std::size_t begin = 0; begin < plan.objects.size(); begin += options_.reads_at_once) {
    const auto end = std::min(plan.objects.size(), begin + options_.reads_at_once);
    std::vector<boost::asio::awaitable<k8s::result<json::value>>> reads;
    for (auto i = begin; i < end; ++i) {
      reads.push_back(api_->get(plan.objects[i].type, plan.objects[i].key));
    }
    auto results = co_await core::gather(std::move(reads));
    for (auto i = begin; i < end; ++i) {
      auto& got = results[i - begin];
      if (!got && !got.error().is(k8s::errc::not_found)) co_return got.error();
      if (!got) continue;
      bytes += json::serialize(*got).size();
      plan.objects[i].live = std::move(*got);
    }
    if (bytes <= most_live) continue;
    plan.rejected = {rejection::reason::rejected_by_runtime,
                     "the runtime's objects of these names have more than " +
                         std::to_string(most_live) + " bytes"};
    break;
  }
  co_return success();
}

/// Each state on the way must be safe: definitions, trust, what workloads need, the configuration,
/// workloads, webhook configurations. Where the version that runs does not know all features that
/// the configuration names, the configuration follows the workloads.
void applier::order(const revision& desired, unit_plan& plan) const {
  const auto deployment = std::ranges::find_if(plan.objects, [&](const planned_object& each) {
    return each.type.gvk.kind == "Deployment" &&
           each.key == k8s::object_key{to_.ns, std::string(deployment_name)};
  });
  const bool runs = deployment != plan.objects.end() && !deployment->live.is_null();
  const auto known = runs ? features_of(deployment->live) : desired.features;
  const bool knows_all = std::ranges::all_of(desired.features, [&](const std::string& each) {
    return std::ranges::find(known, each) != known.end();
  });
  for (auto& each : plan.objects) {
    auto& rank = each.order.first;
    if (rank == configuration_rank && !knows_all) rank = after_workloads;
  }
  std::ranges::sort(plan.objects, {}, &planned_object::order);
}

/// True if all managers of an object are ours or Kyma Infrastructure Manager's. One without
/// managers is nobody's as long as it has no content; else it was made before servers noted them,
/// or has lost them.
bool applier::may_take_over(const json::value& live, std::string& manager) const {
  const auto& kims = options_.kim_managers;
  if (managed_fields(live).empty() && has_content(live)) manager = "an unknown manager";
  for (const auto& each : managed_fields(live)) {
    const auto name = find_string(each, {"manager"});
    if (name == options_.field_manager) return true;
    // Servers before 1.22 do not name the subresource of a status.
    const auto* const fields = k8s::find(each, {"fieldsV1"});
    const bool status_only = fields != nullptr && fields->is_object() &&
                             fields->get_object().size() == 1 &&
                             fields->get_object().contains("f:status");
    if (status_only || !find_string(each, {"subresource"}).empty() ||
        name == "kube-controller-manager") {
      continue;
    }
    if (std::ranges::find(kims, name) == kims.end()) manager = name;
  }
  return manager.empty();
}

/// Clears `object.write` where the server says that nothing would change.
applier::work<void> applier::dry_run(unit_plan& plan, planned_object& object) {
  auto sent = object.desired;
  bool namespace_missing = false;
  if (object.live.is_null() && object.type.namespaced) {
    const auto found = co_await has_namespace(object.key.ns);
    if (!found) co_return found.error();
    namespace_missing = !*found;
    // It is tried where it can be.
    if (namespace_missing) sent.as_object()["metadata"].as_object()["namespace"] = "default";
  }
  const auto tried = co_await apply(object.type, std::move(sent), true);
  if (tried) {
    object.write = namespace_missing || comparable(*tried, options_.field_manager) !=
                                            comparable(object.live, options_.field_manager);
    co_return success();
  }
  const auto& error = tried.error();
  const bool inconclusive = error.is(k8s::errc::not_found) && object.live.is_null();
  const bool no_dry_runs = error.message.find("does not support dry run") != std::string::npos;
  if (inconclusive || no_dry_runs) {
    plan.warnings.push_back(name_of(object) + " could not be dry-run: " + error.message);
  } else if (is_permanent(error)) {
    plan.rejected = {rejection::reason::rejected_by_runtime,
                     "the runtime would not take " + name_of(object) + ": " + error.message};
  } else {
    co_return error;
  }
  co_return success();
}

applier::work<unit_plan> applier::plan(revision_ptr desired, inventory owned) {
  unit_plan out;
  auto step = co_await resolve(*desired, out);
  if (step && !out.rejected) step = co_await read_live(out);
  if (!step) co_return step.error();
  if (out.rejected) co_return out;
  order(*desired, out);
  for (auto& each : out.objects) {
    const inventory_entry entry{.gvk = each.type.gvk, .key = each.key};
    const bool is_owned = std::ranges::any_of(
        owned, [&](const inventory_entry& other) { return other.same_object(entry); });
    std::string manager;
    // A Namespace is shared: nobody owns it alone.
    if (each.live.is_null() || is_owned || adopt_ || each.type.gvk.kind == "Namespace" ||
        may_take_over(each.live, manager)) {
      continue;
    }
    out.rejected = {rejection::reason::foreign_object,
                    name_of(each) + " is managed by " + manager +
                        "; spec.adopt of the RuntimeBootstrapper lets it be taken over"};
    co_return out;
  }
  for (auto& each : out.objects) {
    each.write = each.live.is_null() || k8s::find_difference(each.desired, each.live);
    if (each.write) step = co_await dry_run(out, each);
    if (!step) co_return step.error();
    if (out.rejected) co_return out;
    if (!each.write) continue;
    if (each.live.is_null()) {
      out.differences.push_back(name_of(each) + " is missing");
    } else if (const auto difference = find_reportable(each.desired, each.live)) {
      out.differences.push_back(name_of(each) + ": " + *difference);
    }
  }
  co_return out;
}

}  // namespace rw::bootstrapper
