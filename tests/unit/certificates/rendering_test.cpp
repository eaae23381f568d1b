#include "rw/reactors/certificates/rendering.hpp"

#include "rw/k8s/objects/types.hpp"

#include <boost/json/parse.hpp>
#include <boost/json/serialize.hpp>
#include <boost/test/unit_test.hpp>

#include <string>

BOOST_AUTO_TEST_SUITE(rendering)

using namespace rw::certificates;
namespace json = boost::json;
namespace k8s = rw::k8s;

namespace {

json::value kyma() {
  return json::parse(R"({
    "apiVersion": "operator.kyma-project.io/v1beta2", "kind": "Kyma",
    "metadata": {"name": "k1", "namespace": "kcp-system",
                 "labels": {"kyma-project.io/runtime-id": "runtime-1"},
                 "annotations": {"skr-domain": "a.skr.example.com"}}})");
}

std::string refusal(const json::value& of) {
  const auto made = certificate_for(of, {});
  BOOST_REQUIRE(made.has_error());
  return made.error().message;
}

}  // namespace

BOOST_AUTO_TEST_CASE(cert_manager_gets_its_certificate) {
  const auto made = certificate_for(kyma(), {.extra_dns_names = {"localhost"}});
  BOOST_REQUIRE(made.has_value());
  BOOST_TEST(*made == json::parse(R"({
    "apiVersion": "cert-manager.io/v1", "kind": "Certificate",
    "metadata": {"name": "k1-webhook-tls", "namespace": "istio-system",
                 "labels": {"operator.kyma-project.io/managed-by": "lifecycle-manager"}},
    "spec": {
      "commonName": "runtime-1",
      "dnsNames": ["a.skr.example.com", "localhost", "skr-webhook.kyma-system.svc.cluster.local",
                   "skr-webhook.kyma-system.svc"],
      "duration": "1440h", "renewBefore": "720h",
      "secretName": "k1-webhook-tls",
      "secretTemplate": {"labels": {
        "operator.kyma-project.io/purpose": "klm-watcher-cert-manager",
        "operator.kyma-project.io/managed-by": "lifecycle-manager"}},
      "issuerRef": {"name": "klm-watcher-selfsigned", "kind": "Issuer"},
      "privateKey": {"algorithm": "ECDSA", "encoding": "PKCS1", "size": 256,
                     "rotationPolicy": "Always"},
      "usages": ["digital signature", "key encipherment"]}})"));
}

BOOST_AUTO_TEST_CASE(gardener_gets_its_certificate) {
  const auto made = certificate_for(kyma(), {.kind = issuer_kind::gardener,
                                             .issuer = "i",
                                             .issuer_ns = "garden",
                                             .key = rw::tls::key_type::rsa_4096});
  BOOST_REQUIRE(made.has_value());
  BOOST_TEST(*made == json::parse(R"({
    "apiVersion": "cert.gardener.cloud/v1alpha1", "kind": "Certificate",
    "metadata": {"name": "k1-webhook-tls", "namespace": "istio-system",
                 "labels": {"operator.kyma-project.io/managed-by": "lifecycle-manager"}},
    "spec": {
      "commonName": "runtime-1",
      "dnsNames": ["a.skr.example.com", "skr-webhook.kyma-system.svc.cluster.local",
                   "skr-webhook.kyma-system.svc"],
      "duration": "1440h",
      "secretName": "k1-webhook-tls",
      "secretLabels": {
        "operator.kyma-project.io/purpose": "klm-watcher-cert-manager",
        "operator.kyma-project.io/managed-by": "lifecycle-manager"},
      "issuerRef": {"name": "i", "namespace": "garden"},
      "privateKey": {"algorithm": "RSA", "size": 4096}}})"));
}

BOOST_AUTO_TEST_CASE(certificate_keeps_the_key_that_it_has) {
  const auto rsa = *certificate_for(kyma(), {.key = rw::tls::key_type::rsa_4096});
  auto wanted = *certificate_for(kyma(), {});
  BOOST_TEST(!covers(rsa, wanted));
  BOOST_TEST(keep_key(wanted, rsa));
  BOOST_TEST(wanted == rsa);
  BOOST_TEST(!keep_key(wanted, rsa));
  BOOST_TEST(!keep_key(wanted, nullptr));
  BOOST_TEST(wanted == rsa);
}

BOOST_AUTO_TEST_CASE(kyma_without_certificate_gets_a_message_that_says_what_to_change) {
  const auto without = [](std::string_view map) {
    auto one = kyma();
    one.at("metadata").as_object().erase(map);
    return one;
  };
  const auto labelled = [](const std::string& runtime) {
    auto one = kyma();
    k8s::set_label(one, "kyma-project.io/runtime-id", runtime);
    return one;
  };
  const auto annotated = [](const std::string& domain) {
    auto one = kyma();
    k8s::set_annotation(one, "skr-domain", domain);
    return one;
  };
  const std::string no_runtime = "label kyma-project.io/runtime-id is missing or empty";
  const std::string no_domain = "annotation skr-domain is missing or empty";
  BOOST_TEST(refusal(without("labels")) == no_runtime);
  BOOST_TEST(refusal(labelled("")) == no_runtime);
  BOOST_TEST(refusal(labelled(std::string(65, 'x'))).find("64") != std::string::npos);
  BOOST_TEST(certificate_for(labelled(std::string(64, 'x')), {}).has_value());
  BOOST_TEST(refusal(without("annotations")) == no_domain);
  BOOST_TEST(refusal(annotated("")) == no_domain);
  for (const auto* wrong : {"https://a.example.com", "a b", ".a", "a.", "a..b", "-a", "*", "a_b"}) {
    BOOST_TEST(refusal(annotated(wrong)) ==
               "annotation skr-domain is no host name: " + std::string(wrong));
  }
  for (const auto* right : {"a", "A.example.com", "*.example.com", "10.0.0.1"}) {
    BOOST_TEST(certificate_for(annotated(right), {}).has_value());
  }
  auto long_name = kyma();
  long_name.at("metadata").as_object()["name"] = std::string(250, 'k');
  BOOST_TEST(refusal(long_name).find("too long") != std::string::npos);
  BOOST_TEST(certificate_for(nullptr, {}).has_error());
}

BOOST_AUTO_TEST_CASE(name_that_is_there_twice_is_written_once) {
  auto one = kyma();
  k8s::set_annotation(one, "skr-domain", "skr-webhook.kyma-system.svc");
  const auto made = certificate_for(one, {.extra_dns_names = {"x", "x"}});
  BOOST_TEST(made->at("spec").at("dnsNames") == json::parse(R"(["skr-webhook.kyma-system.svc", "x",
                             "skr-webhook.kyma-system.svc.cluster.local"])"));
}

BOOST_AUTO_TEST_CASE(names_lead_from_kyma_to_certificate_and_back) {
  BOOST_TEST(certificate_name("k1") == "k1-webhook-tls");
  BOOST_TEST(kyma_of("k1-webhook-tls").value() == "k1");
  BOOST_TEST(kyma_of("a-webhook-tls-webhook-tls").value() == "a-webhook-tls");
  BOOST_TEST(!kyma_of("-webhook-tls"));
  BOOST_TEST(!kyma_of("klm-watcher"));
}

BOOST_AUTO_TEST_CASE(certificate_with_fields_of_others_does_not_differ) {
  const auto wanted = *certificate_for(kyma(), {});
  BOOST_TEST(covers(wanted, wanted));
  auto there = wanted;
  there.at("metadata").as_object()["resourceVersion"] = "5";
  there.at("metadata").at("labels").as_object()["x"] = "y";
  there.at("spec").as_object()["revisionHistoryLimit"] = 1;
  there.at("spec").as_object()["duration"] = "1440h0m0s";
  there.at("spec").as_object()["renewBefore"] = "43200m";
  there.as_object()["status"] = json::object{};
  BOOST_TEST(covers(there, wanted));
  const auto changed = [&](const char* member, json::value to) {
    auto one = there;
    one.at("spec").as_object()[member] = std::move(to);
    return one;
  };
  BOOST_TEST(!covers(changed("duration", "1440h1m"), wanted));
  BOOST_TEST(!covers(changed("duration", 1440), wanted));
  BOOST_TEST(!covers(changed("commonName", "runtime-2"), wanted));
  BOOST_TEST(!covers(changed("dnsNames", json::array{"a.skr.example.com"}), wanted));
  BOOST_TEST(!covers(changed("issuerRef", nullptr), wanted));
  BOOST_TEST(!covers(nullptr, wanted));
}

BOOST_AUTO_TEST_CASE(secrets_are_selected_by_their_purpose) {
  BOOST_TEST(secret_selector() == "operator.kyma-project.io/purpose=klm-watcher-cert-manager");
}

BOOST_AUTO_TEST_SUITE_END()
