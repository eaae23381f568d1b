#include "rw/k8s/config/exec_plugin.hpp"

#include "rw/core/text.hpp"
#include "rw/k8s/objects/base64.hpp"
#include "rw/k8s/objects/status.hpp"
#include "rw/k8s/objects/types.hpp"

#include <boost/json/object.hpp>
#include <boost/json/serialize.hpp>

namespace rw::k8s {
namespace {

namespace json = boost::json;

json::object cluster_info(const config& how) {
  json::object out;
  out["server"] = how.server;
  if (!how.tls_server_name.empty()) out["tls-server-name"] = how.tls_server_name;
  if (how.insecure_skip_tls_verify) out["insecure-skip-tls-verify"] = true;
  if (!how.ca.empty()) out["certificate-authority-data"] = base64_encode(how.ca);
  if (!how.proxy_url.empty()) out["proxy-url"] = how.proxy_url;
  std::string ignored;
  if (auto more = parse_json(how.exec->cluster_config, ignored)) out["config"] = std::move(*more);
  return out;
}

std::string last_line(std::string_view text) {
  text = core::trimmed(text);
  const auto newline = text.rfind('\n');
  return quoted_line(newline == std::string_view::npos ? text : text.substr(newline + 1));
}

failure plugin_failure(const config& how, const process_outcome& outcome, const std::string& why) {
  failure out{.code = errc::not_configured};
  out.message = "credential plugin '" + how.exec->command + "' " + why;
  if (const auto line = last_line(outcome.errors); !line.empty()) out.message += ": " + line;
  const auto hint = quoted_line(how.exec->install_hint);
  if (!hint.empty()) out.message += " (" + hint + ")";
  return out;
}

/// Returns the fault of the status as the end of a sentence; empty if there is none.
std::string read_status(const json::value& status, exec_credential& into) {
  into.token = find_string(status, {"token"});
  into.certificate = find_string(status, {"clientCertificateData"});
  into.key = find_string(status, {"clientKeyData"});
  if (into.token.empty() && into.certificate.empty()) {
    return "gave neither a token nor a client certificate";
  }
  if (into.certificate.empty() != into.key.empty()) {
    return into.key.empty() ? "gave a client certificate without its key"
                            : "gave a client key without its certificate";
  }
  if (!core::is_field_value(into.token)) return "gave a token with characters that no token has";
  const auto* expires = find(status, {"expirationTimestamp"});
  if (expires == nullptr || expires->is_null()) return {};
  if (expires->is_string()) into.expires = parse_rfc3339(expires->get_string());
  return into.expires ? "" : "gave an expirationTimestamp that is no time";
}

std::string read_credential(const std::string& output, const std::string& version,
                            exec_credential& into) {
  std::string why;
  const auto parsed = parse_json(output, why);
  // The output may be half a credential: the message shows none of it.
  if (!parsed || !parsed->is_object()) return "wrote no JSON object";
  if (find_string(*parsed, {"kind"}) != "ExecCredential") return "wrote no ExecCredential";
  const auto found = find_string(*parsed, {"apiVersion"});
  if (found != version) return "answered in " + quoted_line(found) + ", not " + version;
  const auto* status = find(*parsed, {"status"});
  if (status == nullptr || !status->is_object()) return "wrote an ExecCredential without status";
  return read_status(*status, into);
}

}  // namespace

std::string exec_info(const config& how) {
  json::object spec;
  spec["interactive"] = false;
  if (how.exec->provide_cluster_info) spec["cluster"] = cluster_info(how);
  json::object out;
  out["apiVersion"] = how.exec->api_version;
  out["kind"] = "ExecCredential";
  out["spec"] = std::move(spec);
  return json::serialize(out);
}

process_request exec_request(const config& how) {
  process_request out;
  out.command = how.exec->command;
  out.arguments = how.exec->arguments;
  out.environment = how.exec->environment;
  out.environment.emplace_back("KUBERNETES_EXEC_INFO", exec_info(how));
  return out;
}

result<exec_credential> read_exec_outcome(const config& how, const process_outcome& outcome) {
  if (!outcome.error.empty()) return plugin_failure(how, outcome, outcome.error);
  if (outcome.status != 0) {
    return plugin_failure(how, outcome, "ended with status " + std::to_string(outcome.status));
  }
  exec_credential out;
  const auto why = read_credential(outcome.output, how.exec->api_version, out);
  if (!why.empty()) return plugin_failure(how, outcome, why);
  return out;
}

}  // namespace rw::k8s
