#include "rw/reactors/cli/runtimes_view.hpp"

#include "rw/reactors/cli/status_app.hpp"

#include <boost/json/parse.hpp>
#include <boost/json/serialize.hpp>
#include <boost/test/unit_test.hpp>

#include <chrono>
#include <string>
#include <vector>

BOOST_AUTO_TEST_SUITE(runtimes_view)

namespace json = boost::json;
using namespace rw::cli;
using namespace std::chrono_literals;

namespace {

const std::chrono::system_clock::time_point day{
    std::chrono::sys_days{std::chrono::year{2026} / 3 / 1}};

std::vector<runtime_summary> four() {
  return {{{"kcp-system", "d"}, "unreachable", "", "unknown", day - 1h, "ill"},
          {{"kcp-system", "a"}, "installed", "", "silent", day - 48h, "ill"},
          {{"kcp-system", "c"},
           "failed",
           "the annotation skr-domain is missing",
           "live",
           day - 10s,
           "ill"},
          {{"kcp-system", "b"}, "unknown", "", "unknown", {}}};
}

std::string page(std::string_view query) {
  std::string error;
  const auto wanted = runtimes_query::parse(query, error);
  BOOST_TEST(error.empty(), error);
  return json::serialize(runtimes_page(four(), wanted, day, [](const auto& one, auto& row) {
    row["id"] = "runtime-" + one.kyma.name;
  }));
}

std::string error_of(std::string_view query) {
  std::string error;
  runtimes_query::parse(query, error);
  return error;
}

std::string names(std::string_view query) {
  std::string out;
  const auto all = json::parse(page(query));
  for (const auto& one : all.at("runtimes").as_array()) out += one.at("kyma").as_string();
  return out;
}

}  // namespace

BOOST_AUTO_TEST_CASE(page_counts_all_runtimes_and_lists_matches_in_order) {
  BOOST_TEST(
      page("state=failed,unreachable") ==
      R"({"total":4,"states":{"failed":1,"installed":1,"unknown":1,"unreachable":1},)"
      R"("matching":2,"runtimes":[)"
      R"({"kyma":"c","state":"failed","condition":"ill","reason":"the annotation skr-domain is missing",)"
      R"("since":"2026-02-28T23:59:50Z","id":"runtime-c"},)"
      R"({"kyma":"d","state":"unreachable","condition":"ill","since":"2026-02-28T23:00:00Z",)"
      R"("id":"runtime-d"}]})");
  BOOST_TEST(names("") == "abcd");
  BOOST_TEST(names("reason=skr-domain%20is") == "c");
  BOOST_TEST(names("name=b") == "b");
  BOOST_TEST(names("heartbeat=silent,live") == "ac");
  BOOST_TEST(names("condition=ill") == "acd");
  BOOST_TEST(names("for=3600&state=unreachable,failed") == "d");
}

BOOST_AUTO_TEST_CASE(pages_follow_each_other) {
  const auto first = json::parse(page("limit=3"));
  BOOST_TEST(first.at("continue") == "c");
  BOOST_TEST(first.at("matching") == 4);
  BOOST_TEST(names("limit=3") == "abc");
  BOOST_TEST(names("limit=3&continue=c") == "d");
  BOOST_TEST(json::parse(page("limit=3&continue=c")).as_object().contains("continue") == false);
}

BOOST_AUTO_TEST_CASE(invalid_queries_are_rejected) {
  BOOST_TEST(error_of("color=red") ==
             "unknown parameter color: there are state, heartbeat, condition, reason, name, kyma, "
             "for, limit and continue");
  for (const auto* bad :
       {"limit=0", "limit=5001", "limit=x", "limit=", "limit=1x", "for=-1", "for=1h", "reason=%zz",
        "state=foo", "state=installed,foo", "heartbeat=dead", "condition=good"}) {
    BOOST_TEST(error_of(bad).starts_with("the parameter "), bad);
  }
}

BOOST_AUTO_TEST_CASE(table_shows_ages_and_the_reason_why_the_rotation_waits) {
  auto all = json::parse(R"({
    "total": 4, "matching": 2, "states": {"failed": 1, "installed": 3},
    "rotation": {"phase": "distributing", "waiting": "1 runtime: c", "missing": 1,
                 "next": "2026-03-02T00:00:00Z"},
    "runtimes": [
      {"kyma": "c", "runtimeId": "runtime-c", "state": "failed", "reason": "CertificateInvalid",
       "since": "2026-02-28T23:50:00Z", "message": "m", "heartbeat": {"state": "live"}},
      {"kyma": "long-name", "runtimeId": "r", "state": "installed", "since": "2026-02-01T00:00:00Z",
       "certificate": {"notAfter": "2026-04-01T00:00:00Z"}, "authorities": 2, "message": "ready",
       "heartbeat": {"state": "silent", "reason": "NoHeartbeat", "message": "none for 60 s",
                     "last": "2026-02-28T23:59:00Z", "deliveryMilliseconds": 3, "losses": 1, "probe": {"stage": "complete"},
                     "version": "0.1.0"}}],
    "heartbeats": {"live": 1, "silent": 1},
    "verdict": {"level": "outage", "message": "outage: 2 of 4 runtimes are ill", "causes": [
      {"reason": "NoHeartbeat", "count": 1, "runtimes": ["long-name"], "next": "see the gateway"}]
}
})");
  BOOST_TEST(runtimes_table(all, {}, day) ==
             "KYMA        RUNTIME     STATE       SINCE   HEARTBEAT   REASON\n"
             "c           runtime-c   failed      10m     live        CertificateInvalid\n"
             "long-name   r           installed   28d     silent      NoHeartbeat\n"
             "2 of 4 runtimes; failed 1 installed 3; heartbeats live 1 silent 1\n"
             "CA rotation (distributing): 1 runtime: c, next step not before 2026-03-02T00:00:00Z\n"
             "outage: 2 of 4 runtimes are ill\n"
             "  NoHeartbeat: 1 (long-name)\n    see the gateway\n");
  all.as_object()["page"] = "kubectl -n kcp-system port-forward pod/manager-1 8080";
  BOOST_TEST(runtimes_table(all, {}, day)
                 .ends_with("    see the gateway\npage: kubectl -n kcp-system port-forward "
                            "pod/manager-1 8080\n"));
  const auto wide = runtimes_table(all, {.wide = true}, day);
  all.at("rotation").as_object()["reason"] = "CARotationBlocked";
  BOOST_TEST(runtimes_table(all, {}, day).find("CA rotation (CARotationBlocked): 1 runtime") !=
             std::string::npos);
  BOOST_TEST(
      wide.find(
          "CERTIFICATE-END        CAS   LAST-HEARTBEAT   PROBE      DELIVERY   LOSSES   VERSION   "
          "MESSAGE\n") != std::string::npos,
      wide);
  BOOST_TEST(
      wide.find(
          "2026-04-01T00:00:00Z   2     60s              complete   3ms        1        0.1.0     "
          "none for 60 s\n") != std::string::npos,
      wide);
}

BOOST_AUTO_TEST_CASE(counts_agree_with_their_nouns_and_have_no_empty_list) {
  const auto last_lines = [](const char* text) {
    const auto table = runtimes_table(json::parse(text), {}, day);
    return table.substr(table.find('\n') + 1);
  };
  const auto none = last_lines(
      R"({"total": 0, "matching": 0, "states": {}, "heartbeats": {"live": 0}, "runtimes": []})");
  BOOST_TEST(none.starts_with("0 of 0 runtimes; heartbeats live 0\n"), none);
  const auto one = last_lines(R"({"total": 1, "matching": 0, "states": {}, "runtimes": []})");
  BOOST_TEST(one.starts_with("0 of 1 runtime\n"), one);
}

BOOST_AUTO_TEST_CASE(table_has_the_ill_first_by_their_reasons) {
  const auto all = json::parse(R"({"total": 6, "matching": 6, "states": {}, "runtimes": [
    {"kyma": "a", "state": "installed", "condition": "well"},
    {"kyma": "b", "state": "unreachable", "condition": "ill", "reason": "RuntimeUnreachable"},
    {"kyma": "c", "state": "failed", "condition": "ill", "reason": "AccessMissing"},
    {"kyma": "d", "state": "unreachable", "condition": "ill", "reason": "RuntimeUnreachable"},
    {"kyma": "e", "state": "not_ready", "condition": "underWay", "reason": "Installing"},
    {"kyma": "f", "state": "deleting", "condition": "leftOut"}]})");
  BOOST_TEST(runtimes_table(all, {.headers = false}, day) ==
             "b   -   unreachable   -   -   RuntimeUnreachable\n"
             "d   -   unreachable   -   -   RuntimeUnreachable\n"
             "c   -   failed        -   -   AccessMissing\n"
             "e   -   not_ready     -   -   Installing\n"
             "a   -   installed     -   -   -\n"
             "f   -   deleting      -   -   -\n");
  const auto coloured = runtimes_table(all, {.headers = false, .colours = true, .width = 10}, day);
  BOOST_TEST(coloured.starts_with("\x1b[31mb   -   un\x1b[0m\n"), coloured);
  BOOST_TEST(coloured.find("\x1b[33me   -   no\x1b[0m\na   -   in\n") != std::string::npos);
}

BOOST_AUTO_TEST_SUITE_END()
