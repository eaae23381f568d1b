#include "reactors/gateway_secret/gate.hpp"

#include <boost/test/unit_test.hpp>

#include "tests/unit/gateway_secret/world.hpp"

BOOST_AUTO_TEST_SUITE(gate)

using namespace rw;
using namespace rw::gateway_secret;
using namespace rw::gateway_secret::test;

namespace {

const time_point since = day0;
const gate_question question{
    .authority = "new", .newest = "new", .since = since, .unreachable_after = 1h};

rollout_observation with(std::vector<std::string> authorities, std::string issuer,
                         time_point client_from) {
  return {.authorities = std::move(authorities),
          .client_not_before = client_from,
          .client_issuer = std::move(issuer)};
}
const auto ready = with({"new", "old"}, "new", since + 5s);

bool open(const rollout_board& board, time_point now = since + 1h) {
  return ask_gate(board, question, now).open;
}

}  // namespace

BOOST_AUTO_TEST_CASE(a_board_that_is_not_complete_keeps_it_shut) {
  rollout_board board;
  BOOST_TEST(!open(board));
  board.observed(kyma("a"), ready);
  BOOST_TEST(!open(board));
  BOOST_TEST(ask_gate(board, question, since).who.find("not known yet") != std::string::npos);
  board.complete();
  BOOST_TEST(open(board));
}

BOOST_AUTO_TEST_CASE(it_is_open_where_there_are_no_runtimes) {
  rollout_board board;
  board.complete();
  BOOST_TEST(open(board));
}

BOOST_AUTO_TEST_CASE(a_runtime_that_was_not_seen_yet_keeps_it_shut_and_is_named) {
  rollout_board board;
  board.complete();
  board.observed(kyma("a"), ready);
  board.expect(kyma("b"));
  const auto answer = ask_gate(board, question, since + 1h);
  BOOST_TEST(!answer.open);
  BOOST_TEST(answer.missing == 1U);
  BOOST_TEST(answer.runtimes == 2U);
  BOOST_TEST(answer.who == "1 of 2 runtimes: kcp-system/b (not seen yet)");
  board.observed(kyma("b"), ready);
  BOOST_TEST(open(board));
}

BOOST_AUTO_TEST_CASE(the_new_authority_and_a_younger_client_certificate_are_both_needed) {
  rollout_board board;
  board.complete();
  board.observed(kyma("a"), with({"old"}, "new", since + 1h));
  BOOST_TEST(ask_gate(board, question, since).who.find("without the new CA") != std::string::npos);
  board.observed(kyma("a"), with({"new", "old"}, "old", since - 1s));
  BOOST_TEST(ask_gate(board, question, since).who.find("old client certificate") !=
             std::string::npos);
  board.observed(kyma("a"), with({"new", "old"}, "old", since));  // the same second
  BOOST_TEST(!open(board));
  board.observed(kyma("a"), with({"new", "old"}, "old", since + 1s));
  BOOST_TEST(open(board));
}

BOOST_AUTO_TEST_CASE(a_client_certificate_of_the_new_authority_counts_whatever_its_time) {
  rollout_board board;
  board.complete();
  board.observed(kyma("a"), with({"new", "old"}, "new", since - 1min));  // a clock that is behind
  BOOST_TEST(open(board));
}

BOOST_AUTO_TEST_CASE(what_is_out_of_reach_keeps_it_shut_for_a_while_only) {
  rollout_board board;
  board.complete();
  board.observed(kyma("a"), ready);
  board.observed(kyma("b"), with({"old"}, "old", since - 1h));
  board.unreachable(kyma("b"), since);
  const auto answer = ask_gate(board, question, since + 59min);
  BOOST_TEST(!answer.open);
  BOOST_TEST((answer.look_again == since + 1h));
  BOOST_TEST(open(board, since + 1h));
  board.unreachable(kyma("b"), since + 30min);  // the first time counts
  BOOST_TEST(open(board, since + 1h));
  board.observed(kyma("b"), with({"old"}, "old", since - 1h));  // it is back
  BOOST_TEST(!open(board, since + 100h));
}

BOOST_AUTO_TEST_CASE(what_answers_again_keeps_it_shut_though_nothing_new_is_seen) {
  rollout_board board;
  board.complete();
  board.observed(kyma("a"), ready);
  board.observed(kyma("b"), with({"old"}, "old", since - 1h));
  board.reached(kyma("b"));
  board.unreachable(kyma("b"), since);
  BOOST_TEST(open(board, since + 1h));
  board.reached(kyma("b"));
  BOOST_TEST(!open(board, since + 100h));
  board.unreachable(kyma("b"), since + 100h);
  BOOST_TEST(!open(board, since + 100h + 59min));
  board.reached(kyma("nobody"));
  BOOST_TEST(board.size() == 2U);
}

BOOST_AUTO_TEST_CASE(what_is_ready_and_out_of_reach_is_still_ready) {
  rollout_board board;
  board.complete();
  board.observed(kyma("a"), ready);
  board.unreachable(kyma("a"), since);
  BOOST_TEST(open(board, since + 1s));
}

BOOST_AUTO_TEST_CASE(a_runtime_whose_kyma_is_gone_does_not_count) {
  rollout_board board;
  board.complete();
  board.expect(kyma("a"));
  BOOST_TEST(!open(board));
  board.forget(kyma("a"));
  BOOST_TEST(open(board));
}

BOOST_AUTO_TEST_CASE(of_many_that_are_missing_a_few_are_named_in_order) {
  rollout_board board;
  board.complete();
  for (const auto* name : {"g", "f", "e", "d", "c", "b", "a"}) board.expect(kyma(name));
  const auto who = ask_gate(board, question, since).who;
  BOOST_TEST(who.starts_with("7 of 7 runtimes: kcp-system/a (not seen yet), kcp-system/b"));
  BOOST_TEST(who.ends_with("kcp-system/e (not seen yet) and others"));
}

BOOST_AUTO_TEST_CASE(a_new_leader_knows_nothing_until_it_has_looked) {
  rollout_board board;
  board.complete();
  board.observed(kyma("a"), ready);
  board.clear();
  BOOST_TEST(board.size() == 0U);
  BOOST_TEST(!open(board));
}

BOOST_AUTO_TEST_CASE(the_board_tells_of_changes_and_only_of_changes) {
  rollout_board board;
  int told = 0;
  auto listening = board.subscribe([&] { ++told; });
  board.expect(kyma("a"));
  board.expect(kyma("a"));
  BOOST_TEST(told == 1);
  board.observed(kyma("a"), ready);
  board.observed(kyma("a"), ready);
  BOOST_TEST(told == 2);
  board.unreachable(kyma("a"), since);
  board.unreachable(kyma("a"), since + 1h);
  BOOST_TEST(told == 3);
  BOOST_TEST((board.find(kyma("a"))->unreachable_since == since));
  board.observed(kyma("a"), ready);
  board.complete();
  board.complete();
  BOOST_TEST(told == 5);
  board.forget(kyma("b"));
  BOOST_TEST(told == 5);
  listening.reset();
  board.forget(kyma("a"));
  BOOST_TEST(told == 5);
}

BOOST_AUTO_TEST_CASE(an_observation_holds_what_webhooks_and_secret_have_in_common) {
  const root r1("r1");
  const root r2("r2");
  const auto client = parsed(r1.client("a", day0).certificate);
  const auto seen = observe_rollout(tls::ca_bundle({r1.certificate}),
                                    tls::ca_bundle({r2.certificate, r1.certificate}), client);
  BOOST_TEST(seen.trusts(r1.certificate.fingerprint()));
  BOOST_TEST(!seen.trusts(r2.certificate.fingerprint()));
  BOOST_TEST(seen.client_issuer == r1.certificate.fingerprint());
  BOOST_TEST((seen.client_not_before == day0));
  const auto stranger = observe_rollout({}, {}, client);
  BOOST_TEST(stranger.client_issuer.empty());
  BOOST_TEST(stranger.authorities.empty());
}

BOOST_AUTO_TEST_SUITE_END()
