// What the response to a probe says; and what becomes of it in the state of a runtime.

#include "rw/reactors/heartbeat/prober.hpp"

#include "rw/reactors/shared/probe.hpp"

#include <boost/test/unit_test.hpp>

#include <string>
#include <vector>

BOOST_AUTO_TEST_SUITE(prober)

using namespace rw;
using namespace rw::heartbeats;
using namespace std::chrono_literals;

namespace {

const k8s::object_key kyma{"kcp-system", "a"};

probe_result of_error(std::string message, unsigned status = 500,
                      k8s::errc code = k8s::errc::server_error) {
  k8s::failure error{.code = code, .status = status};
  error.message = std::move(message);
  return assess_probe(error, {}, "n1");
}

/// A failure as kube-apiserver words it (apiserver/pkg/admission/plugin/webhook/errors).
probe_result of_call(const std::string& cause) {
  return of_error(
      R"(cannot create configmaps kyma-system/watcher-probe-n1: Internal error occurred: failed )"
      R"(calling webhook "kyma-system.watcher-probe.operator.kyma-project.io": Post )"
      R"("https://skr-webhook.kyma-system.svc:443/validate/runtime-watcher?timeout=3s": )" +
      cause);
}

struct fleet {
  fleet_health under_test{health_options()};
  moment at{core::time_point(1h), std::chrono::system_clock::from_time_t(1'800'000'000)};

  std::optional<fleet_health::change> probed(status_reason reason, std::string nonce = "n1") {
    probe_result result;
    result.nonce = std::move(nonce);
    result.begun = at.now;
    result.stage = reason == status_reason::none ? probe_stage::heartbeat : probe_stage::webhook;
    result.message = reason == status_reason::none ? "" : "see this";
    result.reason = reason;
    return under_test.probed(kyma, std::move(result), at);
  }
  fleet_health::receipt receive(std::vector<std::string> probes = {}) {
    heartbeat content;
    content.boot_id = "b1";
    content.probes = std::move(probes);
    return under_test.receive(kyma, std::move(content), at);
  }
  const runtime_health& state() const { return *under_test.find(kyma); }
};

}  // namespace

BOOST_AUTO_TEST_CASE(cause_of_a_failed_call_is_named) {
  BOOST_TEST(of_call("x509: certificate signed by unknown authority").reason == "CaBundleWrong");
  BOOST_TEST(of_call("x509: certificate has expired or is not yet valid: current time …").reason ==
             "CertificateExpired");
  BOOST_TEST(of_call("x509: certificate is valid for a, not skr-webhook.kyma-system.svc").reason ==
             "CertificateNameWrong");
  BOOST_TEST(of_call(R"(no endpoints available for service "skr-webhook")").reason ==
             "NoEndpoints");
  BOOST_TEST(of_call(R"(service "skr-webhook" not found)").reason == "ServiceMissing");
  BOOST_TEST(of_call("dial tcp 10.0.0.1:443: connect: connection refused").reason ==
             "WebhookRefused");
  for (const auto* const lost : {"dial tcp 10.0.0.1:443: connect: network is unreachable",
                                 "dial tcp 10.0.0.1:443: connect: no route to host"}) {
    const auto unrouted = of_call(lost);
    BOOST_TEST(unrouted.reason == "WebhookCallFailed");
    BOOST_TEST(unrouted.message.find("no route to the watcher's pod") != std::string::npos);
  }
  BOOST_TEST(of_call("context deadline exceeded").reason == "WebhookTimeout");
  BOOST_TEST(of_call("i/o timeout").reason == "WebhookTimeout");
  const auto other = of_call("EOF");
  BOOST_TEST(other.reason == "WebhookCallFailed");
  BOOST_TEST((other.stage == probe_stage::webhook));
  BOOST_TEST(other.message.ends_with("EOF)"), other.message);
}

BOOST_AUTO_TEST_CASE(end_of_a_long_error_is_kept) {
  const auto cut = of_call(std::string(400, 'x') + ": dial tcp 10.0.0.1:443: connect: EOF");
  BOOST_TEST(cut.message.ends_with(": dial tcp 10.0.0.1:443: connect: EOF)"), cut.message);
  BOOST_TEST(cut.message.find("(cannot create configmaps") != std::string::npos, cut.message);
  BOOST_TEST(cut.message.find(" ... ") != std::string::npos, cut.message);
}

BOOST_AUTO_TEST_CASE(runtime_that_cannot_be_asked_is_named) {
  BOOST_TEST(of_error("no", 401, k8s::errc::unauthorized).reason == "AccessRejected");
  BOOST_TEST(of_error("no", 403, k8s::errc::forbidden).reason == "AccessRejected");
  BOOST_TEST(of_error("no", 0, k8s::errc::not_configured).reason == "AccessRejected");
  BOOST_TEST(of_error("no", 0, k8s::errc::address_refused).reason == "AccessRejected");
  BOOST_TEST(of_error("refused", 0, k8s::errc::unreachable).reason == "RuntimeUnreachable");
  const auto rejected =
      of_error("invalid name" + std::string(10'000, 'x'), 422, k8s::errc::invalid);
  BOOST_TEST(rejected.reason == "ProbeRejected");
  BOOST_TEST(rejected.message.size() < 400u);
}

BOOST_AUTO_TEST_CASE(warning_of_the_watcher_proves_the_call) {
  const probe_report well{.nonce = "n1", .boot_id = "b1"};
  const auto good = assess_probe({}, {"deprecated", render_probe_report(well)}, "n1");
  BOOST_TEST(good.reason == "");
  BOOST_TEST((good.stage == probe_stage::heartbeat));
  BOOST_TEST(assess_probe({}, {render_probe_report(well)}, "n2").reason == "WebhookNotCalled");
  BOOST_TEST(assess_probe({}, {}, "n1").reason == "WebhookNotCalled");
  auto cut_off = well;
  cut_off.upstream = "Connection refused";
  const auto bad = assess_probe({}, {render_probe_report(cut_off)}, "n1");
  BOOST_TEST(bad.reason == "GatewayUnreachable");
  BOOST_TEST((bad.stage == probe_stage::gateway));
  BOOST_TEST(bad.message.find("(Connection refused)") != bad.message.npos, bad.message);
  const auto reason_of = [&](std::string upstream) {
    cut_off.upstream = std::move(upstream);
    return assess_probe({}, {render_probe_report(cut_off)}, "n1").reason;
  };
  BOOST_TEST(reason_of("status 404: nothing routes heartbeats") == "RouteMissing");
  BOOST_TEST(reason_of("status 503") == "ListenerUnavailable");
  BOOST_TEST(reason_of("status 403") == "GatewayUnreachable");
}

BOOST_FIXTURE_TEST_CASE(failed_probe_degrades_until_one_succeeds, fleet) {
  receive();
  const auto changed = probed(status_reason::ca_bundle_wrong);
  BOOST_REQUIRE(changed.has_value());
  BOOST_TEST((state().state == liveness::degraded));
  BOOST_TEST(state().reason == "CaBundleWrong");
  BOOST_TEST(!receive().changed);
  BOOST_TEST(!probed(status_reason::ca_bundle_wrong));
  BOOST_TEST(probed(status_reason::none).has_value());
  BOOST_TEST((state().state == liveness::live));
}

BOOST_FIXTURE_TEST_CASE(failed_probe_explains_silence, fleet) {
  under_test.expect(kyma, at);
  receive();
  at.now += 150s;
  probed(status_reason::no_endpoints);
  auto silent = status_reason::none;
  under_test.poll(at, [&](const auto& change) { silent = change.now.reason; });
  BOOST_TEST(silent == "NoEndpoints");
  BOOST_TEST((state().state == liveness::silent));
  BOOST_TEST(probed(status_reason::none).has_value());
  BOOST_TEST(state().reason == "NoHeartbeat");
  BOOST_TEST((state().state == liveness::silent));
}

BOOST_FIXTURE_TEST_CASE(heartbeat_with_the_nonce_completes_the_probe, fleet) {
  probed(status_reason::none);
  at.now += 2s;
  BOOST_TEST(!receive({"n0"}).probe);
  BOOST_TEST((state().probe->stage == probe_stage::heartbeat));
  const auto proved = receive({"n0", "n1"}).probe;
  BOOST_REQUIRE(proved.has_value());
  BOOST_TEST((*proved == core::duration(2s)));
  BOOST_TEST((state().probe->stage == probe_stage::complete));
  BOOST_TEST(!receive({"n1"}).probe);
}

BOOST_FIXTURE_TEST_CASE(heartbeat_after_a_failure_at_the_gateway_clears_it, fleet) {
  probe_result cut_off;
  cut_off.begun = at.now;
  cut_off.stage = probe_stage::gateway;
  cut_off.reason = status_reason::gateway_unreachable;
  BOOST_TEST(!under_test.probed(kyma, cut_off, at));  // its heartbeat is not due yet
  BOOST_TEST((state().state == liveness::unknown));
  receive();
  at.now += 1s;
  cut_off.begun = at.now;
  BOOST_TEST(under_test.probed(kyma, cut_off, at).has_value());
  BOOST_TEST((state().state == liveness::degraded));
  at.now += 5s;
  BOOST_TEST(receive().changed.has_value());
  BOOST_TEST((state().state == liveness::live));
}

BOOST_FIXTURE_TEST_CASE(probe_that_no_heartbeat_names_fails, fleet) {
  under_test.expect(kyma, at);
  probed(status_reason::none);
  for (int i = 0; i < 4; ++i) {
    at.now += 60s;
    receive({"n0"});
  }
  auto reason = status_reason::none;
  under_test.poll(at, [&](const auto& change) { reason = change.now.reason; });
  BOOST_TEST(reason == "ProbeNotConfirmed");
  BOOST_TEST((state().state == liveness::degraded));
  receive({"n1"});
  BOOST_TEST((state().state == liveness::live));
}

BOOST_AUTO_TEST_CASE(failing_runtimes_share_a_rate_of_probes) {
  const prober_options options;
  BOOST_TEST((retry_pause(options, 0, 1) == 30s));
  BOOST_TEST((retry_pause(options, 1, 1) == 60s));
  BOOST_TEST((retry_pause(options, 5, 100) == 2min));
  // 8 in a second.
  BOOST_TEST((retry_pause(options, 0, 4000) == 500s));
  BOOST_TEST((retry_pause(options, 0, 1'000'000) == options.interval));
}

BOOST_AUTO_TEST_CASE(rejection_by_others_says_nothing) {
  for (const auto* message : {R"(admission webhook "policy.example.com" denied the request: no)",
                              R"(configmaps "x" is forbidden: exceeded quota: compute)",
                              R"(failed calling webhook "policy.example.com": connection refused)",
                              "namespace kyma-system because it is being terminated"}) {
    const auto result = of_error(message, 403, k8s::errc::forbidden);
    BOOST_TEST(result.reason == "", message);
    BOOST_TEST((result.stage == probe_stage::runtime));
  }
}

BOOST_AUTO_TEST_SUITE_END()
