#include "rw/reactors/gateway_secret/rotator.hpp"

#include <boost/test/unit_test.hpp>

#include "tests/unit/gateway_secret/cluster.hpp"
#include "tests/unit/gateway_secret/world.hpp"

BOOST_AUTO_TEST_SUITE(rotator)

using namespace rw;
using namespace rw::gateway_secret;
using namespace rw::gateway_secret::test;
namespace asio = boost::asio;

namespace {

constexpr auto grace = 60s;
constexpr auto gateway_name = "klm-istio-gateway";

/// A rotator in a control plane.
struct bench : cluster {
  explicit bench(rotation_options rotation = {.grace = grace, .propagation = 1s})
      : roots(inform(secrets_type(), informer_of({"istio-system", "klm-watcher"}))),
        gateways(inform(secrets_type(), informer_of({"istio-system", gateway_name}))),
        events(context.get_executor(), k8s::objects_of(own()), {.component = "test"},
               {clock, log, numbers, [] { return std::uint64_t{0}; }}),
        under_test(context.get_executor(), *reactor_api, roots, gateways, board,
                   {.rotation = rotation, .revisit = 30s},
                   {clock, watchdog, log, numbers, [] { return std::uint64_t{0}; }, events}) {
    tasks.spawn(events.run());
  }
  ~bench() { stop(); }

  void start() { tasks.spawn(under_test.run()); }

  root make_root(const std::string& name, std::chrono::seconds validity = 24h * 365) const {
    const auto now = std::chrono::floor<std::chrono::seconds>(clock.wall());
    return root(name, now - 1h, validity);
  }
  void put_root(const root& one) {
    put(secrets_type(), secret("klm-watcher", {{"tls.crt", one.ca.own().certificate},
                                               {"tls.key", one.ca.own().key},
                                               {"ca.crt", one.ca.own().certificate}}));
  }
  gateway_content gateway() { return read_gateway_secret(get(secrets_type(), gateway_name)); }
  bool serves(const root& one) {
    const auto there = find(secrets_type(), gateway_name);
    return there && read_gateway_secret(*there).served == one.certificate;
  }
  bool trusts(const root& one) {
    const auto there = find(secrets_type(), gateway_name);
    return there && read_gateway_secret(*there).bundle.contains(one.certificate);
  }
  double phase_is(const std::string& name) const {
    return metric("rw_gateway_secret_phase{phase=\"" + name + "\"}");
  }
  double steps(const std::string& name) const {
    return std::max(0.0, metric("rw_gateway_secret_steps_total{step=\"" + name + "\"}"));
  }
  bool has_event(std::string_view reason) {
    const auto all = ok(own().list(k8s::events_type(), {.ns = "istio-system"}));
    return std::ranges::any_of(all.at("items").as_array(), [&](const value& one) {
      return k8s::find_string(one, {"reason"}) == reason;
    });
  }

  cluster_states board;
  k8s::informer& roots;
  k8s::informer& gateways;
  k8s::event_recorder events;
  gateway_secret::rotator under_test;
};

}  // namespace

BOOST_AUTO_TEST_CASE(gateway_secret_is_made_as_soon_as_there_is_a_root) {
  bench b;
  BOOST_TEST(!b.under_test.has_planned(), "its phase says nothing yet");
  b.start();
  b.until([&] { return b.phase_is("no_root") == 1; }, "the phase without a root");
  BOOST_TEST(b.under_test.has_planned());
  BOOST_TEST(b.lines("is missing") == 1);
  const auto r1 = b.make_root("r1");
  b.put_root(r1);
  b.until([&] { return b.serves(r1); }, "the gateway Secret");
  const auto made = b.gateway();
  BOOST_TEST((made.bundle == tls::ca_bundle({r1.certificate})));
  BOOST_REQUIRE(made.ca_added_at.has_value());
  BOOST_TEST((*made.ca_added_at <= b.clock.wall()));
  b.until([&] { return b.phase_is("settled") == 1; }, "rest");
  BOOST_TEST(b.steps("create") == 1);
  b.until([&] { return b.has_event("GatewaySecretCreated"); }, "the event");
  BOOST_TEST(b.metric("rw_gateway_secret_authorities") == 1);
}

BOOST_AUTO_TEST_CASE(gateway_secret_is_restored_where_both_secrets_are_deleted) {
  bench b;
  const auto r1 = b.make_root("r1");
  b.put_root(r1);
  b.start();
  b.until([&] { return b.serves(r1); }, "the gateway Secret");
  b.until([&] { return b.phase_is("settled") == 1; }, "rest");
  const auto before = b.gateway();
  b.remove(secrets_type(), "klm-watcher");
  b.until([&] { return b.phase_is("no_root") == 1; }, "the loss of the root");
  b.remove(secrets_type(), gateway_name);
  b.until([&] { return b.serves(r1); }, "the gateway Secret again");
  const auto after = b.gateway();
  BOOST_TEST((after.bundle == before.bundle));
  BOOST_TEST((after.ca_added_at == before.ca_added_at));
  BOOST_TEST(b.phase_is("no_root") == 1);
}

BOOST_AUTO_TEST_CASE(rotation_adds_waits_for_time_and_runtimes_and_switches) {
  bench b;
  const auto r1 = b.make_root("r1");
  const auto r2 = b.make_root("r2");
  b.put_root(r1);
  b.start();
  b.until([&] { return b.serves(r1); }, "the gateway Secret");
  b.board.complete();
  b.board.observed(kyma("a"), runtime_with({&r1}, r1, r1.certificate.not_before()), b.clock.wall());
  b.put_root(r2);
  b.until([&] { return b.trusts(r2); }, "the new CA in the bundle");
  BOOST_TEST(b.serves(r1));
  const auto added = *b.gateway().ca_added_at;
  b.until([&] { return b.phase_is("grace") == 1; }, "the grace period");
  b.pass(grace);
  b.until([&] { return b.phase_is("distributing") == 1; }, "its end");
  BOOST_TEST(b.metric("rw_gateway_secret_missing_runtimes") == 1);
  BOOST_TEST(b.under_test.last().waiting.find("kcp-system/a") != std::string::npos);
  b.pass(5min);
  BOOST_TEST(b.serves(r1));
  b.board.observed(kyma("a"), runtime_with({&r2, &r1}, r2, added + 1s), b.clock.wall());
  b.until([&] { return b.serves(r2); }, "the switch");
  const auto after = b.gateway();
  BOOST_TEST(after.pair.key == r2.ca.own().key);
  BOOST_TEST((after.bundle == tls::ca_bundle({r2.certificate, r1.certificate})));
  BOOST_TEST((after.ca_added_at == added));
  b.until([&] { return b.phase_is("settled") == 1; }, "rest");
  BOOST_TEST(b.steps("add_authority") == 1);
  BOOST_TEST(b.steps("switch_server") == 1);
  // Each state once, however often it was looked at; and each change of who is missing, and why.
  BOOST_TEST(b.lines("\"phase\":\"grace\"") == 1);
  BOOST_TEST(b.lines("\"phase\":\"distributing\"") == 2);
  b.until([&] { return b.has_event("ServerCertificateSwitched"); }, "the event");
  BOOST_TEST(b.has_event("CABundleExtended"));
}

BOOST_AUTO_TEST_CASE(deadline_is_reported_before_it_strikes_and_names_who_is_left_behind) {
  bench b({.grace = grace, .propagation = 1s, .urgent = 1h, .before_expiry = 30min, .notice = 1h});
  const auto r1 = b.make_root("r1", 4h);  // began an hour ago
  const auto r2 = b.make_root("r2");
  b.put_root(r1);
  b.start();
  b.until([&] { return b.serves(r1); }, "the gateway Secret");
  b.board.complete();
  b.board.expect(kyma("ill"));
  b.board.expect(kyma("slow"));
  b.put_root(r2);
  b.until([&] { return b.trusts(r2); }, "the new CA in the bundle");
  b.pass(grace);
  b.until([&] { return b.phase_is("distributing") == 1; }, "the end of the grace period");
  BOOST_TEST(b.lines("\"phase\":\"distributing\"") == 1);
  BOOST_TEST(b.metric("rw_gateway_secret_deadline_timestamp_seconds") > 0);
  b.board.observed(kyma("slow"), runtime_with({&r2, &r1}, r2, b.clock.wall()), b.clock.wall());
  b.pass(5s);
  b.until([&] { return b.metric("rw_gateway_secret_missing_runtimes") == 1; }, "one less");
  b.until([&] { return b.lines("missing: 1 of 2 runtimes") == 1; }, "one line for the change");
  b.pass(100min);
  b.until([&] { return b.has_event("CARotationDeadlineNear"); }, "the warning");
  BOOST_TEST(b.serves(r1));
  b.pass(60min);
  b.until([&] { return b.serves(r2); }, "the switch");
  b.until([&] { return b.has_event("CARotationRuntimesLeftBehind"); }, "the event");
  BOOST_TEST(b.lines("did not wait for runtimes") == 1);
  BOOST_TEST(b.metric("rw_gateway_secret_deadline_timestamp_seconds") == 0);
}

BOOST_AUTO_TEST_CASE(step_that_was_planned_for_an_older_state_is_not_written) {
  bench b;
  const auto r1 = b.make_root("r1");
  const auto r2 = b.make_root("r2");
  const auto r3 = b.make_root("r3");
  const auto before = std::chrono::floor<std::chrono::seconds>(b.clock.wall());
  const k8s::object_key key{"istio-system", gateway_name};
  b.create(secrets_type(), write_gateway_secret(gateway(r1, {r1.certificate}, before), key));
  b.put_root(r2);
  // This one hears of nothing any more after its list, as if its leader were cut off.
  core::task_group brief(b.context.get_executor());
  k8s::informer frozen(*b.reactor_api, secrets_type(), informer_of(key),
                       {b.clock, b.log, b.numbers, [] { return std::uint64_t{0}; }});
  brief.spawn(frozen.run());
  b.until([&] { return frozen.synced(); }, "a list");
  brief.cancel();
  b.until([&] { return brief.size() == 0; }, "its end");
  // Another leader has gone on meanwhile.
  b.update(secrets_type(),
           write_gateway_secret(gateway(r3, {r3.certificate, r1.certificate}, before), key,
                                b.get(secrets_type(), gateway_name)));
  gateway_secret::rotator deposed(
      b.context.get_executor(), *b.reactor_api, b.roots, frozen, b.board, {},
      {b.clock, b.watchdog, b.log, b.numbers, [] { return std::uint64_t{0}; }, b.events});
  b.tasks.spawn(deposed.run());
  const std::string series =
      "rw_kube_requests_total{client=\"reactor\",code=\"409\",verb=\"update\"}";
  b.until([&] { return b.metric(series) > 0; }, "a refused write");
  BOOST_TEST(deposed.last().has(rotation_step::add_authority));
  BOOST_TEST(b.serves(r3));
  BOOST_TEST((b.gateway().bundle == tls::ca_bundle({r3.certificate, r1.certificate})));
  BOOST_TEST(b.steps("add_authority") == 0);
  // One that hears does what is right for what there is.
  b.start();
  b.until([&] { return b.trusts(r2); }, "the new CA in the bundle");
  BOOST_TEST(b.gateway().bundle.size() == 3U);
  BOOST_TEST(b.serves(r3));
  b.stop();
}

BOOST_AUTO_TEST_CASE(root_that_cannot_be_used_is_reported_and_does_no_harm) {
  bench b;
  const auto r1 = b.make_root("r1");
  b.put_root(r1);
  b.start();
  b.until([&] { return b.serves(r1); }, "the gateway Secret");
  b.put(secrets_type(), cluster::secret("klm-watcher", {{"tls.crt", "garbage"},
                                                        {"tls.key", r1.ca.own().key},
                                                        {"ca.crt", "garbage"}}));
  b.until([&] { return b.phase_is("no_root") == 1; }, "the phase");
  b.pass(5min);
  BOOST_TEST(b.serves(r1));
  BOOST_TEST(b.lines("CA rotation needs attention") == 1);
  b.until([&] { return b.has_event("RootSecretUnusable"); }, "the event");
  b.put_root(r1);
  b.until([&] { return b.phase_is("settled") == 1; }, "rest");
}

BOOST_AUTO_TEST_CASE(damaged_secret_is_repaired) {
  bench b;
  const auto r1 = b.make_root("r1");
  const auto r2 = b.make_root("r2");
  b.put_root(r1);
  b.start();
  b.until([&] { return b.serves(r1); }, "the gateway Secret");
  b.put_root(r2);
  b.until([&] { return b.phase_is("grace") == 1 && b.trusts(r2); }, "the grace period");
  b.pass(1s);
  const auto whole = b.get(secrets_type(), gateway_name);
  const auto same = [&](const char* entry) {
    const auto there = b.find(secrets_type(), gateway_name);
    return there && k8s::secret_data(*there, entry) == k8s::secret_data(whole, entry);
  };
  b.remove(secrets_type(), gateway_name);
  b.until([&] { return b.find(secrets_type(), gateway_name).has_value(); }, "the Secret again");
  BOOST_TEST(same("tls.crt"));
  BOOST_TEST(same("tls.key"));
  BOOST_TEST(same("ca.crt"));
  auto broken = b.get(secrets_type(), gateway_name);
  k8s::set_secret_data(broken, "ca.crt", "garbage");
  k8s::set_secret_data(broken, "tls.key", "garbage");
  b.update(secrets_type(), broken);
  b.until([&] { return same("ca.crt") && same("tls.key"); }, "the repair");
  auto timeless = b.get(secrets_type(), gateway_name);
  timeless.at("metadata").as_object().erase("annotations");
  b.update(secrets_type(), timeless);
  b.until([&] { return b.gateway().ca_added_at.has_value(); }, "the annotation");
  BOOST_TEST(b.steps("repair_time") == 1);
}

BOOST_AUTO_TEST_CASE(server_certificate_that_is_about_to_expire_is_reported) {
  bench b;
  const auto r1 = b.make_root("r1", 24h * 13);
  b.put_root(r1);
  b.start();
  b.until([&] { return b.serves(r1); }, "the gateway Secret");
  const std::string metric = "lifecycle_mgr_gateway_secret_server_cert_close_to_expiry";
  b.until([&] { return b.metric(metric) == 1; }, "the metric");
  b.until([&] { return b.has_event("ServerCertificateExpiring"); }, "the event");
  const auto r2 = b.make_root("r2");
  b.board.complete();
  b.put_root(r2);
  b.until([&] { return b.trusts(r2); }, "the new CA in the bundle");
  b.pass(grace);
  b.until([&] { return b.serves(r2) && b.metric(metric) == 0; }, "the new certificate");
}

BOOST_AUTO_TEST_SUITE_END()
