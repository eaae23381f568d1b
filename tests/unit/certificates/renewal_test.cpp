#include "rw/reactors/certificates/renewal.hpp"

#include "rw/k8s/objects/types.hpp"

#include <boost/json/parse.hpp>
#include <boost/test/unit_test.hpp>

#include "tests/unit/certificates/controllers.hpp"
#include "tests/unit/gateway_secret/world.hpp"
#include <optional>
#include <string>

BOOST_AUTO_TEST_SUITE(renewal)

using namespace rw;
using namespace rw::certificates;
using namespace rw::certificates::test;
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
tls::certificate leaf(const root& of, wall_time from) {
  return parsed(of.client("runtime-1", from).certificate);
}
bool due(const tls::certificate& one, const trust_bundle& trust = grown(),
         wall_time now = day0 + 24h, const std::optional<validity>& told = {}) {
  return must_be_reissued(one, told, trust, now);
}

}  // namespace

BOOST_AUTO_TEST_CASE(certificate_from_before_the_bundle_grew_is_issued_again) {
  BOOST_TEST(due(leaf(r1(), day0 - 1s)));
  BOOST_TEST(due(leaf(r1(), day0)));  // of the same second: nobody knows which came first
  BOOST_TEST(!due(leaf(r1(), day0 + 1s)));
}

BOOST_AUTO_TEST_CASE(certificate_of_the_newest_authority_is_never_issued_again) {
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

BOOST_AUTO_TEST_CASE(status_that_is_ahead_of_the_secret_counts) {
  const auto old = leaf(r1(), day0 - 1h);
  BOOST_TEST(!due(old, grown(), day0 + 1min, validity{day0 + 1s, day0 + 24h}));
  BOOST_TEST(due(old, grown(), day0 + 1min, validity{day0 - 1h, day0 + 24h}));
  BOOST_TEST(!due(leaf(r1(), day0 + 1s), grown(), day0 + 1min, validity{day0 - 1h, day0 + 24h}));
}

BOOST_AUTO_TEST_CASE(certificate_whose_authority_was_taken_out_is_issued_again_after_a_while) {
  const trust_bundle without{.authorities = tls::ca_bundle({r2().certificate}), .added_at = day0};
  const auto orphan = leaf(r1(), day0 + 1h);
  BOOST_TEST(!due(orphan, without, day0 + 1h + 10min));  // the bundle may be behind
  BOOST_TEST(due(orphan, without, day0 + 1h + 11min));
}

BOOST_AUTO_TEST_CASE(certificate_of_an_earlier_authority_is_issued_anew_before_that_ends) {
  // The issuer was behind the bundle.
  const root brief("brief", day0 - 24h, 24h * 11);  // ends on day 10
  const trust_bundle both{.authorities = tls::ca_bundle({r2().certificate, brief.certificate}),
                          .added_at = day0};
  const auto late = leaf(brief, day0 + 1h);
  BOOST_TEST(!due(late, both, day0 + 24h * 3));
  BOOST_TEST(due(late, both, day0 + 24h * 3 + 1s));
  const auto again = leaf(brief, day0 + 24h * 4);  // it still is
  BOOST_TEST(!due(again, both, day0 + 24h * 5));
  BOOST_TEST(due(again, both, day0 + 24h * 5 + 1s));
  const trust_bundle alone{.authorities = tls::ca_bundle({brief.certificate}), .added_at = day0};
  BOOST_TEST(!due(late, alone, day0 + 24h * 9));  // there is no other to come from
}

BOOST_AUTO_TEST_CASE(validity_is_read_from_either_status) {
  const auto gardener = json::parse(R"({"status": {"issuanceDate": "2026-03-01T00:00:00Z",
                                                   "expirationDate": "2026-04-01T00:00:00Z"}})");
  const auto cert_manager = json::parse(R"({"status": {"notBefore": "2026-03-01T01:00:00+01:00",
                                                       "notAfter": "2026-04-01T00:00:00Z"}})");
  const validity expected{day0, day0 + 24h * 31};
  BOOST_TEST((validity_in_status(gardener, issuer_kind::gardener) == expected));
  BOOST_TEST((validity_in_status(cert_manager, issuer_kind::cert_manager) == expected));
  BOOST_TEST(!validity_in_status(gardener, issuer_kind::cert_manager));
  BOOST_TEST(!validity_in_status(nullptr, issuer_kind::gardener));
  BOOST_TEST(!validity_in_status(json::parse(R"({"status": {"issuanceDate": "soon",
                                                           "expirationDate": "later"}})"),
                                 issuer_kind::gardener));
}

BOOST_AUTO_TEST_CASE(issuer_at_work_is_seen_as_such) {
  const reissue_cause cause{.issued = day0 - 24h, .since = day0};
  const auto cert_manager = [&](const char* text) {
    return is_being_issued(json::parse(text), issuer_kind::cert_manager, cause);
  };
  BOOST_TEST(
      cert_manager(R"({"status": {"conditions": [{"type": "Issuing", "status": "True"}]}})"));
  BOOST_TEST(
      !cert_manager(R"({"status": {"conditions": [{"type": "Issuing", "status": "False"}]}})"));
  BOOST_TEST(!cert_manager(R"({"status": {"conditions": [{"type": "Ready", "status": "True"}]}})"));
  BOOST_TEST(!cert_manager("{}"));
  const auto gardener = [&](const char* text) {
    return is_being_issued(json::parse(text), issuer_kind::gardener, cause);
  };
  BOOST_TEST(gardener(R"({"spec": {"renew": true}})"));
  BOOST_TEST(gardener(R"({"status": {"state": "Pending"}})"));
  BOOST_TEST(!gardener(R"({"spec": {"renew": false}, "status": {"state": "Ready"}})"));
  // It has taken the request, and has not begun yet.
  BOOST_TEST(gardener(R"({"spec": {"ensureRenewedAfter": "2026-03-01T00:00:00Z"},
                          "status": {"state": "Ready"}})"));
  // An earlier renewal's, which stays there.
  BOOST_TEST(!gardener(R"({"spec": {"ensureRenewedAfter": "2026-02-28T00:00:00Z"},
                           "status": {"state": "Ready"}})"));
  BOOST_TEST(!gardener(R"({"spec": {"ensureRenewedAfter": "2026-02-28T12:00:00Z"},
                           "status": {"state": "Ready"}})"));
  // It failed at that one, and goes on trying.
  BOOST_TEST(gardener(R"({"spec": {"ensureRenewedAfter": "2026-02-28T12:00:00Z"},
                          "status": {"state": "Error"}})"));
}

BOOST_AUTO_TEST_CASE(issuer_is_asked_at_once_and_again_with_a_backoff_for_each_cause) {
  const reissue_cause cause{.issued = day0 - 24h, .since = day0};
  const reissue_backoff backoff{.first = 10min, .limit = 1h};
  const auto now = day0 + 2h;
  const auto turn = [&](const char* memory, reissue_cause of) {
    json::value one = json::object{{"metadata", json::object{}}};
    if (*memory != 0) k8s::set_annotation(one, reissue_annotation, memory);
    return next_reissue(one, of, backoff, now);
  };
  BOOST_TEST((turn("", cause) == reissue_turn{now, 1}));
  BOOST_TEST((turn("2026-03-01T00:30:00Z 1", cause) == reissue_turn{day0 + 40min, 2}));
  BOOST_TEST((turn("2026-03-01T00:30:00Z 2", cause) == reissue_turn{day0 + 50min, 3}));
  BOOST_TEST((turn("2026-03-01T01:30:00Z 4000000000", cause) == reissue_turn{day0 + 150min, 31}));
  // Asked for an earlier cause, or in the same second; or issued since.
  BOOST_TEST((turn("2026-02-28T23:00:00Z 5", cause) == reissue_turn{now, 1}));
  BOOST_TEST((turn("2026-03-01T00:00:00Z 5", cause) == reissue_turn{now, 1}));
  BOOST_TEST((turn("2026-03-01T00:30:00Z 5", {day0 + 1h, day0}) == reissue_turn{now, 1}));
  // Within that second nothing is asked again: each answer may be a refusal.
  json::value asked = json::object{{"metadata", json::object{}}};
  k8s::set_annotation(asked, reissue_annotation, "2026-03-01T00:00:00Z 1");
  BOOST_TEST((next_reissue(asked, {day0 - 24h, day0 + 200ms}, backoff, day0 + 300ms) ==
              reissue_turn{day0 + 1s, 1}));
  BOOST_TEST((next_reissue(asked, {day0 - 24h, day0}, backoff, day0 + 900ms) ==
              reissue_turn{day0 + 1s, 1}));
  // What nobody can read, and a clock that was set back.
  BOOST_TEST((turn("yesterday", cause) == reissue_turn{now, 1}));
  BOOST_TEST((turn("2026-03-01T00:30:00Z", cause) == reissue_turn{day0 + 40min, 2}));
  BOOST_TEST((turn("2026-03-01T00:30:00Z -3", cause) == reissue_turn{day0 + 40min, 2}));
  BOOST_TEST((turn("2026-03-09T00:00:00Z 1", cause) == reissue_turn{now + 10min, 2}));
}

BOOST_AUTO_TEST_CASE(status_passes_on_the_message_of_the_issuer) {
  BOOST_TEST(issuer_message(json::parse(R"({"status": {"state": "Error", "message": "no DNS"}})"),
                            issuer_kind::gardener) == "no DNS");
  BOOST_TEST(issuer_message(json::parse(R"({"status": {"conditions": [
                 {"type": "Ready", "status": "False", "message": "no issuer"}]}})"),
                            issuer_kind::cert_manager) == "no issuer");
  BOOST_TEST(issuer_message(json::parse(R"({"status": {"conditions": [
                 {"type": "Ready", "status": "True", "message": "fine"}]}})"),
                            issuer_kind::cert_manager)
                 .empty());
}

BOOST_AUTO_TEST_CASE(cert_manager_is_asked_by_a_condition_beside_the_others) {
  const auto present = json::parse(R"({
      "metadata": {"resourceVersion": "7", "generation": 3},
      "status": {"conditions": [{"type": "Ready", "status": "True"},
                                {"type": "Issuing", "status": "False"}]}})");
  BOOST_TEST(request_reissue(present, issuer_kind::cert_manager, 3, day0) == json::parse(R"({
      "metadata": {"resourceVersion": "7", "annotations": {
        "operator.kyma-project.io/reissue-requested": "2026-03-01T00:00:00Z 3"}}})"));
  BOOST_TEST(trigger_cert_manager(present, day0) == json::parse(R"({
      "metadata": {"resourceVersion": "7"},
      "status": {"conditions": [
        {"type": "Ready", "status": "True"},
        {"type": "Issuing", "status": "True", "lastTransitionTime": "2026-03-01T00:00:00Z",
         "reason": "ManuallyTriggered",
         "message": "the gateway's CA bundle has grown since it was issued",
         "observedGeneration": 3}]}})"));
}

BOOST_AUTO_TEST_CASE(gardener_is_asked_by_its_spec) {
  const auto present = json::parse(R"({"metadata": {"resourceVersion": "7"}})");
  BOOST_TEST(request_reissue(present, issuer_kind::gardener, 1, day0) == json::parse(R"({
      "metadata": {"resourceVersion": "7", "annotations": {
        "operator.kyma-project.io/reissue-requested": "2026-03-01T00:00:00Z 1"}},
      "spec": {"renew": true, "ensureRenewedAfter": null}})"));
}

namespace {

struct rotation {
  unsigned asked = 0;
  unsigned started = 0;
  std::optional<wall_time> renewed = {};
};

/// The bundle grew at day 0; each second the controller works, and then the reissue is decided.
rotation rotate(controller_model controller, std::chrono::hours how_long) {
  auto certificate = issued_certificate(day0 - 48h);
  rotation out;
  for (auto now = day0 + 1s; now < day0 + how_long; now += 1s) {
    controller.step(certificate, now);
    const auto told = validity_in_status(certificate, controller.kind);
    if (told->not_before > day0) {
      out.renewed = told->not_before;
      break;
    }
    if (ask_in_turn(certificate, controller.kind, {told->not_before, day0}, now)) ++out.asked;
  }
  out.started = controller.started;
  return out;
}

}  // namespace

BOOST_AUTO_TEST_CASE(controller_that_works_is_asked_once) {
  for (const auto kind : {issuer_kind::cert_manager, issuer_kind::gardener}) {
    const auto seen = rotate({.kind = kind, .works_from = day0}, 24h);
    BOOST_TEST(seen.asked == 1U);
    BOOST_TEST(seen.started == 1U);
    BOOST_TEST((seen.renewed && *seen.renewed < day0 + 1min));
  }
}

BOOST_AUTO_TEST_CASE(controller_that_fails_is_asked_seldom_and_has_issued_soon_after_it_works) {
  for (const auto kind : {issuer_kind::cert_manager, issuer_kind::gardener}) {
    const auto never = rotate({.kind = kind}, 96h);
    BOOST_TEST(never.asked >= 1U);
    BOOST_TEST(never.asked <= 25U);
    BOOST_TEST(!never.renewed);
    const auto later = rotate({.kind = kind, .works_from = day0 + 24h}, 96h);
    BOOST_TEST((later.renewed && *later.renewed < day0 + 24h + 6h + 1min));
  }
}

BOOST_AUTO_TEST_CASE(controller_that_fails_at_times_has_issued_within_the_hour) {
  for (const auto kind : {issuer_kind::cert_manager, issuer_kind::gardener}) {
    const auto seen = rotate({.kind = kind, .works_from = day0, .fails_at_times = true}, 24h);
    BOOST_TEST(seen.started == 2U);
    BOOST_TEST((seen.renewed && *seen.renewed < day0 + 1h));
  }
}

BOOST_AUTO_TEST_SUITE_END()
