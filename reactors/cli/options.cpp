#include "rw/reactors/cli/options.hpp"

#include "rw/k8s/objects/qualified_name.hpp"
#include "rw/reactors/intake/identity.hpp"

#include <boost/asio/ip/address.hpp>

namespace rw::cli {
namespace {

std::string as_component(const std::string& text) {
  return is_path_segment(text)
             ? ""
             : "must be one element of a path: letters, digits, '-', '_' and '.', "
               "253 at most, and not '.' or '..': " +
                   text;
}

std::string as_ip_address(const std::string& text) {
  boost::system::error_code error;
  boost::asio::ip::make_address(text, error);
  return error ? "must be an IP address, not: " + text : "";
}

std::string as_endpoint(const std::string& text) {
  const auto parsed = core::parse_host_port(text);
  const bool usable = parsed && as_ip_address(parsed->host).empty();
  return usable
             ? ""
             : "must be an IP address and a port such as 127.0.0.1:8082 or [::]:8082, not: " + text;
}

std::string as_networks(const std::string& text) {
  try {
    const bool none = listener::network_list::parse(text).empty();
    return none ? "must name a network such as 10.0.0.0/8: no proxy would be trusted" : "";
  } catch (const std::invalid_argument& e) {
    return e.what();
  }
}

/// Formats a duration for `core::parse_duration`, in the largest unit that it is a multiple of.
std::string show(std::chrono::milliseconds value) {
  if (value.count() == 0) return "0";
  for (const auto& [unit, name] : {std::pair(3'600'000, "h"), {60'000, "m"}, {1000, "s"}}) {
    if (value.count() % unit == 0) return std::to_string(value.count() / unit) + name;
  }
  return std::to_string(value.count()) + "ms";
}

}  // namespace

CLI::Option* add_duration(CLI::App& app, const std::string& flag, std::chrono::milliseconds& value,
                          const std::string& help, std::chrono::milliseconds least) {
  const auto is_duration = [least](const std::string& text) -> std::string {
    const auto parsed = core::parse_duration(text);
    if (!parsed) return "not a duration such as 20s or 1h30m, of the units ms, s, m and h: " + text;
    return *parsed < least ? "too short: " + text : "";
  };
  return app
      .add_option_function<std::string>(
          flag, [&value](const std::string& text) { value = *core::parse_duration(text); }, help)
      ->check(validator(is_duration, ""))
      ->type_name("DURATION")
      ->default_str(show(value));
}

CLI::Validator ip_address() {
  return validator(as_ip_address, "");
}

CLI::Validator endpoint() {
  return validator(as_endpoint, "");
}

CLI::Option* add_listening_address(CLI::App& app, const std::string& flag, core::host_port& value,
                                   const std::string& help) {
  auto* option = app.add_option_function<std::string>(
      flag, [&value](const std::string& text) { value = *core::parse_host_port(text); }, help);
  if (!value.host.empty()) option->default_str(core::to_string(value));
  return option->check(endpoint())->type_name("IP:PORT");
}

void check_object_names(CLI::App& app, std::initializer_list<const char*> flags, bool or_none) {
  const auto error = [or_none](const std::string& text) {
    if (or_none && text.empty()) return std::string();
    return k8s::dns_subdomain_errors(text).empty() ? std::string()
                                                   : "is no name of an object: " + text;
  };
  for (const auto* flag : flags) app.get_option(flag)->check(validator(error, ""));
}

void check_required(CLI::App& app, std::initializer_list<const char*> flags, problems& wrong) {
  for (const auto* flag : flags) {
    const auto& option = *app.get_option(flag);
    if (!option.results().empty() && !option.results().front().empty()) continue;
    const auto variable = option.get_envname();
    wrong.add(variable.empty() ? std::string(flag) + " is required"
                               : variable + " is required (or the flag " + flag + ")");
  }
}

void describe_listening(CLI::App& app, listening_settings& to) {
  add(app, "--component", to.component, "NAME",
      "Name in the path of the events, which is the manager that Watchers name")
      ->check(validator(as_component, ""));
  add(app, "--tls-cert", to.tls_cert, "FILE",
      "PEM certificate with which this process terminates mutual TLS (needs --tls-key and "
      "--client-ca)");
  add(app, "--tls-key", to.tls_key, "FILE", "PEM key of --tls-cert");
  add(app, "--client-ca", to.client_ca, "FILE",
      "PEM bundle that client certificates, also forwarded ones, must chain to");
  add(app, "--xfcc-trusted-proxies", to.trusted_proxies, "CIDR,...",
      "Networks whose X-Forwarded-Client-Cert is trusted (without --tls-cert)")
      ->check(validator(as_networks, ""));
}

void check_listening(const listening_settings& of, problems& wrong) {
  if (of.tls_cert.empty() != of.tls_key.empty()) wrong.add("--tls-cert and --tls-key go together");
  if (!of.tls_cert.empty() && of.client_ca.empty()) {
    wrong.add("--tls-cert needs --client-ca: without it no client could be identified");
  }
}

void add_kubeconfig(CLI::App& app, kcp_access& to) {
  add(app, "--kubeconfig", to.kubeconfig, "FILE",
      "Kubeconfig for KCP; by default $KUBECONFIG, the pod's own, or ~/.kube/config");
  add(app, "--context", to.context, "", "Context of the kubeconfig; by default the current one");
}

void add_local_runtimes(CLI::App& app, k8s::local_servers& to) {
  app.add_flag_callback(
      "--allow-local-runtimes", [&to] { to = k8s::local_servers::allowed; },
      "Allow kubeconfigs of runtimes that lead to this machine or its link (loopback and "
      "link-local addresses), or to plain http: for tests on one machine");
}

void add_certificates_kind(CLI::App& app, bool& gardener) {
  const auto set = [&gardener](const std::string& kind) { gardener = kind == "gardener"; };
  app.add_option_function<std::string>("--certificates", set,
                                       "Kind of the Certificates: cert-manager, or gardener for "
                                       "those of Gardener's cert-management")
      ->check(CLI::IsMember({"cert-manager", "gardener"}))
      ->default_str("cert-manager");
}

}  // namespace rw::cli
