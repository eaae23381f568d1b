#include "rw/k8s/objects/types.hpp"
#include "rw/reactors/cli/doctor_pre_manifests.hpp"
#include "rw/reactors/cli/doctor_pre_report.hpp"
#include "rw/reactors/cli/shell_word.hpp"

#include <boost/json/array.hpp>
#include <boost/json/object.hpp>
#include <boost/json/parse.hpp>
#include <boost/json/serialize.hpp>
#include <boost/test/unit_test.hpp>

#include "tests/unit/source_dir.hpp"
#include <algorithm>
#include <fstream>
#include <iterator>
#include <optional>
#include <set>
#include <string>
#include <utility>
#include <vector>

namespace rw::doctor_pre_test {
BOOST_AUTO_TEST_SUITE(doctor_pre)

using namespace rw::cli;
namespace json = boost::json;

BOOST_AUTO_TEST_CASE(rights_are_grouped_by_their_verbs_and_granted_by_one_line) {
  const std::vector<access_right> rights{{"get", "apps", "deployments", "", "home"},
                                         {"patch", "apps", "deployments", "", "home"},
                                         {"patch", "", "services", "", "home"},
                                         {"get", "", "services", "", "home"},
                                         {"patch", "g.io", "things", "status", "home"}};
  BOOST_TEST(text_of(rights) == "get, patch deployments.apps, services; patch things.g.io/status");
  const std::string at_home = " --dry-run=client -o yaml | kubectl -n home auth reconcile -f -";
  BOOST_TEST(grant_command("alice", "installer", rights) ==
             "kubectl -n home create role installer --verb=get,patch "
             "--resource=deployments.apps,services" +
                 at_home +
                 " && kubectl -n home create rolebinding installer --role=installer --user=alice" +
                 at_home +
                 " && kubectl -n home create role installer-2 --verb=patch "
                 "--resource=things.g.io/status" +
                 at_home +
                 " && kubectl -n home create rolebinding installer-2 --role=installer-2 "
                 "--user=alice" +
                 at_home);
  const std::string anywhere = " --dry-run=client -o yaml | kubectl auth reconcile -f -";
  BOOST_TEST(grant_command("system:serviceaccount:a:b", "installer", {{"get", "", "nodes"}}) ==
             "kubectl create clusterrole installer --verb=get --resource=nodes" + anywhere +
                 " && kubectl create clusterrolebinding installer --clusterrole=installer "
                 "--serviceaccount=a:b" +
                 anywhere);
}

BOOST_AUTO_TEST_CASE(commands_of_istioctl_and_helm_choose_the_cluster_as_kubectl_does) {
  const kcp_access chosen{
      .kubeconfig = "my files/kcp.yaml", .context = "c", .as = "jane", .as_groups = {"a,b", "d"}};
  BOOST_TEST(install_istio_command(chosen) ==
             "istioctl install --kubeconfig 'my files/kcp.yaml' --context c");
  const std::string helm =
      "helm install cert-manager cert-manager --repo https://charts.jetstack.io -n cert-manager "
      "--create-namespace --set crds.enabled=true";
  BOOST_TEST(install_cert_manager_command(chosen) ==
             helm +
                 " --kubeconfig 'my files/kcp.yaml' --kube-context c --kube-as-user jane "
                 "--kube-as-group a,b --kube-as-group d");
  BOOST_TEST(install_istio_command({}) == "istioctl install");
  BOOST_TEST(install_cert_manager_command({}) == helm);
}

BOOST_AUTO_TEST_CASE(runtime_without_a_kubeconfig_may_be_mistyped) {
  using names = std::vector<std::string>;
  const std::string error = "no Secret gives access";
  const std::string owner = "have its owner, such as infrastructure-manager, write that Secret";
  const auto mistyped = no_kubeconfig("runtime-9", error, names{"runtime-1", "runtime-2"}, {});
  BOOST_TEST((mistyped.state == finding_state::failed));
  BOOST_TEST(mistyped.message == "there is no Kyma runtime-9; did you mean runtime-1, runtime-2?");
  BOOST_TEST(mistyped.remedy == "correct the name, or create that Kyma first");
  const auto lacking = no_kubeconfig("runtime-1", error, names{"runtime-1"}, {"runtime-2"});
  BOOST_TEST(lacking.message == "runtime-1: " + error);
  BOOST_TEST(lacking.remedy == owner);
  // Their kind does not exist yet.
  const auto early = no_kubeconfig("runtime-9", error, std::nullopt, {"runtime-1", "other"});
  BOOST_TEST(early.message == "runtime-9: " + error + "; did you mean runtime-1?");
  BOOST_TEST(early.remedy == "correct the name, or " + owner);
  const auto alone = no_kubeconfig("runtime-9", error, std::nullopt, {"other"});
  BOOST_TEST(alone.message == "runtime-9: " + error);
  BOOST_TEST(alone.remedy == owner);
}

BOOST_AUTO_TEST_CASE(words_of_a_command_are_quoted_for_a_shell) {
  BOOST_TEST(shell_word("deploy/crds") == "deploy/crds");
  BOOST_TEST(shell_word("") == "''");
  BOOST_TEST(shell_word("my file's") == "'my file'\\''s'");
  BOOST_TEST(shell_word("\xc3\xa4's\\") == "$'\\303\\244\\'s\\\\'");
}

BOOST_AUTO_TEST_CASE(subject_is_one_word_for_a_shell) {
  BOOST_TEST(subject_flag("") == "--user=USER");
  BOOST_TEST(subject_flag("a@example.com") == "--user=a@example.com");
  BOOST_TEST(subject_flag("a; rm 'x'") == "--user='a; rm '\\''x'\\'''");
}

BOOST_AUTO_TEST_CASE(finding_has_its_group) {
  const finding ill{finding_state::failed, "issuer", "it is missing", "kubectl apply"};
  BOOST_TEST(
      json::serialize(json_of(pre_group::manager, ill)) ==
      R"({"state":"failed","check":"issuer","message":"it is missing","fix":"kubectl apply","group":"manager"})");
}

BOOST_AUTO_TEST_CASE(oldest_version_is_that_of_the_chart) {
  std::ifstream file(test::source_file("deploy/helm/runtime-watcher/Chart.yaml"));
  const std::string text{std::istreambuf_iterator<char>(file), std::istreambuf_iterator<char>()};
  const auto version = ">=" + std::to_string(oldest_kubernetes.first) + "." +
                       std::to_string(oldest_kubernetes.second) + ".0-0\"";
  BOOST_TEST(text.find(version) != std::string::npos, version);
}

BOOST_AUTO_TEST_CASE(built_in_manifests_are_all_that_deploy_installs) {
  std::multiset<std::string> built_in;
  std::multiset<std::string> shipped;
  const auto note = [](const std::vector<json::value>& objects, auto& into) {
    for (const auto& object : objects) into.insert(json::serialize(object));
  };
  note(read_manifests({}), built_in);
  const auto file = [](const char* name) { return test::source_file(name); };
  note(read_manifests({file("deploy/crds"), file("deploy/manager")}), shipped);
  note(read_manifests({file("deploy/manager/namespace.yaml")}), built_in);  // for trials
  BOOST_TEST((built_in == shipped));
  BOOST_CHECK_THROW(read_manifests({"no-such-file.yaml"}), setting_error);
}

BOOST_AUTO_TEST_CASE(manager_has_the_settings_of_its_deployment) {
  auto objects = read_manifests({});
  const auto found = find_manager(objects);
  BOOST_TEST(found.exists);
  BOOST_TEST(found.error.empty(), found.error);
  BOOST_TEST(found.settings.pin_san);
  const auto deployment = std::ranges::find_if(objects, [](const json::value& each) {
    return k8s::find_string(each, {"kind"}) == "Deployment";
  });
  auto& arguments = deployment->at_pointer("/spec/template/spec/containers/0/args").as_array();
  arguments.push_back("--rollout-prometheus=https://prometheus");
  arguments.push_back("--rollout-prometheus-ca=/in/the/pod");
  arguments.push_back("--istio-namespace=mesh");
  arguments.push_back("--log-level=debug");
  BOOST_TEST(find_manager(objects).error.empty(), find_manager(objects).error);
  BOOST_TEST(find_manager(objects).settings.istio_namespace == "mesh");
  auto& container = deployment->at_pointer("/spec/template/spec/containers/0").as_object();
  const auto planned_by = [&](const char* text) {
    container["env"] = json::parse(text);
    return find_manager(objects);
  };
  const auto literal = planned_by(
      R"([{"name": "RW_ISSUER", "value": "another"}, {"name": "RW_ISTIO_NAMESPACE", "value": "b"},
          {"name": "RW_XFCC_TRUSTED_PROXIES", "value": "fd00::/8, 10.0.0.0/8"},
          {"name": "RW_EVENTS_PORT", "value": "tcp://10.0.0.11:6379"}, {"name": "RW_LANDSCAPE"}])");
  BOOST_TEST(literal.error == "");
  BOOST_TEST(literal.settings.issuer == "another");
  BOOST_TEST(literal.settings.istio_namespace == "mesh", "a flag overrides its variable");
  BOOST_TEST(literal.unknown.empty());
  const auto invalid = planned_by(R"([{"name": "RW_CERTIFICATES", "value": "acme"}])");
  BOOST_TEST(invalid.error.find("RW_CERTIFICATES") != std::string::npos, invalid.error);
  arguments.push_back("--gateway-name=$(NAME)-1");
  arguments.push_back("--issuer=$(FROM_ELSEWHERE)");
  const auto expanded = planned_by(
      R"([{"name": "NAME", "value": "gate"}, {"name": "POD_IP", "valueFrom": {"fieldRef": {}}},
          {"name": "FROM_ELSEWHERE", "valueFrom": {"configMapKeyRef": {}}},
          {"name": "RW_LANDSCAPE", "valueFrom": {"secretKeyRef": {}}}])");
  BOOST_TEST(expanded.error == "");
  BOOST_TEST(expanded.settings.gateway_name == "gate-1");
  BOOST_TEST(expanded.unknown == std::vector<std::string>({"--issuer", "RW_LANDSCAPE"}),
             boost::test_tools::per_element());
  const auto chained = planned_by(
      R"x([{"name": "NAME", "value": "a"}, {"name": "FROM_ELSEWHERE", "value": "issuer"},
           {"name": "RW_LANDSCAPE", "value": "$(NAME)-$$(NAME)"}])x");
  BOOST_TEST(chained.error == "");
  BOOST_TEST(chained.settings.landscape == "a-$(NAME)");
  std::swap(arguments.front(), arguments.back());  // flags may stand before the command
  BOOST_TEST(find_manager(objects).exists);
  BOOST_TEST(find_manager(objects).error == "");
  auto& level = *std::ranges::find(arguments, json::value("--log-level=debug"));
  level = "--log-level=nonsense";
  BOOST_TEST(find_manager(objects).error.find("nonsense") != std::string::npos);
  level = "--log-level=info";
  arguments.push_back("--no-such-flag");
  BOOST_TEST(find_manager(objects).error.find("--no-such-flag") != std::string::npos);
  objects.erase(deployment);
  BOOST_TEST(!find_manager(objects).exists);
}

BOOST_AUTO_TEST_CASE(binding_grants_what_its_role_does) {
  const auto objects = read_manifests({});
  for (const auto& object : objects) {
    const auto kind = k8s::find_string(object, {"kind"});
    const bool grants = kind.ends_with("Role") || kind.ends_with("RoleBinding");
    BOOST_TEST(granted_rights(object, objects).empty() == !grants, kind);
  }
}

BOOST_AUTO_TEST_CASE(kind_of_a_definition_among_the_manifests_is_known) {
  const auto objects = read_manifests({});
  const auto found =
      find_definition(objects, {"operator.kyma-project.io", "v1alpha1", "RuntimeRollout"});
  BOOST_REQUIRE(found.has_value());
  BOOST_TEST(found->plural == "runtimerollouts");
  BOOST_TEST(found->namespaced);
  BOOST_TEST(!find_definition(objects, {"operator.kyma-project.io", "v1beta2", "Kyma"}));
}

BOOST_AUTO_TEST_SUITE_END()
}  // namespace rw::doctor_pre_test
