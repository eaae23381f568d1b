#include "rw/reactors/certificates/state.hpp"

#include <boost/json/parse.hpp>
#include <boost/test/unit_test.hpp>

#include "tests/unit/gateway_secret/world.hpp"
#include <string>

BOOST_AUTO_TEST_SUITE(state)

using namespace rw;
using namespace rw::certificates;
using namespace rw::gateway_secret::test;
namespace json = boost::json;
using kind = certificate_state::kind;

namespace {

const root& r1() {
  static const root made("r1");
  return made;
}
const root& r2() {
  static const root made("r2");
  return made;
}

json::value secret(const tls::key_pair& pair) {
  json::value out = json::object{{"metadata", json::object{{"resourceVersion", "9"}}}};
  k8s::set_secret_data(out, "tls.crt", pair.certificate);
  k8s::set_secret_data(out, "tls.key", pair.key);
  return out;
}

trust_bundle of(std::vector<tls::certificate> all, wall_time added_at = day0) {
  return {.authorities = tls::ca_bundle(all), .added_at = added_at};
}

judged_certificate judged(const evidence& of, wall_time now) {
  usable_pairs pairs;
  return judge(of, pairs, issuer_kind::cert_manager, {}, now);
}

judged_certificate judged(const json::value& in, const trust_bundle& trust, wall_time now) {
  return judged({.runtime_id = "runtime-1", .secret = in, .trust = &trust}, now);
}

bool waits(const certificate_state& is, std::string_view why) {
  return is.state == kind::waiting && is.current.certificate.empty() &&
         is.reason.find(why) != std::string::npos;
}

}  // namespace

BOOST_AUTO_TEST_CASE(good_certificate_goes_out_together_with_the_bundle) {
  const auto pair = r1().client("runtime-1", day0);
  const auto trust = of({r1().certificate});
  const auto is = judged(secret(pair), trust, day0 + 1h);
  BOOST_TEST((is.state == kind::ready));
  BOOST_TEST(is.current.certificate == pair.certificate);
  BOOST_TEST(is.current.key == pair.key);
  BOOST_TEST((is.again == core::duration{}));
}

BOOST_AUTO_TEST_CASE(old_certificate_stays_good_until_the_new_one_is_there) {
  const auto is = judged(secret(r1().client("runtime-1", day0 - 1h)),
                         of({r2().certificate, r1().certificate}), day0 + 1h);
  BOOST_TEST((is.state == kind::ready));
  BOOST_TEST(is.must_be_reissued);
}

BOOST_AUTO_TEST_CASE(certificate_of_an_authority_that_the_gateway_lacks_waits) {
  // The issuer has the new root already, and the bundle does not.
  const auto pair = r2().client("runtime-1", day0 + 1min);
  const auto is = judged(secret(pair), of({r1().certificate}), day0 + 2min);
  BOOST_TEST(waits(is, "does not trust"));
  BOOST_TEST(!is.must_be_reissued);
  BOOST_TEST((is.again > core::duration{}));
}

BOOST_AUTO_TEST_CASE(new_authority_has_time_to_reach_the_gateway_first) {
  const auto trust = of({r2().certificate, r1().certificate});
  const auto fresh = secret(r2().client("runtime-1", day0));
  const auto is = judged(fresh, trust, day0 + 4s);
  BOOST_TEST(waits(is, "learning"));
  BOOST_TEST((is.again == 6s));
  BOOST_TEST((judged(fresh, trust, day0 + 10s).state == kind::ready));
  // One of an authority that has been there goes out at once, and so does the very first one.
  BOOST_TEST(
      (judged(secret(r1().client("runtime-1", day0)), trust, day0 + 4s).state == kind::ready));
  BOOST_TEST((judged(fresh, of({r2().certificate}), day0 + 4s).state == kind::ready));
}

BOOST_AUTO_TEST_CASE(certificate_waits_briefly_after_the_clock_was_set_back) {
  const auto is = judged(secret(r2().client("runtime-1", day0 - 2h)),
                         of({r2().certificate, r1().certificate}, day0), day0 - 1h);
  BOOST_TEST(waits(is, "learning"));
  BOOST_TEST((is.again <= 10s));
}

BOOST_AUTO_TEST_CASE(while_nothing_is_issued_the_issuer_is_quoted) {
  const auto trust = of({r1().certificate});
  evidence one{.runtime_id = "runtime-1",
               .certificate = json::parse(R"({"status": {"conditions": [
                   {"type": "Ready", "status": "False", "message": "issuer not found"}]}})"),
               .trust = &trust};
  BOOST_TEST(waits(judged(one, day0), "issuer not found"));
  one.secret = json::object{{"data", json::object{}}};
  BOOST_TEST(waits(judged(one, day0), "not been issued"));
}

BOOST_AUTO_TEST_CASE(without_a_bundle_nothing_goes_out) {
  const auto in = secret(r1().client("runtime-1", day0));
  const auto is = judged({.runtime_id = "runtime-1", .secret = in}, day0);
  BOOST_TEST(waits(is, "no CA bundle"));
  BOOST_TEST(waits(judged(in, {}, day0), "no CA bundle"));
}

BOOST_AUTO_TEST_CASE(half_written_secret_waits) {
  auto pair = r1().client("runtime-1", day0);
  pair.key = r1().client("runtime-1", day0).key;
  BOOST_TEST(waits(judged(secret(pair), of({r1().certificate}), day0 + 1h), "tls.key"));
}

BOOST_AUTO_TEST_CASE(certificate_of_another_runtime_is_not_taken) {
  const auto is = judged(secret(r1().client("runtime-2", day0)), of({r1().certificate}), day0 + 1h);
  BOOST_TEST(waits(is, "runtime-2"));
}

BOOST_AUTO_TEST_CASE(certificate_that_is_not_valid_yet_waits_until_it_is) {
  const auto is = judged(secret(r1().client("runtime-1", day0 + 5s)), of({r1().certificate}), day0);
  BOOST_TEST(waits(is, "not valid yet"));
  BOOST_TEST((is.again == 5s));
}

BOOST_AUTO_TEST_CASE(expired_certificate_waits) {
  const auto in = secret(r1().client("runtime-1", day0 - 2h, 1h));
  BOOST_TEST(waits(judged(in, of({r1().certificate}), day0), "expired"));
}

BOOST_AUTO_TEST_SUITE_END()
