// What the pods of a runtime say that they have loaded, and when that counts.

#include "rw/reactors/watcher_installer/trust.hpp"

#include <boost/test/unit_test.hpp>

#include "tests/unit/watcher_installer/samples.hpp"
#include <chrono>
#include <string>
#include <utility>
#include <vector>

namespace rw::watcher_installer_test {
BOOST_AUTO_TEST_SUITE(word)

using namespace rw::watcher_installer;
using namespace std::chrono_literals;

namespace {

const managed_watch watching_a{.manager = "a", .watched = {"g", "v1", "things"}};
const managed_watch watching_b{.manager = "b", .watched = {"g", "v1", "things"}};
const std::chrono::sys_days day0 = std::chrono::year(2026) / 3 / 1;

trust_step managers_step(known_managers wanted, observed_trust has,
                         std::chrono::system_clock::time_point now) {
  return next_step({.managers = std::move(wanted)}, has, {.propagation = 90s}, now);
}

}  // namespace

BOOST_AUTO_TEST_CASE(word_of_the_pods_is_that_of_each_of_them) {
  const authority ca("klm-watcher");
  const auto own = ca.issue();
  observed_trust has{.bundle = tls::ca_bundle::parse(ca.pem()).value(),
                     .certificate = own.certificate,
                     .key = own.key,
                     .certificate_since = day0,
                     .managers = known_managers({watching_a}),
                     .managers_since = day0,
                     .managers_digest = std::string(64, 'm'),
                     .bundle_since = day0};
  const pod_report good{
      .pod = "p1",
      .managers_digest = has.managers_digest,
      .ca_digest = has.bundle.digest(),
      .certificate_digest = tls::certificate::from_pem(own.certificate).value().fingerprint(),
      .heard = day0 + 1s};
  auto second_pod = good;
  second_pod.pod = "p2";
  const auto word = [&](std::vector<std::string> names, std::vector<pod_report> reports) {
    const auto out = word_of(names, reports, has);
    return std::string(out.bundle ? "b" : "") + (out.certificate ? "c" : "") +
           (out.managers ? "m" : "");
  };
  BOOST_TEST(word({"p1"}, {good}) == "bcm");
  BOOST_TEST(word({"p1", "p2"}, {good, second_pod}) == "bcm");
  BOOST_TEST(word({"p1", "p2"}, {good}) == "");     // one of two is missing
  BOOST_TEST(word({"p1"}, {}) == "");               // no heartbeat comes
  BOOST_TEST(word({"p1"}, {second_pod}) == "");     // of a pod that is not there
  BOOST_TEST(word({}, {good}) == "");               // there is no pod
  BOOST_TEST(word({"p1"}, {{.pod = "p1"}}) == "");  // of a version that does not say so
  BOOST_TEST(word({""}, {{.heard = day0}}) == "");
  auto stale = good;
  stale.heard = day0 - 1s;
  BOOST_TEST(word({"p1"}, {stale}) == "");
  second_pod.certificate_digest = std::string(64, 'x');
  BOOST_TEST(word({"p1", "p2"}, {good, second_pod}) == "bm");
  has.managers_since.reset();
  BOOST_TEST(word({"p1"}, {good}) == "bc");
}

BOOST_AUTO_TEST_CASE(word_of_the_pods_is_awaited_after_a_write_only) {
  const trust_delays delays{.propagation = 90s};
  observed_trust has{.certificate_since = day0, .managers_since = day0, .bundle_since = day0};
  BOOST_TEST(awaits_word(has, delays, day0 + 89s));
  BOOST_TEST(!awaits_word(has, delays, day0 + 90s));
  BOOST_TEST(!awaits_word(has, delays, day0 - 1s));
  has.loaded = {.bundle = true, .certificate = true};
  BOOST_TEST(awaits_word(has, delays, day0 + 89s));
  has.managers_since = day0 - 1h;
  BOOST_TEST(!awaits_word(has, delays, day0 + 89s));
  BOOST_TEST(!awaits_word({}, delays, day0));
}

BOOST_AUTO_TEST_CASE(webhook_of_a_new_manager_waits_for_the_word_of_all_pods) {
  const auto wanted = known_managers({watching_a, watching_b});
  observed_trust has{.managers = known_managers({watching_a}),
                     .managers_since = day0,
                     .called = known_managers({watching_a})};
  has.loaded.managers = true;  // of what was there before
  BOOST_TEST((managers_step(wanted, has, day0 + 1h).again == 90s));
  has.managers = wanted;
  has.managers_since = day0 + 1h;
  const auto step = managers_step(wanted, has, day0 + 1h + 1s);
  BOOST_TEST(step.in_effect->knows(watching_b));
  BOOST_TEST((step.again == 0s));
  has.loaded = {.bundle = true, .certificate = true};
  BOOST_TEST((managers_step(wanted, has, day0 + 1h + 1s).again == 89s));
}

BOOST_AUTO_TEST_SUITE_END()
}  // namespace rw::watcher_installer_test
