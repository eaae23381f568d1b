#include "rw/reactors/cli/kcp_error.hpp"

#include <boost/test/unit_test.hpp>

#include <string>

namespace rw::kcp_error_test {
BOOST_AUTO_TEST_SUITE(kcp_error)

using k8s::errc;

namespace {

cli::kcp_error describe(errc code, const char* reason) {
  return cli::describe({.code = code, .reason = reason, .message = "cannot get leases n/x: m"},
                       {"get", "coordination.k8s.io", "leases", "", "n", "x"}, "install it");
}

}  // namespace

BOOST_AUTO_TEST_CASE(failures_have_each_a_sentence_and_a_next_step) {
  const auto unauthorized = describe(errc::unauthorized, "Unauthorized");
  BOOST_TEST(unauthorized.message ==
             "KCP does not accept the kubeconfig's credentials: cannot get leases n/x: m");
  BOOST_TEST(unauthorized.next.starts_with("renew these credentials"));
  const auto forbidden = describe(errc::forbidden, "Forbidden");
  BOOST_TEST(forbidden.message ==
             "the kubeconfig's user may not get leases.coordination.k8s.io \"x\" in namespace n: "
             "cannot get leases n/x: m");
  BOOST_TEST(forbidden.next.starts_with("grant that right"));
  const auto absent = describe(errc::not_found, "NotFound");
  BOOST_TEST(absent.message == "cannot get leases n/x: m");
  BOOST_TEST(absent.next == "install it");
  const auto elsewhere = describe(errc::not_found, "");
  BOOST_TEST(elsewhere.message.starts_with(
      "the kubeconfig's server does not serve leases.coordination.k8s.io: "));
  BOOST_TEST(elsewhere.next == "check the server's address in the kubeconfig; install it");
}

BOOST_AUTO_TEST_CASE(server_without_a_response_does_not_respond_and_others_do) {
  for (const auto code : {errc::unreachable, errc::timed_out}) {
    BOOST_TEST(describe(code, "").message.starts_with("KCP does not respond: "));
  }
  for (const auto code :
       {errc::unauthorized, errc::forbidden, errc::not_found, errc::conflict, errc::server_error}) {
    BOOST_TEST(describe(code, "").message.find("does not respond") == std::string::npos);
  }
  BOOST_TEST(text_of(describe(errc::conflict, "Conflict")) == "cannot get leases n/x: m");
  BOOST_TEST(text_of(describe(errc::not_found, "NotFound")) ==
             "cannot get leases n/x: m\n  fix: install it");
}

BOOST_AUTO_TEST_SUITE_END()
}  // namespace rw::kcp_error_test
