#include "reactors/cli/dev/deployment_status.hpp"

#include "k8s/types.hpp"

#include <boost/json/object.hpp>

#include <chrono>
#include <cstdint>
#include <utility>

namespace rw::cli::dev {
namespace {

namespace asio = boost::asio;
namespace json = boost::json;

std::int64_t replicas_of(const json::value& deployment) {
  const auto* const found = k8s::find(deployment, {"spec", "replicas"});
  return found != nullptr && found->is_int64() ? found->get_int64() : 1;
}

json::object status_of(const json::value& deployment, bool serves, const std::string& why,
                       std::chrono::system_clock::time_point now) {
  json::value with_condition = deployment;
  k8s::set_condition(with_condition,
                     {.type = "Available",
                      .status = serves ? "True" : "False",
                      .reason = serves ? "MinimumReplicasAvailable" : "MinimumReplicasUnavailable",
                      .message = serves ? "Deployment has minimum availability." : why},
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

/// True if the status says all of that; what is zero need not be said.
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

asio::awaitable<k8s::result<void>> tell_deployment_status(k8s::client* api, core::clock* time,
                                                          json::value deployment, bool serves,
                                                          std::string why) {
  auto status = status_of(deployment, serves, why, time->wall());
  if (says(deployment, status)) co_return k8s::result<void>();
  json::value change = {{"status", std::move(status)}};
  k8s::write_options options{.field_manager = "runtime-watcher-dev", .subresource = "status"};
  const auto done =
      co_await api->patch(deployments_type(), k8s::key_of(deployment), k8s::patch_type::merge,
                          std::move(change), std::move(options));
  if (done || done.error().is(k8s::errc::not_found)) co_return k8s::result<void>();
  co_return done.error();
}

}  // namespace rw::cli::dev
