#include "rw/reactors/dev/deployment_status.hpp"

#include "rw/k8s/devserver/deployment_status.hpp"
#include "rw/k8s/objects/types.hpp"

#include <boost/json/array.hpp>
#include <boost/json/object.hpp>

#include <algorithm>
#include <utility>

namespace rw::dev {

namespace {

namespace asio = boost::asio;
namespace json = boost::json;

bool crashes_by_image(const json::value& container) {
  return k8s::find_string(container, {"image"}).ends_with(":crash");
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

/// The container that crashes by its image, or else the first; null: there is none.
const json::value* culprit_in(const json::value& deployment) {
  const auto* const all = k8s::find_array(deployment, {"spec", "template", "spec", "containers"});
  if (all == nullptr || all->empty()) return nullptr;
  const auto found = std::ranges::find_if(*all, crashes_by_image);
  return found == all->end() ? &all->front() : &*found;
}

}  // namespace

const k8s::resource_type& deployments_type() {
  static const k8s::resource_type type{{"apps", "v1", "Deployment"}, "deployments"};
  return type;
}

const k8s::resource_type& pods_type() {
  static const k8s::resource_type type{{"", "v1", "Pod"}, "pods"};
  return type;
}

json::value pod_of(const json::value& deployment, const k8s::object_key& key) {
  const auto part = [&](std::initializer_list<std::string_view> path) {
    const auto* found = k8s::find(deployment, path);
    return found == nullptr ? json::value(json::object()) : *found;
  };
  return {{"apiVersion", "v1"},
          {"kind", "Pod"},
          {"metadata",
           {{"name", key.name},
            {"namespace", key.ns},
            {"labels", part({"spec", "template", "metadata", "labels"})}}},
          {"spec", part({"spec", "template", "spec"})}};
}

bool crashes(const json::value& deployment) {
  const auto* const culprit = culprit_in(deployment);
  return culprit != nullptr && crashes_by_image(*culprit);
}

asio::awaitable<k8s::result<void>> keep_crashing_pod(k8s::client* api, json::value deployment,
                                                     bool crashing) {
  auto key = k8s::key_of(deployment);
  key.name += "-crashing";
  const auto there = co_await api->get(pods_type(), key, true);
  if (!there && !there.error().is(k8s::errc::not_found)) co_return there.error();
  if (there.has_value() == crashing) co_return k8s::result<void>();
  if (!crashing) {
    const auto removed = co_await api->remove(pods_type(), key);
    if (!removed && !removed.error().is(k8s::errc::not_found)) co_return removed.error();
    co_return k8s::result<void>();
  }
  const auto* const culprit = culprit_in(deployment);
  if (culprit == nullptr) co_return k8s::result<void>();
  json::value status{{"phase", "Running"},
                     {"containerStatuses",
                      json::array{{{"name", k8s::find_string(*culprit, {"name"})},
                                   {"image", k8s::find_string(*culprit, {"image"})},
                                   {"imageID", ""},
                                   {"ready", false},
                                   {"restartCount", 1},
                                   {"state", {{"waiting", {{"reason", "CrashLoopBackOff"}}}}}}}}};
  const auto made = co_await api->create(pods_type(), pod_of(deployment, key));
  if (!made) co_return made.error();
  json::value change{{"status", std::move(status)}};
  const auto done = co_await api->patch(pods_type(), std::move(key), k8s::patch_type::merge,
                                        std::move(change), {.subresource = "status"});
  if (!done) co_return done.error();
  co_return k8s::result<void>();
}

asio::awaitable<k8s::result<void>> tell_deployment_status(k8s::client* api, core::clock* time,
                                                          json::value deployment, bool serves,
                                                          std::string reason) {
  auto status = k8s::devserver::deployment_status(deployment, serves, reason, time->wall());
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
