#pragma once

#include "rw/k8s/objects/failure.hpp"

#include <optional>
#include <string>
#include <utility>
#include <vector>

namespace rw::k8s {

/// A credential plugin of kubeconfig (client.authentication.k8s.io/v1): a program that prints an
/// ExecCredential.
struct exec_plugin {
  std::string api_version = {};
  std::string command = {};
  std::vector<std::string> arguments = {};
  std::vector<std::pair<std::string, std::string>> environment = {};
  std::string install_hint = {};
  bool provide_cluster_info = false;
  std::string interactive_mode = "IfAvailable";  ///< a service has no terminal
  std::string cluster_config = {};  ///< JSON, passed to the plugin with the cluster's information
};

/// Address and credentials of one API server: one context of a kubeconfig, or the service account
/// files of a pod. A value; its secrets are never logged.
struct config {
  std::string server = {};           ///< URL, "https://host:port/prefix"; http only on loopback
  std::string tls_server_name = {};  ///< name to verify in the certificate, if not the URL's host
  std::string proxy_url = {};        ///< "http://[user:password@]host:port"; empty: none
  bool insecure_skip_tls_verify = false;
  /// Refuse addresses of this machine or its link (`core::is_local`), of `server` and of
  /// `proxy_url`, whatever their names resolve to.
  bool refuse_local = false;

  // PEM text. Empty `ca` means the system's certificate authorities.
  std::string ca = {};
  std::string client_certificate = {};
  std::string client_key = {};
  // Files of the certificates, empty if the kubeconfig has them inline; read again when they
  // change.
  std::string ca_file = {};
  std::string client_certificate_file = {};
  std::string client_key_file = {};

  std::string token = {};
  std::string token_file = {};  ///< read again when it changes; takes precedence over `token`
  std::string username = {};    ///< basic authentication
  std::string password = {};
  std::optional<exec_plugin> exec = {};

  // User to impersonate (Kubernetes, "User impersonation").
  std::string impersonate_user = {};                                        ///< `as`
  std::string impersonate_uid = {};                                         ///< `as-uid`
  std::vector<std::string> impersonate_groups = {};                         ///< `as-groups`
  std::vector<std::pair<std::string, std::string>> impersonate_extra = {};  ///< `as-user-extra`
  std::string ns = "default";  ///< the context's namespace
  std::string source = {};     ///< origin, for messages: "context dev of /path/file"
};

/// Parses one context of a kubeconfig (v1) given as YAML or JSON text. Messages call the text
/// `name`; relative file names are resolved against `directory`. `context` empty:
/// `current-context`. Reads the files that it names, and checks all certificates.
///
/// Every fault is an error (`errc::not_configured`) that names file, context and field, such as
/// "kubeconfig /x/y: context 'dev': user 'u': client-certificate-data is not base64". Parts that
/// the context does not use are not checked. Not supported, and an error: `auth-provider` (removed
/// from Kubernetes), `interactiveMode: Always`, proxies other than http.
result<config> parse_kubeconfig(const std::string& text, const std::string& name,
                                const std::string& directory, const std::string& context = {});

/// What a kubeconfig from elsewhere may say of servers and proxies on this machine or its link.
enum class local_servers { refused, allowed };

/// Parses a kubeconfig from an untrusted author, such as one in a Secret: it must not run a program
/// here, read a file of this process, or lead to what only this machine reaches. So `exec`,
/// `tokenFile`, `certificate-authority`, `client-certificate` and `client-key` are errors, before
/// anything is run or opened; certificates and keys are inline (`...-data`). Unless `local` allows
/// them, plain http is an error, too, and `config::refuse_local` is set.
result<config> parse_foreign_kubeconfig(const std::string& text, const std::string& name,
                                        local_servers local = local_servers::refused,
                                        const std::string& context = {});

/// Loads a kubeconfig from files, merged by kubectl's rules: the first file that sets a named entry
/// or current-context wins, an entry as a whole; relative names are relative to the entry's file. A
/// missing file is skipped if another of several files exists.
result<config> load_kubeconfig(const std::vector<std::string>& files,
                               const std::string& context = {});

/// Loads a pod's configuration: /var/run/secrets/kubernetes.io/serviceaccount below `root`, and
/// KUBERNETES_SERVICE_HOST and _PORT.
result<config> in_cluster_config(const std::string& root = "");

/// Loads the configuration as a client program does: `kubeconfig` if set, else $KUBECONFIG (a list
/// separated by colons), else in-cluster if the environment says so and `context` is empty, else
/// ~/.kube/config.
result<config> load_config(const std::string& kubeconfig = {}, const std::string& context = {});

}  // namespace rw::k8s
