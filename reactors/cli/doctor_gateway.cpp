#include "rw/reactors/cli/doctor_gateway.hpp"

#include "rw/k8s/objects/types.hpp"
#include "rw/reactors/shared/kyma_resources.hpp"
#include "rw/reactors/shared/status_reason.hpp"
#include "rw/reactors/shared/trust_bundle.hpp"
#include "rw/reactors/watcher_installer/access.hpp"

#include <boost/json/array.hpp>
#include <boost/json/serialize.hpp>

#include <algorithm>
#include <utility>

namespace rw::cli {

std::string pki_command(std::string_view files) {
  return "sed s/listener.kcp.example.com/HOST/ " + std::string(files) + " | kubectl apply -f -";
}

finding check_gateway(const boost::json::value& gateway, const std::string& name) {
  finding out{.state = finding_state::failed,
              .check = "gateway",
              .remedy = pki_command("deploy/pki/gateway.yaml")};
  const auto address = watcher_installer::address_of(
      k8s::object::from_text(boost::json::serialize(gateway)), name, std::nullopt);
  if (!address) {
    out.message = address.error().message;
    out.reason = to_string(status_reason::gateway_invalid);
    return out;
  }
  if (is_placeholder(address->host)) {
    out.message = "Gateway " + name + " has the placeholder " + address->host +
                  " of the manifests as its host";
    return out;
  }
  const auto& server = gateway.at("spec").at("servers").as_array().front();
  const auto secret = k8s::find_string(server, {"tls", "credentialName"});
  if (secret != gateway_secret_name || k8s::find_string(server, {"tls", "mode"}) != "MUTUAL") {
    out.state = finding_state::not_proven;
    out.message = "Gateway " + name + " does not ask for certificates with Secret " +
                  std::string(gateway_secret_name) + " (tls.mode MUTUAL)";
    return out;
  }
  return {.state = finding_state::proven,
          .check = "gateway",
          .message = "events go to " + address->host + ":" + std::to_string(address->port)};
}

std::optional<std::string> find_placeholder(const tls::certificate& in) {
  const auto found = std::ranges::find_if(in.dns_names(), is_placeholder);
  return found == in.dns_names().end() ? std::nullopt : std::optional<std::string>(*found);
}

}  // namespace rw::cli
