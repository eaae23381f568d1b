#include "rw/reactors/cli/certs.hpp"

#include "rw/k8s/objects/types.hpp"
#include "rw/tls/certificate.hpp"

#include <boost/test/unit_test.hpp>

#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <string>
#include <utility>
#include <vector>

BOOST_AUTO_TEST_SUITE(certs)

namespace {

using rw::cli::certs_settings;
using role = certs_settings::role;

struct folder {
  folder() { BOOST_REQUIRE(::mkdtemp(name.data()) != nullptr); }
  ~folder() { std::filesystem::remove_all(name); }
  std::string read(const char* file) const {
    std::ifstream in(std::filesystem::path(name) / file);
    return {std::istreambuf_iterator<char>(in), {}};
  }
  std::string name = "/tmp/runtime-watcher-certs-XXXXXX";
};

/// Returns why it failed; empty: it did not, and `told` is what it returned.
std::string make(role issues, const folder& in, std::vector<std::string> sans = {},
                 std::string* told = nullptr) {
  certs_settings settings;
  settings.issues = issues;
  settings.dir = in.name;
  if (issues != role::ca) settings.name = "own";
  settings.sans = std::move(sans);
  try {
    auto lines = rw::cli::make_certificates(settings);
    if (told != nullptr) *told = std::move(lines);
  } catch (const rw::cli::setting_error& e) {
    return e.what();
  }
  return {};
}

}  // namespace

BOOST_AUTO_TEST_CASE(ca_does_not_replace_an_existing_key) {
  const folder in;
  BOOST_TEST(make(role::ca, in) == "");
  const auto key = in.read("ca.key");
  const auto certificate = in.read("ca.crt");
  const auto error = make(role::ca, in);
  BOOST_TEST(error.starts_with("certs ca: " + in.name + "/ca.key exists"), error);
  BOOST_TEST(error.find("remove the file") != error.npos, error);
  BOOST_TEST(in.read("ca.key") == key);
  BOOST_TEST(in.read("ca.crt") == certificate);
  std::filesystem::remove(in.name + "/ca.key");
  BOOST_TEST(make(role::ca, in) == "");
}

BOOST_AUTO_TEST_CASE(webhook_certificate_needs_a_name_and_the_error_has_an_example) {
  const folder in;
  BOOST_TEST(make(role::ca, in) == "");
  const auto error = make(role::webhook, in);
  BOOST_TEST(error.find("--san dns:skr-webhook.kyma-system.svc") != error.npos, error);
  BOOST_TEST(in.read("own.crt") == "");
  BOOST_TEST(make(role::webhook, in, {"dns:skr-webhook.kyma-system.svc"}) == "");
  BOOST_TEST(make(role::client, in) == "");
}

BOOST_AUTO_TEST_CASE(server_without_other_names_has_its_own_as_alternative_name) {
  const folder in;
  const auto error = make(role::server, in);
  BOOST_TEST(error == "certs: there is no " + in.name +
                          "/ca.crt: make it first with runtime-watcher certs ca --dir " + in.name);
  std::string told;
  BOOST_TEST(make(role::ca, in, {}, &told) == "");
  BOOST_TEST(
      told.starts_with(in.name + "/ca.crt: certificate of the authority runtime-watcher CA, valid "
                                 "until 20"),
      told);
  BOOST_TEST(make(role::server, in, {}, &told) == "");
  const auto made = rw::tls::certificate::from_pem(in.read("own.crt"));
  BOOST_REQUIRE(made.has_value());
  BOOST_TEST(told == in.name + "/own.crt: certificate of the server own, valid until " +
                         rw::k8s::format_time(made->not_after()) + " (60 days)\n" + in.name +
                         "/own.key: its private key (ecdsa), to be kept secret\n");
  BOOST_TEST(made->dns_names() == std::vector<std::string>{"own"},
             boost::test_tools::per_element());
}

BOOST_AUTO_TEST_SUITE_END()
