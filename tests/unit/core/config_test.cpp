#include "rw/core/config.hpp"

#include <boost/test/unit_test.hpp>

#include <string>
#include <vector>

BOOST_AUTO_TEST_SUITE(config)

namespace core = rw::core;
using std::chrono::milliseconds;

BOOST_AUTO_TEST_CASE(port_is_a_decimal_number_from_0_to_65535) {
  BOOST_TEST((core::parse_port("0") == 0));
  BOOST_TEST((core::parse_port("8443") == 8443));
  BOOST_TEST((core::parse_port("65535") == 65535));
  const std::vector<std::string> wrong = {"",
                                          " ",
                                          "65536",
                                          "-1",
                                          "+80",
                                          " 80",
                                          "80 ",
                                          "80a",
                                          "0x50",
                                          "8.0",
                                          "1e3",
                                          "99999999999999999999999",
                                          std::string("80\0", 3),
                                          std::string(1000, '9')};
  for (const auto& text : wrong) BOOST_TEST(!core::parse_port(text), text);
}

BOOST_AUTO_TEST_CASE(address_is_a_host_and_a_port) {
  const struct {
    const char* text;
    const char* host;
    std::uint16_t port;
  } good[] = {
      {"kcp.example.com:443", "kcp.example.com", 443},
      {"localhost:0", "localhost", 0},
      {"10.0.0.1:8443", "10.0.0.1", 8443},
      {"[::1]:80", "::1", 80},
      {"[fd00::1]:443", "fd00::1", 443},
      {"[::ffff:10.0.0.1]:443", "10.0.0.1", 443},
      {"kcp.example.com.:443", "kcp.example.com", 443},
      {"[fe80::1%eth0]:443", "fe80::1%eth0", 443},
      {"under_score-and-dash:1", "under_score-and-dash", 1},
  };
  for (const auto& row : good) {
    const auto parsed = core::parse_host_port(row.text);
    BOOST_REQUIRE_MESSAGE(parsed, row.text);
    BOOST_TEST(parsed->host == row.host);
    BOOST_TEST(parsed->port == row.port);
  }
}

BOOST_AUTO_TEST_CASE(parse_host_port_rejects_other_text) {
  const std::vector<std::string> wrong = {"",
                                          ":",
                                          ":80",
                                          "host",
                                          "host:",
                                          "host:http",
                                          "host:-1",
                                          "host:65536",
                                          "host:80 ",
                                          "host:80/",
                                          "::1:80",
                                          "::1",
                                          "[::1]",
                                          "[::1]:",
                                          "[::1:80",
                                          "::1]:80",
                                          "[]:80",
                                          "[]",
                                          "]:80",
                                          "[host]:80",
                                          "https://host:80",
                                          "//host:80",
                                          "user@host:80",
                                          "ho st:80",
                                          " host:80",
                                          "host\n:80",
                                          "host/path:80",
                                          std::string("ho\0st:80", 8),
                                          "a:b:80",
                                          "[::1]x:80",
                                          "x[::1]:80",
                                          "[[::1]]:80"};
  for (const auto& text : wrong) BOOST_TEST(!core::parse_host_port(text), text);
}

BOOST_AUTO_TEST_CASE(address_is_written_as_it_is_parsed) {
  for (const std::string text :
       {"kcp.example.com:443", "10.0.0.1:8082", "[::]:8082", "[fd00::1]:1"}) {
    BOOST_TEST(core::to_string(*core::parse_host_port(text)) == text);
  }
}

BOOST_AUTO_TEST_CASE(duration_is_a_sum_of_numbers_with_units) {
  const struct {
    const char* text;
    std::int64_t ms;
  } good[] = {
      {"0", 0},
      {"0s", 0},
      {"250ms", 250},
      {"1s", 1000},
      {"1.5s", 1500},
      {"1.001s", 1001},
      {"0.1s", 100},
      {"1m", 60'000},
      {"1h", 3'600'000},
      {"1h30m", 5'400'000},
      {"1h2m3s4ms", 3'723'004},
      {"1ms1ms", 2},
      {".5s", 500},
      {"1.s", 1000},
      {"0.4ms", 0},
      {"007s", 7000},
      {"24h", 86'400'000},
  };
  for (const auto& row : good) {
    const auto parsed = core::parse_duration(row.text);
    BOOST_REQUIRE_MESSAGE(parsed, row.text);
    BOOST_TEST(parsed->count() == row.ms, row.text);
  }
}

BOOST_AUTO_TEST_CASE(parse_duration_rejects_other_text) {
  const std::vector<std::string> wrong = {"",
                                          " ",
                                          "1",
                                          "00",
                                          "s",
                                          "ms",
                                          ".",
                                          ".s",
                                          "-1s",
                                          "+1s",
                                          "-0",
                                          "1h-5m",
                                          "1h 5m",
                                          " 1s",
                                          "1s ",
                                          "1e3s",
                                          "1e-3s",
                                          "0x10s",
                                          "infs",
                                          "nans",
                                          "inf",
                                          "1d",
                                          "1us",
                                          "1ns",
                                          "1S",
                                          "1,5s",
                                          "1..5s",
                                          "1.2.3s",
                                          "1s1",
                                          "99999999999999999999h",
                                          "1e400s",
                                          std::string(400, '9') + "s",
                                          std::string("1s\0", 3)};
  for (const auto& text : wrong) BOOST_TEST(!core::parse_duration(text), text);
}

BOOST_AUTO_TEST_SUITE_END()
