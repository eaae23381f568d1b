#include "rw/reactors/dev/live_table.hpp"

#include <boost/test/unit_test.hpp>

#include <algorithm>
#include <chrono>
#include <string>
#include <string_view>
#include <vector>

BOOST_AUTO_TEST_SUITE(live_table)

namespace core = rw::core;
using rw::dev::event_trace;
using rw::dev::runtime_brief;
using rw::dev::screen_size;
using rw::dev::startup_progress;
using std::chrono::milliseconds;
using std::chrono::seconds;

namespace {

const core::time_point start{std::chrono::hours(1)};
const std::chrono::system_clock::time_point noon{std::chrono::hours(12)};
const screen_size usual{24, 80};

event_trace trace_of(const std::string& runtime, core::duration after = milliseconds(5)) {
  return {.runtime = runtime,
          .event = {.manager = "lifecycle-manager",
                    .gvk = {"operator.kyma-project.io", "v1beta2", "Kyma"},
                    .watched = {"kyma-system", "default"}},
          .kyma = "kcp-system/" + runtime,
          .heard = after,
          .to_reconcile = after,
          .reconciled = true};
}

runtime_brief up(const std::string& name) {
  return {.name = name, .state = "installed", .heartbeat = "live", .reason = {}};
}

std::vector<runtime_brief> runtimes_up(int count) {
  std::vector<runtime_brief> out;
  for (int i = 1; i <= count; ++i) out.push_back(up("runtime-" + std::to_string(i)));
  return out;
}

std::vector<std::string> lines_of(const std::string& text) {
  std::vector<std::string> out(1);
  for (const char c : text) {
    if (c == '\n') {
      out.emplace_back();
    } else {
      out.back() += c;
    }
  }
  return out;
}

std::vector<std::string> first_words(const std::vector<std::string>& lines) {
  std::vector<std::string> out;
  for (const auto& line : lines) out.push_back(line.substr(0, line.find(' ')));
  return out;
}

bool contains(const std::string& text, std::string_view part) {
  return text.find(part) != std::string::npos;
}

/// A table without colours.
struct stage {
  rw::dev::live_table table{false};

  std::vector<std::string> lines(screen_size size = usual, core::time_point now = start) const {
    return lines_of(table.render(size, now));
  }
};

}  // namespace

BOOST_AUTO_TEST_CASE(row_shows_state_heartbeat_and_latest_event) {
  stage s;
  s.table.set_runtimes({up("runtime-1")});
  s.table.add(trace_of("runtime-1", milliseconds(3)), start, noon);
  s.table.add(trace_of("runtime-1", std::chrono::microseconds(4660)), start, noon);
  const auto lines = s.lines();
  BOOST_REQUIRE(lines.size() == 3U);
  BOOST_TEST(lines[0] == "RUNTIME    WATCHER      HEARTBEAT  EVENTS        MS  LATEST EVENT");
  BOOST_TEST(lines[1] ==
             "runtime-1  installed    live            2       4.7  12:00:00 Kyma default in ky");
  BOOST_TEST(lines[2] ==
             "1 live, 0 degraded, 0 silent; 0.2 events/s; median 4.7, 99th 4.7 ms (1 min)");
}

BOOST_AUTO_TEST_CASE(rows_begin_with_errors_and_then_with_the_latest_event) {
  stage s;
  auto all = runtimes_up(10);
  all[9].heartbeat = "silent";
  all[4].heartbeat = "degraded";
  all[5].state = "unreachable";
  s.table.set_runtimes(all);
  s.table.add(trace_of("runtime-3"), start, noon);
  s.table.add(trace_of("runtime-8"), start + milliseconds(1), noon);
  const std::vector<std::string> expected{"RUNTIME",   "runtime-6", "runtime-10", "runtime-5",
                                          "runtime-8", "runtime-3", "runtime-1",  "runtime-2",
                                          "runtime-4", "runtime-7", "runtime-9",  "8"};
  const auto found = first_words(s.lines());
  BOOST_TEST(found == expected, boost::test_tools::per_element());
}

BOOST_AUTO_TEST_CASE(row_with_an_error_shows_its_reason) {
  stage s;
  s.table.set_runtimes(
      {{.name = "r", .state = "failed", .heartbeat = "live", .reason = "CertificateExpired"}});
  BOOST_TEST(s.lines()[1].ends_with("  CertificateExpired"), s.lines()[1]);
  s.table.add(trace_of("r"), start, noon);
  BOOST_TEST(contains(s.lines({24, 200})[1], "CertificateExpired; 12:00:00 Kyma"));
}

BOOST_AUTO_TEST_CASE(table_says_so_when_there_is_no_runtime) {
  stage s;
  s.table.set_runtimes({});
  const std::vector<std::string> expected{"no runtimes are known",
                                          "0 live, 0 degraded, 0 silent; 0.0 events/s"};
  BOOST_TEST(s.lines() == expected, boost::test_tools::per_element());
}

BOOST_AUTO_TEST_CASE(table_sums_up_the_runtimes_that_have_no_row) {
  stage s;
  auto all = runtimes_up(5000);
  s.table.set_runtimes(all);
  auto lines = s.lines();
  BOOST_REQUIRE(lines.size() == 15U);
  BOOST_TEST(lines[12].starts_with("runtime-12 "), lines[12]);
  BOOST_TEST(lines[13] == "and 4988 more, all live");
  BOOST_TEST(lines[14].starts_with("5000 live, 0 degraded, 0 silent; "), lines[14]);
  for (std::size_t i = 0; i < 14; ++i) all[i].heartbeat = "silent";
  all[100].heartbeat = "unknown";
  s.table.set_runtimes(all);
  lines = s.lines();
  BOOST_TEST(lines[13] == "and 4988 more: 4985 live, 2 with an error, 1 not live yet");
  BOOST_TEST(lines[14].starts_with("4985 live, 0 degraded, 14 silent; "), lines[14]);
}

BOOST_AUTO_TEST_CASE(table_fits_into_any_terminal) {
  stage s;
  auto all = runtimes_up(40);
  all[7].heartbeat = "silent";
  all[7].reason = std::string(300, 'x');
  all[8].name = std::string(300, 'n');
  s.table.set_runtimes(all);
  for (int i = 0; i < 40; ++i) {
    s.table.add(trace_of("runtime-" + std::to_string(i + 1)), start, noon);
  }
  for (const std::size_t rows : {1U, 2U, 3U, 4U, 5U, 6U, 10U, 24U, 200U}) {
    for (const std::size_t columns : {1U, 5U, 20U, 80U, 300U}) {
      const auto lines = s.lines({rows, columns});
      BOOST_TEST(lines.size() <= std::max<std::size_t>(1, rows - 1), rows << " rows");
      BOOST_TEST(lines.size() <= rw::dev::live_table::most_rows + 3);
      for (const auto& line : lines) {
        BOOST_TEST(line.size() <= columns, line);
        BOOST_TEST(!line.empty());
      }
    }
  }
  const auto small = s.lines({5, 20});
  BOOST_REQUIRE(small.size() == 4U);
  BOOST_TEST(small[1] == "runtime-8  installed");
  BOOST_TEST(small[2] == "and 40 more: 39 live");
  BOOST_TEST(small[3] == "39 live, 0 degraded,");
}

BOOST_AUTO_TEST_CASE(table_contains_no_control_character_of_a_runtime) {
  const std::string hostile =
      "a\x1b[2J\r\n\t\x07\x7f\xc2\x9b"
      "31m\xe2\x80\xae\xff b";
  for (const bool colours : {false, true}) {
    rw::dev::live_table table(colours);
    table.set_runtimes(
        {{.name = hostile, .state = "failed", .heartbeat = "silent", .reason = hostile}});
    auto trace = trace_of(hostile);
    trace.event.gvk.kind = hostile;
    trace.event.watched.name = hostile;
    table.add(trace, start, noon);
    auto text = table.render({24, 300}, start);
    BOOST_TEST(contains(text, "a?[2J   ???31m?? b"), text);
    for (const std::string_view own : {"\x1b[0m", "\x1b[1m", "\x1b[31m", "\n"}) {
      for (auto at = text.find(own); at != std::string::npos; at = text.find(own)) {
        text.erase(at, own.size());
      }
    }
    BOOST_TEST(std::ranges::all_of(text, [](char c) { return c >= 0x20 && c < 0x7f; }), text);
  }
}

BOOST_AUTO_TEST_CASE(colours_do_not_count_as_columns) {
  rw::dev::live_table table(true);
  table.set_runtimes({{.name = "r", .state = "failed", .heartbeat = "live", .reason = "Why"},
                      {.name = "s", .state = "installed", .heartbeat = "degraded", .reason = ""},
                      up("t")});
  const auto lines = lines_of(table.render({24, 10}, start));
  BOOST_REQUIRE(lines.size() == 5U);
  BOOST_TEST(lines[0] == "\x1b[1mRUNTIME  W\x1b[0m");
  BOOST_TEST(lines[1] == "\x1b[31mr        f\x1b[0m");
  BOOST_TEST(lines[2] == "\x1b[33ms        i\x1b[0m");
  BOOST_TEST(lines[3] == "t        i");
}

BOOST_AUTO_TEST_CASE(latencies_count_for_a_minute_and_events_for_ten_seconds) {
  stage s;
  s.table.set_runtimes(runtimes_up(1));
  for (int i = 1; i <= 100; ++i) s.table.add(trace_of("runtime-1", milliseconds(i)), start, noon);
  BOOST_TEST(contains(s.lines()[2], "10.0 events/s; median 51.0, 99th 100.0 ms"), s.lines()[2]);
  const auto later = s.lines(usual, start + seconds(10))[2];
  BOOST_TEST(contains(later, "0.0 events/s; median 51.0"), later);
  const auto last = s.lines(usual, start + seconds(60))[2];
  BOOST_TEST(last.ends_with("0.0 events/s"), last);
}

BOOST_AUTO_TEST_CASE(table_drops_the_oldest_latencies_when_there_are_too_many) {
  stage s;
  s.table.set_runtimes(runtimes_up(1));
  for (int i = 0; i < 1000; ++i) s.table.add(trace_of("runtime-1", seconds(9)), start, noon);
  for (std::size_t i = 0; i < rw::dev::live_table::most_latencies; ++i) {
    s.table.add(trace_of("runtime-1", milliseconds(1)), start, noon);
  }
  BOOST_TEST(contains(s.lines({24, 200})[2], "99th 1.0 ms"), s.lines({24, 200})[2]);
}

BOOST_AUTO_TEST_CASE(runtime_loses_its_row_when_the_manager_forgets_it) {
  stage s;
  s.table.set_runtimes(runtimes_up(3));
  s.table.set_runtimes({up("runtime-2")});
  const auto found = first_words(s.lines());
  const std::vector<std::string> expected{"RUNTIME", "runtime-2", "1"};
  BOOST_TEST(found == expected, boost::test_tools::per_element());
}

BOOST_AUTO_TEST_CASE(table_shows_events_alone_without_a_manager) {
  stage s;
  BOOST_TEST(s.lines()[0] == "no events yet");
  event_trace change = trace_of("runtime-7");
  change.kyma.clear();
  change.to_reconcile.reset();
  s.table.add(change, start, noon);
  const std::vector<std::string> expected{"RUNTIME    EVENTS  LATEST EVENT",
                                          "runtime-7       1  12:00:00 Kyma default in kyma-system",
                                          "0.1 events/s"};
  BOOST_TEST(s.lines() == expected, boost::test_tools::per_element());
}

BOOST_AUTO_TEST_CASE(progress_names_what_is_up_and_what_is_awaited) {
  stage s;
  startup_progress progress{.issuer = true, .runtimes = 100};
  BOOST_TEST(s.table.render(usual, progress) ==
             "starting: KCP's API server, issuer; waiting for: manager");
  progress.manager = true;
  progress.gateway = true;
  BOOST_TEST(s.table.render(usual, progress) ==
             "starting: KCP's API server, issuer, manager, gateway");
  progress.prepared = 37;
  auto all = runtimes_up(12);
  all.front().heartbeat = "unknown";
  s.table.set_runtimes(all);
  BOOST_TEST(s.table.render(usual, progress) ==
             "starting: KCP is up; 37 of 100 runtimes prepared, 12 installed, 11 live");
  BOOST_TEST(s.table.render({24, 20}, progress) == "starting: KCP is up;");
}

BOOST_AUTO_TEST_CASE(progress_does_not_wait_for_a_manager_that_is_elsewhere) {
  const stage s;
  startup_progress progress{.issuer = true, .without_manager = true, .runtimes = 2};
  BOOST_TEST(s.table.render(usual, progress) == "starting: KCP's API server, issuer");
  progress.prepared = 1;
  BOOST_TEST(s.table.render(usual, progress) == "starting: KCP is up; 1 of 2 runtimes prepared");
}

BOOST_AUTO_TEST_SUITE_END()
