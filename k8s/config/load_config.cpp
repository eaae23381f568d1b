#include "rw/core/text.hpp"
#include "rw/k8s/config/config.hpp"
#include "rw/k8s/config/kubeconfig.hpp"
#include "rw/tls/files.hpp"

#include <cerrno>
#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <string_view>

namespace rw::k8s {
namespace {

constexpr std::size_t largest_kubeconfig = 64u << 20;  // one may hold thousands of clusters

std::string variable(const char* name) {
  // Read at start, by one thread.
  const auto* value = std::getenv(name);  // NOLINT(concurrency-mt-unsafe)
  return value != nullptr ? value : "";
}

std::string parent_of(const std::string& file) {
  std::error_code ignored;
  return std::filesystem::absolute(file, ignored).parent_path().string();
}

result<std::string> read(const std::string& file) {
  std::error_code error;
  const auto size = std::filesystem::file_size(file, error);
  if (error) return not_configured("kubeconfig " + file + ": " + error.message());
  if (size > largest_kubeconfig) return not_configured("kubeconfig " + file + ": is too large");
  std::ifstream in(file, std::ios::binary);
  std::string text(size, '\0');
  in.read(text.data(), static_cast<std::streamsize>(size));
  text.resize(static_cast<std::size_t>(std::max<std::streamsize>(in.gcount(), 0)));
  if (in.bad() || !in.is_open()) return not_configured("kubeconfig " + file + ": cannot be read");
  return text;
}

std::vector<std::string> split(std::string_view list) {
  std::vector<std::string> out;
  while (!list.empty()) {
    const auto colon = list.find(':');
    if (colon != 0) out.emplace_back(list.substr(0, colon));
    list.remove_prefix(colon == std::string_view::npos ? list.size() : colon + 1);
  }
  return out;
}

}  // namespace

result<config> load_kubeconfig(const std::vector<std::string>& files, const std::string& context) {
  kubeconfig_set set;
  std::string missing;
  std::size_t found = 0;
  for (const auto& file : files) {
    std::error_code ignored;
    if (!std::filesystem::exists(file, ignored)) {
      missing += (missing.empty() ? "" : ", ") + file;
      continue;
    }
    ++found;
    const auto text = read(file);
    if (!text) return text.error();
    if (auto added = set.add(*text, file, parent_of(file)); !added) return added.error();
  }
  if (found > 0) return set.find(context);
  if (missing.empty()) return not_configured("kubeconfig: no file is named");
  return not_configured("kubeconfig " + missing + ": no such file");
}

result<config> in_cluster_config(const std::string& root) {
  const auto folder = root + "/var/run/secrets/kubernetes.io/serviceaccount";
  const auto host = variable("KUBERNETES_SERVICE_HOST");
  const auto port = variable("KUBERNETES_SERVICE_PORT");
  if (host.empty() || port.empty()) {
    return not_configured(
        "in-cluster: KUBERNETES_SERVICE_HOST and KUBERNETES_SERVICE_PORT are not set, so this is "
        "no pod");
  }
  config out;
  out.source = "in-cluster";
  const bool v6 = host.find(':') != std::string::npos;
  out.server = "https://" + (v6 ? "[" + host + "]" : host) + ":" + port;
  out.token_file = folder + "/token";
  out.ca_file = folder + "/ca.crt";
  const auto token = tls::read_file(out.token_file);
  if (!token) return not_configured("in-cluster: token: " + token.error().message());
  auto ca = tls::read_file(out.ca_file);
  if (!ca) return not_configured("in-cluster: certificate authority: " + ca.error().message());
  out.ca = std::move(*ca);
  // Some service account volumes lack it.
  const auto ns = tls::read_file(folder + "/namespace");
  if (ns && !core::trimmed(*ns).empty()) out.ns = core::trimmed(*ns);
  return out;
}

result<config> load_config(const std::string& kubeconfig, const std::string& context) {
  if (!kubeconfig.empty()) return load_kubeconfig({kubeconfig}, context);
  if (const auto files = split(variable("KUBECONFIG")); !files.empty()) {
    return load_kubeconfig(files, context);
  }
  const bool in_pod =
      !variable("KUBERNETES_SERVICE_HOST").empty() && !variable("KUBERNETES_SERVICE_PORT").empty();
  if (in_pod && context.empty()) return in_cluster_config();
  const auto home = variable("HOME");
  if (home.empty()) {
    return not_configured(
        "no API server is configured: no kubeconfig is given, and KUBECONFIG and HOME are not set");
  }
  return load_kubeconfig({home + "/.kube/config"}, context);
}

}  // namespace rw::k8s
