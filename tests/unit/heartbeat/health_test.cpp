// States of runtimes, from their heartbeats and from the lack of them.

#include "rw/reactors/heartbeat/health.hpp"

#include <boost/test/unit_test.hpp>

#include <string>
#include <vector>

BOOST_AUTO_TEST_SUITE(health)

using namespace rw;
using namespace rw::heartbeats;
using namespace std::chrono_literals;

namespace {

const k8s::object_key a{"kcp-system", "a"};
const k8s::object_key b{"kcp-system", "b"};

heartbeat good_heartbeat() {
  heartbeat one;
  one.interval = 20s;
  one.boot_id = "b1";
  one.source = "both";
  return one;
}

struct fleet {
  fleet_health under_test{{.timeout = 50s}};
  moment at{core::time_point(1h), std::chrono::system_clock::from_time_t(1'800'000'000)};

  void pass(std::chrono::seconds by) {
    at.now += by;
    at.wall += by;
  }
  fleet_health::receipt receive(heartbeat content) {
    return under_test.receive(a, std::move(content), at);
  }
  /// Names of those that have become silent.
  std::string silent() {
    std::string out;
    under_test.poll(at, [&](const auto& change) { out += change.kyma.name; });
    return out;
  }
  liveness state() const { return under_test.find(a)->state; }
  status_reason reason() const { return under_test.find(a)->reason; }
};

}  // namespace

BOOST_FIXTURE_TEST_CASE(runtime_is_live_from_its_first_heartbeat, fleet) {
  BOOST_TEST(under_test.expect(a, at));
  BOOST_TEST(!under_test.expect(a, at));
  BOOST_TEST((state() == liveness::unknown));
  const auto receipt = receive(good_heartbeat());
  BOOST_REQUIRE(receipt.changed.has_value());
  BOOST_TEST((receipt.changed->before == liveness::unknown));
  BOOST_TEST((state() == liveness::live));
  BOOST_TEST(!receive(good_heartbeat()).changed);
  BOOST_TEST(under_test.count(liveness::live) == 1u);
}

BOOST_FIXTURE_TEST_CASE(runtime_whose_heartbeat_was_early_is_expected_once, fleet) {
  receive(good_heartbeat());
  BOOST_TEST(under_test.expect(a, at));
  BOOST_TEST(!under_test.expect(a, at));
}

BOOST_FIXTURE_TEST_CASE(runtime_without_heartbeats_is_silent_once, fleet) {
  under_test.expect(a, at);
  pass(30s);
  under_test.expect(a, at);
  under_test.expect(b, at);
  pass(19s);
  BOOST_TEST(silent() == "");
  pass(1s);
  BOOST_TEST(silent() == "a");
  BOOST_TEST(reason() == "NoHeartbeat");
  BOOST_TEST(silent() == "");
  pass(30s);
  BOOST_TEST(silent() == "b");
  BOOST_TEST(under_test.count(liveness::silent) == 2u);
  const auto receipt = receive(good_heartbeat());
  BOOST_REQUIRE(receipt.changed.has_value());
  BOOST_TEST((receipt.changed->before == liveness::silent));
  BOOST_TEST(reason() == "");
}

BOOST_FIXTURE_TEST_CASE(silent_runtime_names_its_expired_certificate, fleet) {
  under_test.expect(a, at);
  auto one = good_heartbeat();
  one.certificate_not_after = at.wall + 10s;
  receive(one);
  pass(60s);
  BOOST_TEST(silent() == "a");
  BOOST_TEST(under_test.find(a)->message.find("expired at") != std::string::npos);
}

BOOST_FIXTURE_TEST_CASE(longer_interval_is_heeded, fleet) {
  under_test.expect(a, at);
  auto one = good_heartbeat();
  one.interval = 60s;
  receive(one);
  pass(149s);
  BOOST_TEST(silent() == "");
  pass(1s);
  BOOST_TEST(silent() == "a");
}

BOOST_FIXTURE_TEST_CASE(trouble_degrades_until_it_ends, fleet) {
  auto one = good_heartbeat();
  one.oldest_undelivered = 61s;
  BOOST_TEST(receive(one).changed.has_value());
  BOOST_TEST((state() == liveness::degraded));
  BOOST_TEST(reason() == "EventsWait");
  BOOST_TEST(!receive(one).changed);
  one.certificate_not_after = at.wall + 1h;
  BOOST_TEST(receive(one).changed.has_value());
  BOOST_TEST(reason() == "CertificateExpires");
  BOOST_TEST(receive(good_heartbeat()).changed.has_value());
  BOOST_TEST((state() == liveness::live));
}

BOOST_FIXTURE_TEST_CASE(refused_event_is_named_unless_other_managers_wait, fleet) {
  auto one = good_heartbeat();
  one.refused = {
      .manager = "klm", .status = 422, .kind = "ConfigMap", .ns = "default", .name = "a"};
  one.oldest_undelivered = 30s;
  receive(one);
  BOOST_TEST((state() == liveness::live));
  one.oldest_undelivered = 31s;
  BOOST_TEST(receive(one).changed.has_value());
  BOOST_TEST((state() == liveness::degraded));
  BOOST_TEST(reason() == "EventsRefused");
  BOOST_TEST(under_test.find(a)->message ==
             "klm rejects the event of ConfigMap default/a with status 422 and accepts others: see "
             "its log, and the gateway's");
  BOOST_TEST(under_test.find(a)->waits_for == "klm");
  BOOST_TEST(!under_test.find(a)->last.refused);
  one.oldest_undelivered = 3600s;
  one.refused->oldest_other = 31s;
  BOOST_TEST(receive(one).changed.has_value());
  BOOST_TEST(reason() == "EventsWait");
  BOOST_TEST(under_test.find(a)->message.find("for 31 s") != std::string::npos);
  BOOST_TEST(under_test.find(a)->waits_for == "");
  receive(good_heartbeat());
  BOOST_TEST((state() == liveness::live));
}

BOOST_FIXTURE_TEST_CASE(operator_that_accepts_no_events_is_named_until_the_runtime_is_silent,
                        fleet) {
  under_test.expect(a, at);
  auto one = good_heartbeat();
  one.oldest_undelivered = 31s;
  one.oldest_manager = "klm";
  receive(one);
  BOOST_TEST(under_test.find(a)->waits_for == "klm");
  BOOST_TEST(under_test.find(a)->message ==
             "an event or a resync has waited for 31 s: see whether klm accepts events");
  pass(50s);
  BOOST_TEST(silent() == "a");
  BOOST_TEST(under_test.find(a)->waits_for == "");
}

BOOST_FIXTURE_TEST_CASE(watch_that_stays_behind_degrades, fleet) {
  auto one = good_heartbeat();
  one.watches = {
      {"klm", "operator.kyma-project.io", "kymas", "spec", watch_state::catching_up, "Forbidden"}};
  receive(one);
  BOOST_TEST((state() == liveness::live));
  pass(61s);
  receive(one);
  BOOST_TEST(reason() == "WatchNotLive");
  BOOST_TEST(under_test.find(a)->message ==
             "kymas.operator.kyma-project.io is not watched: Forbidden");
  BOOST_TEST(under_test.find(a)->last.watches.capacity() == 0u);
  one.watches.front().state = watch_state::unobserved;  // as configured
  receive(one);
  BOOST_TEST((state() == liveness::live));
}

BOOST_FIXTURE_TEST_CASE(losses_are_reported_and_counted, fleet) {
  auto one = good_heartbeat();
  BOOST_TEST(!receive(one).lost);
  one.losses = {{"klm", 2}};
  const auto lost = receive(one).lost;
  BOOST_TEST((lost.managers == std::vector<std::string>{"klm"}));
  BOOST_TEST(!receive(one).lost);
  BOOST_TEST(under_test.find(a)->losses == 2u);
  BOOST_TEST(under_test.find(a)->loss == lost.message());
  BOOST_TEST(under_test.find(a)->last.losses.capacity() == 0u);
  under_test.receive(b, good_heartbeat(), at);
  under_test.receive(b, one, at);
  BOOST_TEST(under_test.observed_losses() == 4u);
}

BOOST_FIXTURE_TEST_CASE(runtime_that_floods_counts_once_in_ten_minutes, fleet) {
  auto one = good_heartbeat();
  receive(one);
  int first = 0;
  for (std::uint64_t i = 1; i <= 240; ++i) {
    pass(5s);
    one.losses = {{"klm", 100 * i}};
    const auto receipt = receive(one);
    BOOST_TEST(bool(receipt.lost));
    first += receipt.first_loss ? 1 : 0;
  }
  BOOST_TEST(first == 2);
}

BOOST_FIXTURE_TEST_CASE(losses_of_a_process_that_began_unheard_count_once_the_leader_listens,
                        fleet) {
  auto one = good_heartbeat();
  one.started = at.wall;
  one.sent = at.wall + 5s;
  one.losses = {{"klm", 1}};
  under_test.listen(at);
  pass(5s);
  BOOST_TEST(!receive(one).lost, "it began as the leader did");
  one.boot_id = "b2";
  one.started = at.wall + 1s;
  one.sent = at.wall + 5s;
  pass(6s);
  BOOST_TEST(bool(receive(one).lost));
}

BOOST_FIXTURE_TEST_CASE(runtime_without_kyma_is_forgotten, fleet) {
  receive(good_heartbeat());
  under_test.expect(b, at);
  under_test.retain([](const auto& kyma) { return kyma == b; });
  BOOST_TEST(!under_test.find(a));
  BOOST_TEST(under_test.count(liveness::live) == 0u);
  BOOST_TEST(under_test.count(liveness::unknown) == 1u);
}

BOOST_FIXTURE_TEST_CASE(runtime_without_installation_is_not_silent, fleet) {
  under_test.expect(a, at);
  pass(60s);
  BOOST_TEST(silent() == "a");
  under_test.unexpect(a, at);
  BOOST_TEST((state() == liveness::unknown));
  BOOST_TEST(reason() == "");
  pass(600s);
  BOOST_TEST(silent() == "");
  BOOST_TEST(under_test.expect(a, at));
  BOOST_TEST(silent() == "");
  pass(60s);
  BOOST_TEST(silent() == "a");
}

BOOST_FIXTURE_TEST_CASE(heartbeats_of_a_runtime_without_installation_may_end, fleet) {
  receive(good_heartbeat());
  BOOST_TEST((state() == liveness::live));
  pass(50s);
  BOOST_TEST(silent() == "");
  BOOST_TEST((state() == liveness::unknown));
  receive(good_heartbeat());
  pass(600s);
  BOOST_TEST(under_test.expect(a, at));
  BOOST_TEST(silent() == "");  // it has the whole timeout for its next heartbeat
}

BOOST_FIXTURE_TEST_CASE(heartbeats_of_a_runtime_are_limited_to_four_a_second, fleet) {
  const auto same = good_heartbeat();
  receive(same);
  for (int i = 0; i < 16; ++i) BOOST_TEST(under_test.accepts(a, same, at));
  BOOST_TEST(!under_test.accepts(a, same, at));
  BOOST_TEST(under_test.accepts(b, same, at));
  pass(1s);
  for (int pods = 0; pods < 4; ++pods) BOOST_TEST(under_test.accepts(a, same, at));
  BOOST_TEST(!under_test.accepts(a, same, at));
}

BOOST_FIXTURE_TEST_CASE(heartbeat_with_other_files_passes_the_limit_once_a_second, fleet) {
  const auto same = good_heartbeat();
  receive(same);
  for (int i = 0; i < 16; ++i) BOOST_TEST(under_test.accepts(a, same, at));
  // Of a hostile runtime, each is another one.
  const auto accepted = [&] {
    int count = 0;
    for (int i = 0; i < 100; ++i) {
      auto one = good_heartbeat();
      one.pod = "p" + std::to_string(i);
      one.ca_digest = std::string(64, 'a');
      if (!under_test.accepts(a, one, at)) continue;
      receive(one);
      ++count;
    }
    return count;
  };
  BOOST_TEST(accepted() == 4);
  pass(1s);
  BOOST_TEST(accepted() == 5);  // the four of any kind, and one
}

BOOST_FIXTURE_TEST_CASE(pod_is_known_by_its_latest_heartbeat, fleet) {
  const auto from = [this](std::string pod, char digest) {
    auto one = good_heartbeat();
    one.pod = std::move(pod);
    one.managers_digest = std::string(64, digest);
    pass(1s);
    return receive(one).reloaded;
  };
  BOOST_TEST(from("p1", 'a'));
  BOOST_TEST(from("p2", 'a'));
  BOOST_TEST(!from("p1", 'a'));
  BOOST_TEST(from("p1", 'b'));
  BOOST_TEST(from("", 'b'));  // of an earlier version: its name is not known
  const auto pods = under_test.pods(a);
  BOOST_REQUIRE(pods.size() == 2U);
  BOOST_TEST(pods[0].pod == "p1");
  BOOST_TEST(pods[0].managers_digest == std::string(64, 'b'));
  BOOST_TEST((pods[0].heard == at.wall - 1s));
  BOOST_TEST(pods[1].managers_digest == std::string(64, 'a'));
  BOOST_TEST(under_test.pods(b).empty());
  // A name that belongs to a pod of another runtime says nothing of that one.
  auto forged = good_heartbeat();
  forged.pod = "p2";
  under_test.receive(b, forged, at);
  BOOST_TEST(under_test.pods(a)[1].managers_digest == std::string(64, 'a'));
  // Those heard last are kept.
  for (const auto* name : {"p3", "p4", "p5", "p6"}) from(name, 'c');
  BOOST_TEST(under_test.pods(a).size() == fleet_health::max_pods);
  BOOST_TEST(under_test.pods(a).front().pod == "p5");
  under_test.unexpect(a, at);
  under_test.retain([](const auto&) { return false; });
  BOOST_TEST(under_test.pods(a).empty());
}

BOOST_FIXTURE_TEST_CASE(events_of_two_pods_are_counted_of_each, fleet) {
  for (std::uint64_t accepted = 10; accepted <= 30; accepted += 10) {
    for (const auto* pod : {"p1", "p2"}) {
      auto one = good_heartbeat();
      one.pod = one.boot_id = pod;
      one.events.accepted = accepted;
      receive(one);
    }
  }
  BOOST_TEST(under_test.observed_events().accepted == 40U);
}

BOOST_FIXTURE_TEST_CASE(timeout_is_never_shorter_than_two_and_a_half_intervals, fleet) {
  fleet_health quick({.timeout = 5s});
  quick.expect(a, at);
  quick.receive(a, good_heartbeat(), at);
  const auto silent = [&] {
    std::string out;
    quick.poll(at, [&](const auto& change) { out += change.kyma.name; });
    return out;
  };
  pass(49s);
  BOOST_TEST(silent() == "");
  pass(1s);
  BOOST_TEST(silent() == "a");
}

BOOST_FIXTURE_TEST_CASE(events_are_counted_between_heartbeats_of_one_process, fleet) {
  const auto report = [this](const char* boot, std::uint64_t accepted, std::uint64_t abandoned) {
    auto one = good_heartbeat();
    one.boot_id = boot;
    one.events.accepted = accepted;
    one.events.abandoned = abandoned;
    receive(one);
    const auto& sum = under_test.observed_events();
    return std::to_string(sum.accepted) + " " + std::to_string(sum.abandoned);
  };
  BOOST_TEST(report("b1", 1000, 3) == "0 0");  // before this process began
  BOOST_TEST(report("b1", 1010, 3) == "10 0");
  BOOST_TEST(report("b1", 1010, 4) == "10 1");
  BOOST_TEST(report("b2", 500, 0) == "10 1");  // another process
  BOOST_TEST(report("b2", 501, 0) == "11 1");
  BOOST_TEST(report("b2", 400, 0) == "11 1");  // a claim that cannot be
  auto other = good_heartbeat();
  other.events.accepted = 7;
  under_test.receive(b, other, at);
  BOOST_TEST(under_test.observed_events().accepted == 11u);
}

BOOST_AUTO_TEST_SUITE_END()
