#include "rw/reactors/dev/kubeconfig_text.hpp"

#include "rw/k8s/config/config.hpp"
#include "rw/tls/issuer.hpp"

#include <boost/test/unit_test.hpp>

#include <string>

BOOST_AUTO_TEST_SUITE(kubeconfig_text)

namespace k8s = rw::k8s;

BOOST_AUTO_TEST_CASE(kubeconfig_text_is_self_contained_and_equivalent) {
  const auto ca = rw::tls::issuer::create({.common_name = "ca"}).value();
  const auto pair = ca.issue({.common_name = "admin", .client_auth = true}).value();
  const k8s::config from{.server = "https://127.0.0.1:6443/prefix",
                         .tls_server_name = "kube.example.com",
                         .ca = ca.certificate_pem(),
                         .client_certificate = pair.certificate,
                         .client_key = pair.key,
                         .ca_file = "/some/ca.crt",
                         .client_certificate_file = "/some/tls.crt",
                         .client_key_file = "/some/tls.key",
                         .token = "secret"};
  const auto text = rw::dev::kubeconfig_text(from, "runtime-1");
  BOOST_REQUIRE(text.has_value());
  const auto read = k8s::parse_foreign_kubeconfig(*text, "made", k8s::local_servers::allowed);
  BOOST_REQUIRE(read.has_value());
  BOOST_TEST(read->server == from.server);
  BOOST_TEST(read->tls_server_name == from.tls_server_name);
  BOOST_TEST(read->ca == from.ca);
  BOOST_TEST(read->client_certificate == from.client_certificate);
  BOOST_TEST(read->client_key == from.client_key);
  BOOST_TEST(read->token == from.token);
}

BOOST_AUTO_TEST_CASE(credentials_of_a_program_are_not_handed_on) {
  const k8s::config from{.server = "https://127.0.0.1:6443",
                         .exec = k8s::exec_plugin{.command = "login"},
                         .source = "context dev of /x"};
  const auto text = rw::dev::kubeconfig_text(from, "runtime-1");
  BOOST_REQUIRE(text.has_error());
  BOOST_TEST(text.error().message.starts_with("context dev of /x: "), text.error().message);
}

BOOST_AUTO_TEST_CASE(token_file_that_is_not_there_is_named) {
  const k8s::config from{.server = "https://127.0.0.1:6443", .token_file = "/nonexistent/token"};
  const auto text = rw::dev::kubeconfig_text(from, "runtime-1");
  BOOST_REQUIRE(text.has_error());
  BOOST_TEST(text.error().message.find("/nonexistent/token") != std::string::npos);
}

BOOST_AUTO_TEST_SUITE_END()
