// What a revision needs on a runtime: discovery, reads and dry runs. Nothing is written.

#include "core/task_group.hpp"
#include "k8s/difference.hpp"
#include "k8s/manifests.hpp"
#include "k8s/types.hpp"
#include "reactors/bootstrapper/applier.hpp"
#include "reactors/bootstrapper/manifest_set.hpp"
#include "reactors/bootstrapper/rollout_turn.hpp"
#include "reactors/kyma_resources.hpp"
#include "reactors/trust_bundles_type.hpp"

#include <boost/asio/cancellation_type.hpp>
#include <boost/asio/error.hpp>
#include <boost/asio/this_coro.hpp>
#include <boost/json/array.hpp>
#include <boost/json/object.hpp>
#include <boost/system/system_error.hpp>

#include <algorithm>
#include <set>
#include <utility>

namespace rw::bootstrapper {
namespace {

namespace asio = boost::asio;
namespace json = boost::json;
using k8s::find_string;
using success = k8s::result<void>;
using read_result = k8s::result<json::value>;

/// Bound on the objects read for one plan, about as many bytes of text: runtimes are not trusted,
/// and one process reads thousands.
constexpr std::size_t most_live = 16u << 20;

constexpr int trust_rank = 11;          ///< after definitions
constexpr int configuration_rank = 58;  ///< before workloads
constexpr int after_workloads = 65;

std::string describe(const planned_object& object) {
  return object.type.gvk.kind + " " + to_string(object.key);
}

asio::awaitable<void> get_into(k8s::client* api, k8s::resource_type type, k8s::object_key key,
                               std::optional<read_result>* into) {
  auto got = co_await api->get(std::move(type), std::move(key));
  into->emplace(std::move(got));
}

std::size_t bytes_of(const json::value& value) {
  std::size_t out = 8;
  if (const auto* const text = value.if_string()) out += text->size();
  if (const auto* const list = value.if_array()) {
    for (const auto& each : *list) out += bytes_of(each);
  }
  if (const auto* const fields = value.if_object()) {
    for (const auto& [name, each] : *fields) out += name.size() + bytes_of(each);
  }
  return out;
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

/// The fields that a manager owns of the main resource; null: none.
json::value fields_of(const json::value& object, std::string_view manager) {
  const auto* const entries = k8s::find(object, {"metadata", "managedFields"});
  if (entries == nullptr || !entries->is_array()) return nullptr;
  for (const auto& each : entries->get_array()) {
    if (find_string(each, {"manager"}) != manager || find_string(each, {"operation"}) != "Apply" ||
        !find_string(each, {"subresource"}).empty()) {
      continue;
    }
    const auto* const fields = k8s::find(each, {"fieldsV1"});
    return fields == nullptr ? json::value() : *fields;
  }
  return nullptr;
}

/// The first field that is not as desired, without the bookkeeping of who applied what.
std::optional<std::string> find_reportable(json::value desired, const json::value& live) {
  auto& labels = desired.at("metadata").at("labels").as_object();
  labels.erase(synced_by_label);
  labels.erase(digest_label);
  return k8s::find_difference(desired, live);
}

/// Without what each write, or another controller, changes.
json::value comparable(json::value object) {
  auto* const fields = object.if_object();
  if (fields == nullptr) return object;
  fields->erase("status");
  auto* const metadata = fields->if_contains("metadata");
  if (metadata == nullptr || !metadata->is_object()) return object;
  for (const auto* name : {"managedFields", "resourceVersion", "generation"}) {
    metadata->as_object().erase(name);
  }
  return object;
}

}  // namespace

bool has_newer(const unit_plan& plan, const revision& newer) {
  return std::ranges::any_of(plan.objects, [&](const planned_object& each) {
    if (!each.write || each.live.is_null() || !find_reportable(each.desired, each.live))
      return false;
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
  for (const auto& each : objects) out.push_back({of, each.type.gvk, each.key});
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
    if (each.from == source_kind::trust_bundle)
      object.rank = trust_rank;
    else if (each.from == source_kind::configuration)
      object.rank = configuration_rank;
    else
      object.rank = k8s::apply_rank(object.type.gvk.api_version(), object.type.gvk.kind);
    const auto identity = object.type.gvk.group + "/" + describe(object);
    if (!identities.insert(identity).second) {
      plan.rejected = {rejection::reason::rejected_by_runtime,
                       describe(object) + " is defined twice"};
      co_return success();
    }
    plan.objects.push_back(std::move(object));
  }
  co_return success();
}

applier::work<void> applier::read_live(unit_plan& plan) {
  const auto executor = co_await asio::this_coro::executor;
  const auto cancellation = co_await asio::this_coro::cancellation_state;
  const auto cancelled = [&] { return cancellation.cancelled() != asio::cancellation_type::none; };
  const auto count = plan.objects.size();
  std::vector<std::optional<read_result>> results(count);
  // The groups have to be joined, also where the cancellation came together with a result.
  const bool throws = co_await asio::this_coro::throw_if_cancelled();
  co_await asio::this_coro::throw_if_cancelled(false);
  std::size_t bytes = 0;
  for (std::size_t begin = 0; begin < count && !cancelled() && bytes <= most_live;
       begin += options_.reads_at_once) {
    const auto end = std::min(count, begin + options_.reads_at_once);
    core::task_group tasks(executor);
    for (auto i = begin; i < end; ++i) {
      tasks.spawn(get_into(api_.get(), plan.objects[i].type, plan.objects[i].key, &results[i]));
    }
    co_await tasks.join();
    for (auto i = begin; i < end; ++i) {
      if (results[i] && results[i]->has_value()) bytes += bytes_of(**results[i]);
    }
  }
  co_await asio::this_coro::throw_if_cancelled(throws);
  if (cancelled()) throw boost::system::system_error(asio::error::operation_aborted);
  if (bytes > most_live) {
    plan.rejected = {rejection::reason::rejected_by_runtime,
                     "the runtime's objects of these names have more than " +
                         std::to_string(most_live) + " bytes"};
    co_return success();
  }
  for (std::size_t i = 0; i < count; ++i) {
    auto& got = *results[i];
    if (got.has_error() && !got.error().is(k8s::errc::not_found)) co_return got.error();
    if (got.has_value()) plan.objects[i].live = std::move(*got);
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
  std::vector<std::pair<int, std::size_t>> ranks;  // those of the same rank keep their order
  for (std::size_t i = 0; i < plan.objects.size(); ++i) {
    const auto rank = plan.objects[i].rank;
    ranks.emplace_back(rank == configuration_rank && !knows_all ? after_workloads : rank, i);
  }
  std::ranges::sort(ranks);
  std::vector<planned_object> sorted;
  for (const auto& [unused, at] : ranks) sorted.push_back(std::move(plan.objects[at]));
  plan.objects = std::move(sorted);
}

/// True if all managers of an object are ours or Kyma Infrastructure Manager's; or there is none,
/// since nobody has set a field.
bool applier::may_take_over(const json::value& live, std::string& manager) const {
  const auto* const entries = k8s::find(live, {"metadata", "managedFields"});
  for (const auto& each :
       entries != nullptr && entries->is_array() ? entries->get_array() : json::array()) {
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
    const auto& kims = options_.kim_managers;
    if (std::ranges::find(kims, name) == kims.end()) manager = name;
  }
  return manager.empty();
}

/// Clears `object.write` where the server says that nothing would change.
applier::work<void> applier::dry_run(unit_plan& plan, planned_object& object) {
  auto sent = object.desired;
  bool namespace_missing = false;
  if (object.live.is_null() && object.type.namespaced) {
    const auto found = co_await api_->get(namespaces_type(), {{}, object.key.ns}, true);
    if (!found && !found.error().is(k8s::errc::not_found)) co_return found.error();
    namespace_missing = !found;
    // It is tried where it can be.
    if (!found) sent.as_object()["metadata"].as_object()["namespace"] = "default";
  }
  const auto tried = co_await apply(object.type, std::move(sent), true);
  if (tried) {
    object.write =
        namespace_missing || object.live.is_null() ||
        comparable(*tried) != comparable(object.live) ||
        fields_of(*tried, options_.field_manager) != fields_of(object.live, options_.field_manager);
    co_return success();
  }
  const auto& error = tried.error();
  const bool inconclusive = error.is(k8s::errc::not_found) && object.live.is_null();
  const bool no_dry_runs = error.message.find("does not support dry run") != std::string::npos;
  if (inconclusive || no_dry_runs) {
    plan.warnings.push_back(describe(object) + " could not be dry-run: " + error.message);
  } else if (is_permanent(error)) {
    plan.rejected = {rejection::reason::rejected_by_runtime,
                     "the runtime would not take " + describe(object) + ": " + error.message};
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
    const inventory_entry entry{unit::bootstrapper, each.type.gvk, each.key};
    const bool is_owned = std::ranges::any_of(
        owned, [&](const inventory_entry& other) { return other.same_object(entry); });
    std::string manager;
    // A Namespace is shared: nobody owns it alone.
    if (each.live.is_null() || is_owned || adopt_ || each.type.gvk.kind == "Namespace" ||
        may_take_over(each.live, manager)) {
      continue;
    }
    out.rejected = {rejection::reason::foreign_object,
                    describe(each) + " is managed by " + manager +
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
      out.differences.push_back(describe(each) + " is missing");
    } else if (const auto difference = find_reportable(each.desired, each.live)) {
      out.differences.push_back(describe(each) + ": " + *difference);
    }
  }
  co_return out;
}

}  // namespace rw::bootstrapper
