#include "rw/reactors/kube_devserver/settings.hpp"

#include "rw/reactors/cli/options.hpp"

namespace rw::kube_devserver {
namespace {

using namespace cli;

constexpr auto control =
    "Below the path /devserver of a cluster, members of system:masters inject faults, compact the "
    "history, back up and restore the cluster, and close connections (k8s/devserver/README.md).";

void describe_behaviour(CLI::App& app, server_behaviour& to) {
  app.add_option_function<std::string>(
         "--refuse-unsupported",
         [&to](const std::string& text) { to.refuse_unsupported = text != "false"; },
         "Respond with 501 to objects that need what this server does not implement; by default it "
         "responds with a warning")
      ->expected(0, 1)
      ->type_name("")
      ->check(CLI::IsMember({"", "true", "false"}));
  add(app, "--kubernetes-version", to.version, "", "Version at /version; it changes nothing else");
}

/// Accepts a flag that changes nothing here.
void accept(CLI::App& app, const std::string& flag, const std::string& reason) {
  app.add_option_function<std::vector<std::string>>(
         flag, [](const std::vector<std::string>&) {}, "No effect: " + reason)
      ->type_name("");
}

}  // namespace

void describe_api_server(CLI::App& app, api_server_settings& to) {
  app.footer(control);
  add_listening_address(app, "--address", to.address,
                        "Address to listen on; port 0 picks a free one");
  add(app, "--dir", to.dir, "",
      "Directory that ca.crt and a kubeconfig for each cluster are written to");
  auto* const names = add(app, "--cluster", to.clusters, "NAME,...",
                          "Names of the clusters, each an API server of its own below "
                          "/clusters/NAME; the first one is served without that prefix, too");
  add(app, "--clusters", to.cluster_count, "N",
      "Number of clusters, named cluster-1, cluster-2, ..., in place of --cluster; 0: those of "
      "--cluster")
      ->check(CLI::Range(0u, 100'000u))
      ->excludes(names);
  add(app, "--host-name", to.host_names, "NAME,...", "Names in the server's certificate");
  add(app, "--history", to.history, "",
      "Number of changes of a cluster that a watch may resume from")
      ->check(CLI::Range(1u, 1u << 24));
  add(app, "--authorization", to.authorization, "rbac|none",
      "Authorization of users other than admin: rbac (by Roles and ClusterRoles) or none "
      "(everything is allowed)")
      ->check(CLI::IsMember({"rbac", "none"}));
  app.add_flag("--controllers,!--no-controllers", to.controllers,
               "Delete dependents, and the content of namespaces that are being deleted, as "
               "kube-controller-manager does; kube-apiserver alone does not");
  app.add_flag("--running-deployments", to.running_deployments,
               "Give Deployments the status of those whose Pods run; there are no Pods");
  app.add_flag("--http1", to.http1, "Offer HTTP/1.1 alone; HTTP/2 too by default");
  add_duration(app, "--storage-delay", to.storage_delay,
               "Time for which requests for objects of a new CustomResourceDefinition get 429, as "
               "from kube-apiserver while their storage is initializing; 0: none");
  describe_behaviour(app, to.behaviour);
}

void describe_kube_apiserver(CLI::App& app, kube_apiserver_settings& to) {
  app.footer(
      "An API server in memory for suites that use envtest: put the folder of this program, with "
      "etcd beside it, into KUBEBUILDER_ASSETS. Other flags of kube-apiserver are accepted and "
      "named in the log: they have no effect.\n\n" +
      std::string(control));
  app.allow_extras();
  add(app, "--bind-address", to.bind_address, "IP", "Address to listen on")->check(ip_address());
  add(app, "--secure-port", to.secure_port, "", "Port to listen on; 0 picks a free one");
  add(app, "--cert-dir", to.cert_dir, "DIR",
      "Folder of apiserver.crt and apiserver.key, which are made if they are not there");
  add(app, "--tls-cert-file", to.certificate_file, "FILE",
      "Certificate of the server, in place of apiserver.crt");
  add(app, "--tls-private-key-file", to.key_file, "FILE", "Private key of --tls-cert-file");
  add(app, "--client-ca-file", to.client_ca_file, "FILE",
      "File with the CA of client certificates");
  add(app, "--token-auth-file", to.token_file, "FILE",
      "File of tokens, each line token,user,uid,\"group,...\"");
  add(app, "--authorization-mode", to.authorization, "MODE,...",
      "Authorization modes: with RBAC, Roles and ClusterRoles count; otherwise every user may do "
      "everything");
  accept(app, "--etcd-servers", "objects are kept in memory");
  accept(app, "--allow-privileged", "privileged containers are always allowed");
  accept(app, "--disable-admission-plugins", "there is no admission but webhooks");
  accept(app, "--service-cluster-ip-range", "addresses of Services are from 10.0.0.0/16");
  add(app, "--service-account-issuer", to.issuers, "URL",
      "Audience of tokens of ServiceAccounts without --api-audiences");
  add(app, "--api-audiences", to.audiences, "NAME,...",
      "Audiences of tokens of ServiceAccounts that request none");
  for (const auto* flag : {"--service-account-key-file", "--service-account-signing-key-file"}) {
    accept(app, flag, "only this server verifies the tokens that it issues");
  }
  describe_behaviour(app, to.behaviour);
}

void note_unknown_flags(CLI::App& app, kube_apiserver_settings& to) {
  to.ineffective = app.remaining();
}

void describe_etcd(CLI::App& app, etcd_settings& to) {
  app.footer(
      "Responds to /health, and holds nothing: kube-apiserver of kube-devserver keeps its "
      "objects itself. Other flags of etcd are accepted and have no effect.");
  app.allow_extras();
  add(app, "--listen-client-urls", to.listen_url, "http://IP:PORT", "URL to listen on for /health");
  app.add_option_function<std::string>(
         "--unsafe-no-fsync", [](const std::string&) {}, "No effect: nothing is stored")
      ->expected(0, 1)
      ->type_name("");
}

}  // namespace rw::kube_devserver
