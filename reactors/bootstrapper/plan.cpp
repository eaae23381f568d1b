#include "reactors/bootstrapper/plan.hpp"

#include "k8s/difference.hpp"
#include "k8s/manifests.hpp"
#include "k8s/types.hpp"

#include <boost/json/object.hpp>

#include <algorithm>
#include <utility>

namespace rw::bootstrapper {
namespace {

namespace json = boost::json;

constexpr int after_definitions = 11;  ///< what is trusted
constexpr int after_trust = 12;        ///< credentials
constexpr int before_workloads = 58;
constexpr int after_workloads = 65;

int rank_of(const set_item& one, bool configuration_last) noexcept {
  switch (one.from) {
    case part::trust_bundle:
      return after_definitions;
    case part::pull_secret:
      return after_trust;
    case part::configuration:
      return configuration_last ? after_workloads : before_workloads;
    case part::manifests:
      break;
  }
  return k8s::apply_rank(one.type.gvk.api_version(), one.type.gvk.kind);
}

bool is_namespace(const inventory_item& one) noexcept {
  return one.type.gvk.group.empty() && one.type.gvk.kind == "Namespace";
}

/// Its absence is a reason to write, but no difference that anybody wants to hear of.
json::value without_own_label(json::value object) {
  auto* const labels = object.at("metadata").as_object().if_contains("labels");
  if (labels != nullptr && labels->is_object()) labels->as_object().erase(synced_by_label);
  return object;
}

/// By rank, the smallest first; those of the same rank keep their order.
template <class T, class Rank>
void sort_by(std::vector<T>& all, Rank rank) {
  std::vector<std::pair<int, std::size_t>> order;
  for (std::size_t i = 0; i < all.size(); ++i) order.emplace_back(rank(all[i]), i);
  std::ranges::sort(order);
  std::vector<T> sorted;
  sorted.reserve(all.size());
  for (const auto& [unused, at] : order) sorted.push_back(std::move(all[at]));
  all = std::move(sorted);
}

}  // namespace

int rank_of(const inventory_item& one) noexcept {
  return k8s::apply_rank(one.type.gvk.api_version(), one.type.gvk.kind);
}

void sort_for_apply(known_set& set, bool configuration_last) {
  sort_by(set.items,
          [configuration_last](const set_item& one) { return rank_of(one, configuration_last); });
}

sync_plan make_plan(const known_set& set, const sync_record& record,
                    const std::vector<json::value>& live, const std::string& ns) {
  sync_plan out;
  for (std::size_t i = 0; i < set.items.size(); ++i) {
    const auto& item = set.items[i];
    const auto key = item.key(ns);
    if (live[i].is_null()) {
      out.writes.push_back({.item = i, .missing = true});
      continue;
    }
    const auto known = std::ranges::find_if(record.inventory, [&](const inventory_item& one) {
      return one.same_object(item.type, key);
    });
    const bool as_written =
        known != record.inventory.end() && known->digest == digest_of(item.object);
    const auto wanted = item.written(ns);
    auto difference = k8s::find_difference(without_own_label(wanted), live[i]);
    if (!difference && as_written && !k8s::find_difference(wanted, live[i])) continue;
    out.writes.push_back({.item = i, .difference = difference.value_or(std::string())});
  }
  for (const auto& one : record.inventory) {
    if (is_namespace(one) || one.was_there || set.find(one.type, one.key, ns) != nullptr) continue;
    out.prune.push_back(one);
  }
  sort_by(out.prune, [](const inventory_item& one) { return -rank_of(one); });
  return out;
}

sync_record begin_record(const sync_record& from, const known_set& set, std::size_t parts,
                         const std::string& ns, std::chrono::system_clock::time_point now) {
  auto out = from;
  const bool goes_on = from.now == sync_record::phase::applying && from.target == set.digest;
  out.now = sync_record::phase::applying;
  out.target = set.digest;
  out.target_parts = parts;
  if (!goes_on) out.since = now;
  for (const auto& item : set.items) {
    const auto key = item.key(ns);
    auto* const known = out.find(item.type, key);
    if (known == nullptr) {
      out.inventory.push_back({.type = item.type, .key = key});
    } else if (known->digest != digest_of(item.object)) {
      known->digest.clear();
    }
  }
  return out;
}

sync_record settled_record(const known_set& set, std::size_t parts, const std::string& ns,
                           std::chrono::system_clock::time_point now) {
  sync_record out{.good = set.digest, .good_parts = parts, .since = now};
  for (const auto& item : set.items) {
    out.inventory.push_back(
        {.type = item.type, .key = item.key(ns), .digest = digest_of(item.object)});
  }
  return out;
}

json::value without_server_fields(json::value live) {
  auto* const all = live.if_object();
  if (all == nullptr) return live;
  all->erase("status");
  auto* const metadata = all->if_contains("metadata");
  if (metadata == nullptr || !metadata->is_object()) return live;
  for (const auto* field : {"creationTimestamp", "deletionTimestamp", "deletionGracePeriodSeconds",
                            "generation", "managedFields", "resourceVersion", "selfLink", "uid"}) {
    metadata->as_object().erase(field);
  }
  auto* const annotations = metadata->as_object().if_contains("annotations");
  if (annotations != nullptr && annotations->is_object()) {
    // Written by Kubernetes' controllers, and by kubectl as a copy of the whole.
    annotations->as_object().erase("deployment.kubernetes.io/revision");
    annotations->as_object().erase("kubectl.kubernetes.io/last-applied-configuration");
  }
  return live;
}

}  // namespace rw::bootstrapper
