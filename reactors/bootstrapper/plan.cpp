// What a revision needs on a runtime: discovery, reads and dry runs. Nothing is written.

#include "rw/reactors/bootstrapper/plan.hpp"

#include "rw/core/gather.hpp"
#include "rw/k8s/objects/difference.hpp"
#include "rw/k8s/objects/manifests.hpp"
#include "rw/k8s/objects/types.hpp"
#include "rw/reactors/shared/field_owners.hpp"
#include "rw/reactors/shared/kyma_resources.hpp"
#include "rw/reactors/shared/trust_bundles_type.hpp"

#include <boost/json/array.hpp>
#include <boost/json/object.hpp>
#include <boost/json/serialize.hpp>

#include <algorithm>
#include <utility>

namespace rw::bootstrapper {
namespace {

namespace asio = boost::asio;
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

/// True if an object has fields that a client must have set.
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

/// One call of `make_plan`. What a step finds for good is in `out_.rejected`.
class planner {
 public:
  template <class T>
  using work = asio::awaitable<k8s::result<T>>;

  planner(k8s::client& api, const apply_settings& options, target_names to, bool adopt,
          revision_ptr desired)
      : api_(api),
        options_(options),
        to_(std::move(to)),
        adopt_(adopt),
        desired_(std::move(desired)) {}

  work<unit_plan> run(inventory owned) {
    auto step = co_await resolve();
    if (step && !out_.rejected) step = co_await read_live();
    if (!step) co_return step.error();
    if (out_.rejected) {
      out_.objects.clear();
      co_return std::move(out_);
    }
    order();
    check_owners(owned);
    for (auto& each : out_.objects) {
      if (out_.rejected) break;
      each.write = each.live.is_null() || k8s::find_difference(each.desired, each.live);
      if (each.write) step = co_await dry_run(&each);
      if (!step) co_return step.error();
      if (out_.rejected || !each.write) continue;
      if (each.live.is_null()) {
        out_.differences.push_back(name_of(each) + " is missing");
      } else if (const auto difference = find_reportable(each.desired, each.live)) {
        out_.differences.push_back(name_of(each) + ": " + *difference);
      }
    }
    co_return std::move(out_);
  }

 private:
  void reject(std::string message, rejection::reason why = rejection::reason::rejected_by_runtime) {
    out_.rejected = {why, std::move(message)};
  }

  work<void> resolve() {
    std::set<std::string> identities;
    for (const auto& each : desired_->objects) {
      const auto gvk = gvk_of(each.object);
      auto type = co_await find_type(&api_, gvk);
      if (!type) co_return type.error();
      if (!*type) *type = defined_in(*desired_, gvk);
      if (!*type) {
        reject("the runtime does not serve the kind " + gvk.kind + " of " + gvk.api_version() +
                   " (" + k8s::key_of(each.object).name + ")",
               rejection::reason::unknown_kind);
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
      object.order = {rank, out_.objects.size()};
      if (!identities.insert(object.type.gvk.group + "/" + name_of(object)).second) {
        reject(name_of(object) + " is defined twice");
      }
      out_.objects.push_back(std::move(object));
    }
    co_return success();
  }

  work<void> read_live() {
    std::size_t bytes = 0;
    auto& objects = out_.objects;
    for (std::size_t begin = 0; begin < objects.size(); begin += options_.reads_at_once) {
      const auto end = std::min(objects.size(), begin + options_.reads_at_once);
      std::vector<work<json::value>> reads;
      for (auto i = begin; i < end; ++i) {
        reads.push_back(api_.get(objects[i].type, objects[i].key));
      }
      auto results = co_await core::gather(std::move(reads));
      for (auto i = begin; i < end; ++i) {
        auto& got = results[i - begin];
        if (!got && !got.error().is(k8s::errc::not_found)) co_return got.error();
        if (!got) continue;
        bytes += json::serialize(*got).size();
        objects[i].live = std::move(*got);
      }
      if (bytes <= most_live) continue;
      reject("the runtime's objects of these names have more than " + std::to_string(most_live) +
             " bytes");
      co_return success();
    }
    auto& missing = out_.missing_namespaces;
    for (const auto& each : objects) {
      if (each.live.is_null() && each.type.namespaced) missing.insert(each.key.ns);
    }
    for (auto each = missing.begin(); each != missing.end();) {
      const auto found = co_await api_.get(namespaces_type(), {{}, *each}, true);
      if (!found && !found.error().is(k8s::errc::not_found)) co_return found.error();
      each = found ? missing.erase(each) : std::next(each);
    }
    co_return success();
  }

  /// Each state on the way must be safe: definitions, trust, what workloads need, the
  /// configuration, workloads, webhook configurations. Where the version that runs does not know
  /// all features that the configuration names, the configuration follows the workloads.
  void order() {
    const auto deployment = std::ranges::find_if(out_.objects, [&](const planned_object& each) {
      return each.type.gvk.kind == "Deployment" &&
             each.key == k8s::object_key{to_.ns, to_.deployment};
    });
    const bool runs = deployment != out_.objects.end() && !deployment->live.is_null();
    const auto can = runs ? abilities_of(deployment->live) : abilities();
    const bool knows_all =
        !runs || std::ranges::all_of(desired_->features,
                                     [&](const std::string& each) { return can.know(each); });
    for (auto& each : out_.objects) {
      auto& rank = each.order.first;
      if (rank == configuration_rank && !knows_all) rank = after_workloads;
    }
    std::ranges::sort(out_.objects, {}, &planned_object::order);
  }

  void check_owners(const inventory& owned) {
    for (const auto& each : out_.objects) {
      const inventory_entry entry{.gvk = each.type.gvk, .key = each.key};
      const bool is_owned = std::ranges::any_of(
          owned, [&](const inventory_entry& other) { return other.same_object(entry); });
      // A Namespace is shared: no manager owns it alone.
      if (each.live.is_null() || is_owned || adopt_ || each.type.gvk.kind == "Namespace") continue;
      const auto manager = foreign_manager(each.live);
      if (manager.empty()) continue;
      return reject(name_of(each) + " is managed by " + manager +
                        "; spec.adopt of the RuntimeBootstrapper lets it be taken over",
                    rejection::reason::foreign_object);
    }
  }

  /// Empty if all managers of an object are ours or Kyma Infrastructure Manager's. One without
  /// managers is unowned as long as it has no content; else it was made before servers noted them,
  /// or has lost them.
  std::string foreign_manager(const json::value& live) const {
    const auto& kims = options_.kim_managers;
    std::string manager;
    if (managed_fields(live).empty() && has_content(live)) manager = "an unknown manager";
    for (const auto& each : managed_fields(live)) {
      const auto name = find_string(each, {"manager"});
      if (name == options_.field_manager) return {};
      // Servers before 1.22 do not name the subresource of a status.
      const auto* const fields = k8s::find(each, {"fieldsV1"});
      const bool status_only = fields != nullptr && fields->is_object() &&
                               fields->get_object().size() == 1 &&
                               fields->get_object().contains("f:status");
      const bool ignored = status_only || !find_string(each, {"subresource"}).empty() ||
                           name == "kube-controller-manager";
      if (!ignored && std::ranges::find(kims, name) == kims.end()) manager = name;
    }
    return manager;
  }

  /// Clears `object->write` where the server says that nothing would change.
  work<void> dry_run(planned_object* object) {
    auto sent = object->desired;
    const bool namespace_missing =
        object->live.is_null() && out_.missing_namespaces.contains(object->key.ns);
    // It is tried where it can be.
    if (namespace_missing) sent.as_object()["metadata"].as_object()["namespace"] = "default";
    const auto& manager = options_.field_manager;
    const auto tried = co_await api_.apply(
        object->type, std::move(sent), {.field_manager = manager, .force = true, .dry_run = true});
    if (tried) {
      object->write =
          namespace_missing || comparable(*tried, manager) != comparable(object->live, manager);
      co_return success();
    }
    const auto& error = tried.error();
    const bool inconclusive = error.is(k8s::errc::not_found) && object->live.is_null();
    const bool no_dry_runs = error.message.find("does not support dry run") != std::string::npos;
    if (inconclusive || no_dry_runs) {
      out_.warnings.push_back(name_of(*object) + " could not be dry-run: " + error.message);
    } else if (is_permanent(error)) {
      reject("the runtime would not take " + name_of(*object) + ": " + error.message);
    } else {
      co_return error;
    }
    co_return success();
  }

  k8s::client& api_;
  const apply_settings& options_;
  const target_names to_;
  const bool adopt_;
  const revision_ptr desired_;
  unit_plan out_;
};

/// True if `holds` is, of an object that is to be written and of those of its fields that are Kyma
/// Infrastructure Manager's, and not ours.
template <class Predicate>
bool any_of_kim(const unit_plan& plan, const apply_settings& options, Predicate holds) {
  return std::ranges::any_of(plan.objects, [&](const planned_object& each) {
    if (!each.write || each.live.is_null()) return false;
    const auto theirs = fields_of_others(each.live, options.kim_managers, options.field_manager);
    return !theirs.is_null() && holds(each, theirs);
  });
}

}  // namespace

bool has_newer(const unit_plan& plan, const revision& newer, const apply_settings& options) {
  return any_of_kim(plan, options, [&](const planned_object& each, const json::value& theirs) {
    return std::ranges::any_of(newer.objects, [&](const desired_object& other) {
      const auto& object = other.object;
      return gvk_of(object) == each.type.gvk && k8s::key_of(object).name == each.key.name &&
             has_newer_field(theirs, each.live, each.desired, object);
    });
  });
}

bool has_other_credentials(const unit_plan& plan, const apply_settings& options) {
  return any_of_kim(plan, options, [](const planned_object& each, const json::value& theirs) {
    if (each.type != secrets_type()) return false;
    diagnostics found;
    validate_pull_secret(each.live, {found, {}});
    return found.errors.empty() &&
           has_newer_field(theirs, each.live, each.desired, content_of(each.live));
  });
}

bool changes_credentials(const unit_plan& plan) {
  return std::ranges::any_of(plan.objects, [](const planned_object& each) {
    if (each.type != secrets_type() || !each.write) return false;
    return each.live.is_null() || content_of(each.live) != content_of(each.desired);
  });
}

asio::awaitable<k8s::result<std::optional<k8s::resource_type>>> find_type(
    k8s::client* api, k8s::group_version_kind gvk) {
  using found_type = std::optional<k8s::resource_type>;
  if (auto known = k8s::well_known_type(gvk.api_version(), gvk.kind)) co_return known;
  std::vector<std::string> versions{gvk.version};
  if (gvk.kind == trust_bundle_kind && gvk.group == "certificates.k8s.io") {
    // Any version has the same fields; the control plane's comes first.
    auto served = co_await api->versions(gvk.group);
    if (!served) co_return served.error();
    const auto own = std::ranges::find(*served, gvk.version);
    if (own != served->end()) std::rotate(served->begin(), own, own + 1);
    versions = std::move(*served);
  }
  for (auto& version : versions) {
    gvk.version = std::move(version);
    auto found = co_await api->find(gvk);
    if (found) co_return found_type(std::move(*found));
    if (!found.error().is(k8s::errc::not_found)) co_return found.error();
  }
  co_return found_type();
}

asio::awaitable<k8s::result<unit_plan>> make_plan(k8s::client* api, const apply_settings* options,
                                                  target_names to, bool adopt, revision_ptr desired,
                                                  inventory owned) {
  planner plan(*api, *options, std::move(to), adopt, std::move(desired));
  auto made = co_await plan.run(std::move(owned));
  co_return made;
}

}  // namespace rw::bootstrapper
