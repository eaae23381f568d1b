#include "rw/reactors/cli/leader_settings.hpp"

#include "rw/k8s/objects/label_selector.hpp"
#include "rw/k8s/objects/manifests.hpp"
#include "rw/k8s/objects/read_json.hpp"
#include "rw/k8s/objects/types.hpp"

#include <boost/json/array.hpp>
#include <boost/json/object.hpp>
#include <boost/json/serialize.hpp>

#include <utility>

namespace rw::cli {
namespace {

namespace asio = boost::asio;
namespace json = boost::json;

/// The texts among the settings, by their flags.
template <class Settings, class Visit>
void for_each_text(Settings& of, Visit visit) {
  visit("events-service", of.events_service);
  visit("field-manager", of.field_manager);
  visit("former-field-manager", of.former_field_manager);
  visit("gateway-name", of.gateway_name);
  visit("gateway-namespace", of.gateway_namespace);
  visit("istio-namespace", of.istio_namespace);
  visit("only", of.only);
}

/// The names of sources, by members.
template <class Sources, class Visit>
void for_each_source(Sources& of, Visit visit) {
  visit("config", of.config);
  visit("manifests", of.manifests);
  visit("credentials", of.pull_secret);
  visit("trust-bundle", of.trust_bundle);
}

json::array names_of(const std::vector<json::value>& objects) {
  json::array out;
  for (const auto& object : objects) {
    const auto key = k8s::key_of(object);
    json::object metadata{{"name", key.name}};
    if (!key.ns.empty()) metadata["namespace"] = key.ns;
    out.push_back({{"apiVersion", k8s::find_string(object, {"apiVersion"})},
                   {"kind", k8s::find_string(object, {"kind"})},
                   {"metadata", std::move(metadata)}});
  }
  return out;
}

bool is_usable(const json::value& object) {
  const auto type = k8s::well_known_type(k8s::find_string(object, {"apiVersion"}),
                                         k8s::find_string(object, {"kind"}));
  return type && !k8s::key_of(object).name.empty();
}

void read_milliseconds(const json::object& from, const char* name, std::chrono::milliseconds& to) {
  const auto* const value = from.if_contains(name);
  if (value != nullptr && value->is_int64()) to = std::chrono::milliseconds(value->get_int64());
}

void read_text(const json::object& from, const char* name, std::string& to) {
  const auto* const value = from.if_contains(name);
  if (value != nullptr && value->is_string()) to = value->get_string();
}

void read_flag(const json::object& from, const char* name, bool& to) {
  const auto* const value = from.if_contains(name);
  if (value != nullptr && value->is_bool()) to = value->get_bool();
}

}  // namespace

bool leader_settings::has_probes() const noexcept {
  return has_heartbeats() && probe_interval.count() > 0;
}

std::string render_leader_settings(const manager_settings& from,
                                   const watcher_installer::templates& installed) {
  json::object out{{"bootstrapper-mode", to_string(from.runtime_config.mode)},
                   {"gardener-certificates", from.gardener_certificates},
                   {"shadow", from.shadow},
                   {"rollout-none", from.runtime_config.rollout_none},
                   {"allow-local-runtimes", from.local_runtimes == k8s::local_servers::allowed},
                   {"state-namespace", from.runtime_config.direct.state_namespace},
                   {"heartbeat-timeout-ms", from.heartbeat_timeout.count()},
                   {"probe-interval-ms", from.probe_interval.count()}};
  for_each_text(from, [&](const char* name, const std::string& text) { out[name] = text; });
  auto& sources = out["sources"].emplace_object();
  for_each_source(from.runtime_config.direct.defaults,
                  [&](const char* name, const std::string& text) { sources[name] = text; });
  if (!from.skr_manifests.empty()) out["skr-objects"] = names_of(installed.objects());
  return json::serialize(out);
}

leader_settings parse_leader_settings(std::string_view text) {
  leader_settings out;
  const auto read = k8s::read_json(text);
  const auto* const from = read ? read->if_object() : nullptr;
  if (from == nullptr) {
    out.unknown_because = "its annotation " + std::string(settings_annotation) + " is no JSON";
    return out;
  }
  out.known = true;
  const auto& parsed = *read;
  const auto mode = parse_bootstrapper_mode(k8s::find_string(parsed, {"bootstrapper-mode"}));
  out.bootstrapper = mode.value_or(out.bootstrapper);
  read_flag(*from, "gardener-certificates", out.gardener_certificates);
  read_flag(*from, "shadow", out.shadow);
  read_flag(*from, "rollout-none", out.rollout_none);
  bool allow_local = false;
  read_flag(*from, "allow-local-runtimes", allow_local);
  if (allow_local) out.local_runtimes = k8s::local_servers::allowed;
  const auto state_namespace = k8s::find_string(parsed, {"state-namespace"});
  if (!state_namespace.empty()) out.state_namespace = state_namespace;
  read_milliseconds(*from, "heartbeat-timeout-ms", out.heartbeat_timeout);
  read_milliseconds(*from, "probe-interval-ms", out.probe_interval);
  for_each_text(out, [&](const char* name, std::string& to) { read_text(*from, name, to); });
  if (!k8s::label_selector::parse(out.only)) out.only.clear();
  const auto* const sources = k8s::find(parsed, {"sources"});
  if (sources != nullptr && sources->is_object()) {
    for_each_source(out.usual, [&](const char* name, std::string& to) {
      read_text(sources->get_object(), name, to);
    });
  }
  if (const auto* const objects = k8s::find_array(parsed, {"skr-objects"}); objects != nullptr) {
    for (const auto& object : *objects) {
      if (is_usable(object)) out.skr_objects.push_back(object);
    }
  }
  return out;
}

asio::awaitable<leader_settings> read_leader_settings(k8s::client* kcp, std::string ns,
                                                      std::string name) {
  leader_settings none;
  const auto lease = co_await kcp->get(k8s::leases_type(), {ns, name});
  if (!lease) {
    none.unknown_because = lease.error().message;
    co_return none;
  }
  const auto text = k8s::annotation(*lease, settings_annotation);
  if (text.empty()) {
    none.unknown_because = "Lease " + ns + "/" + name + " has no annotation " +
                           std::string(settings_annotation) + ": no manager of this version led";
    co_return none;
  }
  co_return parse_leader_settings(text);
}

}  // namespace rw::cli
