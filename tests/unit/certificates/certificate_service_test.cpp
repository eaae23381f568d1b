#include "rw/reactors/certificates/certificate_service.hpp"

#include "rw/k8s/client/object_api.hpp"
#include "rw/k8s/controller/event_recorder.hpp"

#include <boost/test/unit_test.hpp>

#include "tests/unit/gateway_secret/cluster.hpp"
#include "tests/unit/gateway_secret/world.hpp"
#include <string>

BOOST_AUTO_TEST_SUITE(certificate_service)

using namespace rw;
using namespace rw::certificates;
using namespace rw::gateway_secret::test;
namespace json = boost::json;
using kind = certificate_state::kind;

namespace {

constexpr auto name = "k1-webhook-tls";

struct bench : cluster {
  explicit bench(issuer_kind of) : kind(of), type(certificates_type(of)) {
    define(of == issuer_kind::gardener ? "cert.gardener.cloud_certificates.yaml"
                                       : "cert-manager.io_certificates.yaml");
    options.certificates.kind = of;
    certificates = &inform(type, certificates_informer(options.certificates));
    secrets = &inform(secrets_type(), secrets_informer(options.certificates));
    k8s::informer_options one;
    one.objects = {.ns = "istio-system", .fields = "metadata.name=klm-istio-gateway"};
    gateways = &inform(secrets_type(), one);
    until([&] { return certificates->synced() && secrets->synced() && gateways->synced(); },
          "the informers");
    under_test.emplace(
        *reactor_api,
        service_caches{certificates->objects(), secrets->objects(), gateways->objects()}, options,
        service_environment{clock, log, numbers, events});
    create(namespaces_type(), named("", "kcp-system", "v1", "Namespace"));
    tasks.spawn(events.run());
  }
  ~bench() { stop(); }

  wall_time now() const { return std::chrono::floor<std::chrono::seconds>(clock.wall()); }

  /// The gateway's bundle as it is from now on.
  void trust(std::vector<tls::certificate> all, wall_time added_at) {
    auto made = secret("klm-istio-gateway", {{"ca.crt", tls::ca_bundle(all).pem()}});
    k8s::set_annotation(made, ca_added_annotation, k8s::format_time(added_at));
    put(secrets_type(), made);
    await(*gateways, secrets_type(), "klm-istio-gateway");
  }
  /// What an issuer does.
  void issue(const root& by, wall_time from) {
    const auto pair = by.client("runtime-1", from);
    auto made = secret(name, {{"tls.crt", pair.certificate}, {"tls.key", pair.key}});
    k8s::set_label(made, "operator.kyma-project.io/purpose", "klm-watcher-cert-manager");
    put(secrets_type(), made);
    await(*secrets, secrets_type(), name);
  }
  /// And that it has done it.
  void finish() {
    auto made = get(type, name);
    if (kind == issuer_kind::gardener) {
      made.at("spec").as_object().erase("renew");
      made.at("spec").as_object().erase("ensureRenewedAfter");
      update(type, made);
    } else {
      made.as_object()["status"] = json::object{};
      ok(own().update(type, made, {.subresource = "status"}));
    }
    catch_up();
  }
  void catch_up() { await(*certificates, type, name); }
  /// Waits until an informer has the present state of an object.
  void await(const k8s::informer& in, const k8s::resource_type& of, const std::string& which) {
    const std::string wanted(k8s::resource_version_of(get(of, which)));
    until([&] { return in.objects().get("istio-system", which).resource_version() == wanted; },
          which);
  }

  certificate_state ensure() { return call(under_test->ensure(kyma_object)); }
  bool asked() { return is_being_issued(get(type, name), kind, {}); }
  double applies() const {
    double sum = 0;
    for (const auto* code : {"200", "201"}) {
      sum += std::max(0.0, metric("rw_kube_requests_total{client=\"reactor\",code=\"" +
                                  std::string(code) + "\",verb=\"apply\"}"));
    }
    return sum;
  }

  const issuer_kind kind;
  const k8s::resource_type type;
  service_options options = {.judge = {.gateway_settles = 0s}};
  k8s::informer* certificates = nullptr;
  k8s::informer* secrets = nullptr;
  k8s::informer* gateways = nullptr;
  k8s::event_recorder events{context.get_executor(),
                             k8s::objects_of(own()),
                             {.component = "test"},
                             {clock, log, numbers, [] { return std::uint64_t{0}; }}};
  std::optional<rw::certificates::certificate_service> under_test;
  json::value kyma_object = json::object{
      {"metadata",
       json::object{{"name", "k1"},
                    {"namespace", "kcp-system"},
                    {"labels", json::object{{"kyma-project.io/runtime-id", "runtime-1"}}},
                    {"annotations", json::object{{"skr-domain", "skr.example.com"}}}}}};
};

void a_life(issuer_kind kind) {
  bench b(kind);
  const root r1("r1", b.now() - 24h * 7);
  const root r2("r2", b.now() - 24h * 7);

  // A Certificate is made, and made right again, and otherwise left alone.
  BOOST_TEST((b.ensure().state == kind::waiting));
  b.catch_up();
  const auto made = b.get(b.type, name);
  BOOST_TEST(k8s::find_string(made, {"spec", "commonName"}) == "runtime-1");
  BOOST_TEST(b.applies() == 1);
  b.ensure();
  BOOST_TEST(b.applies() == 1);
  auto edited = made;
  edited.at("spec").as_object()["commonName"] = "other";
  b.update(b.type, edited);
  b.catch_up();
  b.ensure();
  b.catch_up();
  BOOST_TEST(k8s::find_string(b.get(b.type, name), {"spec", "commonName"}) == "runtime-1");

  // What has been issued goes out when the gateway trusts it.
  b.issue(r1, b.now() - 1h);
  BOOST_TEST((b.ensure().state == kind::waiting));
  b.trust({r1.certificate}, b.now() - 2h);
  auto is = b.ensure();
  BOOST_TEST((is.state == kind::ready), is.reason);
  BOOST_TEST(!is.must_be_reissued);
  BOOST_TEST(b.applies() == 2);

  // The bundle grows: the issuer is asked, once, and the old certificate stays good.
  b.pass(2s);
  b.trust({r2.certificate, r1.certificate}, b.now());
  is = b.ensure();
  BOOST_TEST((is.state == kind::ready), is.reason);
  BOOST_TEST(is.must_be_reissued);
  BOOST_TEST(b.asked());
  b.catch_up();
  b.ensure();
  BOOST_TEST(b.metric("rw_certificate_reissues_total") == 1);

  // Nothing happens for a day: that is told, until it has happened.
  const std::string overdue = "lifecycle_mgr_self_signed_cert_not_renew{kyma_name=\"k1\"}";
  BOOST_TEST(!rw::test::metric_of(b.numbers, overdue));
  b.trust({r2.certificate, r1.certificate}, b.now() - 24h - 1s);
  b.issue(r1, b.now() - 48h);
  b.ensure();
  b.ensure();
  BOOST_TEST(b.metric(overdue) == 1);
  BOOST_TEST(b.lines("re-issue overdue") == 1);
  b.issue(r2, b.now());
  b.finish();
  is = b.ensure();
  BOOST_TEST((is.state == kind::ready), is.reason);
  BOOST_TEST(!is.must_be_reissued);
  BOOST_TEST(!rw::test::metric_of(b.numbers, overdue));
  BOOST_TEST(!b.asked());

  // The Kyma goes.
  b.catch_up();
  const auto tried = std::make_shared<k8s::write_preview>();
  BOOST_TEST(b.call(b.under_test->try_removal(kyma("k1"), tried)).has_value());
  BOOST_TEST_REQUIRE(tried->writes().size() == 2U);
  for (const auto& each : tried->writes()) {
    BOOST_TEST(each.live.is_object());
    BOOST_TEST(each.next.is_null());
  }
  BOOST_TEST(b.find(b.type, name).has_value());
  BOOST_TEST(b.find(secrets_type(), name).has_value());
  BOOST_TEST(b.call(b.under_test->remove(kyma("k1"))).has_value());
  BOOST_TEST(!b.find(b.type, name).has_value());
  BOOST_TEST(!b.find(secrets_type(), name).has_value());
  BOOST_TEST(b.call(b.under_test->remove(kyma("k1"))).has_value());
}

k8s::devserver::fault refuse_patches(const std::string& verb, const std::string&) {
  k8s::devserver::fault out;
  if (verb == "patch") out.status = 403;
  return out;
}

}  // namespace

BOOST_AUTO_TEST_CASE(certificate_is_made_renewed_and_removed_with_cert_manager) {
  a_life(issuer_kind::cert_manager);
}

BOOST_AUTO_TEST_CASE(certificate_is_made_renewed_and_removed_with_gardener) {
  a_life(issuer_kind::gardener);
}

BOOST_AUTO_TEST_CASE(key_of_another_kind_comes_with_the_next_renewal_only) {
  for (const bool rotates : {true, false}) {
    bench b(issuer_kind::cert_manager);
    const root r1("r1", b.now() - 24h * 7);
    const root r2("r2", b.now() - 24h * 7);
    auto rsa = *certificate_for(b.kyma_object, {.key = tls::key_type::rsa_4096});
    rsa.at("metadata").as_object()["namespace"] = "istio-system";
    b.create(b.type, rsa);
    b.trust({r1.certificate}, b.now() - 2h);
    b.issue(r1, b.now() - 1h);
    b.catch_up();
    const auto algorithm = [&] {
      const auto made = b.get(b.type, name);
      return std::string(k8s::find_string(made, {"spec", "privateKey", "algorithm"}));
    };
    // Nor while nothing is known of the gateway's bundle.
    b.trust({}, b.now() - 2h);
    BOOST_TEST((b.ensure().state == kind::waiting));
    BOOST_TEST(b.applies() == 0);
    b.trust({r1.certificate}, b.now() - 2h);
    const auto is = b.ensure();
    BOOST_TEST((is.state == kind::ready), is.reason);
    BOOST_TEST(b.applies() == 0);
    if (rotates) {
      b.pass(2s);
      b.trust({r2.certificate, r1.certificate}, b.now());
    } else {
      // They last for 60 days, and are renewed 30 before the end.
      BOOST_TEST((is.again > 24h * 29));
      b.pass(is.again - 1min);
      b.ensure();
      BOOST_TEST(algorithm() == "RSA");
      b.pass(1min);
    }
    b.ensure();
    BOOST_TEST(algorithm() == "ECDSA");
    BOOST_TEST(b.asked() == rotates);
  }
}

BOOST_AUTO_TEST_CASE(kyma_that_can_have_no_certificate_is_rejected_without_a_request) {
  bench b(issuer_kind::cert_manager);
  b.kyma_object.at("metadata").as_object().erase("annotations");
  const auto is = b.ensure();
  BOOST_TEST((is.state == kind::refused));
  BOOST_TEST(is.reason == "annotation skr-domain is missing or empty");
  BOOST_TEST(!b.find(b.type, name).has_value());
}

BOOST_AUTO_TEST_CASE(server_that_refuses_is_reported_with_its_reason) {
  bench b(issuer_kind::cert_manager);
  b.server.faults("kcp").decide = refuse_patches;
  const auto is = b.ensure();
  BOOST_TEST((is.state == kind::failed));
  BOOST_REQUIRE(is.failure.has_value());
  BOOST_TEST(is.failure->is(k8s::errc::forbidden));
}

BOOST_AUTO_TEST_CASE(issuer_that_cannot_be_asked_does_not_hold_back_what_is_good) {
  bench b(issuer_kind::cert_manager);
  const root r1("r1", b.now() - 24h);
  const root r2("r2", b.now() - 24h);
  b.ensure();
  b.catch_up();
  b.issue(r1, b.now() - 1h);
  b.trust({r2.certificate, r1.certificate}, b.now());
  b.server.faults("kcp").decide = refuse_patches;
  const auto is = b.ensure();
  BOOST_TEST((is.state == kind::ready), is.reason);
  BOOST_TEST(is.must_be_reissued);
  BOOST_TEST(is.failure.has_value());
  BOOST_TEST((is.again > core::duration{}));

  // It is told once, until it has come well and goes wrong again.
  const auto told = [&] {
    return b.metric("rw_events_total{component=\"test\",outcome=\"created\"}");
  };
  b.until([&] { return told() == 1; }, "an event of the Kyma");
  b.ensure();
  b.pass(1s);
  BOOST_TEST(told() == 1);
  BOOST_TEST(b.lines("re-issue could not be requested") == 1);
  const auto all = b.ok(b.own().list(k8s::events_type(), {.ns = "kcp-system"}));
  const auto& event = all.at("items").as_array().at(0);
  BOOST_TEST(k8s::find_string(event, {"reason"}) == "CertificateNotReissued");
  BOOST_TEST(k8s::find_string(event, {"involvedObject", "name"}) == "k1");
}

BOOST_AUTO_TEST_SUITE_END()
