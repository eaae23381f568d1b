#include "rw/reactors/dev/deployment_status.hpp"

#include "rw/k8s/objects/types.hpp"

#include <boost/json/array.hpp>
#include <boost/json/object.hpp>

#include <algorithm>
#include <chrono>
#include <cstdint>
#include <utility>

namespace rw::dev {

using namespace cli;
namespace {

namespace asio = boost::asio;
namespace json = boost::json;

std::int64_t replicas_of(const json::value& deployment) {
  const auto* const found = k8s::find(deployment, {"spec", "replicas"});
  return found != nullptr && found->is_int64() ? found->get_int64() : 1;
}

json::object status_of(const json::value& deployment, bool serves, const std::string& reason,
                       std::chrono::system_clock::time_point now) {
  json::value with_condition = deployment;
  k8s::set_condition(with_condition,
                     {.type = "Available",
                      .status = serves ? "True" : "False",
                      .reason = serves ? "MinimumReplicasAvailable" : "MinimumReplicasUnavailable",
                      .message = serves ? "Deployment has minimum availability." : reason},
                     now);
  const auto all = replicas_of(deployment);
  const std::int64_t ready = serves ? all : 0;
  return {{"observedGeneration", k8s::generation_of(deployment)},
          {"replicas", all},
          {"updatedReplicas", ready},
          {"readyReplicas", ready},
          {"availableReplicas", ready},
          {"unavailableReplicas", all - ready},
          {"conditions", *k8s::find(with_condition, {"status", "conditions"})}};
}

/// Returns true if the status has all these values; zero may be absent.
bool says(const json::value& deployment, const json::object& status) {
  for (const auto& [name, value] : status) {
    const auto* present = k8s::find(deployment, {"status", name});
    if (present == nullptr && value.is_int64() && value.get_int64() == 0) continue;
    if (present == nullptr || *present != value) return false;
  }
  return true;
}

}  // namespace

const k8s::resource_type& deployments_type() {
  static const k8s::resource_type type{{"apps", "v1", "Deployment"}, "deployments"};
  return type;
}

bool crashes(const json::value& deployment) {
  const auto* const all = k8s::find_array(deployment, {"spec", "template", "spec", "containers"});
  return all != nullptr && std::ranges::any_of(*all, [](const json::value& each) {
           return k8s::find_string(each, {"image"}).ends_with(":crash");
         });
}

asio::awaitable<k8s::result<void>> keep_crashing_pod(k8s::client* api, json::value deployment,
                                                     bool crashing) {
  static const k8s::resource_type pods{{"", "v1", "Pod"}, "pods"};
  auto key = k8s::key_of(deployment);
  key.name += "-crashing";
  const auto there = co_await api->get(pods, key, true);
  if (!there && !there.error().is(k8s::errc::not_found)) co_return there.error();
  if (there.has_value() == crashing) co_return k8s::result<void>();
  if (!crashing) {
    const auto removed = co_await api->remove(pods, key);
    if (!removed && !removed.error().is(k8s::errc::not_found)) co_return removed.error();
    co_return k8s::result<void>();
  }
  const auto* const labels = k8s::find(deployment, {"spec", "template", "metadata", "labels"});
  json::value pod{{"apiVersion", "v1"},
                  {"kind", "Pod"},
                  {"metadata",
                   {{"name", key.name},
                    {"namespace", key.ns},
                    {"labels", labels == nullptr ? json::value(json::object()) : *labels}}},
                  {"spec", *k8s::find(deployment, {"spec", "template", "spec"})},
                  {"status",
                   {{"phase", "Running"},
                    {"containerStatuses",
                     json::array{{{"name", "manager"},
                                  {"image", "crash"},
                                  {"imageID", ""},
                                  {"ready", false},
                                  {"restartCount", 1},
                                  {"state", {{"waiting", {{"reason", "CrashLoopBackOff"}}}}}}}}}}};
  const auto made = co_await api->create(pods, pod);
  if (!made) co_return made.error();
  json::value change{{"status", pod.at("status")}};
  const auto done = co_await api->patch(pods, std::move(key), k8s::patch_type::merge,
                                        std::move(change), {.subresource = "status"});
  if (!done) co_return done.error();
  co_return k8s::result<void>();
}

asio::awaitable<k8s::result<void>> tell_deployment_status(k8s::client* api, core::clock* time,
                                                          json::value deployment, bool serves,
                                                          std::string reason) {
  auto status = status_of(deployment, serves, reason, time->wall());
  if (says(deployment, status)) co_return k8s::result<void>();
  json::value change = {{"status", std::move(status)}};
  k8s::write_options options{.field_manager = "runtime-watcher-dev", .subresource = "status"};
  const auto done =
      co_await api->patch(deployments_type(), k8s::key_of(deployment), k8s::patch_type::merge,
                          std::move(change), std::move(options));
  if (done || done.error().is(k8s::errc::not_found)) co_return k8s::result<void>();
  co_return done.error();
}

}  // namespace rw::dev
