#pragma once

#include "rw/reactors/shared/managers_file.hpp"
#include "rw/reactors/shared/watcher.hpp"
#include "rw/reactors/watcher_installer/templates.hpp"

#include <boost/json/value.hpp>

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

namespace rw::watcher_installer {

/// What does not differ from runtime to runtime, but for the watched resources.
struct manifest_settings {
  std::string image = "runtime-watcher:latest";
  std::vector<std::string> pull_secrets = {};  ///< names, in kyma-system of the runtime
  std::string cpu_request = "0.01";
  std::string memory_request = "20Mi";
  std::string cpu_limit = "0.1";
  std::string memory_limit = "200Mi";
  /// Who may call the webhook: pods of kube-system with these labels ("app=vpn-shoot,..."), or
  /// "any". Empty: as the manifests say.
  std::string webhook_sources = {};
  /// Which runtimes get it, for people; another text is another content, so that a roll-out to some
  /// runtimes is not taken for one to all.
  std::string scope = {};
  bool probed = false;  ///< with the webhook that probes call
};

/// What is wrong with `manifest_settings::webhook_sources`; empty if nothing is.
std::string webhook_sources_error(const std::string& text);

/// Where the watcher sends its events.
struct kcp_address {
  std::string host = {};
  std::uint16_t port = 443;

  friend bool operator==(const kcp_address&, const kcp_address&) = default;
};

/// What differs from runtime to runtime. Texts are plain, not base64.
struct inputs {
  kcp_address address = {};
  std::string ca_bundle = {};
  std::string bundle_since = {};  ///< RFC 3339; when the runtime got that bundle
  std::string certificate = {};
  std::string key = {};
  std::string certificate_since = {};
  std::string restart_trigger = {};  ///< empty: as the manifests have it
  std::vector<watcher> watchers = {};
  /// Webhooks that stay as they are, but for the bundle.
  std::vector<boost::json::value> kept_webhooks = {};
  known_managers managers = {};  ///< what the managers' file says
  std::string managers_since = {};
  known_managers observed = {};  ///< the watcher may watch what these name
};

/// Annotations that store an installation's state for the next reconcile, of any process.
inline constexpr std::string_view bundle_since_annotation =
    "operator.kyma-project.io/ca-bundle-since";  ///< of the webhook configuration
inline constexpr std::string_view certificate_since_annotation =
    "operator.kyma-project.io/certificate-since";  ///< of the Secret
inline constexpr std::string_view managers_since_annotation =
    "operator.kyma-project.io/managers-since";  ///< of the Secret
/// Of the pods: the resourceVersion of the Secret that they are to mount.
inline constexpr std::string_view secret_version_annotation =
    "operator.kyma-project.io/secret-version";
/// The managers' file (managers_file.hpp), in the Secret.
inline constexpr std::string_view managers_entry = "managers.json";
/// A digest of what was applied, so that fields which are no longer asked for are noticed as well.
inline constexpr std::string_view applied_annotation = "operator.kyma-project.io/applied-digest";

/// On the Deployment: the digest of its content, which is what the manifests and the settings say
/// for all runtimes alike.
inline constexpr std::string_view content_annotation = "operator.kyma-project.io/content-digest";

/// The Deployment with its content, and the annotation, but without the runtime's own facts.
boost::json::value shared_deployment(const templates& from, const manifest_settings& with);

/// The digest of a Deployment's content by its annotation; empty: it has none.
std::string content_of(const boost::json::value& deployment);

/// Sets a Deployment's facts: the address that events go to, and what restarts its pods.
void fill_facts(boost::json::value& deployment, const inputs& runtime);

/// The Deployment of one runtime with a content that is shared (shared_deployment).
boost::json::value render_deployment(const boost::json::value& shared, const inputs& runtime);

/// Adds the rights of the watcher that are there, for Watchers that are not known. Whoever may
/// write a ClusterRole has given them.
void keep_rights(boost::json::value& role, const boost::json::value& present);

/// True if both give the same webhook.
bool same_webhook(const watcher& a, const watcher& b);

/// The objects of one runtime, in the order of application. A pure function: the same inputs give
/// the same objects, whatever the order of the Watchers.
std::vector<boost::json::value> render(const templates& from, const manifest_settings& with,
                                       const inputs& runtime);

}  // namespace rw::watcher_installer
