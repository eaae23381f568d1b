#include "rw/k8s/devserver/json_access.hpp"
#include "rw/k8s/devserver/writes.hpp"
#include "rw/k8s/objects/label_selector.hpp"

#include <boost/json/array.hpp>

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

/// Parses a Binding or Eviction, which names its Pod.
outcome<json::value> parse_named(const call& to, const http::request& from) {
  auto object = parse_part(to, from);
  if (object.has_error() || find_string(*object, {"metadata", "name"}) == to.key.name) {
    return object;
  }
  return bad_request("name in URL does not match name in " +
                     std::string(find_string(*object, {"kind"})) + " object");
}

/// Parses a Binding.
outcome<json::value> parse_binding(const call& to, const http::request& from) {
  auto binding = parse_named(to, from);
  if (binding.has_value() && find_string(*binding, {"target", "name"}).empty()) {
    return invalid({"", "Binding", to.key.name},
                   {{"target.name", "FieldValueRequired", "Required value"}});
  }
  return binding;
}

}  // namespace

asio::awaitable<void> writes::bind(call to, const http::request& from, http::response& into) {
  auto then = [this, to, &into](const json::value& binding) {
    return bind_to(to, std::string(find_string(binding, {"target", "name"})), &into);
  };
  auto binding = parse_binding(to, from);
  return create_unstored(std::move(to), std::move(binding), std::move(then), into);
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
  request request{to, std::move(make_plan), {.dry_run = to.parameters.has("dryRun")}};
  request.asks_webhooks = false;
  const auto done = co_await write(std::move(request));
  if (done.has_error()) {
    answer(*into, done.error());
  } else {
    answer(*into, 201, created());
  }
}

asio::awaitable<void> writes::evict(call to, const http::request& from, http::response& into) {
  auto then = [this, to, &into](json::value eviction) -> asio::awaitable<void> {
    auto& options = object_in(eviction.as_object(), "deleteOptions");
    if (to.parameters.has("dryRun")) options["dryRun"] = json::array{"All"};
    const auto with = delete_options::parse(eviction.at("deleteOptions"));
    if (with.has_value()) return evict_by(to, *with, &into);
    answer(into, with.error());
    return {};
  };
  auto eviction = parse_named(to, from);
  return create_unstored(std::move(to), std::move(eviction), std::move(then), into);
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
  request request{std::move(single), std::move(make_plan), {.dry_run = with.dry_run}};
  request.asks_webhooks = false;
  const auto done = co_await write(std::move(request));
  if (done.has_error()) {
    answer(*into, done.error());
  } else {
    answer(*into, 201, created());
  }
}

}  // namespace rw::k8s::devserver
