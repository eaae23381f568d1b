#include "rw/reactors/runtime_controller/runtime_access.hpp"

#include "rw/k8s/objects/types.hpp"
#include "rw/reactors/shared/kyma_resources.hpp"

#include <boost/json/array.hpp>
#include <boost/json/serialize.hpp>

#include <algorithm>
#include <utility>

namespace rw {
namespace {

k8s::failure defect(std::string text) {
  return {.code = k8s::errc::not_configured, .message = std::move(text)};
}

}  // namespace

k8s::result<std::string> kubeconfig_of(std::string_view kyma,
                                       const std::vector<k8s::object>& secrets) {
  const auto labelled = "with the label " + std::string(kyma_name_label) + "=" + std::string(kyma);
  if (secrets.empty()) return defect("no Secret " + labelled + " gives access to the runtime");
  if (secrets.size() > 1) {
    std::vector<std::string_view> names;
    for (const auto& secret : secrets) names.push_back(secret.name());
    std::ranges::sort(names);
    std::string all;
    for (const auto name : names) all += (all.empty() ? "" : ", ") + std::string(name);
    return defect("there is more than one Secret " + labelled + ": " + all);
  }
  return kubeconfig_in(secrets.front());
}

k8s::result<std::string> kubeconfig_in(const k8s::object& secret) {
  auto config = k8s::secret_data(secret.parse(), "config");
  if (config && !config->empty()) return std::move(*config);
  return defect("Secret " + to_string(secret.key()) + " has no kubeconfig under the key config");
}

boost::asio::awaitable<k8s::result<std::string>> read_kubeconfig(k8s::client& kcp,
                                                                 std::string kyma) {
  k8s::selection own{.ns = std::string(kcp_namespace),
                     .labels = std::string(kyma_name_label) + "=" + kyma};
  const auto secrets = co_await kcp.list(secrets_type(), std::move(own));
  if (!secrets) co_return secrets.error();
  std::vector<k8s::object> all;
  for (const auto& entry : secrets->at("items").as_array()) {
    all.push_back(k8s::object::from_text(boost::json::serialize(entry)));
  }
  auto found = kubeconfig_of(kyma, all);
  if (!all.empty()) co_return found;
  auto missing = found.error();
  missing.code = k8s::errc::not_found;
  co_return missing;
}

}  // namespace rw
