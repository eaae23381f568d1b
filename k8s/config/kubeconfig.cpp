#include "rw/k8s/config/kubeconfig.hpp"

#include "rw/core/config.hpp"
#include "rw/core/text.hpp"
#include "rw/k8s/config/yaml_fields.hpp"
#include "rw/k8s/objects/base64.hpp"
#include "rw/k8s/objects/url.hpp"
#include "rw/tls/files.hpp"
#include "rw/tls/material.hpp"

#include <algorithm>
#include <deque>
#include <filesystem>
#include <map>
#include <utility>

namespace rw::k8s {
namespace {

struct entry {
  const yaml_node* node = nullptr;
  std::string file;
  std::string directory;
};
using entry_map = std::map<std::string, entry>;

/// A name in the file, whose author chose it, for a message.
std::string in_quotes(const std::string& name) {
  constexpr std::size_t longest = 253;
  return "'" + core::printable(core::middle_cut(name, longest)) + "'";
}

std::string at(const std::string& file) {
  return "kubeconfig " + file;
}

std::string resolved(const std::string& name, const std::string& directory) {
  if (name.empty()) return name;
  return (std::filesystem::path(directory) / name).lexically_normal().string();
}

/// Reads PEM that is inline (base64, which takes precedence) or in a file.
void read_pem(yaml_fields& from, const std::string& field, const std::string& directory,
              std::string& text, std::string& file) {
  const auto inline_field = field + "-data";
  const auto data = from.text(inline_field.c_str());
  if (!data.empty()) {
    auto decoded = base64_decode(data);
    if (!decoded) return from.wrong(inline_field + " is not base64");
    text = std::move(*decoded);
    return;
  }
  file = resolved(from.text(field.c_str()), directory);
  if (file.empty()) return;
  auto read = tls::read_file(file);
  if (!read) return from.wrong(field + ": " + read.error().message());
  if (read->empty()) return from.wrong(field + ": " + file + ": file is empty");
  text = std::move(*read);
}

/// Returns the name of PEM in messages: the field, and the file if it is in one.
std::string name_of(const std::string& field, const std::string& file) {
  return file.empty() ? field + "-data" : field + " (" + file + ")";
}

void read_cluster(yaml_fields& from, const std::string& directory, config& into) {
  into.server = from.text("server");
  if (into.server.empty()) return from.wrong("server is missing");
  if (const auto url = parse_server_url(into.server); !url) {
    return from.wrong("server " + url.error().message);
  }
  into.tls_server_name = core::normal_host(from.text("tls-server-name"));
  into.insecure_skip_tls_verify = from.flag("insecure-skip-tls-verify");
  into.proxy_url = from.text("proxy-url");
  if (!into.proxy_url.empty()) {
    if (const auto url = parse_proxy_url(into.proxy_url); !url) {
      return from.wrong("proxy-url " + url.error().message);
    }
  }
  read_pem(from, "certificate-authority", directory, into.ca, into.ca_file);
  if (into.insecure_skip_tls_verify && !into.ca.empty()) {
    return from.wrong("insecure-skip-tls-verify and a certificate authority exclude each other");
  }
  if (into.ca.empty()) return;
  const auto checked = tls::material::from_text(
      {.ca = into.ca}, {.ca = name_of("certificate-authority", into.ca_file)});
  if (!checked) from.wrong(checked.error().message());
}

std::pair<std::string, std::string> variable_of(yaml_fields& from, yaml_fields& item) {
  auto name = item.text("name");
  auto value = item.text("value");
  if (name.empty()) item.wrong("name is missing");
  if (name.find('=') != std::string::npos) item.wrong("name has a '=' in it");
  from.take(item);
  return {std::move(name), std::move(value)};
}

/// The cluster's configuration for the plugin (client.authentication.k8s.io/v1, "Cluster").
std::string plugin_configuration(yaml_fields& cluster) {
  for (auto& extension : cluster.list("extensions")) {
    if (extension.text("name") != "client.authentication.k8s.io/exec") continue;
    auto text = extension.json("extension");
    cluster.take(extension);
    return text;
  }
  return {};
}

exec_plugin read_exec(yaml_fields& from, const std::string& directory) {
  exec_plugin out;
  out.api_version = from.text("apiVersion");
  if (out.api_version != "client.authentication.k8s.io/v1" &&
      out.api_version != "client.authentication.k8s.io/v1beta1") {
    from.wrong("apiVersion " + in_quotes(out.api_version) +
               " is not client.authentication.k8s.io/v1 or v1beta1");
  }
  out.command = from.text("command");
  if (out.command.empty()) from.wrong("command is missing");
  // PATH is searched for a bare name.
  if (out.command.find('/') != std::string::npos) out.command = resolved(out.command, directory);
  out.arguments = from.texts("args");
  for (auto& item : from.list("env")) out.environment.push_back(variable_of(from, item));
  out.install_hint = from.text("installHint");
  out.provide_cluster_info = from.flag("provideClusterInfo");
  const auto mode = from.text("interactiveMode");
  if (mode == "Always") {
    from.wrong("interactiveMode is Always, but a service has no terminal");
  } else if (!mode.empty() && mode != "Never" && mode != "IfAvailable") {
    from.wrong("interactiveMode " + in_quotes(mode) + " is not Never, IfAvailable or Always");
  }
  if (!mode.empty()) out.interactive_mode = mode;
  return out;
}

void read_impersonation(yaml_fields& from, config& into) {
  into.impersonate_user = from.text("as");
  into.impersonate_uid = from.text("as-uid");
  into.impersonate_groups = from.texts("as-groups");
  auto extra = from.map("as-user-extra");
  for (const auto& name : extra.names()) {
    for (auto& value : extra.texts(name.c_str())) {
      into.impersonate_extra.emplace_back(name, std::move(value));
    }
  }
  from.take(extra);
  const bool more = !into.impersonate_uid.empty() || !into.impersonate_groups.empty() ||
                    !into.impersonate_extra.empty();
  if (more && into.impersonate_user.empty()) {
    from.wrong("as-uid, as-groups and as-user-extra need a user in as");
  }
}

void read_token(yaml_fields& from, const std::string& directory, config& into) {
  into.token = from.text("token");
  if (!core::is_field_value(into.token)) from.wrong("token has characters that no token has");
  into.token_file = resolved(from.text("tokenFile"), directory);
  if (into.token_file.empty()) return;
  const auto read = tls::read_file(into.token_file);
  if (!read) return from.wrong("tokenFile: " + read.error().message());
  const auto token = core::trimmed(*read);
  if (token.empty()) return from.wrong("tokenFile: " + into.token_file + ": file is empty");
  if (!core::is_field_value(token)) {
    from.wrong("tokenFile: " + into.token_file + ": the token has characters that no token has");
  }
}

void check_methods(yaml_fields& from, const config& read) {
  if (!read.username.empty() && (!read.token.empty() || !read.token_file.empty())) {
    from.wrong("username and token exclude each other");
  }
  if (read.username.empty() && !read.password.empty()) {
    from.wrong("password without a username");
  }
  if (read.username.find(':') != std::string::npos) from.wrong("username has a ':' in it");
  if (from.has("auth-provider")) {
    from.wrong("auth-provider is no longer supported, use exec");
  }
}

void read_user(yaml_fields& from, const std::string& directory, config& into) {
  read_pem(from, "client-certificate", directory, into.client_certificate,
           into.client_certificate_file);
  read_pem(from, "client-key", directory, into.client_key, into.client_key_file);
  read_token(from, directory, into);
  into.username = from.text("username");
  into.password = from.text("password");
  check_methods(from, into);
  read_impersonation(from, into);
  if (from.has("exec")) {
    auto exec = from.map("exec");
    into.exec = read_exec(exec, directory);
    from.take(exec);
  }
  if (from.failed() || (into.client_certificate.empty() && into.client_key.empty())) return;
  const auto checked = tls::material::from_text(
      {.certificate = into.client_certificate, .key = into.client_key},
      {.certificate = name_of("client-certificate", into.client_certificate_file),
       .key = name_of("client-key", into.client_key_file)});
  if (!checked) from.wrong(checked.error().message());
}

/// Rejects fields that would run a program or read a file of this process, even if they are unused.
void check_harmless(yaml_fields& from) {
  for (const auto* field :
       {"certificate-authority", "client-certificate", "client-key", "tokenFile"}) {
    if (from.has(field)) {
      from.wrong(std::string(field) +
                 " names a file of this process, which a kubeconfig from elsewhere may not");
    }
  }
  if (from.has("exec")) {
    from.wrong("exec names a program to run here, which a kubeconfig from elsewhere may not");
  }
}

/// Adds the entries of one list that earlier files do not have. `content` is the field next to
/// `name`.
void add_entries(yaml_fields& from, const char* list, const char* content, const entry& origin,
                 entry_map& into) {
  std::map<std::string, entry> found;
  for (auto& item : from.list(list)) {
    const auto name = item.text("name");
    if (name.empty()) item.wrong("name is missing");
    const auto inner = item.map(content);
    from.take(item);
    const bool fresh = found.try_emplace(name, inner.node(), origin.file, origin.directory).second;
    if (!fresh) from.wrong(std::string(list) + " has two entries of the name " + in_quotes(name));
  }
  into.merge(found);
}

}  // namespace

struct kubeconfig_set::entries {
  std::deque<yaml_stream> texts;
  entry_map clusters;
  entry_map users;
  entry_map contexts;
  std::string current;
  std::string files;  ///< all names, for messages
};

kubeconfig_set::kubeconfig_set(kubeconfig_trust trust)
    : entries_(std::make_unique<entries>()), trust_(trust) {}
kubeconfig_set::~kubeconfig_set() = default;

result<void> kubeconfig_set::add(const std::string& text, const std::string& name,
                                 const std::string& directory) {
  const yaml_node* root = nullptr;
  try {
    // A node takes some hundred bytes.
    const bool is_foreign = trust_ == kubeconfig_trust::foreign;
    const auto most =
        is_foreign ? std::max<std::size_t>(10'000, text.size() / 10) : text.size() + 1;
    const auto& documents = entries_->texts.emplace_back(text, most).documents();
    if (!documents.empty()) root = documents.front();
  } catch (const yaml_error& e) {
    return not_configured(at(name) + ": line " + std::to_string(e.line) + " " + e.what());
  }
  yaml_fields fields(root, at(name));
  const auto version = fields.text("apiVersion");
  if (!version.empty() && version != "v1") {
    fields.wrong("apiVersion " + in_quotes(version) + " is not v1");
  }
  const auto kind = fields.text("kind");
  if (!kind.empty() && kind != "Config") fields.wrong("kind " + in_quotes(kind) + " is not Config");
  const entry origin{{}, name, directory};
  add_entries(fields, "clusters", "cluster", origin, entries_->clusters);
  add_entries(fields, "users", "user", origin, entries_->users);
  add_entries(fields, "contexts", "context", origin, entries_->contexts);
  const auto current = fields.text("current-context");
  if (fields.failed()) return *fields.failed();
  if (entries_->current.empty()) entries_->current = current;
  entries_->files += (entries_->files.empty() ? "" : ", ") + name;
  return {};
}

result<config> kubeconfig_set::find(const std::string& context) const {
  const auto& all = *entries_;
  const auto& name = context.empty() ? all.current : context;
  if (name.empty()) {
    return not_configured(at(all.files) +
                          ": no context is requested, and current-context is not set");
  }
  const auto found = all.contexts.find(name);
  if (found == all.contexts.end()) {
    return not_configured(at(all.files) + ": context " + in_quotes(name) +
                          " is not among contexts");
  }
  const auto location = "context " + in_quotes(name);
  yaml_fields fields(found->second.node, at(found->second.file) + ": " + location);
  const auto cluster = fields.text("cluster");
  const auto user = fields.text("user");
  config out;
  if (auto ns = fields.text("namespace"); !ns.empty()) out.ns = std::move(ns);
  const auto& file = found->second.file;  // or "of runtime-1"
  out.source = location + (file.starts_with("of ") ? " " : " of ") + file;
  if (cluster.empty()) fields.wrong("cluster is missing");
  const auto in_clusters = all.clusters.find(cluster);
  if (in_clusters == all.clusters.end()) {
    fields.wrong("cluster " + in_quotes(cluster) + " is not among clusters");
  }
  const auto in_users = all.users.find(user);
  if (!user.empty() && in_users == all.users.end()) {
    fields.wrong("user " + in_quotes(user) + " is not among users");
  }
  if (fields.failed()) return *fields.failed();

  const auto& c = in_clusters->second;
  yaml_fields cluster_fields(c.node,
                             at(c.file) + ": " + location + ": cluster " + in_quotes(cluster));
  if (trust_ == kubeconfig_trust::foreign) check_harmless(cluster_fields);
  if (cluster_fields.failed()) return *cluster_fields.failed();
  read_cluster(cluster_fields, c.directory, out);
  const auto configuration = plugin_configuration(cluster_fields);
  if (cluster_fields.failed()) return *cluster_fields.failed();
  if (user.empty()) return out;
  const auto& u = in_users->second;
  yaml_fields user_fields(u.node, at(u.file) + ": " + location + ": user " + in_quotes(user));
  if (trust_ == kubeconfig_trust::foreign) check_harmless(user_fields);
  if (user_fields.failed()) return *user_fields.failed();
  read_user(user_fields, u.directory, out);
  if (user_fields.failed()) return *user_fields.failed();
  if (out.exec) out.exec->cluster_config = configuration;
  return out;
}

result<config> parse_kubeconfig(const std::string& text, const std::string& name,
                                const std::string& directory, const std::string& context) {
  kubeconfig_set set;
  if (auto added = set.add(text, name, directory); !added) return added.error();
  return set.find(context);
}

result<config> parse_foreign_kubeconfig(const std::string& text, const std::string& name,
                                        local_servers local, const std::string& context) {
  kubeconfig_set set(kubeconfig_trust::foreign);
  if (auto added = set.add(text, name, {}); !added) return added.error();
  auto found = set.find(context);
  if (!found || local == local_servers::allowed) return found;
  found->refuse_local = true;
  if (const auto url = parse_server_url(found->server); url && !url->tls) {
    return failure{.code = errc::address_refused,
                   .message = at(name) + ": server " + in_quotes(found->server) +
                              " is plain http, which a kubeconfig from elsewhere may not name"};
  }
  return found;
}

}  // namespace rw::k8s
