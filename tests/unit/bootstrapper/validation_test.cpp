// What is refused before it comes near a runtime, and what is said then.

#include "rw/reactors/bootstrapper/validation.hpp"

#include "rw/reactors/bootstrapper/desired_set.hpp"

#include <boost/json/serialize.hpp>
#include <boost/test/unit_test.hpp>

#include "tests/unit/bootstrapper/samples.hpp"
#include <functional>
#include <string>
#include <vector>

namespace rw::bootstrapper_test {
BOOST_AUTO_TEST_SUITE(validation)

using bootstrapper::describe;
using bootstrapper::diagnostics;
using bootstrapper::render_input;
using bootstrapper::unit;
using namespace std::chrono_literals;

namespace {

const std::string& shared_pem() {
  static const auto pem = ca_pem();
  return pem;
}

/// All errors, or warnings, of both units; empty: none.
diagnostics found_in(const render_input& from) {
  diagnostics out;
  for (const auto of : bootstrapper::all_units) {
    const auto made = bootstrapper::render(of, from, std::chrono::system_clock::now());
    out.errors.insert(out.errors.end(), made.found.errors.begin(), made.found.errors.end());
    out.warnings.insert(out.warnings.end(), made.found.warnings.begin(), made.found.warnings.end());
  }
  return out;
}

std::string errors_of(const render_input& from) {
  return describe(found_in(from).errors, 20);
}

std::string warnings_of(const render_input& from) {
  return describe(found_in(from).warnings, 20);
}

render_input with_configuration(const std::string& text) {
  auto from = good_sources(shared_pem());
  from.at(source_kind::config).object = config_map(text);
  return from;
}

std::string errors_of_configuration(const std::string& text) {
  return errors_of(with_configuration(text));
}

std::string errors_of_manifests(const std::string& text) {
  auto from = good_sources(shared_pem());
  from.at(source_kind::manifests).object = manifests_source(text);
  return errors_of(from);
}

void check_has(const std::string& text, const std::string& part) {
  BOOST_TEST(text.find(part) != text.npos, "\"" << text << "\" lacks \"" << part << "\"");
}

std::string features(const std::string& available, const std::string& namespaces) {
  return R"({"overrides": {}, "availableFeatures": )" + available + R"(, "namespaceFeatures": )" +
         namespaces + "}";
}

}  // namespace

BOOST_AUTO_TEST_CASE(valid_set_is_accepted_as_a_whole) {
  BOOST_TEST(errors_of(good_sources(shared_pem())) == "");
}

BOOST_AUTO_TEST_CASE(configuration_that_is_no_json_is_reported_with_the_place) {
  check_has(errors_of_configuration("{\"overrides\": {}, oops}"),
            "rt-bootstrapper-config.json: is not JSON, from byte ");
  check_has(errors_of_configuration("{\"overrides\": {}} x"), "is not JSON, from byte 19");
  check_has(errors_of_configuration("[]"), "is no JSON object");
  check_has(errors_of_configuration(""), "is not JSON");
}

BOOST_AUTO_TEST_CASE(wrong_fields_of_the_configuration_are_named) {
  check_has(errors_of_configuration("{}"), "overrides: is required");
  check_has(errors_of_configuration(R"({"overrides": {"a": 1}})"),
            "overrides.a: its value is no registry");
  check_has(errors_of_configuration(R"({"overrides": {"https://a": "b"}})"),
            "overrides.https://a: is no registry");
  const auto bundle = errors_of_configuration(
      R"({"overrides": {}, "clusterTrustBundle": {"name": "", "volumeName": "A_b",
          "volumeMountPath": "etc", "certWritePath": "../x", "path": "y"}})");
  for (const auto* field :
       {"clusterTrustBundle.name: is no string, or an empty one",
        "clusterTrustBundle.volumeName: \"A_b\"", "clusterTrustBundle.volumeMountPath: \"etc\"",
        "clusterTrustBundle.certWritePath: \"../x\""}) {
    check_has(bundle, field);
  }
}

BOOST_AUTO_TEST_CASE(namespaces_feature_must_be_known_and_available) {
  const std::string registry = R"("rt-cfg.kyma-project.io/alter-img-registry")";
  const std::string fips = R"("rt-cfg.kyma-project.io/set-fips-mode")";
  BOOST_TEST(errors_of_configuration(
                 features("[" + registry + "]", R"({"a": [)" + registry + "]}")) == "");
  BOOST_TEST(errors_of_configuration(features("[]", R"({"a": ["rt-cfg.kyma-project.io/all"]})")) ==
             "");
  check_has(errors_of_configuration(features("[" + registry + "]", R"({"a": [)" + fips + "]}")),
            "namespaceFeatures.a: \"rt-cfg.kyma-project.io/set-fips-mode\" is not among "
            "availableFeatures");
  check_has(errors_of_configuration(features(R"(["rt-cfg.kyma-project.io/fly"])", "{}")),
            "availableFeatures[0]: \"rt-cfg.kyma-project.io/fly\" is no feature");
  check_has(errors_of_configuration(features(R"(["rt-cfg.kyma-project.io/all"])", "{}")),
            "availableFeatures[0]");
  check_has(errors_of_configuration(features("[]", R"({"Not A Name": [7]})")),
            "namespaceFeatures.Not A Name[0]: is no string");
}

BOOST_AUTO_TEST_CASE(version_to_be_installed_says_which_features_it_knows) {
  auto from = good_sources(shared_pem());
  from.at(source_kind::config).object =
      config_map(features(R"(["rt-cfg.kyma-project.io/fly"])", R"({"a": []})"));
  check_has(errors_of(from),
            "is no feature that the version to be installed knows; the annotation "
            "operator.kyma-project.io/bootstrapper-features of its Deployment lists");
  auto text = manifests();
  const std::string labels = "  labels: {";
  text.insert(text.find(labels),
              "  annotations: {operator.kyma-project.io/bootstrapper-features: "
              "\"rt-cfg.kyma-project.io/fly, rt-cfg.kyma-project.io/swim\"}\n");
  from.at(source_kind::manifests).object = manifests_source(text);
  BOOST_TEST(errors_of(from) == "");
}

BOOST_AUTO_TEST_CASE(empty_list_of_features_allows_those_of_namespaces) {
  const std::string registry = R"("rt-cfg.kyma-project.io/alter-img-registry")";
  BOOST_TEST(errors_of_configuration(features("[]", R"({"a": [)" + registry + "]}")) == "");
  check_has(errors_of_configuration(features("[]", R"({"a": ["rt-cfg.kyma-project.io/fly"]})")),
            "namespaceFeatures.a[0]: \"rt-cfg.kyma-project.io/fly\" is no feature");
}

BOOST_AUTO_TEST_CASE(landscape_feature_needs_its_argument) {
  auto from = good_sources(shared_pem());
  const std::string feature = R"(["rt-cfg.kyma-project.io/set-landscape"])";
  for (const auto& text : {features(feature, "{}"), features("[]", R"({"a": )" + feature + "}")}) {
    from.at(source_kind::config).object = config_map(text);
    from.at(source_kind::manifests).object = manifests_source(manifests());
    check_has(errors_of(from), "needs the argument --landscape of the bootstrapper");
    for (const auto& [arguments, good] : {std::pair("[--landscape=TEST]", true),
                                          {"[-landscape, TEST]", true},
                                          {"[--landscape=]", false},
                                          {"[--landscape]", false},
                                          {"[--landscapes=TEST]", false}}) {
      auto with = manifests();
      const std::string image = "name: manager, ";
      with.insert(with.find(image) + image.size(), "args: " + std::string(arguments) + ", ");
      from.at(source_kind::manifests).object = manifests_source(with);
      BOOST_TEST((errors_of(from) == "") == good, arguments);
    }
  }
}

BOOST_AUTO_TEST_CASE(configuration_must_fit_the_trust_bundle) {
  auto from = good_sources(shared_pem());
  from.at(source_kind::trust_bundle).object.as_object()["metadata"].as_object()["name"] = "another";
  check_has(errors_of(from), "clusterTrustBundle.name: is \"" + bundle_name +
                                 "\", but the bundle is called \"another\"");
  check_has(errors_of_configuration(
                R"({"overrides": {},
                    "availableFeatures": ["rt-cfg.kyma-project.io/add-cluster-trust-bundle"]})"),
            "clusterTrustBundle: is required");
}

BOOST_AUTO_TEST_CASE(pull_secret_must_have_its_type_and_credentials) {
  auto from = good_sources(shared_pem());
  const auto with = [&](const std::string& text, const std::string& type) {
    auto& object = from.at(source_kind::pull_secret).object;
    object = pull_secret();
    object.as_object()["type"] = type;
    k8s::set_secret_data(object, bootstrapper::pull_secret_key, text);
    return errors_of(from);
  };
  const std::string type(bootstrapper::pull_secret_type);
  check_has(with(R"({"auths": {"r": {"auth": "dTpw"}}})", "Opaque"),
            "Secret kcp-system/registry-credentials, type: is \"Opaque\" and not "
            "kubernetes.io/dockerconfigjson");
  BOOST_TEST(with(R"({"auths": {"r": {"auth": "dTpw"}}})", type) == "");
  BOOST_TEST(with(R"({"auths": {"r": {"identitytoken": "t"}}})", type) == "");
  check_has(with(R"({"auths": {"r": {"auth": "dXA="}}})", type),
            "auths.r.auth: is not base64 of user:password");
  check_has(with(R"({"auths": {"r": {"username": "u"}}})", type), "auths.r: has no credentials");
  check_has(with(R"({"auths": {}})", type), "auths: has no registry");
  check_has(with(R"({})", type), "auths: is missing");
  const auto broken = with(R"({"auths": hunter2})", type);
  check_has(broken, "is not JSON");
  BOOST_TEST(broken.find("hunter2") == broken.npos);
  from.at(source_kind::pull_secret).object.as_object().erase("data");
  check_has(errors_of(from), "data[.dockerconfigjson]: is missing or not base64");
}

BOOST_AUTO_TEST_CASE(trust_bundle_with_garbage_is_rejected_and_the_block_named) {
  auto from = good_sources(shared_pem());
  const auto with = [&](const std::string& pem) {
    from.at(source_kind::trust_bundle).object = trust_bundle(pem);
    return errors_of(from);
  };
  const auto other = ca_pem("other");
  BOOST_TEST(with("# ours\n" + shared_pem() + "# theirs\n" + other) == "");
  check_has(with("garbage"), "spec.trustBundle");
  check_has(with(""), "spec.trustBundle: is missing or empty");
  auto damaged = other;
  damaged.replace(damaged.find("MII"), 10, "AAAAAAAAAA");
  check_has(with(damaged), "block 1");
  check_has(with(shared_pem() + "-----BEGIN PRIVATE KEY-----\nAAAA\n-----END PRIVATE KEY-----\n"),
            "PEM block 2 is no CERTIFICATE");
}

BOOST_AUTO_TEST_CASE(damaged_block_beside_a_good_one_is_a_warning) {
  const auto other = ca_pem("other");
  auto damaged = other;
  damaged.replace(damaged.find("MII"), 10, "AAAAAAAAAA");
  for (const auto& bad : {damaged, other.substr(0, other.size() / 2)}) {
    const auto from = good_sources(shared_pem() + bad);
    BOOST_TEST(errors_of(from) == "");
    check_has(warnings_of(from), "block 2");
  }
}

BOOST_AUTO_TEST_CASE(registry_without_credentials_beside_another_is_a_warning) {
  auto from = good_sources(shared_pem());
  auto& object = from.at(source_kind::pull_secret).object;
  k8s::set_secret_data(object, bootstrapper::pull_secret_key,
                       R"({"auths": {"r": {"auth": "dTpw"}, "harbor.internal": {}}})");
  BOOST_TEST(errors_of(from) == "");
  check_has(warnings_of(from), "auths.harbor.internal: has no credentials");
}

BOOST_AUTO_TEST_CASE(expired_repeated_and_foreign_certificates_are_warnings) {
  const auto ca = tls::issuer::create({.common_name = "btp"}).value();
  const auto leaf = ca.issue({.common_name = "leaf", .server_auth = true}).value();
  const auto bygone = ca_pem("bygone", 1h, 48h);
  auto from = good_sources(shared_pem() + bygone + leaf.certificate + shared_pem());
  BOOST_TEST(errors_of(from) == "");
  check_has(warnings_of(from), "certificate 2 (CN=bygone) expired on 20");
  check_has(warnings_of(from), "certificate 3 (CN=leaf) is no CA's");
  check_has(warnings_of(from), "certificate 4 (CN=btp) is listed twice");
  check_has(errors_of(good_sources(bygone)), "all certificates have expired");
}

BOOST_AUTO_TEST_CASE(defect_that_the_bootstrapper_tolerates_is_a_warning) {
  auto from = with_configuration(
      R"({"overrides": {}, "override": {},
          "namespaceFeatures": {"a": ["rt-cfg.kyma-project.io/set-fips-mode"]}})");
  BOOST_TEST(errors_of(from) == "");
  check_has(warnings_of(from), "override: is no field");
  check_has(warnings_of(from), "namespaceFeatures: has no effect without availableFeatures");
}

BOOST_AUTO_TEST_CASE(missing_trust_bundle_is_an_error_only_if_the_configuration_uses_it) {
  auto from = with_configuration(R"({"overrides": {}})");
  from.at(source_kind::trust_bundle).object = nullptr;
  BOOST_TEST(errors_of(from) == "");
  check_has(warnings_of(from),
            "does not exist, and no valid content of it is stored; installed "
            "without one");
  from.at(source_kind::config).object = config_map(good_configuration());
  check_has(errors_of(from), "ClusterTrustBundle " + bundle_name + ": does not exist");
}

BOOST_AUTO_TEST_CASE(broken_document_is_named_by_its_number) {
  check_has(errors_of_manifests(manifests() + "---\na: [\n"), "manifests.yaml: document 5");
  check_has(errors_of_manifests(manifests() + "---\nkind: ConfigMap\nmetadata: {name: a}\n"),
            "document 5, line");
  check_has(errors_of_manifests(""), "manifests.yaml: is missing or empty");
  check_has(errors_of_manifests("---\n"), "there is no Deployment kyma-system/rt-bootstrapper");
  check_has(errors_of_manifests(std::string((1u << 20) + 1, ' ')), "is larger than 1048576 bytes");
}

BOOST_AUTO_TEST_CASE(dashes_inside_a_block_of_text_do_not_end_a_document) {
  const std::string block = R"(---
apiVersion: v1
kind: ConfigMap
metadata: {name: text, namespace: kyma-system}
data:
  text: |
    one
    ---
    two
)";
  BOOST_TEST(errors_of_manifests(manifests("1.0.0", block)) == "");
}

BOOST_AUTO_TEST_CASE(object_that_is_there_twice_is_rejected) {
  const std::string twice =
      "---\napiVersion: v1\nkind: ServiceAccount\n"
      "metadata: {name: rt-bootstrapper, namespace: kyma-system}\n";
  check_has(errors_of_manifests(manifests("1.0.0", twice)),
            "ServiceAccount kyma-system/rt-bootstrapper is defined twice");
  const std::string elsewhere =
      "---\napiVersion: v1\nkind: ServiceAccount\nmetadata: {name: rt-bootstrapper}\n";
  check_has(errors_of_manifests(manifests("1.0.0", elsewhere)),
            "ServiceAccount kyma-system/rt-bootstrapper is defined twice");
  const std::string placed =
      "---\napiVersion: rbac.authorization.k8s.io/v1\nkind: ClusterRole\n"
      "metadata: {name: a, namespace: b}\n"
      "---\napiVersion: rbac.authorization.k8s.io/v1\nkind: ClusterRole\nmetadata: {name: a}\n";
  check_has(errors_of_manifests(manifests("1.0.0", placed)), "ClusterRole a is defined twice");
  const std::string custom =
      "---\napiVersion: example.com/v1\nkind: Thing\nmetadata: {name: a}\n"
      "---\napiVersion: example.com/v1\nkind: Thing\n"
      "metadata: {name: a, namespace: kyma-system}\n";
  check_has(errors_of_manifests(manifests("1.0.0", custom)),
            "Thing kyma-system/a is defined twice");
}

BOOST_AUTO_TEST_CASE(revision_beyond_the_size_limit_is_refused) {
  std::string large =
      "---\napiVersion: v1\nkind: ConfigMap\nmetadata: {name: large}\ndata:\n  a: &a " +
      std::string(720'000, 'x') + "\n";
  for (int i = 0; i < 11; ++i) large += "  b" + std::to_string(i) + ": *a\n";
  check_has(errors_of_manifests(manifests("1.0.0", large)), "bytes, more than 8388608");
  std::string dense =
      "---\napiVersion: v1\nkind: ConfigMap\nmetadata: {name: large}\ndata:\n  a: &a " +
      std::string(100'000, 'x') + "\n";
  for (int i = 0; i < 90; ++i) dense += "  b" + std::to_string(i) + ": *a\n";
  check_has(errors_of_manifests(manifests("1.0.0", dense)),
            "is too large once its aliases are followed");
}

BOOST_AUTO_TEST_CASE(source_that_could_not_be_stored_is_refused) {
  auto from = good_sources(shared_pem());
  auto& data = from.at(source_kind::config).object.at("data").as_object();
  data["large"] = std::string(source_bytes, 'x');
  const auto size =
      json::serialize(bootstrapper::content_of(from.at(source_kind::config).object)).size();
  check_has(errors_of(from), "has " + std::to_string(size) + " bytes, more than " +
                                 std::to_string(source_bytes) + " that can be stored");
}

BOOST_AUTO_TEST_CASE(manifests_give_way_to_the_other_sources) {
  auto from = good_sources(shared_pem());
  from.at(source_kind::manifests).object = manifests_source(manifests("1.0.0", R"(---
apiVersion: v1
kind: ConfigMap
metadata: {name: rt-bootstrapper-config, namespace: kyma-system}
data: {rt-bootstrapper-config.json: "{}"}
---
apiVersion: v1
kind: Secret
metadata: {name: registry-credentials, namespace: kyma-system}
)"));
  BOOST_TEST(errors_of(from) == "");
  const auto made =
      bootstrapper::render(unit::bootstrapper, from, std::chrono::system_clock::now());
  BOOST_TEST(made.objects.size() == 6U);
}

BOOST_AUTO_TEST_CASE(missing_source_is_an_error_and_one_without_a_name_has_no_objects) {
  auto from = good_sources(shared_pem());
  from.at(source_kind::pull_secret).object = nullptr;
  check_has(errors_of(from), "Secret kcp-system/registry-credentials: does not exist");
  from.at(source_kind::pull_secret).name.clear();
  BOOST_TEST(errors_of(from) == "");
  const auto made = bootstrapper::render(unit::credentials, from, std::chrono::system_clock::now());
  BOOST_TEST(made.objects.empty());
}

BOOST_AUTO_TEST_CASE(digest_depends_on_content_and_not_on_the_order_of_fields) {
  const auto digest = [](const render_input& from) {
    return bootstrapper::render(unit::bootstrapper, from, std::chrono::system_clock::now()).digest;
  };
  const auto from = good_sources(shared_pem());
  auto same = from;
  auto& object = same.at(source_kind::config).object.as_object();
  const auto was = object["data"];
  object.erase("data");
  object["data"] = was;
  BOOST_TEST(digest(from) == digest(same));
  auto other = from;
  other.at(source_kind::config).object.at("data").as_object()["more"] = "x";
  BOOST_TEST(digest(from) != digest(other));
}

BOOST_AUTO_TEST_SUITE_END()
}  // namespace rw::bootstrapper_test
