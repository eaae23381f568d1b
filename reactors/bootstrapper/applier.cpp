// The writes to a runtime.

#include "reactors/bootstrapper/applier.hpp"

#include "k8s/objects/manifests.hpp"
#include "k8s/objects/types.hpp"
#include "reactors/shared/kyma_resources.hpp"

#include <boost/json/object.hpp>

#include <algorithm>
#include <utility>

namespace rw::bootstrapper {
namespace {

namespace json = boost::json;
using k8s::find_string;
using success = k8s::result<void>;

bool is_managed_by(const json::value& object, std::string_view manager) {
  return std::ranges::any_of(managed_fields(object), [&](const json::value& each) {
    return find_string(each, {"manager"}) == manager;
  });
}

}  // namespace

const json::array& managed_fields(const json::value& object) {
  static const json::array none;
  const auto* const entries = k8s::find_array(object, {"metadata", "managedFields"});
  return entries == nullptr ? none : *entries;
}

json::value applied_fields(const json::value& object, std::string_view manager) {
  for (const auto& each : managed_fields(object)) {
    const auto* const fields = k8s::find(each, {"fieldsV1"});
    const bool is_own = find_string(each, {"manager"}) == manager &&
                        find_string(each, {"operation"}) == "Apply" &&
                        find_string(each, {"subresource"}).empty();
    if (is_own && fields != nullptr) return *fields;
  }
  return nullptr;
}

bool is_permanent(const k8s::failure& error) noexcept {
  // What does not fit the schema is refused with 500 by server-side apply, up to the newest version
  // (k8s.io/apimachinery/pkg/util/managedfields, structuredmerge.go).
  const bool unfit = error.status == 500 && error.message.find(
                                                "failed to create typed patch "
                                                "object") != std::string::npos;
  return unfit || error.is(k8s::errc::bad_request) || error.is(k8s::errc::invalid) ||
         error.is(k8s::errc::forbidden) || error.is(k8s::errc::unsupported) ||
         error.is(k8s::errc::method_not_allowed) || error.is(k8s::errc::too_large) ||
         error.status == 413;
}

json::value subtract_fields(const json::value& fields, const json::value& owned) {
  if (!fields.is_object() || !owned.is_object()) return fields;
  json::object rest;
  for (const auto& [name, below] : fields.get_object()) {
    const auto* const other = owned.get_object().if_contains(name);
    if (other == nullptr) {
      rest[name] = below;
      continue;
    }
    auto left = subtract_fields(below, *other);
    if (left.is_object() && !left.get_object().empty()) rest[name] = std::move(left);
  }
  // A map without any of its entries would be taken for all that are there now.
  const bool nothing = rest.empty() || (rest.size() == 1 && rest.contains("."));
  return nothing ? json::value() : json::value(std::move(rest));
}

k8s::result<void> applier::begin_write() {
  if (may_write_ && !may_write_()) {
    return k8s::failure{.code = k8s::errc::fenced,
                        .message = "the runtime must no longer be written to"};
  }
  ++writes_;
  return {};
}

applier::work<json::value> applier::apply(k8s::resource_type type, json::value object, bool dry) {
  if (!dry) {
    const auto allowed = begin_write();
    if (!allowed) co_return allowed.error();
  }
  k8s::apply_options options{
      .field_manager = options_.field_manager, .force = true, .dry_run = dry};
  auto applied = co_await api_->apply(std::move(type), std::move(object), std::move(options));
  co_return applied;
}

applier::work<bool> applier::has_namespace(std::string name) {
  if (namespaces_.contains(name)) co_return true;
  const auto found = co_await api_->get(namespaces_type(), {{}, name}, true);
  if (!found && !found.error().is(k8s::errc::not_found)) co_return found.error();
  if (found) namespaces_.insert(std::move(name));
  co_return found.has_value();
}

/// Makes the fields of the desired object ours alone, so that a later revision without one of them
/// removes it: Kyma Infrastructure Manager no longer owns them as well, whatever else it owns.
applier::work<void> applier::release_fields(planned_object* object) {
  const auto owned = applied_fields(object->live, options_.field_manager);
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
    auto rest = subtract_fields(*fields, owned);
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
  k8s::write_options options{.field_manager = options_.field_manager};
  auto patched = co_await api_->patch(object->type, object->key, k8s::patch_type::json,
                                      std::move(changes), std::move(options));
  // Another writer was faster: then it stays a co-owner, which does no harm now.
  const bool lost = !patched && (patched.error().is(k8s::errc::conflict) ||
                                 patched.error().is(k8s::errc::invalid) ||
                                 patched.error().is(k8s::errc::not_found));
  if (!patched && !lost) co_return patched.error();
  if (patched) object->live = std::move(*patched);
  co_return success();
}

applier::work<void> applier::write(unit_plan* plan) {
  for (auto& each : plan->objects) {
    if (!each.write) continue;
    if (each.live.is_null() && each.type.namespaced) {
      const auto found = co_await has_namespace(each.key.ns);
      if (!found) co_return found.error();
      json::value ns{
          {"apiVersion", "v1"}, {"kind", "Namespace"}, {"metadata", {{"name", each.key.ns}}}};
      const auto made = *found ? k8s::result<json::value>(nullptr)
                               : co_await apply(namespaces_type(), std::move(ns), false);
      if (!made) co_return made.error();
    }
    auto applied = co_await apply(each.type, each.desired, false);
    if (!applied) co_return applied.error();
    each.live = std::move(*applied);
    const auto released = co_await release_fields(&each);
    if (!released) co_return released.error();
  }
  co_return success();
}

applier::work<void> applier::remove_one(k8s::resource_type type, k8s::object_key key) {
  const auto found = co_await api_->get(type, key);
  if (!found && found.error().is(k8s::errc::not_found)) co_return success();
  if (!found) co_return found.error();
  if (!is_managed_by(*found, options_.field_manager)) co_return success();  // made again by others
  const auto allowed = begin_write();
  if (!allowed) co_return allowed.error();
  k8s::delete_options options{.uid = std::string(k8s::uid_of(*found))};
  const auto removed = co_await api_->remove(std::move(type), std::move(key), std::move(options));
  if (!removed && !removed.error().is(k8s::errc::not_found)) co_return removed.error();
  co_return success();
}

applier::work<void> applier::remove(inventory objects) {
  std::ranges::sort(objects, {}, [](const inventory_entry& each) {
    return -k8s::apply_rank(each.gvk.api_version(), each.gvk.kind);
  });
  for (const auto& each : objects) {
    if (each.gvk.group.empty() && each.gvk.kind == "Namespace") continue;
    auto type = co_await find_type(each.gvk);
    if (!type) co_return type.error();
    if (!*type) continue;  // the objects went with their definition
    const auto removed = co_await remove_one(std::move(**type), each.key);
    if (!removed) co_return removed.error();
  }
  co_return success();
}

applier::work<json::value> applier::deployment() {
  const auto type = *k8s::well_known_type("apps/v1", "Deployment");
  auto found = co_await api_->get(type, {to_.ns, std::string(deployment_name)});
  if (found) co_return found;
  if (found.error().is(k8s::errc::not_found)) co_return json::value();
  co_return found.error();
}

}  // namespace rw::bootstrapper
