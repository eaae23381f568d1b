#include "rw/k8s/config/exec_plugin.hpp"

#include "rw/core/text.hpp"
#include "rw/k8s/objects/base64.hpp"
#include "rw/k8s/objects/read_json.hpp"
#include "rw/k8s/objects/status.hpp"
#include "rw/k8s/objects/types.hpp"

#include <boost/json/object.hpp>
#include <boost/json/serialize.hpp>

namespace rw::k8s {
namespace {

namespace json = boost::json;

json::object cluster_info(const config& configuration) {
  json::object out;
  out["server"] = configuration.server;
  if (!configuration.tls_server_name.empty())
    out["tls-server-name"] = configuration.tls_server_name;
  if (configuration.insecure_skip_tls_verify) out["insecure-skip-tls-verify"] = true;
  if (!configuration.ca.empty())
    out["certificate-authority-data"] = base64_encode(configuration.ca);
  if (!configuration.proxy_url.empty()) out["proxy-url"] = configuration.proxy_url;
  if (auto more = read_json(configuration.exec->cluster_config)) out["config"] = std::move(*more);
  return out;
}

std::string last_line(std::string_view text) {
  text = core::trimmed(text);
  const auto newline = text.rfind('\n');
  return quoted_line(newline == std::string_view::npos ? text : text.substr(newline + 1));
}

failure plugin_failure(const config& configuration, const process_result& result,
                       const std::string& reason) {
  failure out{.code = errc::not_configured};
  out.message = "credential plugin '" + configuration.exec->command + "' " + reason;
  if (const auto line = last_line(result.errors); !line.empty()) out.message += ": " + line;
  const auto hint = quoted_line(configuration.exec->install_hint);
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
  const auto parsed = read_json(output);
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

std::string exec_info(const config& configuration) {
  json::object spec;
  spec["interactive"] = false;
  if (configuration.exec->provide_cluster_info) spec["cluster"] = cluster_info(configuration);
  json::object out;
  out["apiVersion"] = configuration.exec->api_version;
  out["kind"] = "ExecCredential";
  out["spec"] = std::move(spec);
  return json::serialize(out);
}

process_request exec_request(const config& configuration) {
  process_request out;
  out.command = configuration.exec->command;
  out.arguments = configuration.exec->arguments;
  out.environment = configuration.exec->environment;
  out.environment.emplace_back("KUBERNETES_EXEC_INFO", exec_info(configuration));
  return out;
}

result<exec_credential> read_exec_result(const config& configuration, const process_result& ended) {
  if (!ended.error.empty()) return plugin_failure(configuration, ended, ended.error);
  if (ended.status != 0) {
    return plugin_failure(configuration, ended,
                          "ended with status " + std::to_string(ended.status));
  }
  exec_credential out;
  const auto reason = read_credential(ended.output, configuration.exec->api_version, out);
  if (!reason.empty()) return plugin_failure(configuration, ended, reason);
  return out;
}

}  // namespace rw::k8s
