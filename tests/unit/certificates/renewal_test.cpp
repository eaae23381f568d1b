#include "reactors/certificates/renewal.hpp"

#include <boost/json/parse.hpp>
#include <boost/test/unit_test.hpp>

#include "tests/unit/gateway_secret/world.hpp"
#include <string>

BOOST_AUTO_TEST_SUITE(renewal)

using namespace rw;
using namespace rw::certificates;
using namespace rw::gateway_secret::test;
namespace json = boost::json;

namespace {

const root& r1() {
  static const root made("r1");
  return made;
}
const root& r2() {
  static const root made("r2");
  return made;
}

/// r2 was added on day 0.
trust_bundle grown() {
  return {.authorities = tls::ca_bundle({r2().certificate, r1().certificate}), .added_at = day0};
}
tls::certificate leaf(const root& of, time_point from) {
  return parsed(of.client("runtime-1", from).certificate);
}
bool due(const tls::certificate& one, const trust_bundle& trust = grown(),
         time_point now = day0 + 24h, const std::optional<validity>& told = {}) {
  return must_be_reissued(one, told, trust, now);
}

}  // namespace

BOOST_AUTO_TEST_CASE(a_certificate_from_before_the_bundle_grew_is_issued_anew) {
  BOOST_TEST(due(leaf(r1(), day0 - 1s)));
  BOOST_TEST(due(leaf(r1(), day0)));  // of the same second: nobody knows which came first
  BOOST_TEST(!due(leaf(r1(), day0 + 1s)));
}

BOOST_AUTO_TEST_CASE(one_of_the_newest_authority_never_has_to_be) {
  // An issuer's clock may be behind, and some let validity begin early: no end of issuing
  // otherwise.
  BOOST_TEST(!due(leaf(r2(), day0 - 1h)));
  BOOST_TEST(!due(leaf(r2(), day0)));
  BOOST_TEST(!due(leaf(r2(), day0 + 1h)));
}

BOOST_AUTO_TEST_CASE(while_the_time_is_ahead_of_the_clock_nothing_is_issued) {
  BOOST_TEST(!due(leaf(r1(), day0 - 1h), grown(), day0 - 1s));
  BOOST_TEST(due(leaf(r1(), day0 - 1h), grown(), day0));
}

BOOST_AUTO_TEST_CASE(without_bundle_or_time_nothing_is_issued) {
  auto timeless = grown();
  timeless.added_at.reset();
  BOOST_TEST(!due(leaf(r1(), day0 - 1h), timeless));
  BOOST_TEST(!due(leaf(r1(), day0 - 1h), {.added_at = day0}));
}

BOOST_AUTO_TEST_CASE(a_status_that_is_ahead_of_the_secret_counts) {
  const auto old = leaf(r1(), day0 - 1h);
  BOOST_TEST(!due(old, grown(), day0 + 1min, validity{day0 + 1s, day0 + 24h}));
  BOOST_TEST(due(old, grown(), day0 + 1min, validity{day0 - 1h, day0 + 24h}));
  BOOST_TEST(!due(leaf(r1(), day0 + 1s), grown(), day0 + 1min, validity{day0 - 1h, day0 + 24h}));
}

BOOST_AUTO_TEST_CASE(a_certificate_whose_authority_was_taken_out_is_issued_anew_after_a_while) {
  const trust_bundle without{.authorities = tls::ca_bundle({r2().certificate}), .added_at = day0};
  const auto orphan = leaf(r1(), day0 + 1h);
  BOOST_TEST(!due(orphan, without, day0 + 1h + 10min));  // the bundle may be behind
  BOOST_TEST(due(orphan, without, day0 + 1h + 11min));
}

BOOST_AUTO_TEST_CASE(validity_is_read_from_either_status) {
  const auto gardener = json::parse(R"({"status": {"issuanceDate": "2026-03-01T00:00:00Z",
                                                   "expirationDate": "2026-04-01T00:00:00Z"}})");
  const auto cert_manager = json::parse(R"({"status": {"notBefore": "2026-03-01T01:00:00+01:00",
                                                       "notAfter": "2026-04-01T00:00:00Z"}})");
  const validity expected{day0, day0 + 24h * 31};
  BOOST_TEST((validity_in_status(gardener, dialect::gardener) == expected));
  BOOST_TEST((validity_in_status(cert_manager, dialect::cert_manager) == expected));
  BOOST_TEST(!validity_in_status(gardener, dialect::cert_manager));
  BOOST_TEST(!validity_in_status(nullptr, dialect::gardener));
  BOOST_TEST(!validity_in_status(json::parse(R"({"status": {"issuanceDate": "soon",
                                                           "expirationDate": "later"}})"),
                                 dialect::gardener));
}

BOOST_AUTO_TEST_CASE(an_issuer_at_work_is_seen_as_such) {
  const auto cert_manager = [](const char* text) {
    return is_being_issued(json::parse(text), dialect::cert_manager);
  };
  BOOST_TEST(
      cert_manager(R"({"status": {"conditions": [{"type": "Issuing", "status": "True"}]}})"));
  BOOST_TEST(
      !cert_manager(R"({"status": {"conditions": [{"type": "Issuing", "status": "False"}]}})"));
  BOOST_TEST(!cert_manager(R"({"status": {"conditions": [{"type": "Ready", "status": "True"}]}})"));
  BOOST_TEST(!cert_manager("{}"));
  const auto gardener = [](const char* text) {
    return is_being_issued(json::parse(text), dialect::gardener);
  };
  BOOST_TEST(gardener(R"({"spec": {"renew": true}})"));
  BOOST_TEST(gardener(R"({"status": {"state": "Pending"}})"));
  BOOST_TEST(!gardener(R"({"spec": {"renew": false}, "status": {"state": "Ready"}})"));
}

BOOST_AUTO_TEST_CASE(what_the_issuer_says_is_passed_on) {
  BOOST_TEST(issuer_message(json::parse(R"({"status": {"state": "Error", "message": "no DNS"}})"),
                            dialect::gardener) == "no DNS");
  BOOST_TEST(issuer_message(json::parse(R"({"status": {"conditions": [
                 {"type": "Ready", "status": "False", "message": "no issuer"}]}})"),
                            dialect::cert_manager) == "no issuer");
  BOOST_TEST(issuer_message(json::parse(R"({"status": {"conditions": [
                 {"type": "Ready", "status": "True", "message": "fine"}]}})"),
                            dialect::cert_manager)
                 .empty());
}

BOOST_AUTO_TEST_CASE(cert_manager_is_asked_by_a_condition_beside_the_others) {
  const auto made = request_reissue(json::parse(R"({
      "metadata": {"resourceVersion": "7", "generation": 3},
      "status": {"conditions": [{"type": "Ready", "status": "True"},
                                {"type": "Issuing", "status": "False"}]}})"),
                                    dialect::cert_manager, day0);
  BOOST_TEST(made.subresource == "status");
  BOOST_TEST(made.change == json::parse(R"({
      "metadata": {"resourceVersion": "7"},
      "status": {"conditions": [
        {"type": "Ready", "status": "True"},
        {"type": "Issuing", "status": "True", "lastTransitionTime": "2026-03-01T00:00:00Z",
         "reason": "ManuallyTriggered",
         "message": "the gateway's CA bundle has grown since it was issued",
         "observedGeneration": 3}]}})"));
}

BOOST_AUTO_TEST_CASE(gardener_is_asked_by_its_spec) {
  const auto made = request_reissue(json::parse(R"({"metadata": {"resourceVersion": "7"}})"),
                                    dialect::gardener, day0);
  BOOST_TEST(made.subresource.empty());
  BOOST_TEST(made.change == json::parse(R"({"metadata": {"resourceVersion": "7"},
                                            "spec": {"renew": true, "ensureRenewedAfter": null}})"));
}

BOOST_AUTO_TEST_SUITE_END()
