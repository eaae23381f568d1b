#include "rw/reactors/cli/kcp_commands.hpp"

#include <boost/test/unit_test.hpp>

#include <string>
#include <string_view>

BOOST_AUTO_TEST_SUITE(kcp_commands)

namespace {

using namespace rw::cli;

const kcp_access chosen{.kubeconfig = "my files/kcp.yaml", .context = "c", .as = "jane"};

std::string with_flags(std::string_view text) {
  return with_kcp_flags(text, chosen);
}

constexpr auto flags = " --kubeconfig 'my files/kcp.yaml' --context c --as jane";

}  // namespace

BOOST_AUTO_TEST_CASE(commands_in_remedies_get_the_flags_of_the_user) {
  const std::string all = flags;
  BOOST_TEST(with_flags("kubectl apply -f deploy/crds") ==
             "kubectl" + all + " apply -f deploy/crds");
  BOOST_TEST(with_flags("see why: runtime-watcher status --name a -o wide") ==
             "see why: runtime-watcher status" + all + " --name a -o wide");
  BOOST_TEST(with_flags("waits (runtime-watcher rollout status watcher)") ==
             "waits (runtime-watcher rollout status" + all + " watcher)");
  BOOST_TEST(with_flags("see `runtime-watcher doctor`: it") ==
             "see `runtime-watcher doctor" + all + "`: it");
  BOOST_TEST(with_flags("kubectl create namespace n && kubectl apply -f f") ==
             "kubectl" + all + " create namespace n && kubectl" + all + " apply -f f");
  BOOST_TEST(with_flags("kubectl kustomize . | runtime-watcher doctor --pre -f -") ==
             "kubectl kustomize . | runtime-watcher doctor" + all + " --pre -f -");
  BOOST_TEST(with_flags("pod p does: kubectl -n kcp-system port-forward pod/p 8080\n  x") ==
             "pod p does: kubectl" + all + " -n kcp-system port-forward pod/p 8080\n  x");
}

BOOST_AUTO_TEST_CASE(address_of_a_manager_is_given_to_the_commands_that_ask_one) {
  const kcp_access at{.as = "jane", .manager = "[::1]:8080"};
  const std::string all = " --as jane --address '[::1]:8080'";
  for (const std::string command : {"status", "doctor", "diff"}) {
    BOOST_TEST(with_kcp_flags("see: runtime-watcher " + command + " a", at) ==
               "see: runtime-watcher " + command + all + " a");
  }
  BOOST_TEST(with_kcp_flags("runtime-watcher rollout status a", at) ==
             "runtime-watcher rollout status --as jane a");
  BOOST_TEST(with_kcp_flags("kubectl get pods", at) == "kubectl --as jane get pods");
}

BOOST_AUTO_TEST_CASE(right_is_not_granted_by_the_user_that_lacks_it) {
  const auto* const grant =
      "kubectl create role r --dry-run=client -o yaml | kubectl auth reconcile -f -";
  BOOST_TEST(with_flags(grant) == grant);
}

BOOST_AUTO_TEST_CASE(texts_without_a_command_of_kcp_stay_as_they_are) {
  for (const auto* text :
       {"on the runtime: kubectl apply -f f && kubectl create namespace n",
        "On these: kubectl -n kyma-system get pods -l app=skr-webhook, the logs",
        "`kubectl -n kyma-system logs deploy/skr-webhook` on the runtime",
        "kubectl --kubeconfig f get pods", "runtime-watcher status --kubeconfig f",
        "runtime-watcher explain EventsWait", "runtime-watcher-dev dev",
        "in kubectl rollout's words", "deploy/kubectl get", "install Istio", ""}) {
    BOOST_TEST(with_flags(text) == text);
  }
  const auto* const command = "kubectl apply -f deploy/crds";
  BOOST_TEST(with_kcp_flags(command, {}) == command);
}

BOOST_AUTO_TEST_CASE(findings_have_them_in_both_texts) {
  const auto of =
      with_kcp_flags(finding{.message = "kubectl get kymas", .remedy = "runtime-watcher doctor"},
                     {.context = "c"});
  BOOST_TEST(of.message == "kubectl --context c get kymas");
  BOOST_TEST(of.remedy == "runtime-watcher doctor --context c");
}

BOOST_AUTO_TEST_SUITE_END()
