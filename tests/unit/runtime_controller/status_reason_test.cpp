#include "rw/reactors/shared/status_reason.hpp"

#include <boost/test/unit_test.hpp>

#include <cctype>
#include <cstddef>
#include <set>

namespace rw::runtime_controller_test {
BOOST_AUTO_TEST_SUITE(status_reason)

using enum rw::status_reason;

BOOST_AUTO_TEST_CASE(reason_is_one_word_in_camel_case_of_its_own) {
  std::set<std::string_view> words;
  const auto count = static_cast<std::size_t>(gateway_unreachable) + 1;
  for (std::size_t i = 1; i < count; ++i) {
    const auto word = to_string(static_cast<rw::status_reason>(i));
    BOOST_REQUIRE(!word.empty());
    BOOST_TEST(std::isupper(static_cast<unsigned char>(word.front())), word);
    for (const char c : word) BOOST_TEST(std::isalpha(static_cast<unsigned char>(c)), word);
    BOOST_TEST(words.insert(word).second, word);
  }
  BOOST_TEST(to_string(none).empty());
  BOOST_TEST(none == "");
  BOOST_TEST(gateway_unreachable == "GatewayUnreachable");
}

BOOST_AUTO_TEST_CASE(word_of_a_pod_is_its_own_only_if_it_is_known) {
  BOOST_TEST(reason_of_pod("CrashLoopBackOff") == crash_loop_back_off);
  BOOST_TEST(reason_of_pod("NoPods") == no_pods);
  BOOST_TEST(reason_of_pod("PodRestarted") == pod_restarted);
  BOOST_TEST(reason_of_pod("") == none);
  // What the runtime's owner makes up, or another subject's word.
  for (const auto* word : {"Evil", "Contested", "RuntimeUnreachable", "PodFailing"}) {
    BOOST_TEST(reason_of_pod(word) == pod_failing, word);
  }
}

BOOST_AUTO_TEST_CASE(failure_is_a_rejected_access_or_write_or_neither) {
  const auto of = [](k8s::errc code, const char* message = "") {
    return reason_of_failure({.code = code, .message = message});
  };
  BOOST_TEST(of(k8s::errc::unauthorized) == access_rejected);
  BOOST_TEST(of(k8s::errc::not_configured) == access_rejected);
  BOOST_TEST(of(k8s::errc::address_refused) == access_rejected);
  BOOST_TEST(of(k8s::errc::forbidden, "user x cannot patch secrets") == access_denied);
  BOOST_TEST(of(k8s::errc::forbidden, "admission webhook \"p\" denied the request: no") ==
             write_rejected);
  BOOST_TEST(of(k8s::errc::invalid) == write_rejected);
  BOOST_TEST(of(k8s::errc::server_error) == request_failed);
}

BOOST_AUTO_TEST_CASE(namespace_that_is_being_deleted_is_no_denied_access) {
  k8s::failure error{.code = k8s::errc::forbidden, .status = 403};
  error.message =
      "cannot apply: deployments.apps \"skr-webhook\" is forbidden: unable to create new "
      "content in namespace kyma-system because it is being terminated";
  BOOST_TEST(reason_of_failure(error) == namespace_terminating);
  error.message = "forbidden";
  BOOST_TEST(reason_of_failure(error) == access_denied);
  error.causes.push_back(
      {"NamespaceTerminating", "namespace kyma-system is being terminated", "metadata.namespace"});
  BOOST_TEST(reason_of_failure(error) == namespace_terminating);
  error.code = k8s::errc::conflict;
  BOOST_TEST(reason_of_failure(error) != namespace_terminating);
}

BOOST_AUTO_TEST_SUITE_END()
}  // namespace rw::runtime_controller_test
