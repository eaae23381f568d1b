// What a heartbeat says of the parts of a webhook process.

#include "rw/reactors/events/watcher_report.hpp"

#include "rw/tls/ca_bundle.hpp"

#include <boost/test/unit_test.hpp>

#include "tests/unit/manual_clock.hpp"
#include "tests/unit/tls/pki.hpp"
#include <string>
#include <utility>
#include <vector>

BOOST_AUTO_TEST_SUITE(watcher_report)

namespace asio = boost::asio;
namespace core = rw::core;
namespace tls = rw::tls;
using rw::webhook::watcher_report_of;
using tls::test::good;

namespace {

struct process {
  asio::io_context context;
  core::manual_clock time;
  core::real_clock real;
  core::watchdog dog{real, context.get_executor(), std::chrono::milliseconds(5)};
  core::metrics metrics;
  core::logger log{core::log_level::error, [](std::string_view) {}};
  std::unique_ptr<core::transport> plain = core::make_plain_transport();
  core::channel<rw::watch_event> events{16};
  rw::dispatch::delivery objects{{}};
  rw::admission::webhook webhook{{}, events, time, log, metrics};
  rw::dispatch::dispatcher dispatcher{
      context.get_executor(), {}, {time, dog, *plain, log, metrics, [] { return 0; }, objects}};
};

}  // namespace

BOOST_AUTO_TEST_CASE(losses_are_reported_by_operator) {
  process running;
  running.objects.set_managers({"kim", "klm"}, running.time.now());
  for (const auto* manager : {"klm", "klm", "kim"})
    running.objects.raise(manager, rw::dispatch::resync_cause::overflow);
  const auto content = watcher_report_of({.webhook = running.webhook,
                                          .dispatcher = running.dispatcher,
                                          .delivery = &running.objects,
                                          .pod = "skr-webhook-1",
                                          .abandoned = 3})
                           .content;
  const std::vector<rw::operator_losses> losses{{"kim", 1}, {"klm", 2}};
  BOOST_TEST((content.losses == losses));
  BOOST_TEST(content.events.abandoned == 3u);
  BOOST_TEST(content.pod == "skr-webhook-1");
}

BOOST_AUTO_TEST_CASE(digests_are_those_of_what_is_loaded) {
  process running;
  const auto ca = good(tls::issuer::create({.common_name = "CA"}));
  const auto own = good(ca.issue({.common_name = "runtime-1", .client_auth = true}));
  const auto loaded = good(tls::material::from_text(
      {own.certificate, own.key, ca.certificate_pem() + ca.certificate_pem()}));
  rw::managers_in_use managers;
  const auto report = [&] {
    return watcher_report_of({.webhook = running.webhook,
                              .dispatcher = running.dispatcher,
                              .managers = &managers,
                              .material = &loaded})
        .content;
  };
  BOOST_TEST(report().managers_digest.empty());
  BOOST_TEST(report().losses.empty());
  managers.replace(rw::known_managers({{.manager = "klm", .watched = {"", "v1", "secrets"}}}));
  const auto content = report();
  BOOST_TEST(content.managers_digest.size() == 64u);
  BOOST_TEST(content.managers_digest == managers.digest());
  BOOST_TEST(content.ca_digest == good(tls::ca_bundle::parse(ca.certificate_pem())).digest());
  BOOST_TEST(content.certificate_digest == loaded.leaf()->fingerprint());
  BOOST_TEST((content.certificate_not_after == loaded.leaf()->not_after()));
}

BOOST_AUTO_TEST_SUITE_END()
