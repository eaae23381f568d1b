#include "rw/reactors/dev/issuer/dev_issuer.hpp"

#include "rw/k8s/objects/types.hpp"
#include "rw/reactors/shared/kyma_resources.hpp"
#include "rw/tls/ca_bundle.hpp"

#include <boost/test/unit_test.hpp>

#include "tests/unit/dev_issuer/samples.hpp"
#include "tests/unit/gateway_secret/cluster.hpp"
#include <chrono>
#include <optional>
#include <set>
#include <string>

BOOST_AUTO_TEST_SUITE(dev_issuer)

using namespace rw;
using namespace rw::dev_issuer;
using namespace rw::dev_issuer::test;
using namespace std::chrono_literals;
namespace json = boost::json;

namespace {

constexpr auto name = "k1-webhook-tls";
constexpr auto root_name = "klm-watcher";

/// A control plane with an issuer in it.
struct world : gateway_secret::test::cluster {
  explicit world(issuer_kind of, issuer_options with = {}) : kind(of), type(certificates_type(of)) {
    define(of == issuer_kind::gardener ? "cert.gardener.cloud_certificates.yaml"
                                       : "cert-manager.io_certificates.yaml");
    certificates = &inform(type, {});
    secrets = &inform(secrets_type(), {.objects = {.ns = "istio-system"}});
    with.kind = of;
    under_test.emplace(context.get_executor(), std::move(with),
                       issuer_sources{*certificates, *secrets},
                       rw::dev_issuer::issuer_environment{*reactor_api, clock, watchdog, log,
                                                          numbers, core::make_random_source()});
    tasks.spawn(under_test->run());
  }
  ~world() { stop(); }

  tls::certificate leaf(const std::string& of = name) {
    const auto secret = get(secrets_type(), of);
    auto parsed = tls::certificate::from_pem(k8s::secret_data(secret, "tls.crt").value());
    BOOST_REQUIRE(parsed.has_value());
    return *parsed;
  }
  void await(const std::string& of) {
    until([&] { return find(secrets_type(), of).has_value(); }, of);
  }
  bool ready() {
    const auto found = find(type, name);
    if (!found) return false;
    if (kind == issuer_kind::gardener) {
      return k8s::find_string(*found, {"status", "state"}) == "Ready" &&
             k8s::find(*found, {"spec", "renew"}) == nullptr;
    }
    const auto condition = k8s::find_condition(*found, "Ready");
    return condition && condition->status == "True" && !k8s::find_condition(*found, "Issuing");
  }
  /// Makes the Certificate and waits for the first issue.
  void begin() {
    create(type, sample(kind));
    until([&] { return ready(); }, "the first certificate");
  }
  void ask_again() {
    auto now = get(type, name);
    ask(now, kind);
    if (kind == issuer_kind::gardener) {
      update(type, now);
    } else {
      ok(own().update(type, now, {.subresource = "status"}));
    }
  }

  const issuer_kind kind;
  const k8s::resource_type type;
  k8s::informer* certificates = nullptr;
  k8s::informer* secrets = nullptr;
  std::optional<issuer_simulator> under_test;
};

void a_certificate_lives(issuer_kind kind) {
  world w(kind);
  w.await(root_name);
  const auto root = w.leaf(root_name);
  BOOST_TEST(root.is_ca());
  BOOST_TEST(root.dns_names() == std::vector<std::string>{"localhost"});
  const auto root_secret = w.get(secrets_type(), root_name);
  BOOST_TEST((k8s::secret_data(root_secret, "tls.crt") == k8s::secret_data(root_secret, "ca.crt")));

  // Issued, with labels, and told of in the status.
  w.begin();
  const auto first = w.leaf();
  BOOST_TEST(first.common_name() == "runtime-1");
  BOOST_TEST(first.dns_names() == (std::vector<std::string>{"skr.example.com", "skr.svc"}));
  BOOST_TEST(tls::is_issued_by(first, root));
  BOOST_TEST((first.not_after() - first.not_before() == 1440h));
  const auto secret = w.get(secrets_type(), name);
  BOOST_TEST(k8s::label(secret, "purpose") == "test");
  BOOST_TEST((k8s::secret_data(secret, "ca.crt") == root.pem()));
  const auto status = w.get(w.type, name);
  const bool gardener = kind == issuer_kind::gardener;
  BOOST_TEST(k8s::find_string(status, {"status", gardener ? "issuanceDate" : "notBefore"}) ==
             k8s::format_time(first.not_before()));
  BOOST_TEST(k8s::find_string(status, {"status", gardener ? "expirationDate" : "notAfter"}) ==
             k8s::format_time(first.not_after()));

  // Left alone as long as nobody asks, and nothing is due.
  w.pass(1h);
  BOOST_TEST((w.leaf() == first));
  BOOST_TEST(w.under_test->certificates() == 1u);

  // Issued anew when it is asked for.
  w.ask_again();
  w.until([&] { return w.ready() && !(w.leaf() == first); }, "the second certificate");
  const auto second = w.leaf();
  BOOST_TEST((second.not_before() >= first.not_before() + 1h));
  BOOST_TEST(tls::is_issued_by(second, root));
  w.pass(10s);
  BOOST_TEST(w.under_test->certificates() == 2u);

  // And when the Secret is gone.
  w.remove(secrets_type(), name);
  w.await(name);
  BOOST_TEST(!(w.leaf() == second));
}

}  // namespace

BOOST_AUTO_TEST_CASE(certificate_of_cert_manager_lives) {
  a_certificate_lives(issuer_kind::cert_manager);
}

BOOST_AUTO_TEST_CASE(certificate_of_gardener_lives) {
  a_certificate_lives(issuer_kind::gardener);
}

BOOST_AUTO_TEST_CASE(root_that_is_deleted_or_damaged_is_made_again_and_signs_from_then_on) {
  world w(issuer_kind::cert_manager);
  w.await(root_name);
  w.begin();
  const auto first = w.leaf(root_name);
  w.remove(secrets_type(), root_name);
  w.await(root_name);
  const auto second = w.leaf(root_name);
  BOOST_TEST(!(second == first));
  // A new root by itself is no reason to issue.
  BOOST_TEST(tls::is_issued_by(w.leaf(), first));
  w.ask_again();
  w.until([&] { return tls::is_issued_by(w.leaf(), second); }, "a certificate of the new root");

  w.put(secrets_type(), w.secret(root_name, {{"tls.crt", "nonsense"}}));
  w.until([&] { return w.under_test->roots() == 3; }, "a third root");
  BOOST_TEST(!(w.leaf(root_name) == second));
}

BOOST_AUTO_TEST_CASE(root_is_rotated_by_the_clock_as_often_as_configured) {
  world w(issuer_kind::cert_manager, {.rotate_root_every = 10s, .rotations = 3, .delay = 2s});
  w.await(root_name);
  std::set<std::string> seen{w.leaf(root_name).fingerprint()};
  for (std::uint64_t i = 1; i <= 3; ++i) {
    w.until([&] { return w.under_test->roots() == i + 1; }, "a rotation");
    seen.insert(w.leaf(root_name).fingerprint());
  }
  BOOST_TEST(seen.size() == 4u);
  w.pass(60s);
  BOOST_TEST(w.under_test->roots() == 4u);
}

BOOST_AUTO_TEST_CASE(certificate_is_renewed_before_its_end) {
  world w(issuer_kind::cert_manager);
  w.begin();
  const auto first = w.leaf();
  // Its root is as old as it, and still good then.
  w.pass(719h);
  BOOST_TEST((w.leaf() == first));
  w.pass(2h);
  w.until([&] { return w.ready() && !(w.leaf() == first); }, "the renewed certificate");
}

BOOST_AUTO_TEST_CASE(certificates_of_other_issuers_are_left_alone) {
  world w(issuer_kind::cert_manager);
  w.await(root_name);
  auto foreign = sample(issuer_kind::cert_manager, "other");
  foreign.at("spec").at("issuerRef").as_object()["name"] = "somebody";
  w.create(w.type, foreign);
  w.begin();
  w.pass(10s);
  BOOST_TEST(!w.find(secrets_type(), "other-webhook-tls"));
}

BOOST_AUTO_TEST_CASE(invalid_certificate_says_why_until_it_is_changed) {
  world w(issuer_kind::cert_manager);
  w.await(root_name);
  auto wrong = sample(issuer_kind::cert_manager);
  wrong.at("spec").as_object()["duration"] = "soon";
  w.create(w.type, wrong);
  w.until(
      [&] {
        const auto told = k8s::find_condition(w.get(w.type, name), "Ready");
        return told && told->status == "False" && told->message.find("soon") != std::string::npos;
      },
      "the reason");
  auto now = w.get(w.type, name);
  now.at("spec").as_object()["duration"] = "1440h";
  w.update(w.type, now);
  w.until([&] { return w.ready(); }, "the certificate");
}

BOOST_AUTO_TEST_CASE(request_that_comes_in_the_middle_is_not_lost) {
  // Random pauses between the steps, and somebody who asks again and again.
  world w(issuer_kind::cert_manager, {.delay = 200ms});
  w.begin();
  for (int i = 0; i < 20; ++i) {
    const auto before = w.leaf();
    auto asked = w.call(w.own().get(w.type, {"istio-system", name}));
    BOOST_REQUIRE(asked.has_value());
    ask(*asked, issuer_kind::cert_manager);
    const auto said = w.call(w.own().update(w.type, *asked, {.subresource = "status"}));
    if (!said) continue;  // it was just written: a user would look again
    w.pass(std::chrono::milliseconds(37 * i));
    w.until([&] { return w.ready() && !(w.leaf() == before); }, "another certificate");
  }
}

BOOST_AUTO_TEST_SUITE_END()
