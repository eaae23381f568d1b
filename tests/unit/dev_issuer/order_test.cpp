#include "rw/reactors/dev/issuer/order.hpp"

#include "rw/k8s/objects/types.hpp"

#include <boost/json/parse.hpp>
#include <boost/test/unit_test.hpp>

#include "tests/unit/dev_issuer/samples.hpp"
#include <chrono>
#include <string>

BOOST_AUTO_TEST_SUITE(order)

using namespace rw;
using namespace rw::dev_issuer;
using namespace rw::dev_issuer::test;
using namespace std::chrono_literals;
namespace json = boost::json;

namespace {

rw::dev_issuer::order read(const json::value& certificate,
                           issuer_kind kind = issuer_kind::cert_manager, bool honour = false) {
  auto made = read_order(certificate, kind, tls::key_type::ecdsa_p256, honour);
  BOOST_REQUIRE_MESSAGE(made.has_value(), made.error().text);
  return std::move(*made);
}

std::string why_not(std::string_view spec, bool honour = false) {
  auto certificate = sample(issuer_kind::cert_manager);
  const auto change = json::parse(spec);
  for (const auto& member : change.get_object()) {
    certificate.at("spec").as_object()[member.key()] = member.value();
  }
  const auto made =
      read_order(certificate, issuer_kind::cert_manager, tls::key_type::ecdsa_p256, honour);
  BOOST_REQUIRE_MESSAGE(made.has_error(), spec);
  return made.error().text;
}

}  // namespace

BOOST_AUTO_TEST_CASE(certificate_says_what_is_to_be_issued) {
  for (const auto kind : {issuer_kind::cert_manager, issuer_kind::gardener}) {
    const auto made = read(sample(kind), kind);
    BOOST_TEST((made.secret == k8s::object_key{"istio-system", "k1-webhook-tls"}));
    BOOST_TEST(made.request.common_name == "runtime-1");
    BOOST_TEST(made.request.dns_names == (std::vector<std::string>{"skr.example.com", "skr.svc"}));
    BOOST_TEST((made.request.validity == 1440h));
    BOOST_TEST((made.renew_before == (kind == issuer_kind::gardener ? 480h : 720h)));
    BOOST_TEST(made.labels.at("purpose").as_string() == "test");
    BOOST_TEST(!made.request.server_auth);
    BOOST_TEST(!made.request.client_auth);
  }
}

BOOST_AUTO_TEST_CASE(keys_are_cheap_unless_the_spec_is_to_be_honoured) {
  const auto certificate = sample(issuer_kind::cert_manager);
  BOOST_TEST((read(certificate).request.key == tls::key_type::ecdsa_p256));
  BOOST_TEST(
      (read(certificate, issuer_kind::cert_manager, true).request.key == tls::key_type::rsa_4096));
  BOOST_TEST(why_not(R"({"privateKey":{"algorithm":"Ed25519"}})", true).find("privateKey") !=
             std::string::npos);
}

BOOST_AUTO_TEST_CASE(usages_become_roles) {
  auto certificate = sample(issuer_kind::cert_manager);
  certificate.at("spec").as_object()["usages"] = json::array{"server auth"};
  const auto made = read(certificate);
  BOOST_TEST(made.request.server_auth);
  BOOST_TEST(!made.request.client_auth);
}

BOOST_AUTO_TEST_CASE(unsupported_field_is_named) {
  BOOST_TEST(why_not(R"({"secretName":""})") == "spec.secretName is missing");
  BOOST_TEST(why_not(R"({"duration":"soon"})") == "spec.duration is no duration: soon");
  BOOST_TEST(why_not(R"({"duration":"0h"})") == "spec.duration is no duration: 0h");
  BOOST_TEST(why_not(R"({"renewBefore":"1440h"})").starts_with("spec.renewBefore"));
}

BOOST_AUTO_TEST_CASE(there_is_a_reason_to_issue_or_none) {
  const auto root = good(tls::issuer::create({.common_name = "root"}));
  const auto now = std::chrono::floor<std::chrono::seconds>(std::chrono::system_clock::now());
  for (const auto kind : {issuer_kind::cert_manager, issuer_kind::gardener}) {
    auto certificate = sample(kind);
    const auto wanted = read(certificate, kind);
    const auto reason = [&](const json::value& secret, wall_time when) {
      return std::string(reason_to_issue(certificate, secret, wanted, kind, when));
    };
    BOOST_TEST(reason(nullptr, now) == "DoesNotExist");
    auto request = wanted.request;
    request.not_before = now;
    const auto issued = good(root.issue(request));
    auto secret = secret_for(certificate, wanted, issued, root.certificate_pem());
    BOOST_TEST(reason(secret, now) == "");
    BOOST_TEST((renewal_of(secret, wanted) == now + 1440h - wanted.renew_before));
    BOOST_TEST(reason(secret, now + 1440h - wanted.renew_before - 1s) == "");
    BOOST_TEST(reason(secret, now + 1440h - wanted.renew_before) == "Renewing");

    auto damaged = secret;
    k8s::set_secret_data(damaged, "tls.key", root.own().key);
    BOOST_TEST(reason(damaged, now) == "InvalidKeyPair");
    request.dns_names = {"skr.svc"};
    const auto other = secret_for(certificate, wanted, good(root.issue(request)), "");
    BOOST_TEST(reason(other, now) == "SecretMismatch");

    ask(certificate, kind);
    BOOST_TEST(reason(secret, now) == "ManuallyTriggered");
  }
}

BOOST_AUTO_TEST_SUITE_END()
