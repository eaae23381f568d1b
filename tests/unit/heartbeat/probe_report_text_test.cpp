// What a watcher tells the manager that probes it, through an API server's warning.

#include "rw/reactors/shared/probe.hpp"

#include <boost/test/unit_test.hpp>

#include <string>

BOOST_AUTO_TEST_SUITE(probe_report_text)

using namespace rw;

BOOST_AUTO_TEST_CASE(report_is_read_as_it_was_written) {
  const probe_report report{"n1", "b1", 7, std::chrono::milliseconds(1500), "Connection refused"};
  const auto read = parse_probe_report(render_probe_report(report));
  BOOST_REQUIRE(read.has_value());
  BOOST_TEST((*read == report));
  const probe_report well{"n2", "b1"};
  BOOST_TEST((parse_probe_report(render_probe_report(well)) == well));
}

BOOST_AUTO_TEST_CASE(report_is_one_short_line) {
  const probe_report report{"n1", "b1", 7, {}, "quoted \"text\"\r\n" + std::string(1000, 'x')};
  const auto text = render_probe_report(report);
  BOOST_TEST(text.size() == 250u);
  BOOST_TEST(text.find_first_of("\"\\\r\n") == std::string::npos);
  const auto read = parse_probe_report(text);
  BOOST_REQUIRE(read.has_value());
  BOOST_TEST(read->upstream.starts_with("quoted ?text?  x"));
  const auto go = parse_probe_report(render_probe_report(
      {.nonce = "n", .upstream = std::string(400, 'x') + ": connection refused"}));
  BOOST_REQUIRE(go.has_value());
  BOOST_TEST(go->upstream.ends_with("x: connection refused"), go->upstream);
}

BOOST_AUTO_TEST_CASE(warnings_of_others_are_no_reports) {
  for (const auto* text :
       {"", "v1beta1 is deprecated", "runtime-watcher probe=n", "runtime-watcher probe=n boot=b",
        "runtime-watcher probe=n boot=b undelivered=x oldest=0 upstream=",
        "runtime-watcher probe=n boot=b undelivered=-1 oldest=0 upstream=",
        "runtime-watcher probe=n boot=b undelivered=1 oldest= upstream="}) {
    BOOST_TEST(!parse_probe_report(text), text);
  }
}

BOOST_AUTO_TEST_SUITE_END()
