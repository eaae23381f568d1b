#include "rw/reactors/dev/gateway/forwarding.hpp"

#include <boost/test/unit_test.hpp>

#include <string>

BOOST_AUTO_TEST_SUITE(forwarding)

using namespace rw;
using namespace rw::dev_gateway;

namespace {

std::string all_of(const http::fields& in) {
  std::string out;
  for (std::size_t i = 0; i < in.size(); ++i) {
    out += std::string(in[i].name) + "=" + std::string(in[i].value) + ";";
  }
  return out;
}

http::request from_a_client() {
  http::request out;
  out.peer.address = {boost::asio::ip::make_address("10.1.2.3"), 4711};
  return out;
}

}  // namespace

BOOST_AUTO_TEST_CASE(fields_of_one_connection_are_not_forwarded) {
  auto from = from_a_client();
  for (const auto* name : {"Keep-Alive", "TE", "Trailer", "Upgrade", "Transfer-Encoding", "Expect",
                           "Proxy-Authorization", "Proxy-Connection", "X-Private", "X-Other"}) {
    from.headers.add(name, "1");
  }
  from.headers.add("Connection", "close, x-private");
  from.headers.add("connection", "\tX-OTHER ,");
  from.headers.add("Accept", "*/*");
  http::request into;
  forward_request(from, "Hash=1", into);
  BOOST_TEST(all_of(into.headers) ==
             "Accept=*/*;x-forwarded-for=10.1.2.3;x-forwarded-proto=https;x-forwarded-host=;"
             "x-forwarded-client-cert=Hash=1;");
}

BOOST_AUTO_TEST_CASE(gateway_alone_says_who_the_client_is) {
  auto from = from_a_client();
  from.headers.add("Host", "kcp.example.com:443");
  from.headers.add("X-Forwarded-Client-Cert", "Hash=forged");
  from.headers.add("x-forwarded-client-cert", "Hash=again");
  from.headers.add("X-Forwarded-Proto", "http");
  from.headers.add("X-Forwarded-Host", "forged");
  from.headers.add("X-Forwarded-For", "10.9.9.9");
  from.headers.add("Content-Length", "12");
  http::request into;
  forward_request(from, "Hash=1", into);
  BOOST_TEST(all_of(into.headers) ==
             "x-forwarded-for=10.9.9.9, 10.1.2.3;x-forwarded-proto=https;"
             "x-forwarded-host=kcp.example.com:443;x-forwarded-client-cert=Hash=1;");
}

BOOST_AUTO_TEST_CASE(response_comes_back_as_it_is) {
  http::response from;
  from.status = 503;
  from.body = "full";
  from.headers.add("Retry-After", "7");
  from.headers.add("watch-event-batch", "256");
  from.headers.add("Date", "long ago");
  from.headers.add("Connection", "close");
  from.headers.add("Content-Length", "4");
  http::response into;
  forward_answer(from, into);
  BOOST_TEST(into.status == 503u);
  BOOST_TEST(into.body == "full");
  BOOST_TEST(all_of(into.headers) == "Retry-After=7;watch-event-batch=256;");
}

BOOST_AUTO_TEST_SUITE_END()
