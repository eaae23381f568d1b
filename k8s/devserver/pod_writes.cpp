#include "rw/k8s/devserver/json_access.hpp"
#include "rw/k8s/devserver/writes.hpp"
#include "rw/k8s/objects/label_selector.hpp"

#include <boost/json/array.hpp>
#include <boost/json/serialize.hpp>

#include <algorithm>
#include <optional>

// The subresources of Pods that write (Kubernetes, "pkg/registry/core/pod/storage").

namespace rw::k8s::devserver {
namespace {

namespace asio = boost::asio;
namespace json = boost::json;

json::value created() {
  return {{"kind", "Status"},
          {"apiVersion", "v1"},
          {"metadata", json::object()},
          {"status", "Success"},
          {"code", 201}};
}

/// Makes the scheduler's changes.
void assign(json::value& pod, const std::string& node, const std::string& now) {
  object_in(pod.as_object(), "spec")["nodeName"] = node;
  auto& conditions = object_in(pod.as_object(), "status")["conditions"];
  if (!conditions.is_array()) conditions = json::array();
  auto& all = conditions.get_array();
  const auto scheduled = std::ranges::find_if(all, [](const json::value& condition) {
    return find_string(condition, {"type"}) == "PodScheduled";
  });
  json::value made{{"type", "PodScheduled"},
                   {"status", "True"},
                   {"lastProbeTime", nullptr},
                   {"lastTransitionTime", now}};
  if (scheduled != all.end()) {
    *scheduled = std::move(made);
  } else {
    all.push_back(std::move(made));
  }
}

/// Budgets do not count Pods that serve nobody.
bool ignores_budgets(const json::value& pod) {
  const auto phase = find_string(pod, {"status", "phase"});
  return phase == "Succeeded" || phase == "Failed" || phase == "Pending" ||
         !find_string(pod, {"metadata", "deletionTimestamp"}).empty();
}

/// Returns the budgets of a Pod.
std::vector<json::value> budgets_of(const cluster& in, std::string_view ns,
                                    const json::value& pod) {
  std::vector<json::value> found;
  const auto all = in.objects.find("poddisruptionbudgets.policy");
  if (!all) return found;
  for (const auto& record : all->all(ns)) {
    auto budget = record->parse();
    const auto* const selector = find(budget, {"spec", "selector"});
    const auto matches = label_selector::from_json(selector == nullptr ? json::value() : *selector);
    if (matches.has_value() && matches->matches(find(pod, {"metadata", "labels"}))) {
      found.push_back(std::move(budget));
    }
  }
  return found;
}

problem no_disruption(std::string_view budget) {
  return {.code = 429,
          .reason = "TooManyRequests",
          .message = "Cannot evict pod as it would violate the pod's disruption budget.",
          .causes = {{"", "DisruptionBudget",
                      "The disruption budget " + std::string(budget) + " does not allow it now"}}};
}

}  // namespace

asio::awaitable<void> writes::bind(call to, const http::request& from, http::response& into) {
  const auto binding = parse_object(to, from);
  if (binding.has_error()) {
    answer(into, binding.error());
    return {};
  }
  std::string node(find_string(*binding, {"target", "name"}));
  if (node.empty()) {
    answer(into, invalid({"", "Binding", to.key.name},
                         {{"target.name", "FieldValueRequired", "Required value"}}));
    return {};
  }
  return bind_to(std::move(to), std::move(node), &into);
}

asio::awaitable<void> writes::bind_to(call to, std::string node, http::response* into) {
  const auto now = format_time(parts_.clock.wall());
  auto make_plan = [this, to, node, now]() -> outcome<write_plan> {
    const auto pod = to.objects()->find(to.path());
    if (!pod) return not_found(to.target());
    const auto bound = std::string(find_string(pod->parse(), {"spec", "nodeName"}));
    if (!bound.empty()) {
      return conflict({"", "pods/binding", to.key.name},
                      "pod " + to.key.name + " is already assigned to node \"" + bound + "\"");
    }
    return parts_.planner.edit(to, [&](json::value& pod) { assign(pod, node, now); });
  };
  write_context context{.dry_run = to.parameters.has("dryRun"), .options = options_of(to)};
  const auto done = co_await write({std::move(to), std::move(make_plan), std::move(context)});
  if (done.has_error()) {
    answer(*into, done.error());
  } else {
    answer(*into, 201, created());
  }
}

asio::awaitable<void> writes::evict(call to, const http::request& from, http::response& into) {
  const auto eviction = parse_object(to, from);
  if (eviction.has_error()) {
    answer(into, eviction.error());
    return {};
  }
  const auto* const options = find(*eviction, {"deleteOptions"});
  const auto with = delete_options::parse(
      to, options != nullptr && options->is_object() ? json::serialize(*options) : "", false);
  if (with.has_error()) {
    answer(into, with.error());
    return {};
  }
  return evict_by(std::move(to), *with, &into);
}

asio::awaitable<void> writes::evict_by(call to, delete_options with, http::response* into) {
  const auto pod = to.objects()->find(to.path());
  if (!pod) {
    answer(*into, not_found(to.target()));
    co_return;
  }
  const auto object = pod->parse();
  const auto budgets =
      ignores_budgets(object) ? std::vector<json::value>() : budgets_of(*to.in, to.key.ns, object);
  if (budgets.size() > 1) {
    answer(*into, internal_error("this pod has more than one PodDisruptionBudget, which the "
                                 "eviction subresource does not support."));
    co_return;
  }
  if (!budgets.empty()) {
    const auto& budget = budgets.front();
    const std::string name(find_string(budget, {"metadata", "name"}));
    const auto allowed = integer_at(budget, {"status", "disruptionsAllowed"}).value_or(0);
    if (allowed <= 0) {
      answer(*into, no_disruption(name));
      co_return;
    }
    auto view = to.in->kinds.find("policy", "v1", "poddisruptionbudgets");
    call of{to.in, std::move(view), {to.key.ns, name}, "status", {}, {}, {}, {}};
    auto make_plan = [this, of, allowed] {
      return parts_.planner.edit(of, [&](json::value& object) {
        object_in(object.as_object(), "status")["disruptionsAllowed"] = allowed - 1;
      });
    };
    request request{of, std::move(make_plan), {.dry_run = with.dry_run}};
    request.asks_webhooks = false;
    const auto taken = co_await write(std::move(request));
    if (taken.has_error()) {
      answer(*into, taken.error());
      co_return;
    }
  }
  auto single = to;
  single.subresource.clear();
  auto make_plan = [this, single, with] { return parts_.planner.remove(single, with); };
  const auto done = co_await write(
      {std::move(single), std::move(make_plan), {with.dry_run, false, options_of(with)}});
  if (done.has_error()) {
    answer(*into, done.error());
  } else {
    answer(*into, 201, created());
  }
}

}  // namespace rw::k8s::devserver
