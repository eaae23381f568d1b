#pragma once

#include "k8s/objects/failure.hpp"

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
  std::string interactive_mode = "IfAvailable";  ///< a service never has a terminal to offer
  std::string cluster_config = {};  ///< JSON, handed to the plugin with the cluster's information
};

/// How to reach one API server, and as whom: one context of a kubeconfig, or what a pod finds in
/// its file system. A value; secrets in it are never logged.
struct config {
  std::string server = {};           ///< URL, "https://host:port/prefix"; http only on loopback
  std::string tls_server_name = {};  ///< what the certificate is checked for, if not the URL's host
  std::string proxy_url = {};        ///< "http://[user:password@]host:port"; empty: none
  bool insecure_skip_tls_verify = false;

  // PEM text. Empty `ca` means the system's certificate authorities.
  std::string ca = {};
  std::string client_certificate = {};
  std::string client_key = {};
  // Files they came from, empty where they stood inline; read again when they change.
  std::string ca_file = {};
  std::string client_certificate_file = {};
  std::string client_key_file = {};

  std::string token = {};
  std::string token_file = {};  ///< read again when it changes; wins over `token`
  std::string username = {};    ///< basic authentication
  std::string password = {};
  std::optional<exec_plugin> exec = {};

  // Whom to act as (Kubernetes, "User impersonation").
  std::string impersonate_user = {};                                        ///< `as`
  std::string impersonate_uid = {};                                         ///< `as-uid`
  std::vector<std::string> impersonate_groups = {};                         ///< `as-groups`
  std::vector<std::pair<std::string, std::string>> impersonate_extra = {};  ///< `as-user-extra`
  std::string ns = "default";  ///< the context's namespace
  std::string source = {};     ///< where it comes from, for messages: "context dev of /path/file"
};

/// One context of a kubeconfig (v1) given as YAML or JSON text. `name` stands for the text in
/// messages; relative file names are resolved against `directory`. `context` empty:
/// `current-context`. Files that it names are read, and all certificates checked.
///
/// Everything that is wrong is an error (`errc::not_configured`) that names file, context and
/// field, such as "kubeconfig /x/y: context 'dev': user 'u': client-certificate-data is not
/// base64". What the context does not use is not looked at. Not supported, and an error:
/// `auth-provider` (Kubernetes has given it up), `interactiveMode: Always`, proxies other than
/// http.
result<config> parse_kubeconfig(const std::string& text, const std::string& name,
                                const std::string& directory, const std::string& context = {});

/// The same of a text that somebody else wrote, such as one out of a Secret: nothing in it may run
/// a program here or read a file of this process. So `exec`, `tokenFile`, `certificate-authority`,
/// `client-certificate` and `client-key` are errors, before anything is run or opened; certificates
/// and keys stand inline (`...-data`).
result<config> parse_foreign_kubeconfig(const std::string& text, const std::string& name,
                                        const std::string& context = {});

/// The same from files, merged by kubectl's rules: the first file that sets a named entry or
/// current-context wins, an entry as a whole; relative names are relative to the entry's file. A
/// file that is missing is skipped as long as one of several is there.
result<config> load_kubeconfig(const std::vector<std::string>& files,
                               const std::string& context = {});

/// What a pod finds: /var/run/secrets/kubernetes.io/serviceaccount below `root`, and
/// KUBERNETES_SERVICE_HOST and _PORT.
result<config> in_cluster_config(const std::string& root = "");

/// As a client program does it: `kubeconfig` where it is given, else $KUBECONFIG (a list separated
/// by colons), else in-cluster where the environment says so and no context is asked for, else
/// ~/.kube/config.
result<config> load_config(const std::string& kubeconfig = {}, const std::string& context = {});

}  // namespace rw::k8s
