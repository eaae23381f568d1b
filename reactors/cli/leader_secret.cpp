#include "rw/reactors/cli/leader_secret.hpp"

#include "rw/core/config.hpp"
#include "rw/k8s/objects/base64.hpp"
#include "rw/k8s/objects/qualified_name.hpp"
#include "rw/k8s/objects/types.hpp"
#include "rw/reactors/cli/shell_word.hpp"

#include <algorithm>
#include <utility>

namespace rw::cli {

namespace json = boost::json;

json::object write_leader_secret(const leader_secret& from) {
  json::object out;
  for (const auto& [name, value] : {std::pair<const char*, std::string>{"holder", from.holder},
                                    {"port", std::to_string(from.port)},
                                    {"token", from.token}}) {
    out[name] = k8s::base64_encode(value);
  }
  return out;
}

std::optional<leader_secret> read_leader_secret(const json::value& secret,
                                                std::string_view holder) {
  const auto text = [&](std::string_view entry) {
    return k8s::secret_data(secret, entry).value_or(std::string());
  };
  const auto port = core::parse_port(text("port"));
  leader_secret out{text("holder"), port.value_or(0), text("token")};
  if (out.holder != holder || out.port == 0 || out.token.empty()) return {};
  return out;
}

std::string pod_of(std::string_view holder) {
  return std::string(holder.substr(0, holder.rfind('_')));
}

std::string port_forward_command(std::string_view ns, std::string_view pod, std::uint16_t port) {
  return "kubectl -n " + shell_word(ns) + " port-forward pod/" + shell_word(pod) + " " +
         std::to_string(port);
}

std::string text_of_leader(const k8s::observed_leader& leader, std::string_view lease_ns,
                           std::uint16_t admin_port, std::chrono::system_clock::time_point now) {
  std::string out = "this replica does not lead";
  if (leader.holder.empty()) return out + ", and no other does";
  const auto pod = pod_of(leader.holder);
  if (leader.leads) {
    out += "; pod " + pod + " does";
    if (leader.renewed) {
      const auto age = std::chrono::floor<std::chrono::seconds>(now - *leader.renewed).count();
      out += ", as its Lease says, renewed " + std::to_string(std::max<std::int64_t>(age, 0)) +
             " s ago";
    }
    return out + ": " + port_forward_command(lease_ns, pod, admin_port);
  }
  out += ", ";
  out += leader.error.empty()
             ? "and no other does: the Lease of pod " + pod + " has expired"
             : "and cannot read the Lease (" + leader.error + "): pod " + pod + " held it";
  if (leader.renewed) out += ", last renewed at " + k8s::format_time(*leader.renewed);
  return out;
}

std::optional<std::string> proxy_path(std::string_view ns, const leader_secret& leader) {
  const auto pod = pod_of(leader.holder);
  if (!k8s::dns_subdomain_errors(pod).empty()) return std::nullopt;
  return "/api/v1/namespaces/" + std::string(ns) + "/pods/" + pod + ":" +
         std::to_string(leader.port) + "/proxy";
}

}  // namespace rw::cli
