#include "rw/reactors/cli/doctor_kubeconfig.hpp"

#include <boost/test/unit_test.hpp>

#include <string>

BOOST_AUTO_TEST_SUITE(doctor_kubeconfig)

using namespace rw::cli;

namespace {

constexpr auto secret = "Secret kcp-system/kubeconfig-a";
const rw::k8s::failure local{.code = rw::k8s::errc::address_refused,
                             .message =
                                 "context 'c' of a: server 127.0.0.1 is an address of "
                                 "this machine or its link"};
const rw::k8s::failure malformed{.code = rw::k8s::errc::not_configured,
                                 .message = "kubeconfig of a: line 1 is not YAML"};

}  // namespace

BOOST_AUTO_TEST_CASE(unusable_kubeconfig_is_named_by_its_secret) {
  BOOST_TEST(unusable_kubeconfig(secret, "a", malformed) ==
             "the kubeconfig in Secret kcp-system/kubeconfig-a is unusable: line 1 is not YAML");
  BOOST_TEST(
      unusable_kubeconfig("", "a", local) ==
      "its kubeconfig is unusable: server 127.0.0.1 is an address of this machine or its link");
}

BOOST_AUTO_TEST_CASE(flag_comes_first_where_the_server_is_this_machine) {
  BOOST_TEST(kubeconfig_remedy(secret, local) ==
             "if the runtime is on this machine: --allow-local-runtimes, also for the manager; "
             "otherwise have its owner, such as infrastructure-manager, write Secret "
             "kcp-system/kubeconfig-a anew");
}

BOOST_AUTO_TEST_CASE(flag_is_not_named_where_it_does_not_help) {
  BOOST_TEST(kubeconfig_remedy(secret, malformed) ==
             "have its owner, such as infrastructure-manager, write Secret "
             "kcp-system/kubeconfig-a anew");
  BOOST_TEST(kubeconfig_remedy("", malformed) ==
             "have its owner, such as infrastructure-manager, write the Secret of its kubeconfig "
             "anew");
}

BOOST_AUTO_TEST_SUITE_END()
