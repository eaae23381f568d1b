#include "rw/k8s/objects/url.hpp"

#include "rw/k8s/objects/base64.hpp"

#include <boost/test/unit_test.hpp>

#include <string>

BOOST_AUTO_TEST_SUITE(url)

using namespace rw::k8s;

BOOST_AUTO_TEST_CASE(servers_url_is_taken_apart) {
  const auto plain = parse_server_url("https://api.example.com");
  BOOST_REQUIRE(plain.has_value());
  BOOST_TEST(plain->host == "api.example.com");
  BOOST_TEST(plain->port == 443);
  BOOST_TEST(plain->prefix == "");
  BOOST_TEST(plain->tls);
  const auto v6 = parse_server_url("HTTPS://[fd00::1]:6443/clusters/x//");
  BOOST_REQUIRE(v6.has_value());
  BOOST_TEST(v6->host == "fd00::1");
  BOOST_TEST(v6->port == 6443);
  BOOST_TEST(v6->prefix == "/clusters/x");
  BOOST_TEST(parse_server_url("https://[fd00::1]")->host == "fd00::1");
  for (const auto* local : {"http://127.0.0.1:8001", "http://localhost", "http://[::1]:80/"}) {
    const auto parsed = parse_server_url(local);
    BOOST_REQUIRE(parsed.has_value());
    BOOST_TEST(!parsed->tls);
  }
  BOOST_TEST(parse_server_url("http://localhost")->port == 80);
}

BOOST_AUTO_TEST_CASE(proxys_url_may_carry_credentials) {
  const auto parsed = parse_proxy_url("http://me:p%40ss@proxy.example.com:3128");
  BOOST_REQUIRE(parsed.has_value());
  BOOST_TEST(parsed->host == "proxy.example.com");
  BOOST_TEST(parsed->port == 3128);
  BOOST_TEST(parsed->authorization == "Basic " + base64_encode("me:p@ss"));
  BOOST_TEST(parse_proxy_url("http://p")->port == 80);
  BOOST_TEST(parse_proxy_url("http://p")->authorization == "");
  BOOST_TEST(parse_proxy_url("https://p").has_error());
  BOOST_TEST(parse_proxy_url("p:3128").has_error());
}

BOOST_AUTO_TEST_CASE(no_proxy_lists_names_addresses_and_blocks) {
  const struct {
    const char* list;
    const char* host;
    bool past;
  } cases[] = {
      {"", "a.example.com", false},
      {"*", "a.example.com", true},
      {"example.com", "example.com", true},
      {"example.com", "a.example.com", true},
      {"example.com", "notexample.com", false},
      {".example.com", "example.com", false},
      {".example.com", "a.EXAMPLE.com", true},
      {"*.example.com", "a.example.com", true},
      {"other, example.com:6443 ", "a.example.com", true},
      {"example.com:443", "a.example.com", false},
      {":6443", "a.example.com", false},
      {"10.0.0.0/8", "10.1.2.3", true},
      {"10.0.0.0/8", "11.1.2.3", false},
      {"10.0.0.0/8", "a.example.com", false},
      {"10.1.2.3", "10.1.2.3", true},
      {"10.1.2.3:6443", "10.1.2.3", true},
      {"10.1.2.3:80", "10.1.2.3", false},
      {"fd00::/8", "fd00::1", true},
      {"fd00::1", "fd00::1", true},
      {"[fd00::1]:6443", "fd00::1", true},
      {"[fd00::1]:80", "fd00::1", false},
      {"fe80::/16", "fd00::1", false},
      {"rubbish/99,,  ,", "10.1.2.3", false},
  };
  for (const auto& one : cases) {
    BOOST_TEST(goes_past_proxy(one.list, one.host, 6443) == one.past,
               one.list << " for " << one.host);
  }
}

BOOST_AUTO_TEST_CASE(parameters_are_percent_encoded) {
  std::string out;
  append_percent_encoded(out, "a-Z_0.~ /?&=%+\xC3\xA4,!");
  BOOST_TEST(out == "a-Z_0.~%20%2F%3F%26%3D%25%2B%C3%A4%2C%21");
}

BOOST_AUTO_TEST_CASE(base64_is_strict_but_for_white_space) {
  const std::pair<std::string, std::string> good[] = {
      {"", ""},        {"f", "Zg=="},        {"fo", "Zm8="},
      {"foo", "Zm9v"}, {"foob", "Zm9vYg=="}, {std::string("\0\xFF\xFE", 3), "AP/+"},
  };
  for (const auto& [bytes, encoded] : good) {
    BOOST_TEST(base64_encode(bytes) == encoded);
    BOOST_TEST((base64_decode(encoded) == bytes));
  }
  BOOST_TEST((base64_decode(" Zm\n9v\r\nYg = =\n") == "foob"));
  for (const auto* bad : {"Z", "Zg", "Zg=", "Zg===", "Z===", "Zm9v=", "Zg==Zg==", "Zm-_", "=Zg="}) {
    BOOST_TEST(!base64_decode(bad).has_value(), bad);
  }
}

BOOST_AUTO_TEST_SUITE_END()
