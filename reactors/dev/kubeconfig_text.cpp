#include "rw/reactors/dev/kubeconfig_text.hpp"

#include "rw/k8s/objects/base64.hpp"
#include "rw/tls/files.hpp"

#include <boost/json/array.hpp>
#include <boost/json/object.hpp>
#include <boost/json/serialize.hpp>

#include <utility>

namespace rw::dev {
namespace {

namespace json = boost::json;

void set(json::object& to, std::string_view name, const std::string& value) {
  if (!value.empty()) to[name] = value;
}

void set_encoded(json::object& to, std::string_view name, const std::string& value) {
  if (!value.empty()) to[name] = k8s::base64_encode(value);
}

json::object cluster_of(const k8s::config& from) {
  json::object out{{"server", from.server}};
  set(out, "tls-server-name", from.tls_server_name);
  set(out, "proxy-url", from.proxy_url);
  set_encoded(out, "certificate-authority-data", from.ca);
  if (from.insecure_skip_tls_verify) out["insecure-skip-tls-verify"] = true;
  return out;
}

k8s::result<json::object> user_of(const k8s::config& from) {
  json::object out;
  auto token = from.token;
  if (!from.token_file.empty()) {
    auto read = tls::read_file(from.token_file);
    if (!read) {
      return k8s::failure{.code = k8s::errc::not_configured, .message = read.error().message()};
    }
    token = std::move(*read);
    token.erase(token.find_last_not_of(" \r\n\t") + 1);
  }
  set(out, "token", token);
  set(out, "username", from.username);
  set(out, "password", from.password);
  set_encoded(out, "client-certificate-data", from.client_certificate);
  set_encoded(out, "client-key-data", from.client_key);
  return out;
}

}  // namespace

k8s::result<std::string> kubeconfig_text(const k8s::config& of, const std::string& name) {
  if (of.exec) {
    return k8s::failure{.code = k8s::errc::not_configured,
                        .message = of.source +
                                   ": credentials that a program gives can't be handed on; use a "
                                   "token or a client certificate"};
  }
  auto user = user_of(of);
  if (!user) return user.error();
  const json::object config{
      {"apiVersion", "v1"},
      {"kind", "Config"},
      {"clusters", json::array{{{"name", name}, {"cluster", cluster_of(of)}}}},
      {"users", json::array{{{"name", name}, {"user", std::move(*user)}}}},
      {"contexts", json::array{{{"name", name}, {"context", {{"cluster", name}, {"user", name}}}}}},
      {"current-context", name}};
  return json::serialize(config) + "\n";
}

}  // namespace rw::dev
