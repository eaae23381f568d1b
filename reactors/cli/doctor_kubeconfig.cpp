#include "rw/reactors/cli/doctor_kubeconfig.hpp"

#include "rw/k8s/objects/types.hpp"
#include "rw/reactors/shared/kyma_resources.hpp"

#include <boost/json/array.hpp>

#include <utility>

namespace rw::cli {

namespace asio = boost::asio;

asio::awaitable<std::string> name_kubeconfig_secret(k8s::client* kcp, std::string kyma) {
  k8s::selection own{.ns = std::string(kcp_namespace),
                     .labels = std::string(kyma_name_label) + "=" + kyma,
                     .metadata_only = true};
  const auto got = co_await kcp->list(secrets_type(), std::move(own));
  if (!got) co_return "";
  const auto& all = got->at("items").as_array();
  if (all.size() != 1) co_return "";
  co_return "Secret " + k8s::to_string(k8s::key_of(all.front()));
}

std::string unusable_kubeconfig(std::string_view secret, std::string_view kyma,
                                const k8s::failure& error) {
  // The pool names the Kyma; the Secret is what has to be repaired.
  const auto source = " of " + std::string(kyma) + ": ";  // a kubeconfig, or a context in it
  std::string_view message = error.message;
  if (const auto at = message.find(source); at != message.npos) {
    message.remove_prefix(at + source.size());
  }
  const auto where = secret.empty() ? "its kubeconfig" : "the kubeconfig in " + std::string(secret);
  return where + " is unusable: " + std::string(message);
}

std::string kubeconfig_remedy(std::string_view secret, const k8s::failure& error) {
  const auto renew = "have its owner, such as infrastructure-manager, write " +
                     std::string(secret.empty() ? "the Secret of its kubeconfig" : secret) +
                     " anew";
  if (!error.is(k8s::errc::address_refused)) return renew;
  return "if the runtime is on this machine: --allow-local-runtimes, also for the manager; "
         "otherwise " +
         renew;
}

}  // namespace rw::cli
