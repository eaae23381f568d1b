#include "rw/core/http/frame_budget.hpp"

#include <boost/test/unit_test.hpp>

#include "tests/unit/http/frames.hpp"
#include <string>

BOOST_AUTO_TEST_SUITE(frame_budget)

namespace {

using rw::core::time_point;
using rw::http::test::big_endian;
using rw::http::test::bytes_of;
using rw::http::test::frame;
using std::chrono::seconds;
using budget = rw::http::frame_budget;

constexpr time_point start{std::chrono::hours(1)};

std::string window_update(std::uint32_t stream = 0) {
  return bytes_of({frame::window_update, 0, stream, big_endian(1)});
}
std::string ping() {
  return bytes_of({frame::ping, 0, 0, "12345678"});
}

/// How many of `bytes` are taken, of at most `most`.
int taken(budget& from, const std::string& bytes, int most = 100'000, time_point now = start) {
  int n = 0;
  while (n < most && from.take(bytes, now)) ++n;
  return n;
}

}  // namespace

BOOST_AUTO_TEST_CASE(window_updates_are_bounded_by_streams_and_data) {
  budget of_server(budget::peer::server);
  BOOST_TEST(taken(of_server, window_update()) == 5);
  budget second(budget::peer::server);
  for (int i = 0; i < 3; ++i) second.opened_stream();
  for (int i = 0; i < 7; ++i) second.sent_data();
  BOOST_TEST(taken(second, window_update(1)) == 5 + 2 * (3 + 10 * 7));
}

BOOST_AUTO_TEST_CASE(time_gives_no_further_window_updates) {
  budget of_server(budget::peer::server);
  BOOST_TEST(taken(of_server, window_update()) == 5);
  BOOST_TEST(taken(of_server, window_update(), 1, start + std::chrono::hours(24)) == 0);
}

BOOST_AUTO_TEST_CASE(priorities_are_bounded_by_streams) {
  const auto priority = bytes_of({frame::priority, 0, 1, big_endian(0) + '\x10'});
  budget of_server(budget::peer::server);
  BOOST_TEST(taken(of_server, priority) == 100);
  budget second(budget::peer::server);
  second.opened_stream();
  BOOST_TEST(taken(second, priority) == 200);
}

BOOST_AUTO_TEST_CASE(frames_of_other_types_have_a_rate) {
  const std::string others[] = {ping(),
                                bytes_of({frame::settings, 0, 0, {}}),
                                bytes_of({frame::goaway, 0, 0, big_endian(0) + big_endian(0)}),
                                bytes_of({0xfa, 0xff, 0, "unknown"}),
                                bytes_of({frame::continuation, 0, 1, "x"}),
                                bytes_of({frame::rst_stream, 0, 1, big_endian(8)}),
                                bytes_of({frame::headers, frame::end_headers, 1, "x"}),
                                bytes_of({frame::data, 0, 1, {}})};
  for (const auto& other : others) {
    BOOST_TEST_CONTEXT("type " << static_cast<int>(static_cast<unsigned char>(other[3]))) {
      budget of_server(budget::peer::server);
      BOOST_TEST(taken(of_server, other) == 1'000);
      BOOST_TEST(taken(of_server, other, 10'000, start + seconds(2)) == 200);
      BOOST_TEST(taken(of_server, other, 10'000, start + seconds(60)) == 1'000);
    }
  }
}

BOOST_AUTO_TEST_CASE(data_that_carries_next_to_nothing_has_a_rate) {
  constexpr std::uint8_t padded = 8;
  for (const auto& data :
       {frame{frame::data, 0, 1, "x"}, frame{frame::data, frame::end_stream, 1, "x"},
        frame{frame::data, padded, 1, '\xf0' + std::string(240, '\0')}}) {
    budget of_server(budget::peer::server);
    BOOST_TEST(taken(of_server, bytes_of(data)) == 20'000);
    BOOST_TEST(taken(of_server, bytes_of(data), 100'000, start + seconds(1)) == 10'000);
  }
  budget of_server(budget::peer::server);
  of_server.opened_stream();
  BOOST_TEST(taken(of_server, bytes_of({frame::data, frame::end_stream, 1, {}})) == 1'001);
}

BOOST_AUTO_TEST_CASE(data_and_what_ends_a_stream_cost_nothing) {
  budget of_server(budget::peer::server);
  BOOST_TEST(taken(of_server, bytes_of({frame::data, 0, 1, std::string(64, 'x')}), 50'000) ==
             50'000);
  for (int i = 0; i < 5'000; ++i) {
    of_server.opened_stream();
    const auto id = static_cast<std::uint32_t>(2 * i + 1);
    BOOST_TEST_REQUIRE(of_server.take(bytes_of({frame::headers, frame::end_headers, id, "head"}) +
                                          bytes_of({frame::headers, 5, id, "trailers"}) +
                                          bytes_of({frame::data, frame::end_stream, id, {}}) +
                                          bytes_of({frame::rst_stream, 0, id, big_endian(0)}),
                                      start));
  }
}

BOOST_AUTO_TEST_CASE(streams_of_a_client_are_seen_in_its_frames) {
  budget of_client(budget::peer::client);
  BOOST_TEST(of_client.take("PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n", start));
  for (std::uint32_t id = 1; id < 10'000; id += 2) {
    BOOST_TEST_REQUIRE(of_client.take(bytes_of({frame::headers, 5, id, "x"}), start));
  }
  BOOST_TEST(taken(of_client, window_update()) == 5 + 2 * 5'000);
}

BOOST_AUTO_TEST_CASE(frames_are_found_however_the_bytes_are_cut) {
  const auto all = ping() + bytes_of({frame::data, 0, 1, std::string(300, '\x08')}) +
                   window_update() + bytes_of({frame::settings, 0, 0, {}}) + window_update();
  for (std::size_t cut = 1; cut < all.size(); ++cut) {
    budget of_server(budget::peer::server);
    bool good = true;
    for (std::size_t at = 0; at < all.size(); at += cut) {
      good = good && of_server.take(std::string_view(all).substr(at, cut), start);
    }
    BOOST_TEST(good);
    BOOST_TEST_REQUIRE(taken(of_server, window_update()) == 3);
    BOOST_TEST_REQUIRE(taken(of_server, ping(), 2'000) == 998);
  }
}

// --- honest peers for a day ----------------------------------------------------------------------

BOOST_AUTO_TEST_CASE(viewer_of_live_updates_may_stay_for_a_day) {
  budget of_client(budget::peer::client);
  BOOST_TEST(of_client.take("PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n" +
                                bytes_of({frame::settings, 0, 0, {}}) +
                                bytes_of({frame::settings, frame::ack, 0, {}}) + window_update() +
                                bytes_of({frame::headers, 5, 1, "GET /live"}),
                            start));
  bool good = true;
  for (int second = 0; second < 86'400; ++second) {
    const auto now = start + seconds(second);
    of_client.sent_data();
    good = good && of_client.take(window_update(0) + window_update(1), now);
    if (second % 15 == 0) good = good && of_client.take(ping(), now);
  }
  BOOST_TEST(good);
}

BOOST_AUTO_TEST_CASE(watch_may_last_a_day) {
  budget of_server(budget::peer::server);
  of_server.opened_stream();
  bool good = of_server.take(bytes_of({frame::settings, 0, 0, {}}) +
                                 bytes_of({frame::settings, frame::ack, 0, {}}) + window_update() +
                                 bytes_of({frame::headers, frame::end_headers, 1, "200"}),
                             start);
  for (int second = 0; second < 86'400; ++second) {
    const auto now = start + seconds(second);
    for (int event = 0; event < 20; ++event) {
      good = good && of_server.take(bytes_of({frame::data, 0, 1, "{}"}), now);
    }
    // Answers to our PINGs.
    if (second % 10 == 0)
      good = good && of_server.take(bytes_of({frame::ping, frame::ack, 0, "12345678"}), now);
  }
  BOOST_TEST(good);
}

BOOST_AUTO_TEST_CASE(reader_may_be_slow) {
  budget of_client(budget::peer::client);
  bool good =
      of_client.take("PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n" + bytes_of({frame::settings, 0, 0, {}}) +
                         bytes_of({frame::headers, 5, 1, "GET /"}),
                     start);
  // 64 bytes at a time of a page of 1 MiB, as the windows allow them.
  for (int piece = 0; piece < 16'384; ++piece) {
    of_client.sent_data();
    good = good && of_client.take(window_update(0) + window_update(1), start + seconds(piece));
  }
  BOOST_TEST(good);
}

BOOST_AUTO_TEST_SUITE_END()
