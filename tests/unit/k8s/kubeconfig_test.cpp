#include "rw/k8s/config/config.hpp"
#include "rw/k8s/objects/base64.hpp"
#include "rw/k8s/objects/url.hpp"

#include <boost/json/parse.hpp>
#include <boost/test/data/test_case.hpp>
#include <boost/test/unit_test.hpp>

#include "tests/unit/tls/pki.hpp"
#include "tests/unit/tls/scratch.hpp"
#include <cstdlib>
#include <optional>
#include <string>
#include <vector>

BOOST_AUTO_TEST_SUITE(kubeconfig)

namespace {

using namespace rw::k8s;
using rw::tls::test::scratch;
using rw::tls::test::the_pki;

/// A kubeconfig in which every field but the ones given is right. A field is "cluster", "user",
/// "context" or "top" with the text of its YAML, flow style.
struct text {
  std::string top = "apiVersion: v1\nkind: Config\ncurrent-context: dev\n";
  std::string cluster = "server: https://api.example.com:6443/c";
  std::string user = "token: secret";
  std::string context = "cluster: c, user: u, namespace: team";

  std::string yaml() const {
    return top + "clusters: [{name: c, cluster: {" + cluster + "}}]\nusers: [{name: u, user: {" +
           user + "}}]\ncontexts: [{name: dev, context: {" + context + "}}]\n";
  }
};

result<config> parse(const std::string& yaml, const std::string& context = {}) {
  return parse_kubeconfig(yaml, "/x/y", "/x", context);
}

std::string message(const result<config>& from) {
  return from ? "no failure" : from.error().message;
}

/// A variable of the environment for the length of a test.
class variable {
 public:
  variable(const char* name, const char* value) : name_(name) {
    if (const auto* old = std::getenv(name)) old_ = old;
    value != nullptr ? ::setenv(name, value, 1) : ::unsetenv(name);
  }
  ~variable() { old_ ? ::setenv(name_, old_->c_str(), 1) : ::unsetenv(name_); }
  variable(const variable&) = delete;
  variable& operator=(const variable&) = delete;

 private:
  const char* name_;
  std::optional<std::string> old_;
};

struct wrong_field {
  text in;
  std::string expected;
};

std::ostream& operator<<(std::ostream& out, const wrong_field& one) {
  return out << one.expected;
}

const std::string c = "kubeconfig /x/y: context 'dev': cluster 'c': ";
const std::string u = "kubeconfig /x/y: context 'dev': user 'u': ";
const std::string exec = "exec: {apiVersion: client.authentication.k8s.io/v1, ";

const wrong_field wrong_fields[] = {
    {{.top = "apiVersion: v2\n"}, "kubeconfig /x/y: apiVersion 'v2' is not v1"},
    {{.top = "kind: Secret\n"}, "kubeconfig /x/y: kind 'Secret' is not Config"},
    {{.top = "apiVersion: [v1]\n"}, "kubeconfig /x/y: apiVersion is not a string"},
    {{.top = ""}, "kubeconfig /x/y: no context is requested, and current-context is not set"},
    {{.top = "current-context: {}\n"}, "kubeconfig /x/y: current-context is not a string"},
    {{.top = "current-context: prod\n"}, "kubeconfig /x/y: context 'prod' is not among contexts"},
    {{.top = "current-context: \"a\\e[2Jb\"\n"},
     "kubeconfig /x/y: context 'a?[2Jb' is not among contexts"},

    {{.context = "user: u"}, "kubeconfig /x/y: context 'dev': cluster is missing"},
    {{.context = "cluster: d, user: u"},
     "kubeconfig /x/y: context 'dev': cluster 'd' is not among clusters"},
    {{.context = "cluster: c, user: v"},
     "kubeconfig /x/y: context 'dev': user 'v' is not among users"},
    {{.context = "cluster: [c], user: u"},
     "kubeconfig /x/y: context 'dev': cluster is not a string"},
    {{.context = "cluster: c, user: {}"}, "kubeconfig /x/y: context 'dev': user is not a string"},
    {{.context = "cluster: c, user: u, namespace: []"},
     "kubeconfig /x/y: context 'dev': namespace is not a string"},

    {{.cluster = ""}, c + "server is missing"},
    {{.cluster = "server: [a]"}, c + "server is not a string"},
    {{.cluster = "server: 'api.example.com:6443'"},
     c + "server is no URL with a scheme, such as https://host:port"},
    {{.cluster = "server: 'ftp://a'"}, c + "server has the scheme \"ftp\", which is not https"},
    {{.cluster = "server: 'https://'"}, c + "server has no proper host and port"},
    {{.cluster = "server: 'https://a:port'"}, c + "server has no proper host and port"},
    {{.cluster = "server: 'https://a:70000'"}, c + "server has no proper host and port"},
    {{.cluster = "server: 'https://a:'"}, c + "server has no port after its colon"},
    {{.cluster = "server: 'https://a/?b'"}, c + "server has a query or fragment"},
    {{.cluster = "server: 'https://me@a'"}, c + "server has a user name in it"},
    {{.cluster = "server: 'https://a b'"},
     c + "server has white space or control characters in it"},
    {{.cluster = "server: 'http://api.example.com'"},
     c + "server is plain http, which is accepted for loopback addresses only"},
    {{.cluster = "server: 'https://a', tls-server-name: {}"},
     c + "tls-server-name is not a string"},
    {{.cluster = "server: 'https://a', insecure-skip-tls-verify: maybe"},
     c + "insecure-skip-tls-verify is neither true nor false"},
    {{.cluster = "server: 'https://a', insecure-skip-tls-verify: 'true'"},
     c + "insecure-skip-tls-verify is neither true nor false"},
    {{.cluster = "server: 'https://a', proxy-url: 'socks5://b:1080'"},
     c + "proxy-url has the scheme \"socks5\"; only http proxies are supported"},
    {{.cluster = "server: 'https://a', proxy-url: nothing"},
     c + "proxy-url is no URL with a scheme, such as https://host:port"},
    {{.cluster = "server: 'https://a', certificate-authority-data: '%%%'"},
     c + "certificate-authority-data is not base64"},
    {{.cluster = "server: 'https://a', certificate-authority-data: bm9uZQ=="},
     c + "certificate-authority-data: holds no PEM certificate"},
    {{.cluster = "server: 'https://a', certificate-authority: /none/ca.crt"},
     c + "certificate-authority: /none/ca.crt: No such file or directory"},

    {{.user = "token: [a]"}, u + "token is not a string"},
    {{.user = "token: \"a\\nb\""}, u + "token has characters that no token has"},
    {{.user = "tokenFile: none/token"}, u + "tokenFile: /x/none/token: No such file or directory"},
    {{.user = "tokenFile: /dev/null"}, u + "tokenFile: /dev/null: not a regular file"},
    {{.user = "username: a, token: b"}, u + "username and token exclude each other"},
    {{.user = "password: a"}, u + "password without a username"},
    {{.user = "username: 'a:b', password: c"}, u + "username has a ':' in it"},
    {{.user = "username: {}"}, u + "username is not a string"},
    {{.user = "client-certificate-data: '='"}, u + "client-certificate-data is not base64"},
    {{.user = "client-key-data: 'a'"}, u + "client-key-data is not base64"},
    {{.user = "client-certificate: none.crt"},
     u + "client-certificate: /x/none.crt: No such file or directory"},
    {{.user = "client-key: none.key"}, u + "client-key: /x/none.key: No such file or directory"},
    {{.user = "as: []"}, u + "as is not a string"},
    {{.user = "as: a, as-groups: b"}, u + "as-groups is not a list"},
    {{.user = "as: a, as-groups: [[b]]"}, u + "as-groups is not a list of strings"},
    {{.user = "as: a, as-user-extra: [b]"}, u + "as-user-extra: is not a mapping"},
    {{.user = "as-groups: [b]"}, u + "as-uid, as-groups and as-user-extra need a user in as"},
    {{.user = "auth-provider: {name: gcp}"}, u + "auth-provider is no longer supported, use exec"},

    {{.user = "exec: [a]"}, u + "exec: is not a mapping"},
    {{.user = "exec: {command: x}"},
     u + "exec: apiVersion '' is not client.authentication.k8s.io/v1 or v1beta1"},
    {{.user = "exec: {apiVersion: client.authentication.k8s.io/v1alpha1, command: x}"},
     u + "exec: apiVersion 'client.authentication.k8s.io/v1alpha1' is not "
         "client.authentication.k8s.io/v1 or v1beta1"},
    {{.user = "exec: {apiVersion: client.authentication.k8s.io/v1}"},
     u + "exec: command is missing"},
    {{.user = exec + "command: x, args: a}"}, u + "exec: args is not a list"},
    {{.user = exec + "command: x, env: [a]}"}, u + "exec: env[0]: is not a mapping"},
    {{.user = exec + "command: x, env: [{value: a}]}"}, u + "exec: env[0]: name is missing"},
    {{.user = exec + "command: x, env: [{name: 'a=b', value: c}]}"},
     u + "exec: env[0]: name has a '=' in it"},
    {{.user = exec + "command: x, provideClusterInfo: 1}"},
     u + "exec: provideClusterInfo is neither true nor false"},
    {{.user = exec + "command: x, installHint: {}}"}, u + "exec: installHint is not a string"},
    {{.user = exec + "command: x, interactiveMode: Always}"},
     u + "exec: interactiveMode is Always, but a service has no terminal"},
    {{.user = exec + "command: x, interactiveMode: Sometimes}"},
     u + "exec: interactiveMode 'Sometimes' is not Never, IfAvailable or Always"},
};

}  // namespace

BOOST_DATA_TEST_CASE(wrong_field_is_named_with_its_file_and_context, wrong_fields) {
  const auto got = parse(sample.in.yaml());
  BOOST_TEST(message(got) == sample.expected);
  if (!got) BOOST_TEST(got.error().is(errc::not_configured));
}

BOOST_AUTO_TEST_CASE(text_that_is_no_kubeconfig_is_refused) {
  const std::pair<std::string, std::string> wrong[] = {
      {"clusters: [\n a: [b\n", "kubeconfig /x/y: line 3 is not YAML: "},
      {"just words", "kubeconfig /x/y: is not a mapping"},
      {"[1, 2]", "kubeconfig /x/y: is not a mapping"},
      {"clusters: 5", "kubeconfig /x/y: clusters is not a list"},
      {"users: {}", "kubeconfig /x/y: users is not a list"},
      {"contexts: [5]", "kubeconfig /x/y: contexts[0]: is not a mapping"},
      {"clusters: [{cluster: {}}]", "kubeconfig /x/y: clusters[0]: name is missing"},
      {"clusters: [{name: [], cluster: {}}]", "kubeconfig /x/y: clusters[0]: name is not a string"},
      {"users: [{name: a, user: 7}]", "kubeconfig /x/y: users[0]: user: is not a mapping"},
      {"users: [{name: a, user: {}}, {name: a, user: {}}]",
       "kubeconfig /x/y: users has two entries of the name 'a'"},
      {"", "kubeconfig /x/y: no context is requested, and current-context is not set"},
      {std::string(100'000, '['), "kubeconfig /x/y: line "},
  };
  for (const auto& [yaml, expected] : wrong) {
    const auto got = parse(yaml);
    BOOST_TEST(message(got).starts_with(expected), message(got));
  }
}

BOOST_AUTO_TEST_CASE(context_is_read_with_all_its_fields) {
  const text t{.cluster =
                   "server: 'https://api.example.com:6443/c', tls-server-name: name, "
                   "insecure-skip-tls-verify: true, proxy-url: 'http://p:3128'",
               .user =
                   "token: secret, as: jane, as-uid: '7', as-groups: [a, b], "
                   "as-user-extra: {k: [v, w]}"};
  const auto got = parse(t.yaml());
  BOOST_REQUIRE_MESSAGE(got.has_value(), message(got));
  BOOST_TEST(got->server == "https://api.example.com:6443/c");
  BOOST_TEST(got->tls_server_name == "name");
  BOOST_TEST(got->insecure_skip_tls_verify);
  BOOST_TEST(got->proxy_url == "http://p:3128");
  BOOST_TEST(got->token == "secret");
  BOOST_TEST(got->ns == "team");
  BOOST_TEST(got->impersonate_user == "jane");
  BOOST_TEST(got->impersonate_uid == "7");
  BOOST_TEST((got->impersonate_groups == std::vector<std::string>{"a", "b"}));
  BOOST_TEST(got->impersonate_extra.size() == 2u);
  BOOST_TEST(got->source == "context 'dev' of /x/y");
  BOOST_TEST(!got->exec.has_value());
}

BOOST_AUTO_TEST_CASE(json_is_yaml_too) {
  const auto got = parse(
      "{\n\t\"kind\": \"Config\", \"current-context\": \"a\",\n"
      "\t\"clusters\": [{\"name\": \"c\", \"cluster\": {\"server\": \"https:\\/\\/h\"}}],\n"
      "\t\"contexts\": [{\"name\": \"a\", \"context\": {\"cluster\": \"c\"}}], \"users\": null}");
  BOOST_REQUIRE_MESSAGE(got.has_value(), message(got));
  BOOST_TEST(got->server == "https://h");
  BOOST_TEST(got->ns == "default");
}

BOOST_AUTO_TEST_CASE(forms_that_kubectl_takes_are_taken) {
  const auto server = [](const std::string& url) {
    return parse(text{.cluster = "server: '" + url + "'"}.yaml())->server;
  };
  BOOST_TEST(parse_server_url("https://kcp.example.com.:6443//clusters//kcp")->host ==
             "kcp.example.com");
  BOOST_TEST(parse_server_url("https://kcp.example.com.:6443//clusters//kcp")->prefix ==
             "/clusters/kcp");
  BOOST_TEST(parse_server_url("https://[::ffff:10.0.0.1]:6443")->host == "10.0.0.1");
  BOOST_TEST(server("https://a//b") == "https://a//b");
  const auto named =
      parse(text{.cluster = "server: 'https://a', tls-server-name: kcp.example.com."}.yaml());
  BOOST_TEST(named->tls_server_name == "kcp.example.com");
  const auto merged = parse("x: &u {token: t}\n" + text{.user = "<<: *u"}.yaml());
  BOOST_TEST_REQUIRE(merged.has_value(), message(merged));
  BOOST_TEST(merged->token == "t");
  const auto binary = parse(text{.user = "token: !!binary aGVsbG8="}.yaml());
  BOOST_TEST(binary->token == "hello");
}

BOOST_AUTO_TEST_CASE(context_other_than_the_current_one_can_be_requested) {
  const auto yaml = text().yaml();
  BOOST_TEST(message(parse(yaml, "prod")) ==
             "kubeconfig /x/y: context 'prod' is not among contexts");
  BOOST_TEST(parse("current-context: prod\n" + text{.top = ""}.yaml(), "dev").has_value());
}

BOOST_AUTO_TEST_CASE(parse_kubeconfig_ignores_parts_that_the_context_does_not_use) {
  const auto yaml =
      "clusters: [{name: c, cluster: {server: 'https://a'}}, {name: bad, cluster: "
      "{server: 7}}]\ncontexts: [{name: dev, context: {cluster: c}}, {name: bad, "
      "context: {cluster: []}}]\n";
  BOOST_TEST(parse(yaml, "dev").has_value());
  BOOST_TEST(parse(yaml, "bad").has_error());
}

BOOST_AUTO_TEST_CASE(certificates_stand_inline_or_in_files_beside_the_kubeconfig) {
  const auto& pki = the_pki();
  const auto ca = pki.ca.certificate_pem();
  const scratch dir;
  dir.write("pki/ca.crt", ca);
  dir.write("pki/me.crt", pki.client.certificate);
  dir.write("pki/me.key", pki.client.key);
  dir.write("token", " a-token\n");
  const text files{.cluster = "server: 'https://a', certificate-authority: pki/ca.crt",
                   .user =
                       "client-certificate: pki/me.crt, client-key: ./pki/me.key, "
                       "tokenFile: token"};
  const auto from_files = parse_kubeconfig(files.yaml(), "/x/y", dir.path().string());
  BOOST_REQUIRE_MESSAGE(from_files.has_value(), message(from_files));
  BOOST_TEST(from_files->ca == ca);
  BOOST_TEST(from_files->ca_file == dir.in("pki/ca.crt"));
  BOOST_TEST(from_files->client_key_file == dir.in("pki/me.key"));
  BOOST_TEST(from_files->client_certificate == pki.client.certificate);
  BOOST_TEST(from_files->token_file == dir.in("token"));

  const text data{.cluster =
                      "server: 'https://a', certificate-authority: /none, "
                      "certificate-authority-data: " +
                      base64_encode(ca),
                  .user = "client-certificate-data: " + base64_encode(pki.client.certificate) +
                          ", client-key-data: " + base64_encode(pki.client.key)};
  const auto from_data = parse(data.yaml());
  BOOST_REQUIRE_MESSAGE(from_data.has_value(), message(from_data));
  BOOST_TEST(from_data->ca == ca);
  BOOST_TEST(from_data->ca_file == "");
  BOOST_TEST(from_data->client_key == pki.client.key);
}

BOOST_AUTO_TEST_CASE(certificates_that_do_not_fit_are_refused) {
  const auto& pki = the_pki();
  const auto certificate = "client-certificate-data: " + base64_encode(pki.client.certificate);
  BOOST_TEST(message(parse(text{.user = certificate}.yaml())) ==
             u + "client-certificate-data: its private key is not configured");
  const auto other = certificate + ", client-key-data: " + base64_encode(pki.server.key);
  const auto got = message(parse(text{.user = other}.yaml()));
  BOOST_TEST(got.starts_with(u + "client-key-data: does not belong to the certificate in "
                                 "client-certificate-data"),
             got);
  const auto both =
      "server: 'https://a', insecure-skip-tls-verify: true, "
      "certificate-authority-data: " +
      base64_encode(pki.ca.certificate_pem());
  BOOST_TEST(message(parse(text{.cluster = both}.yaml())) ==
             c + "insecure-skip-tls-verify and a certificate authority exclude each other");
}

BOOST_AUTO_TEST_CASE(exec_plugin_is_read_with_all_its_fields) {
  const text t{.cluster =
                   "server: 'https://a', extensions: [{name: other, extension: 1}, "
                   "{name: client.authentication.k8s.io/exec, extension: {a: 1, b: ['2', "
                   "true, null]}}]",
               .user = exec +
                       "command: bin/login, args: [-v, '7'], env: [{name: A, value: b}], "
                       "installHint: get it, provideClusterInfo: true, interactiveMode: "
                       "Never}"};
  const auto got = parse(t.yaml());
  BOOST_REQUIRE_MESSAGE(got.has_value(), message(got));
  BOOST_REQUIRE(got->exec.has_value());
  BOOST_TEST(got->exec->command == "/x/bin/login");
  BOOST_TEST((got->exec->arguments == std::vector<std::string>{"-v", "7"}));
  BOOST_TEST((got->exec->environment.front() == std::pair<std::string, std::string>("A", "b")));
  BOOST_TEST(got->exec->install_hint == "get it");
  BOOST_TEST(got->exec->provide_cluster_info);
  BOOST_TEST(got->exec->interactive_mode == "Never");
  BOOST_TEST(got->exec->cluster_config == R"({"a":1,"b":["2",true,null]})");
}

BOOST_AUTO_TEST_CASE(of_several_files_the_first_that_sets_an_entry_wins) {
  const scratch dir;
  dir.write("one/config", "current-context: dev\nusers: [{name: u, user: {token: first}}]\n");
  dir.write("two/config",
            "current-context: other\n"
            "users: [{name: u, user: {token: second, as: jane}}]\n"
            "clusters: [{name: c, cluster: {server: 'https://two'}}]\n");
  dir.write("three/config",
            "clusters: [{name: c, cluster: {server: 'https://three', tls-server-name: x}}]\n"
            "contexts: [{name: dev, context: {cluster: c, user: u}}]\n");
  const auto got = load_kubeconfig(
      {dir.in("none"), dir.in("one/config"), dir.in("two/config"), dir.in("three/config")});
  BOOST_REQUIRE_MESSAGE(got.has_value(), message(got));
  BOOST_TEST(got->server == "https://two");
  BOOST_TEST(got->token == "first");
  // An entry counts as a whole, whatever another file says of it.
  BOOST_TEST(got->impersonate_user == "");
  BOOST_TEST(got->tls_server_name == "");
  BOOST_TEST(got->source == "context 'dev' of " + dir.in("three/config"));

  BOOST_TEST(message(load_kubeconfig({dir.in("none")})) ==
             "kubeconfig " + dir.in("none") + ": no such file");
  BOOST_TEST(message(load_kubeconfig({dir.path().string()})).starts_with("kubeconfig "));
  dir.write("bad", "users: 7");
  BOOST_TEST(message(load_kubeconfig({dir.in("one/config"), dir.in("bad")})) ==
             "kubeconfig " + dir.in("bad") + ": users is not a list");
}

BOOST_AUTO_TEST_CASE(failure_names_the_file_that_the_entry_stands_in) {
  const scratch dir;
  dir.write("one", "current-context: dev\ncontexts: [{name: dev, context: {cluster: c}}]\n");
  dir.write("two", "clusters: [{name: c, cluster: {server: 7, proxy-url: {}}}]\n");
  BOOST_TEST(message(load_kubeconfig({dir.in("one"), dir.in("two")})) ==
             "kubeconfig " + dir.in("two") +
                 ": context 'dev': cluster 'c': server is no URL with a scheme, such as "
                 "https://host:port");
}

BOOST_AUTO_TEST_CASE(pod_finds_its_server_and_token) {
  const scratch root;
  const std::string folder = "var/run/secrets/kubernetes.io/serviceaccount/";
  const variable host("KUBERNETES_SERVICE_HOST", "fd00::1");
  const variable port("KUBERNETES_SERVICE_PORT", "443");
  const auto dir = root.path().string();
  BOOST_TEST(message(in_cluster_config(dir)) ==
             "in-cluster: token: " + root.in(folder + "token") + ": No such file or directory");
  root.write(folder + "token", "t\n");
  BOOST_TEST(message(in_cluster_config(dir)).starts_with("in-cluster: certificate authority: "));
  root.write(folder + "ca.crt", the_pki().ca.certificate_pem());
  root.write(folder + "namespace", "kcp-system\n");
  const auto got = in_cluster_config(dir);
  BOOST_REQUIRE_MESSAGE(got.has_value(), message(got));
  BOOST_TEST(got->server == "https://[fd00::1]:443");
  BOOST_TEST(got->token_file == root.in(folder + "token"));
  BOOST_TEST(got->ns == "kcp-system");

  const variable nowhere("KUBERNETES_SERVICE_HOST", nullptr);
  BOOST_TEST(message(in_cluster_config(dir)).starts_with("in-cluster: KUBERNETES_SERVICE_HOST"));
}

BOOST_AUTO_TEST_CASE(configuration_is_looked_for_where_programs_look) {
  const scratch dir;
  dir.write("given", text{.cluster = "server: 'https://given'"}.yaml());
  dir.write("listed", text{.cluster = "server: 'https://listed'"}.yaml());
  dir.write(".kube/config", text{.cluster = "server: 'https://home'"}.yaml());
  const variable home("HOME", dir.path().c_str());
  const variable host("KUBERNETES_SERVICE_HOST", nullptr);
  const auto server = [](const result<config>& from) {
    return from ? from->server : message(from);
  };
  {
    const variable list("KUBECONFIG", (":" + dir.in("none") + ":" + dir.in("listed")).c_str());
    BOOST_TEST(server(load_config(dir.in("given"))) == "https://given");
    BOOST_TEST(server(load_config()) == "https://listed");
  }
  const variable list("KUBECONFIG", nullptr);
  BOOST_TEST(server(load_config()) == "https://home");
  const variable pod_host("KUBERNETES_SERVICE_HOST", "10.0.0.1");
  const variable pod_port("KUBERNETES_SERVICE_PORT", "443");
  BOOST_TEST(message(load_config()).starts_with("in-cluster: token: "));
  BOOST_TEST(server(load_config({}, "dev")) == "https://home");
}

BOOST_AUTO_TEST_CASE(kubeconfig_from_elsewhere_runs_no_program_and_reads_no_file) {
  const scratch dir;
  dir.write("secret", "not for strangers");
  const auto file = dir.in("secret");
  const auto of = [](const text& from) {
    const auto got = parse_foreign_kubeconfig(from.yaml(), "of skr");
    return got ? std::string("taken") : got.error().message;
  };
  BOOST_TEST(of({.user = "token: t"}) == "taken");
  for (const auto* field : {"client-certificate", "client-key", "tokenFile"}) {
    const auto why = of({.user = std::string(field) + ": " + file});
    BOOST_TEST(why.find(std::string(field) + " names a file of this process") != why.npos, why);
  }
  auto why = of({.cluster = "server: 'https://a', certificate-authority: " + file});
  BOOST_TEST(why.find("certificate-authority names a file of this process") != why.npos, why);
  why = of({.user = "exec: {apiVersion: client.authentication.k8s.io/v1, command: /bin/true}"});
  BOOST_TEST(why.find("exec names a program to run here") != why.npos, why);
}

BOOST_AUTO_TEST_CASE(kubeconfig_from_elsewhere_leads_to_no_local_server) {
  const auto http = text{.cluster = "server: 'http://127.0.0.1:8001'"}.yaml();
  const auto refused = parse_foreign_kubeconfig(http, "of skr");
  BOOST_TEST_REQUIRE(refused.has_error());
  BOOST_TEST(
      refused.error().message.find("'http://127.0.0.1:8001' is plain http") != std::string::npos,
      refused.error().message);
  // Plain http is for loopback addresses only, so that the same setting allows it.
  BOOST_TEST(refused.error().is(errc::address_refused));
  const auto allowed = parse_foreign_kubeconfig(http, "of skr", local_servers::allowed);
  BOOST_TEST_REQUIRE(allowed.has_value());
  BOOST_TEST(!allowed->refuse_local);
  const auto https = text{.cluster = "server: 'https://a'"}.yaml();
  BOOST_TEST(parse_foreign_kubeconfig(https, "of skr")->refuse_local);
  BOOST_TEST(!parse_kubeconfig(http, "own", ".")->refuse_local);
}

BOOST_AUTO_TEST_SUITE_END()
