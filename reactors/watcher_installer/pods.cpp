#include "rw/reactors/watcher_installer/pods.hpp"

#include "rw/core/gather.hpp"
#include "rw/k8s/objects/manifests.hpp"
#include "rw/k8s/objects/types.hpp"
#include "rw/reactors/runtime_controller/workload.hpp"
#include "rw/reactors/shared/access_right.hpp"
#include "rw/reactors/shared/kyma_resources.hpp"
#include "rw/reactors/watcher_installer/render.hpp"

#include <boost/json/object.hpp>

#include <algorithm>
#include <utility>

namespace rw::watcher_installer {
namespace {

namespace asio = boost::asio;
namespace json = boost::json;

constexpr std::size_t max_updated_pods = 8;

const k8s::resource_type& pods_type() {
  static const k8s::resource_type type = *k8s::well_known_type("v1", "Pod");
  return type;
}

}  // namespace

asio::awaitable<std::vector<std::string>> list_pods(k8s::client* api,
                                                    const json::value* deployment) {
  auto all = deployment == nullptr ? std::nullopt : pods_of(*deployment);
  if (!all) co_return std::vector<std::string>();
  const auto pods = co_await api->list(pods_type(), std::move(*all));
  co_return pods ? names_of_pods(*pods) : std::vector<std::string>();
}

asio::awaitable<bool> request_update(k8s::client* api, const json::value* deployment,
                                     std::string version, std::string field_manager) {
  access_right right{.verb = "patch", .resource = "pods", .ns = std::string(skr_namespace)};
  const auto may = co_await has_right(*api, std::move(right));
  if (!may || !*may) co_return false;
  auto names = co_await list_pods(api, deployment);
  names.resize(std::min(names.size(), max_updated_pods));
  std::vector<asio::awaitable<k8s::result<json::value>>> work;
  for (auto& name : names) {
    json::object annotations{{secret_version_annotation, version}};
    json::object metadata{{"annotations", std::move(annotations)}};
    json::value change = json::object{{"metadata", std::move(metadata)}};
    k8s::object_key key{std::string(skr_namespace), std::move(name)};
    work.push_back(api->patch(pods_type(), std::move(key), k8s::patch_type::merge,
                              std::move(change), {.field_manager = field_manager}));
  }
  co_await core::gather(std::move(work));
  co_return true;
}

}  // namespace rw::watcher_installer
