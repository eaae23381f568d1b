#include "rw/reactors/gateway_secret/rotation.hpp"

#include <boost/test/unit_test.hpp>
#include <openssl/pem.h>
#include <openssl/x509v3.h>

#include "tests/unit/gateway_secret/world.hpp"
#include <cstddef>
#include <memory>
#include <string>
#include <vector>

BOOST_AUTO_TEST_SUITE(rotation)

using namespace rw;
using namespace rw::gateway_secret;
using namespace rw::gateway_secret::test;
namespace json = boost::json;

namespace {

using steps = std::vector<rotation_step>;

const root& r1() {
  static const root made("r1");
  return made;
}
const root& r2() {
  static const root made("r2");
  return made;
}
const root& r3() {
  static const root made("r3");
  return made;
}

observed rooted(const root& in, std::optional<gateway_content> gateway = {}) {
  return {.root = in.secret(), .gateway = std::move(gateway)};
}

/// A board with one runtime, which has everything of `newest` and trusts `also`.
cluster_states board_with(const root& newest, const root& also) {
  cluster_states board;
  board.complete();
  board.observed(kyma("a"), runtime_with({&newest, &also}, newest, day0 + 1min), day0);
  return board;
}
cluster_states nobody() {
  cluster_states board;
  board.complete();
  return board;
}

/// Checks what must hold of every plan: nothing is left to do once its write was done, and what is
/// served has its authority in the bundle.
rotation_plan planned(const observed& world, const cluster_states& board, wall_time now,
                      const rotation_options& options = {}) {
  auto first = make_plan(world, board, options, now);
  BOOST_TEST(first.write.has_value() == !first.steps.empty());
  if (first.write) {
    BOOST_TEST(first.write->served.has_value());
    if (first.write->served) BOOST_TEST(first.write->bundle.issuer_of(*first.write->served));
    auto after = world;
    const auto object = write_gateway_secret(*first.write, kyma("gateway"));
    after.gateway = read_gateway_secret(object);
    const auto second = make_plan(after, board, options, now);
    const bool only_switches =
        second.steps.empty() || second.steps == steps{rotation_step::switch_server};
    BOOST_TEST(only_switches);
  }
  if (first.recheck_at) BOOST_TEST((*first.recheck_at > now));
  return first;
}

bool serves(const rotation_plan& made, const root& which) {
  return made.write && made.write->served == which.certificate &&
         made.write->pair.key == which.ca.own().key;
}
bool bundled(const rotation_plan& made, std::vector<tls::certificate> all) {
  return made.write && made.write->bundle == tls::ca_bundle(all);
}

}  // namespace

BOOST_AUTO_TEST_CASE(without_a_gateway_secret_one_is_made_of_the_root) {
  const auto made = planned(rooted(r1()), cluster_states(), day0 + 500ms);
  BOOST_TEST((made.steps == steps{rotation_step::create}));
  BOOST_TEST(serves(made, r1()));
  BOOST_TEST(bundled(made, {r1().certificate}));
  BOOST_TEST((made.write->ca_added_at == day0));
  BOOST_TEST((made.phase == rotation_phase::settled));
}

BOOST_AUTO_TEST_CASE(without_either_secret_nothing_is_done) {
  observed world;
  world.root_error = "the root Secret is missing";
  const auto made = planned(world, nobody(), day0);
  BOOST_TEST(made.steps.empty());
  BOOST_TEST((made.phase == rotation_phase::no_root));
  BOOST_TEST(made.waiting.find("is missing") != std::string::npos);
}

BOOST_AUTO_TEST_CASE(settled_state_stays) {
  const auto made =
      planned(rooted(r1(), gateway(r1(), {r1().certificate}, day0)), nobody(), day0 + 24h * 30);
  BOOST_TEST(made.steps.empty());
  BOOST_TEST((made.phase == rotation_phase::settled));
  BOOST_TEST(made.waiting.empty());
}

BOOST_AUTO_TEST_CASE(new_root_is_put_in_front_of_the_bundle_and_not_served) {
  const auto now = day0 + 24h * 30;
  const auto made = planned(rooted(r2(), gateway(r1(), {r1().certificate}, day0)), nobody(), now);
  BOOST_TEST((made.steps == steps{rotation_step::add_authority}));
  BOOST_TEST(serves(made, r1()));
  BOOST_TEST(bundled(made, {r2().certificate, r1().certificate}));
  BOOST_TEST((made.write->ca_added_at == now));
  BOOST_TEST((made.phase == rotation_phase::grace));
  BOOST_TEST((made.recheck_at == now + 4 * 24h));
}

BOOST_AUTO_TEST_CASE(root_that_is_renewed_with_its_key_is_a_new_one) {
  // cert-manager keeps the key where rotationPolicy is Never: names and key are the old ones.
  const auto again = good(tls::issuer::create({.common_name = "r1", .not_before = day0}));
  const auto now = day0 + 1h;
  auto world = rooted(r1(), gateway(r1(), {r1().certificate}, day0));
  world.root->pair = again.own();
  world.root->server = parsed(again.certificate_pem());
  world.root->authorities = {world.root->server};
  const auto made = planned(world, nobody(), now);
  BOOST_TEST((made.steps == steps{rotation_step::add_authority}));
  BOOST_TEST(bundled(made, {world.root->server, r1().certificate}));
}

BOOST_AUTO_TEST_CASE(gateway_switches_after_the_grace_period_and_not_before) {
  const auto world = rooted(r2(), gateway(r1(), {r2().certificate, r1().certificate}, day0));
  const auto board = board_with(r2(), r1());
  const auto early = planned(world, board, day0 + 4 * 24h - 1s);
  BOOST_TEST(early.steps.empty());
  BOOST_TEST((early.phase == rotation_phase::grace));
  BOOST_TEST((early.recheck_at == day0 + 4 * 24h));
  const auto due = planned(world, board, day0 + 4 * 24h);
  BOOST_TEST((due.steps == steps{rotation_step::switch_server}));
  BOOST_TEST(serves(due, r2()));
  BOOST_TEST(bundled(due, {r2().certificate, r1().certificate}));
  BOOST_TEST((due.write->ca_added_at == day0));
}

BOOST_AUTO_TEST_CASE(gateway_does_not_switch_before_every_runtime_was_seen) {
  const auto world = rooted(r2(), gateway(r1(), {r2().certificate, r1().certificate}, day0));
  const auto late = day0 + 24h * 30;
  auto board = board_with(r2(), r1());
  board.expect(kyma("b"));
  const auto made = planned(world, board, late);
  BOOST_TEST(made.steps.empty());
  BOOST_TEST((made.phase == rotation_phase::distributing));
  BOOST_TEST(made.missing == 1U);
  BOOST_TEST(made.waiting.find("kcp-system/b (not observed yet)") != std::string::npos);
  BOOST_TEST((planned(world, cluster_states(), late).steps.empty()));  // a board not complete
  BOOST_TEST((planned(world, board, late, {.time_only = true}).steps ==
              steps{rotation_step::switch_server}));
  board.failing(kyma("b"), status_reason::runtime_unreachable, cluster_fault::tenant, late);
  BOOST_TEST((planned(world, board, late + 23h).steps.empty()));
  BOOST_TEST((planned(world, board, late + 23h).recheck_at == late + 24h));
  BOOST_TEST((planned(world, board, late + 24h).steps == steps{rotation_step::switch_server}));
}

BOOST_AUTO_TEST_CASE(runtimes_of_another_manager_are_not_waited_for) {
  const auto world = rooted(r2(), gateway(r1(), {r2().certificate, r1().certificate}, day0));
  auto board = board_with(r2(), r1());
  for (int i = 0; i < 50; ++i) {
    board.set_scope(kyma("other-" + std::to_string(i)), cluster_scope::unselected);
  }
  const auto made = planned(world, board, day0 + 24h * 5);
  BOOST_TEST((made.steps == steps{rotation_step::switch_server}));
  // They are no part of those of which a share is excused.
  for (const auto* name : {"b", "c", "d", "e"}) {
    board.expect(kyma(name));
    board.failing(kyma(name), status_reason::write_rejected, cluster_fault::tenant, day0);
  }
  const auto held = planned(world, board, day0 + 24h * 5, {.excused_percent = 8});
  BOOST_TEST(held.missing == 1U);
  BOOST_TEST(held.waiting.find("1 of 5 runtimes: ") != std::string::npos);
}

BOOST_AUTO_TEST_CASE(few_runtimes_are_excused_at_once) {
  const auto world = rooted(r2(), gateway(r1(), {r2().certificate, r1().certificate}, day0));
  const auto late = day0 + 24h * 30;
  auto board = board_with(r2(), r1());
  const auto fails = [&](const std::string& name, wall_time since) {
    board.expect(kyma(name));
    board.failing(kyma(name), status_reason::write_rejected, cluster_fault::tenant, since);
  };
  for (const auto* name : {"b", "c", "d"}) fails(name, late);
  BOOST_TEST((planned(world, board, late + 25h).steps == steps{rotation_step::switch_server}));
  fails("e", late + 1s);  // the last one to fail is waited for
  const auto made = planned(world, board, late + 25h);
  BOOST_TEST(made.steps.empty());
  BOOST_TEST(made.missing == 1U);
  BOOST_TEST(made.waiting.find("kcp-system/e (not observed yet: WriteRejected)") !=
             std::string::npos);
  BOOST_TEST(made.excused == 3U);
  BOOST_TEST(made.held_up_by == "TooManyRuntimesFail");
  BOOST_TEST((made.due_since == day0 + 4 * 24h));
  const auto more = planned(world, board, late + 25h, {.excused_least = 4});
  BOOST_TEST((more.steps == steps{rotation_step::switch_server}));
  BOOST_TEST(more.held_up_by == "");
  BOOST_TEST(planned(world, board, late + 25h, {.excused_percent = 0}).missing == 4U);
  // Five of a hundred.
  fails("f", late + 2s);
  for (int i = 0; i < 95; ++i) {
    const auto key = kyma("well" + std::to_string(i));
    board.expect(key);
    board.observed(key, runtime_with({&r2(), &r1()}, r2(), day0 + 1h), day0 + 1h);
  }
  BOOST_TEST((planned(world, board, late + 25h).steps == steps{rotation_step::switch_server}));
}

BOOST_AUTO_TEST_CASE(fault_of_another_than_the_tenant_holds_up_until_the_deadline) {
  const auto world = rooted(r2(), gateway(r1(), {r2().certificate, r1().certificate}, day0));
  const auto late = day0 + 24h * 30;
  const std::pair<cluster_fault, std::string_view> samples[] = {
      {cluster_fault::kcp, "FaultInKCP"},
      {cluster_fault::issuer, "FaultOfIssuer"},
      {cluster_fault::manager, "FaultOfManager"},
      {cluster_fault::tenant, ""}};
  for (const auto& [fault, reason] : samples) {
    auto board = board_with(r2(), r1());
    board.expect(kyma("b"));
    board.failing(kyma("b"), status_reason::gateway_invalid, fault, day0);
    const bool own = fault == cluster_fault::tenant;
    const auto early = planned(world, board, day0 + 23h);
    BOOST_TEST(early.held_up_by == "", "the switch is not due");
    BOOST_TEST(!early.due_since);
    const auto due = planned(world, board, late);
    BOOST_TEST(due.held_up_by == reason);
    BOOST_TEST((due.steps.empty() != own));
    const auto end = planned(world, board, *planned(world, board, day0).deadline);
    BOOST_TEST((end.steps == steps{rotation_step::switch_server}));
    BOOST_TEST(end.held_up_by == "");
  }
}

BOOST_AUTO_TEST_CASE(missing_runtimes_are_reported_within_the_grace_period_already) {
  const auto world = rooted(r2(), gateway(r1(), {r2().certificate, r1().certificate}, day0));
  cluster_states board;
  board.complete();
  board.observed(kyma("a"), runtime_with({&r1()}, r1(), day0 - 1h), day0);
  const auto made = planned(world, board, day0 + 1h);
  BOOST_TEST((made.phase == rotation_phase::grace));
  BOOST_TEST(made.missing == 1U);
  BOOST_TEST(made.waiting ==
             "the grace period ends at 2026-03-05T00:00:00Z; missing: 1 of 1 runtimes: "
             "kcp-system/a (without the new CA); not waited for after 2027-02-27T00:00:00Z");
}

BOOST_AUTO_TEST_CASE(rotation_that_overtakes_another_waits_for_the_latest_root) {
  // r2 was on its way when r3 came; every runtime has r2 already.
  auto world = rooted(r3(), gateway(r1(), {r2().certificate, r1().certificate}, day0));
  const auto second = day0 + 2 * 24h;
  const auto added = planned(world, board_with(r2(), r1()), second);
  BOOST_TEST((added.steps == steps{rotation_step::add_authority}));
  BOOST_TEST(serves(added, r1()));
  BOOST_TEST(bundled(added, {r3().certificate, r2().certificate, r1().certificate}));
  BOOST_TEST((added.write->ca_added_at == second));
  world.gateway = added.write;
  // The grace period of r2 has passed, and r2 is not what is to be served.
  BOOST_TEST(planned(world, board_with(r2(), r1()), day0 + 5 * 24h).steps.empty());
  BOOST_TEST(planned(world, board_with(r3(), r1()), day0 + 5 * 24h).steps.empty());
  const auto late = second + 4 * 24h;
  BOOST_TEST((planned(world, board_with(r2(), r1()), late).phase == rotation_phase::distributing));
  BOOST_TEST(serves(planned(world, board_with(r3(), r1()), late), r3()));
}

BOOST_AUTO_TEST_CASE(root_that_goes_back_is_served_again_without_being_added_again) {
  const auto world = rooted(r1(), gateway(r2(), {r2().certificate, r1().certificate}, day0));
  BOOST_TEST(planned(world, board_with(r2(), r1()), day0 + 24h).steps.empty());
  const auto late = day0 + 4 * 24h;
  BOOST_TEST(serves(planned(world, board_with(r2(), r1()), late), r1()));
  cluster_states board;
  board.complete();
  board.observed(kyma("a"), runtime_with({&r2()}, r2(), day0 + 1min), day0);
  BOOST_TEST(planned(world, board, late).steps.empty());
}

BOOST_AUTO_TEST_CASE(roots_faster_than_the_grace_period_do_not_let_what_is_served_expire) {
  const rotation_options options{.urgent = 24h, .before_expiry = 1h};
  const root brief("brief", day0 - 24h, 24h * 10);  // ends on day 9
  const auto added = day0 + 7 * 24h;
  const auto world = rooted(r2(), gateway(brief, {r2().certificate, brief.certificate}, added));
  const auto ready = board_with(r2(), brief);
  auto unready = nobody();
  unready.observed(kyma("a"), runtime_with({&brief}, brief, day0), day0);
  const auto relaxed = planned(world, unready, day0 + 7 * 24h + 1h, options);
  BOOST_TEST((relaxed.recheck_at == day0 + 8 * 24h));
  BOOST_TEST(planned(world, ready, day0 + 7 * 24h + 1h, options).steps.empty());
  // A day before the end only the runtimes count,
  BOOST_TEST(
      (planned(world, unready, day0 + 8 * 24h, options).phase == rotation_phase::distributing));
  BOOST_TEST(serves(planned(world, ready, day0 + 8 * 24h, options), r2()));
  BOOST_TEST(planned(world, ready, day0 + 8 * 24h, {.time_only = true}).steps.empty());
  // and after it nobody has anything to lose.
  BOOST_TEST(serves(planned(world, unready, day0 + 9 * 24h + 1s, options), r2()));
  BOOST_TEST(serves(planned(world, unready, day0 + 9 * 24h + 1s, {.time_only = true}), r2()));
}

BOOST_AUTO_TEST_CASE(expired_server_is_replaced_by_a_root_that_has_just_come) {
  const root brief("brief", day0 - 24h, 24h);
  const auto made =
      planned(rooted(r2(), gateway(brief, {brief.certificate}, day0 - 24h)), nobody(), day0 + 1s);
  BOOST_TEST((made.steps == steps{rotation_step::add_authority, rotation_step::switch_server}));
  BOOST_TEST(bundled(made, {r2().certificate, brief.certificate}));
}

BOOST_AUTO_TEST_CASE(switch_is_never_written_together_with_its_addition) {
  const auto made = planned(rooted(r2(), gateway(r1(), {r1().certificate}, day0)), nobody(),
                            day0 + 24h, {.grace = 0s, .time_only = true});
  BOOST_TEST((made.steps == steps{rotation_step::add_authority}));
  BOOST_TEST(serves(made, r1()));
}

BOOST_AUTO_TEST_CASE(expired_root_is_neither_added_nor_served) {
  const root brief("brief", day0 - 48h, 24h);
  const auto made = planned(rooted(brief, gateway(r1(), {r1().certificate}, day0)), nobody(), day0);
  BOOST_TEST(made.steps.empty());
  BOOST_TEST((made.phase == rotation_phase::blocked));
  BOOST_TEST(made.waiting == "the root certificate has expired");
  const auto none = planned(rooted(brief), nobody(), day0);
  BOOST_TEST(none.steps.empty());
  BOOST_TEST((none.phase == rotation_phase::blocked));
}

BOOST_AUTO_TEST_CASE(root_of_the_future_is_trusted_at_once_and_served_when_it_is_valid) {
  const root future("future", day0 + 24h * 10);
  const auto added =
      planned(rooted(future, gateway(r1(), {r1().certificate}, day0)), nobody(), day0);
  BOOST_TEST((added.steps == steps{rotation_step::add_authority}));
  auto world = rooted(future, added.write);
  const auto board = board_with(future, r1());
  const auto waiting = planned(world, board, day0 + 24h * 9);
  BOOST_TEST(waiting.steps.empty());
  BOOST_TEST((waiting.recheck_at == day0 + 24h * 10));
  BOOST_TEST(serves(planned(world, board, day0 + 24h * 10), future));
}

BOOST_AUTO_TEST_CASE(root_that_cannot_be_used_changes_nothing) {
  observed world{.root = {},
                 .root_error = "tls.key is missing",
                 .gateway = gateway(r1(), {r1().certificate}, day0)};
  const auto made = planned(world, nobody(), day0 + 24h);
  BOOST_TEST(made.steps.empty());
  BOOST_TEST((made.phase == rotation_phase::no_root));
  BOOST_TEST(made.waiting == "tls.key is missing");
}

BOOST_AUTO_TEST_CASE(expired_authorities_are_dropped_when_nobody_needs_them) {
  const root old("old", day0 - 48h, 48h);
  const auto world = rooted(r2(), gateway(r2(), {r2().certificate, old.certificate}, day0 - 24h));
  BOOST_TEST(planned(world, nobody(), day0 + 59min).steps.empty());
  BOOST_TEST((planned(world, nobody(), day0 + 59min).recheck_at == day0 + 1h + 1s));
  const auto made = planned(world, nobody(), day0 + 1h + 1s);
  BOOST_TEST((made.steps == steps{rotation_step::drop_expired}));
  BOOST_TEST(bundled(made, {r2().certificate}));
  BOOST_TEST((made.write->ca_added_at == day0 - 24h));
}

BOOST_AUTO_TEST_CASE(expired_authority_goes_whatever_runtimes_hold) {
  const root old("old", day0 - 48h, 48h);
  const auto world = rooted(r2(), gateway(r2(), {r2().certificate, old.certificate}, day0 - 24h));
  auto board = nobody();
  board.observed(kyma("a"), runtime_with({&r2(), &old}, old, day0 - 24h), day0);
  board.expect(kyma("b"));
  BOOST_TEST(planned(world, board, day0 + 59min).steps.empty());
  BOOST_TEST(planned(world, board, day0 + 24h).has(rotation_step::drop_expired));
  BOOST_TEST(planned(world, cluster_states(), day0 + 24h).has(rotation_step::drop_expired));
}

BOOST_AUTO_TEST_CASE(switch_goes_on_without_the_missing_before_what_is_served_ends) {
  const root brief("brief", day0 - 24h, 24h * 11);  // ends on day 10
  const auto world = rooted(r2(), gateway(brief, {r2().certificate, brief.certificate}, day0));
  auto unready = nobody();
  unready.observed(kyma("a"), runtime_with({&brief}, brief, day0), day0);
  unready.expect(kyma("b"));
  const auto deadline = day0 + 9 * 24h;
  const auto early = planned(world, unready, day0 + 1h);
  BOOST_TEST((early.phase == rotation_phase::grace));
  BOOST_TEST((early.deadline == deadline));
  BOOST_TEST(early.missing == 2U);
  const auto waiting = planned(world, unready, day0 + 5 * 24h);
  BOOST_TEST((waiting.phase == rotation_phase::distributing));
  BOOST_TEST(waiting.waiting ==
             "missing: 2 of 2 runtimes: kcp-system/a (without the new CA), kcp-system/b (not "
             "observed yet); not waited for after 2026-03-10T00:00:00Z");
  BOOST_TEST(!waiting.near_deadline);
  BOOST_TEST((waiting.recheck_at == deadline - 3 * 24h));
  const auto near = planned(world, unready, deadline - 1s);
  BOOST_TEST(near.steps.empty());
  BOOST_TEST(near.near_deadline);
  BOOST_TEST((near.recheck_at == deadline));
  const auto late = planned(world, unready, deadline);
  BOOST_TEST(serves(late, r2()));
  BOOST_TEST(late.left_behind.find("kcp-system/b (not observed yet)") != std::string::npos);
  BOOST_TEST(!late.deadline);
  BOOST_TEST(serves(planned(world, cluster_states(), deadline), r2()));  // nobody is known
  BOOST_TEST(planned(world, board_with(r2(), brief), deadline).left_behind.empty());
}

BOOST_AUTO_TEST_CASE(root_that_comes_shortly_before_the_end_leaves_time_for_the_runtimes) {
  const root brief("brief", day0 - 24h, 24h + 2h);  // ends at two
  auto world = rooted(r2(), gateway(brief, {brief.certificate}, day0 - 24h));
  auto unready = nobody();
  unready.observed(kyma("a"), runtime_with({&brief}, brief, day0 - 24h), day0);
  const auto added = planned(world, unready, day0);
  BOOST_TEST((added.steps == steps{rotation_step::add_authority}));
  world.gateway = added.write;
  BOOST_TEST(planned(world, unready, day0 + 1s).steps.empty());
  BOOST_TEST(serves(planned(world, board_with(r2(), brief), day0 + 5min), r2()));
  BOOST_TEST(planned(world, unready, day0 + 59min).steps.empty());
  BOOST_TEST(serves(planned(world, unready, day0 + 1h), r2()));
}

BOOST_AUTO_TEST_CASE(of_many_that_are_missing_a_few_are_named_in_order) {
  const auto world = rooted(r2(), gateway(r1(), {r2().certificate, r1().certificate}, day0));
  auto board = nobody();
  for (const auto* name : {"g", "f", "e", "d", "c", "b", "a"}) board.expect(kyma(name));
  const auto made = planned(world, board, day0 + 5 * 24h);
  BOOST_TEST(made.missing == 7U);
  BOOST_TEST(made.waiting.starts_with(
      "missing: 7 of 7 runtimes: kcp-system/a (not observed yet), kcp-system/b"));
  BOOST_TEST(made.waiting.find("kcp-system/e (not observed yet) and others") != std::string::npos);
  board.forget(kyma("g"));
  BOOST_TEST(planned(world, board, day0 + 5 * 24h).missing == 6U);
}

BOOST_AUTO_TEST_CASE(authorities_of_root_and_served_certificate_are_never_dropped) {
  const root old("old", day0 - 48h, 48h);
  const auto served = rooted(old, gateway(old, {old.certificate}, day0 - 24h));
  BOOST_TEST(planned(served, nobody(), day0 + 24h).steps.empty());
  const root older("older", day0 - 48h, 24h);
  auto world = rooted(old, gateway(older, {older.certificate}, day0 - 24h));
  BOOST_TEST(planned(world, nobody(), day0 + 24h).steps.empty());
}

BOOST_AUTO_TEST_CASE(missing_or_senseless_time_begins_the_grace_period_again) {
  const auto now = day0 + 24h * 30;
  auto world = rooted(r2(), gateway(r1(), {r2().certificate, r1().certificate}, day0));
  const auto board = board_with(r2(), r1());
  world.gateway->ca_added_at.reset();
  const auto missing = planned(world, board, now);
  BOOST_TEST((missing.steps == steps{rotation_step::repair_time}));
  BOOST_TEST((missing.write->ca_added_at == now));
  world.gateway->ca_added_at = now + 6min;
  BOOST_TEST((planned(world, board, now).write->ca_added_at == now));
}

BOOST_AUTO_TEST_CASE(clock_that_was_set_back_a_little_never_moves_the_time_back) {
  const auto ahead = day0 + 4min;
  auto world = rooted(r2(), gateway(r1(), {r2().certificate, r1().certificate}, ahead));
  BOOST_TEST(planned(world, board_with(r2(), r1()), day0).steps.empty());
  world.root = r3().secret();
  const auto added = planned(world, board_with(r2(), r1()), day0);
  BOOST_TEST((added.steps == steps{rotation_step::add_authority}));
  BOOST_TEST((added.write->ca_added_at == ahead));
}

BOOST_AUTO_TEST_CASE(pair_that_cannot_be_served_is_put_back_as_it_was) {
  auto broken = gateway(r1(), {r2().certificate, r1().certificate}, day0);
  broken.pair.key = "garbage";
  broken.served.reset();
  auto world = rooted(r2(), broken);
  world.last_whole = gateway(r1(), {r2().certificate, r1().certificate}, day0);
  const auto restored = planned(world, nobody(), day0 + 1h);
  BOOST_TEST((restored.steps == steps{rotation_step::repair_pair}));
  BOOST_TEST(serves(restored, r1()));
  // A process that has not seen it whole has the root's only: better than nothing at all.
  world.last_whole.reset();
  BOOST_TEST(serves(planned(world, nobody(), day0 + 1h), r2()));
  world.root.reset();
  const auto helpless = planned(world, nobody(), day0 + 1h);
  BOOST_TEST(helpless.steps.empty());
}

BOOST_AUTO_TEST_CASE(damaged_bundle_keeps_what_can_be_read_and_gets_back_what_is_known) {
  const auto whole = gateway(r1(), {r2().certificate, r1().certificate}, day0);
  auto object = write_gateway_secret(whole, kyma("gateway"));
  k8s::set_secret_data(object, "ca.crt", r3().certificate.pem() + "-----BEGIN CERTIFICATE-----\nA");
  auto world = rooted(r2(), read_gateway_secret(object));
  const auto alone = planned(world, nobody(), day0 + 1h);
  BOOST_TEST(alone.has(rotation_step::repair_bundle));
  // r2 is the root's and r1 what is served; nobody has told of anything else.
  BOOST_TEST(bundled(alone, {r2().certificate, r3().certificate, r1().certificate}));
  BOOST_TEST((alone.write->ca_added_at == day0 + 1h));
  world.last_whole = whole;
  const auto knowing = planned(world, nobody(), day0 + 1h);
  BOOST_TEST((knowing.steps == steps{rotation_step::repair_bundle}));
  BOOST_TEST(bundled(knowing, {r2().certificate, r1().certificate, r3().certificate}));
  BOOST_TEST((knowing.write->ca_added_at == day0));
  BOOST_TEST(serves(knowing, r1()));
}

BOOST_AUTO_TEST_CASE(missing_bundle_is_made_again) {
  const auto whole = gateway(r1(), {r1().certificate}, day0);
  auto object = write_gateway_secret(whole, kyma("gateway"));
  object.at("data").as_object().erase("ca.crt");
  const auto made = planned(rooted(r2(), read_gateway_secret(object)), nobody(), day0 + 1h);
  BOOST_TEST(bundled(made, {r2().certificate, r1().certificate}));
  BOOST_TEST(serves(made, r1()));
}

BOOST_AUTO_TEST_CASE(without_any_authority_nothing_is_written) {
  gateway_content empty{.bundle_error = "ca.crt is missing"};
  observed world{.root = {}, .root_error = "missing", .gateway = empty};
  const auto made = planned(world, nobody(), day0);
  BOOST_TEST(made.steps.empty());
  BOOST_TEST((made.phase == rotation_phase::blocked));
}

BOOST_AUTO_TEST_CASE(authority_of_the_served_certificate_comes_back_if_it_was_removed) {
  const auto world = rooted(r2(), gateway(r1(), {r2().certificate}, day0));
  const auto made = planned(world, board_with(r2(), r2()), day0 + 1h);
  BOOST_TEST((made.steps == steps{rotation_step::repair_bundle}));
  BOOST_TEST(bundled(made, {r2().certificate, r1().certificate}));
  BOOST_TEST((made.write->ca_added_at == day0));  // its clients need no other certificate
}

BOOST_AUTO_TEST_CASE(authority_that_a_person_removed_stays_out) {
  auto world = rooted(r1(), gateway(r1(), {r1().certificate}, day0));
  world.last_whole = gateway(r1(), {r1().certificate, r2().certificate}, day0);
  BOOST_TEST(planned(world, nobody(), day0 + 1h).steps.empty());
}

BOOST_AUTO_TEST_CASE(gateway_secret_that_was_deleted_comes_back_as_it_was) {
  auto world = rooted(r2());
  world.last_whole = gateway(r1(), {r2().certificate, r1().certificate}, day0);
  const auto made = planned(world, nobody(), day0 + 1h);
  BOOST_TEST((made.steps == steps{rotation_step::create}));
  BOOST_TEST(serves(made, r1()));
  BOOST_TEST(bundled(made, {r2().certificate, r1().certificate}));
  BOOST_TEST((made.write->ca_added_at == day0));
}

BOOST_AUTO_TEST_CASE(gateway_secret_comes_back_where_the_root_is_gone_too) {
  observed world{.root = {}, .root_error = "missing", .gateway = {}};
  world.last_whole = gateway(r1(), {r2().certificate, r1().certificate}, day0);
  const auto made = planned(world, nobody(), day0 + 1h);
  BOOST_TEST((made.steps == steps{rotation_step::create}));
  BOOST_TEST(serves(made, r1()));
  BOOST_TEST(bundled(made, {r2().certificate, r1().certificate}));
  BOOST_TEST((made.write->ca_added_at == day0));
  BOOST_TEST((made.phase == rotation_phase::no_root), "a person has to restore the root");
  // What has expired serves nobody.
  const auto late = planned(world, nobody(), r1().certificate.not_after() + 1h);
  BOOST_TEST(late.steps.empty());
  BOOST_TEST((late.phase == rotation_phase::no_root));
}

BOOST_AUTO_TEST_CASE(full_bundle_needs_a_person) {
  const auto made = planned(rooted(r3(), gateway(r1(), {r2().certificate, r1().certificate}, day0)),
                            nobody(), day0 + 1h, {.authorities = 2});
  BOOST_TEST(made.steps.empty());
  BOOST_TEST((made.phase == rotation_phase::blocked));
  BOOST_TEST(made.waiting.find("2 authorities") != std::string::npos);
}

BOOST_AUTO_TEST_CASE(authority_without_end_does_no_harm) {
  const root endless("endless", day0, 24h * 36000);
  BOOST_TEST(bundled(planned(rooted(endless), nobody(), day0), {endless.certificate}));
}

/// A self-signed CA with an Ed25519 key, as PEM.
tls::key_pair edwards_authority() {
  const std::unique_ptr<EVP_PKEY, decltype(&EVP_PKEY_free)> key(
      EVP_PKEY_Q_keygen(nullptr, nullptr, "ED25519"), EVP_PKEY_free);
  const std::unique_ptr<X509, decltype(&X509_free)> made(X509_new(), X509_free);
  X509_set_version(made.get(), X509_VERSION_3);
  ASN1_INTEGER_set(X509_get_serialNumber(made.get()), 1);
  X509_gmtime_adj(X509_getm_notBefore(made.get()), 0);
  X509_gmtime_adj(X509_getm_notAfter(made.get()), 3600);
  X509_set_pubkey(made.get(), key.get());
  auto* const name = X509_get_subject_name(made.get());
  const auto* const text = reinterpret_cast<const unsigned char*>("edwards");
  X509_NAME_add_entry_by_txt(name, "CN", MBSTRING_ASC, text, -1, -1, 0);
  X509_set_issuer_name(made.get(), name);
  const std::unique_ptr<X509_EXTENSION, decltype(&X509_EXTENSION_free)> is_ca(
      X509V3_EXT_conf_nid(nullptr, nullptr, NID_basic_constraints, "critical,CA:TRUE"),
      X509_EXTENSION_free);
  X509_add_ext(made.get(), is_ca.get(), -1);
  BOOST_REQUIRE(X509_sign(made.get(), key.get(), nullptr) > 0);
  const auto written = [](auto write) {
    const std::unique_ptr<BIO, decltype(&BIO_free)> into(BIO_new(BIO_s_mem()), BIO_free);
    BOOST_REQUIRE(write(into.get()) == 1);
    char* bytes = nullptr;
    const auto size = BIO_get_mem_data(into.get(), &bytes);
    return std::string(bytes, static_cast<std::size_t>(size));
  };
  return {.certificate = written([&](BIO* to) { return PEM_write_bio_X509(to, made.get()); }),
          .key = written([&](BIO* to) {
            return PEM_write_bio_PrivateKey(to, key.get(), nullptr, nullptr, 0, nullptr, nullptr);
          })};
}

BOOST_AUTO_TEST_CASE(root_that_the_gateway_cannot_serve_is_taken_with_a_warning) {
  const auto pair = edwards_authority();
  auto object = r1().object();
  k8s::set_secret_data(object, "tls.crt", pair.certificate);
  k8s::set_secret_data(object, "tls.key", pair.key);
  k8s::set_secret_data(object, "ca.crt", pair.certificate);
  const auto read = read_root_secret(object);
  BOOST_REQUIRE(read.has_value());
  BOOST_REQUIRE(read->warnings.size() == 1U);
  BOOST_TEST(read->warnings[0].find("ED25519") != std::string::npos, read->warnings[0]);
}

BOOST_AUTO_TEST_CASE(damaged_block_beside_good_ones_of_a_root_is_a_warning) {
  auto object = r1().object();
  k8s::set_secret_data(
      object, "ca.crt",
      r2().certificate.pem() + "-----BEGIN CERTIFICATE-----\nAAAA\n-----END CERTIFICATE-----\n");
  const auto read = read_root_secret(object);
  BOOST_REQUIRE(read.has_value());
  BOOST_TEST(read->authorities.size() == 2U);
  BOOST_TEST(read->warnings.size() == 1U);
}

BOOST_AUTO_TEST_CASE(root_secret_that_cannot_be_used_says_why) {
  BOOST_TEST(read_root_secret(r1().object()).has_value());
  const auto refused = [](std::string_view entry, const std::string& text) {
    auto object = r1().object();
    if (text.empty()) {
      object.at("data").as_object().erase(entry);
    } else {
      k8s::set_secret_data(object, entry, text);
    }
    const auto read = read_root_secret(object);
    BOOST_REQUIRE(read.has_error());
    return read.error().message();
  };
  BOOST_TEST(refused("tls.crt", "") == "tls.crt is missing");
  BOOST_TEST(refused("tls.key", "") == "tls.key is missing");
  BOOST_TEST(refused("tls.crt", "garbage").find("tls.crt") != std::string::npos);
  BOOST_TEST(refused("tls.key", r2().ca.own().key).find("tls.key") != std::string::npos);
  BOOST_TEST(refused("ca.crt", "garbage").find("ca.crt") != std::string::npos);
  BOOST_TEST(read_root_secret(r1().object())->warnings.empty());
  const auto leaf = r1().client("a", day0);
  auto object = r1().object();
  k8s::set_secret_data(object, "tls.crt", leaf.certificate);
  k8s::set_secret_data(object, "tls.key", leaf.key);
  BOOST_TEST(read_root_secret(object).error().message() == "tls.crt is no CA certificate");
  BOOST_TEST(read_root_secret({}).has_error());
}

BOOST_AUTO_TEST_CASE(write_keeps_all_other_fields_of_the_secret) {
  const json::value there =
      json::object{{"metadata", json::object{{"name", "g"},
                                             {"resourceVersion", "7"},
                                             {"annotations", json::object{{"other", "x"}}}}},
                   {"type", "Opaque"},
                   {"data", json::object{{"extra", "eA=="}, {"ca.crt", "eA=="}}}};
  const auto made = write_gateway_secret(gateway(r1(), {r1().certificate}, day0), {}, there);
  BOOST_TEST(k8s::resource_version_of(made) == "7");
  BOOST_TEST(k8s::annotation(made, "other") == "x");
  BOOST_TEST(k8s::annotation(made, "caAddedToBundleAt") == "2026-03-01T00:00:00Z");
  BOOST_TEST(*k8s::secret_data(made, "extra") == "x");
  BOOST_TEST(*k8s::secret_data(made, "ca.crt") == r1().certificate.pem());
  const auto read = read_gateway_secret(made);
  BOOST_TEST((read.served == r1().certificate));
  BOOST_TEST((read.ca_added_at == day0));
  BOOST_TEST(read.bundle_error.empty());
}

BOOST_AUTO_TEST_SUITE_END()
