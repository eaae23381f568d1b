#include "rw/reactors/kube_devserver/api_server_app.hpp"
#include "rw/tls/issuer.hpp"

#include <boost/asio/ip/address.hpp>

#include <algorithm>
#include <filesystem>
#include <string>
#include <string_view>

// kube-apiserver as envtest starts it (controller-runtime, pkg/internal/testing/controlplane).

namespace rw::kube_devserver {

using namespace cli;
namespace {

constexpr auto cluster = "default";

/// Splits a line of a token file (Kubernetes, "Static token file"): token,user,uid,"group,group".
/// Throws `setting_error` if it has no user.
api_server_plan::token parse_token(std::string_view line) {
  std::vector<std::string> fields(1);
  bool quoted = false;
  for (const char c : line) {
    if (c == '"') {
      quoted = !quoted;
    } else if (c == ',' && !quoted) {
      fields.emplace_back();
    } else if (c != '\r') {
      fields.back() += c;
    }
  }
  if (fields.size() < 3 || fields[0].empty() || fields[1].empty()) {
    throw setting_error("--token-auth-file: each line must be token,user,uid,\"group,...\"");
  }
  api_server_plan::token made{fields[0], fields[1], {}};
  if (fields.size() < 4) return made;
  for (std::string_view rest = fields[3]; !rest.empty();) {
    const auto end = std::min(rest.find(','), rest.size());
    if (end > 0) made.groups.emplace_back(rest.substr(0, end));
    rest.remove_prefix(std::min(end + 1, rest.size()));
  }
  return made;
}

std::vector<api_server_plan::token> read_tokens(const std::string& file) {
  std::vector<api_server_plan::token> tokens;
  const auto text = need(tls::read_file(file), "--token-auth-file");
  for (std::string_view rest = text; !rest.empty();) {
    const auto end = std::min(rest.find('\n'), rest.size());
    if (end > 0) tokens.push_back(parse_token(rest.substr(0, end)));
    rest.remove_prefix(std::min(end + 1, rest.size()));
  }
  return tokens;
}

/// As kube-apiserver does where it finds none: a certificate with its CA behind it.
tls::key_pair make_pair(const kube_apiserver_settings& settings) {
  tls::certificate_request wanted;
  wanted.common_name = "kube-devserver CA";
  wanted.validity = std::chrono::hours(24 * 365);
  const auto ca = need(tls::issuer::create(wanted), "--cert-dir");
  wanted.common_name = "kube-devserver";
  wanted.dns_names = {"kubernetes.default.svc", "kubernetes.default", "kubernetes", "localhost"};
  wanted.ips = {"127.0.0.1", "10.0.0.1"};
  if (settings.bind_address != "0.0.0.0" && settings.bind_address != "127.0.0.1") {
    wanted.ips.push_back(settings.bind_address);
  }
  wanted.server_auth = true;
  auto pair = need(ca.issue(wanted), "--cert-dir");
  pair.certificate += ca.certificate_pem();
  const auto written = tls::write_files(settings.cert_dir, "apiserver", pair);
  if (written.has_error()) throw setting_error("--cert-dir: " + written.error().message());
  return pair;
}

tls::key_pair serving_pair(const kube_apiserver_settings& settings) {
  if (!settings.certificate_file.empty()) {
    return {need(tls::read_file(settings.certificate_file), "--tls-cert-file"),
            need(tls::read_file(settings.key_file), "--tls-private-key-file")};
  }
  const auto stem = settings.cert_dir + "/apiserver";
  std::error_code error;
  if (!std::filesystem::exists(stem + ".crt", error)) return make_pair(settings);
  // envtest writes keys that the group may read.
  return {need(tls::read_file(stem + ".crt"), "--cert-dir"),
          need(tls::read_file(stem + ".key"), "--cert-dir")};
}

}  // namespace

api_server_plan plan_of(const kube_apiserver_settings& settings) {
  api_server_plan plan{.options = {}, .clusters = {cluster}, .ineffective = settings.ineffective};
  auto& options = plan.options;
  options.name = "api-server";
  options.address =
      listening_address({settings.bind_address, settings.secure_port}, "--bind-address");
  auto pair = serving_pair(settings);
  options.certificate = std::move(pair.certificate);
  options.key = std::move(pair.key);
  if (!settings.client_ca_file.empty()) {
    options.client_ca = need(tls::read_file(settings.client_ca_file), "--client-ca-file");
  }
  if (!settings.token_file.empty()) plan.tokens = read_tokens(settings.token_file);
  if (!settings.issuers.empty()) options.audiences = settings.issuers;
  if (!settings.audiences.empty()) options.audiences = settings.audiences;
  options.authorization = std::ranges::count(settings.authorization, "RBAC") > 0;
  options.refuse_unsupported = settings.behaviour.refuse_unsupported;
  options.version = settings.behaviour.version;
  plan.controllers = false;
  options.root_cluster = cluster;
  options.test_control = true;
  return plan;
}

}  // namespace rw::kube_devserver
