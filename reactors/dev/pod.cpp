#include "rw/reactors/dev/pod.hpp"

#include "rw/core/config.hpp"
#include "rw/k8s/objects/types.hpp"
#include "rw/reactors/cli/version.hpp"
#include "rw/reactors/shared/event_json.hpp"
#include "rw/reactors/watcher_installer/templates.hpp"

#include <boost/asio/ip/address.hpp>
#include <boost/json/array.hpp>
#include <boost/json/serialize.hpp>

#include <utility>

namespace rw::dev {

using namespace cli;
namespace {

namespace asio = boost::asio;
namespace json = boost::json;
using watcher_installer::defect;

// Many pods share one process, and each has little load.
constexpr std::size_t channel_capacity = 64;
constexpr std::size_t set_capacity = 4096;
constexpr std::size_t requests_at_once = 4;

/// Returns the environment of the container with KCP's address in it.
const json::array* environment_of(const json::value& deployment) {
  const auto* containers = k8s::find(deployment, {"spec", "template", "spec", "containers"});
  if (containers == nullptr || !containers->is_array()) return nullptr;
  for (const auto& container : containers->get_array()) {
    const auto* env = k8s::find(container, {"env"});
    const auto* all = env == nullptr ? nullptr : env->if_array();
    if (all == nullptr) continue;
    for (const auto& variable : *all) {
      if (k8s::find_string(variable, {"name"}) == "KCP_ADDR") return all;
    }
  }
  return nullptr;
}

/// Returns one variable's value; empty if it is not set.
std::string variable(const json::array& env, std::string_view name) {
  for (const auto& variable : env) {
    if (k8s::find_string(variable, {"name"}) == name)
      return std::string(k8s::find_string(variable, {"value"}));
  }
  return {};
}

/// Returns the entry of the mounted Secret for a path: the last part of its name.
std::string entry_of(const json::array& env, std::string_view name) {
  const auto path = variable(env, name);
  return path.substr(path.rfind('/') + 1);
}

void set_duration(const json::array& env, std::string_view name, std::chrono::milliseconds& to) {
  if (const auto parsed = core::parse_duration(variable(env, name))) to = *parsed;
}

webhook::serve_options basic_settings(const std::string& address) {
  webhook::serve_options out;
  out.address = {asio::ip::make_address(address), 0};
  out.version = version_text();
  out.shutdown_delay = {};  // the embedded API servers resolve a webhook's address at once
  out.channel_capacity = channel_capacity;
  out.set_capacity = set_capacity;
  out.requests_at_once = requests_at_once;
  return out;
}

}  // namespace

k8s::result<pod_spec> read_pod_spec(const json::value& deployment, const std::string& address) {
  const auto* env = environment_of(deployment);
  if (env == nullptr) return defect("no container of the Deployment has KCP_ADDR");
  pod_spec out{.settings = basic_settings(address)};
  auto& settings = out.settings;
  const auto kcp = core::parse_host_port(variable(*env, "KCP_ADDR"));
  if (!kcp) return defect("KCP_ADDR is not host:port: " + variable(*env, "KCP_ADDR"));
  settings.kcp = *kcp;
  if (const auto agreed = variable(*env, "KCP_CONTRACT"); agreed != "v2") {
    return defect("KCP_CONTRACT is not v2: " + agreed);
  }
  settings.files.ca = entry_of(*env, "CA_CERT");
  settings.files.certificate = entry_of(*env, "TLS_CERT");
  settings.files.key = entry_of(*env, "TLS_KEY");
  settings.managers_file = entry_of(*env, "MANAGERS_FILE");
  if (settings.files.ca.empty() || settings.files.certificate.empty() ||
      settings.files.key.empty()) {
    return defect("CA_CERT, TLS_CERT and TLS_KEY must be set");
  }
  settings.watches = variable(*env, "SOURCE") != "webhook";
  set_duration(*env, "SETTLE", settings.settle);
  set_duration(*env, "CONFIRM_WAIT", settings.confirm_wait);
  set_duration(*env, "HEARTBEAT_INTERVAL", settings.heartbeat_interval);
  set_duration(*env, "ADMISSION_WAIT", settings.admission_wait);
  set_duration(*env, "DRAIN_TIMEOUT", settings.drain_timeout);
  const auto* token =
      k8s::find(deployment, {"spec", "template", "spec", "automountServiceAccountToken"});
  out.has_token = token == nullptr || *token == true;
  out.pod_template = json::serialize(*k8s::find(deployment, {"spec", "template"}));
  return out;
}

k8s::result<mounted_files> mounted(const pod_spec& spec, const json::value& secret) {
  const auto entry = [&](const std::string& name) {
    return k8s::secret_data(secret, name).value_or(std::string());
  };
  const auto& names = spec.settings.files;
  tls::material_text text{
      .certificate = entry(names.certificate), .key = entry(names.key), .ca = entry(names.ca)};
  if (text.certificate.empty() || text.key.empty() || text.ca.empty()) {
    return defect("the Secret lacks one of " + names.certificate + ", " + names.key + " and " +
                  names.ca);
  }
  auto made = tls::material::from_text(
      text, {.certificate = names.certificate, .key = names.key, .ca = names.ca});
  if (!made) return defect("the Secret can't be used: " + made.error().message());
  mounted_files out{.material = std::move(*made), .managers = std::nullopt, .managers_file = {}};
  out.managers_file = entry(spec.settings.managers_file);
  auto managers = parse_managers(out.managers_file);
  if (managers) out.managers = std::move(*managers);
  return out;
}

pod::pod(asio::any_io_executor executor, pod_spec spec, mounted_files files,
         webhook::pipeline_environment environment, admission::event_observer on_event)
    : spec_(std::move(spec)),
      credentials_(std::make_shared<tls::credentials>(std::move(files.material))),
      pipeline_(std::move(executor), spec_.settings, credentials_,
                {environment.clock, environment.watchdog, environment.log, environment.metrics,
                 &managers_, spec_.has_token ? environment.api : nullptr},
                std::move(on_event)) {
  if (files.managers) managers_.replace(std::move(*files.managers), files.managers_file);
}

bool pod::remount(mounted_files files) {
  if (files.managers) managers_.replace(std::move(*files.managers), files.managers_file);
  const bool changed = files.material.digest() != credentials_->current()->digest();
  if (changed) {
    credentials_->replace(std::move(files.material));
    pipeline_.renew_connections();
  }
  pipeline_.reloaded();
  return changed;
}

}  // namespace rw::dev
