#include "reactors/bootstrapper/rollout_turn.hpp"

#include "k8s/objects/manifests.hpp"
#include "k8s/objects/types.hpp"
#include "reactors/runtime_controller/workload.hpp"
#include "reactors/shared/kyma_resources.hpp"

#include <boost/json/array.hpp>
#include <boost/json/object.hpp>

#include <algorithm>
#include <utility>

namespace rw::bootstrapper {
namespace {

namespace asio = boost::asio;
namespace json = boost::json;
using k8s::find_string;

/// On pods and ReplicaSets of a Deployment: which state of its template they are of.
constexpr std::string_view template_hash_label = "pod-template-hash";
constexpr std::string_view revision_annotation = "deployment.kubernetes.io/revision";
/// Of containers that wait for what may come by itself. (ErrImagePull becomes ImagePullBackOff.)
constexpr std::array<std::string_view, 3> passing_reasons = {"ContainerCreating", "PodInitializing",
                                                             "ErrImagePull"};

}  // namespace

bool usual_content::used_by(const resource_view& view) const {
  return view.from.config == names_.config && view.from.manifests == names_.manifests &&
         (view.from.trust_bundle.empty() || view.from.trust_bundle == names_.trust_bundle);
}

std::string usual_content::stored_name() const {
  return "rolled out: " + names_.config + ", " + names_.manifests + ", " + names_.trust_bundle;
}

asio::awaitable<k8s::result<void>> usual_content::load() {
  if (loaded_) co_return k8s::result<void>();
  const auto got = co_await stored_.load(stored_name());
  if (!got && !is_permanent(got.error())) co_return got.error();
  if (got && !got->empty() && !loaded_) set_completed(got->front()->value);
  loaded_ = true;
  co_return k8s::result<void>();
}

const shared_content& usual_content::current() {
  std::array<k8s::object, kinds.size()> now;
  std::ranges::transform(kinds, now.begin(),
                         [&](source_kind each) { return from_.contents.find(each, names_); });
  if (now == objects_ && !current_.digest.empty()) return current_;
  objects_ = now;
  json::object content;
  for (std::size_t i = 0; i < kinds.size(); ++i) {
    content[to_string(kinds[i])] = now[i] ? content_of(now[i].parse()) : json::value();
  }
  content_ = std::move(content);
  // Nothing but another trust bundle may go to all runtimes at once.
  bool at_once = trust_at_once_;
  for (const auto kind : kinds) {
    const auto& before = completed_[static_cast<std::size_t>(kind)];
    const auto& value = content_.at(to_string(kind));
    const bool same = before ? before->value == value : value.is_null();
    at_once = at_once && same != (kind == source_kind::trust_bundle);
  }
  current_ = {digest_of(content_), at_once};
  return current_;
}

asio::awaitable<k8s::result<void>> usual_content::store(std::string digest) {
  if (current().digest != digest) {
    co_return k8s::failure{.code = k8s::errc::conflict, .message = "the content has changed"};
  }
  const auto content = content_;
  // Without its source a runtime keeps what it has, so there is nothing new to fall back to.
  const bool whole = !content.at(to_string(source_kind::config)).is_null() &&
                     !content.at(to_string(source_kind::manifests)).is_null();
  if (!whole) co_return k8s::result<void>();
  const auto stored = co_await stored_.store(stored_name(), make_content(content));
  if (stored) set_completed(content);
  co_return stored;
}

void usual_content::set_completed(const json::value& contents) {
  current_ = {};  // it is compared with these
  for (const auto kind : kinds) {
    const auto* const found = k8s::find(contents, {to_string(kind)});
    completed_[static_cast<std::size_t>(kind)] =
        found == nullptr || found->is_null() ? nullptr : make_content(*found);
  }
}

void hold(unit_state& unit, const revision_ptr& completed) {
  const auto& in_place = unit.in_place;
  if (!unit.desired.empty()) unit.withheld = unit.revisions.front();
  auto& all = unit.revisions;
  std::erase_if(all, [&](const revision_ptr& each) { return each->digest != in_place; });
  const bool fits = completed && (in_place.empty() || completed->digest == in_place);
  if (all.empty() && fits) all.push_back(completed);
  if (unit.withheld) unit.desired = all.empty() ? in_place : all.front()->digest;
}

std::string pod_error(const json::value& pods, std::string_view template_hash) {
  const auto* const items = k8s::find_array(pods, {"items"});
  for (const auto& pod : items != nullptr ? *items : json::array()) {
    const auto hash = k8s::label(pod, template_hash_label).value_or(std::string_view());
    if (k8s::is_being_deleted(pod) || (!template_hash.empty() && hash != template_hash)) continue;
    for (const auto* list : {"containerStatuses", "initContainerStatuses"}) {
      const auto* const containers = k8s::find_array(pod, {"status", list});
      for (const auto& each : containers != nullptr ? *containers : json::array()) {
        auto reason = find_string(each, {"state", "waiting", "reason"});
        if (std::ranges::find(passing_reasons, reason) != passing_reasons.end()) reason = {};
        const auto* const ready = k8s::find(each, {"ready"});
        const bool is_ready = ready != nullptr && *ready == json::value(true);
        if (reason.empty() && !is_ready && k8s::find_number(each, {"restartCount"}) > 0) {
          reason = "restarted";
        }
        if (reason.empty()) continue;
        const auto message = find_string(each, {"state", "waiting", "message"});
        return "pod " + k8s::key_of(pod).name + ", container " +
               std::string(find_string(each, {"name"})) + ": " + std::string(reason) +
               (message.empty() ? "" : ": " + std::string(message));
      }
    }
  }
  return {};
}

asio::awaitable<k8s::result<std::string>> find_pod_error(k8s::client* api, json::value deployment) {
  const auto observed = k8s::find_number(deployment, {"status", "observedGeneration"});
  const auto* const labels = k8s::find(deployment, {"spec", "selector", "matchLabels"});
  // Until then its pods are of what it was before.
  const bool is_current = observed >= k8s::generation_of(deployment);
  if (!is_current || is_rolled_out(deployment) || labels == nullptr || !labels->is_object()) {
    co_return std::string();
  }
  k8s::selection all{.ns = k8s::key_of(deployment).ns};
  for (const auto& [name, value] : labels->get_object()) {
    if (!value.is_string()) continue;
    all.labels +=
        (all.labels.empty() ? "" : ",") + std::string(name) + "=" + std::string(value.get_string());
  }
  auto sets = all;
  sets.metadata_only = true;
  const k8s::resource_type replica_sets{{"apps", "v1", "ReplicaSet"}, "replicasets"};
  const auto found = co_await api->list(replica_sets, std::move(sets));
  if (!found && !found.error().is(k8s::errc::not_found)) co_return found.error();
  std::string hash;
  const auto revision = k8s::annotation(deployment, revision_annotation);
  const auto* const items = found ? k8s::find_array(*found, {"items"}) : nullptr;
  for (const auto& each : items != nullptr ? *items : json::array()) {
    if (!revision || k8s::annotation(each, revision_annotation) != revision) continue;
    hash = k8s::label(each, template_hash_label).value_or(std::string_view());
  }
  auto pods = co_await api->list(*k8s::well_known_type("v1", "Pod"), std::move(all));
  if (!pods) co_return pods.error();
  co_return pod_error(*pods, hash);
}

}  // namespace rw::bootstrapper
