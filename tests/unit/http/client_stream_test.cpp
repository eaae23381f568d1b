#include "rw/core/http/client.hpp"
#include "rw/core/task_group.hpp"
#include "rw/core/wake.hpp"

#include <boost/asio/ip/tcp.hpp>
#include <boost/asio/this_coro.hpp>
#include <boost/system/system_error.hpp>
#include <boost/test/unit_test.hpp>

#include "tests/unit/http/client_fixture.hpp"
#include "tests/unit/http/frames.hpp"
#include "tests/unit/http/upstream.hpp"
#include <atomic>
#include <functional>
#include <future>
#include <memory>
#include <mutex>
#include <string>
#include <string_view>

BOOST_AUTO_TEST_SUITE(client_stream)

namespace {

using namespace rw::http;
using namespace rw::http::test;
using boost::asio::ip::tcp;
using boost::system::error_code;
using std::chrono::milliseconds;
namespace asio = boost::asio;

/// Keeps what it is given, up to `enough` bytes; to be looked at from the test's thread.
class collector final : public body_sink {
 public:
  explicit collector(std::size_t enough = std::string::npos) : enough_(enough) {}

  bool take(std::string_view bytes) override {
    if (on_bytes) on_bytes();
    const std::lock_guard lock(guard_);
    text_ += bytes;
    return text_.size() < enough_;
  }
  void end(error_code error) override {
    const std::lock_guard lock(guard_);
    ended_ = error;
    if (ends_with) ends_with->reset();
  }
  std::string text() const {
    const std::lock_guard lock(guard_);
    return text_;
  }
  bool eventually_ends(error_code with) const {
    return eventually([&] {
      const std::lock_guard lock(guard_);
      return ended_ == with;
    });
  }
  bool ended() const {
    const std::lock_guard lock(guard_);
    return ended_.has_value();
  }
  bool eventually_has(std::string_view text) const {
    return eventually([&] { return this->text() == text; });
  }

  std::function<void()> on_bytes;
  std::unique_ptr<opened_exchange>* ends_with = nullptr;  ///< destroyed with the end

 private:
  const std::size_t enough_;
  mutable std::mutex guard_;
  std::string text_;
  std::optional<error_code> ended_;
};

/// A client of either protocol.
struct streaming : client_fixture {
  explicit streaming(bool http2, std::uint16_t port, client_limits limits = {})
      : client_fixture(http2 ? std::make_unique<h2_transport>()
                             : rw::core::make_plain_transport()) {
    use(port, limits);
  }

  std::future<outcome> begin_stream(exchange_options options) {
    return begin("/", "the body", options);
  }
  outcome stream(exchange_options options) { return end(begin_stream(options)); }

  /// What came until the head of the answer, or its end if that is no success.
  outcome open_stream(exchange_options options) {
    return end(asio::co_spawn(here.context, open_once(options), asio::use_future));
  }
  void drop() {
    here.on_thread([this] { rest.reset(); });
  }
  ~streaming() { drop(); }

  std::unique_ptr<opened_exchange> rest;

 private:
  asio::awaitable<outcome> open_once(exchange_options options) {
    outcome result;
    client_slot slot;
    request what;
    what.target = "/";
    what.body = "the body";
    result.error = co_await used->acquire(slot);
    if (!result.error) {
      result.error = co_await slot.open(what, result.answer, options, rest);
    }
    co_return result;
  }
};

/// Writes an answer piece by piece, in either protocol.
class answer_writer {
 public:
  answer_writer(tcp::socket& to, bool http2, std::uint32_t stream = 1)
      : to_(to), http2_(http2), stream_(stream) {}

  /// Reads the request, whose body is "the body", and begins its answer.
  void begin(unsigned status = 200) {
    upstream::read_through(to_, "the body");
    if (http2_ && stream_ == 1) {
      upstream::write(to_, bytes_of({frame::settings, 0, 0, {}}) +
                               bytes_of({frame::settings, frame::ack, 0, {}}));
    }
    const auto code = std::to_string(status);
    if (http2_) {
      upstream::write(
          to_, bytes_of({frame::headers, frame::end_headers, stream_, hpack({{":status", code}})}));
    } else {
      upstream::write(to_, "HTTP/1.1 " + code + " X\r\ntransfer-encoding: chunked\r\n\r\n");
    }
  }
  bool part(std::string_view bytes) {
    if (http2_) {
      return upstream::write(to_, bytes_of({frame::data, 0, stream_, std::string(bytes)}));
    }
    std::array<char, 24> size{};
    std::snprintf(size.data(), size.size(), "%zx\r\n", bytes.size());
    return upstream::write(to_, std::string(size.data()).append(bytes) + "\r\n");
  }
  void end() {
    upstream::write(to_, http2_ ? bytes_of({frame::data, frame::end_stream, stream_, {}})
                                : std::string("0\r\n\r\n"));
  }

 private:
  tcp::socket& to_;
  const bool http2_;
  const std::uint32_t stream_;
};

void close_in_order(tcp::socket& socket) {
  error_code ignored;
  socket.shutdown(tcp::socket::shutdown_send, ignored);
  upstream::read_rest(socket);
}

/// An upstream that begins an answer over HTTP/2, goes on with `rest`, and leaves it open.
upstream::script begun(std::function<void(answer_writer&, tcp::socket&)> rest = {}) {
  return [rest = std::move(rest)](tcp::socket& socket, int) {
    answer_writer answer(socket, true);
    answer.begin();
    if (rest) rest(answer, socket);
    upstream::read_rest(socket);
  };
}

/// The error codes of the resets among the frames that come, until the client closes.
std::string read_resets(tcp::socket& from) {
  std::string bytes;
  for (auto more = upstream::read_some(from); !more.empty(); more = upstream::read_some(from)) {
    bytes += more;
  }
  std::string resets;
  for (std::string_view rest = bytes; rest.size() >= 9;) {
    const auto size = read_big_endian(rest.substr(0, 3));
    if (rest[3] == frame::rst_stream) {
      resets += std::to_string(read_big_endian(rest.substr(5, 4))) + ":" +
                std::to_string(read_big_endian(rest.substr(9, 4))) + " ";
    }
    rest.remove_prefix(std::min(rest.size(), std::size_t{9} + size));
  }
  return resets;
}

}  // namespace

BOOST_AUTO_TEST_CASE(sink_gets_the_body_while_it_comes) {
  for (const bool http2 : {false, true}) {
    std::promise<void> seen;
    upstream peer([&](tcp::socket& socket, int) {
      answer_writer answer(socket, http2);
      answer.begin();
      answer.part("one ");
      seen.get_future().wait();
      answer.part("two");
      answer.end();
      upstream::read_rest(socket);
    });
    streaming f(http2, peer.port());
    collector sink;
    auto under_way = f.begin_stream({.sink = &sink});
    BOOST_TEST(sink.eventually_has("one "));
    seen.set_value();
    const auto got = client_fixture::end(std::move(under_way));
    BOOST_TEST(!got.error, got.error.message());
    BOOST_TEST(sink.text() == "one two");
    BOOST_TEST(got.answer.body == "");
    BOOST_TEST(f.open() == 1);
  }
}

BOOST_AUTO_TEST_CASE(chunk_of_one_byte_is_not_kept_back) {
  std::promise<void> seen;
  upstream peer([&](tcp::socket& socket, int) {
    answer_writer answer(socket, false);
    answer.begin();
    answer.part("event");
    answer.part("\n");
    seen.get_future().wait();
    answer.end();
    upstream::read_rest(socket);
  });
  streaming f(false, peer.port());
  collector sink;
  auto under_way = f.begin_stream({.sink = &sink});
  BOOST_TEST(sink.eventually_has("event\n"));
  seen.set_value();
  BOOST_TEST(!client_fixture::end(std::move(under_way)).error);
}

BOOST_AUTO_TEST_CASE(sink_takes_bodies_of_any_size) {
  for (const bool http2 : {false, true}) {
    upstream peer([&](tcp::socket& socket, int) {
      answer_writer answer(socket, http2);
      answer.begin();
      for (int i = 0; i < 64; ++i) answer.part(std::string(16'000, 'x'));
      answer.end();
      upstream::read_rest(socket);
    });
    streaming f(http2, peer.port());
    collector sink;
    BOOST_TEST(!f.stream({.sink = &sink}).error);
    BOOST_TEST(sink.text().size() == 64u * 16'000);
  }
}

BOOST_AUTO_TEST_CASE(body_of_an_error_is_gathered_as_usual) {
  for (const bool http2 : {false, true}) {
    upstream peer([&](tcp::socket& socket, int) {
      answer_writer answer(socket, http2);
      answer.begin(410);
      answer.part("too old");
      answer.end();
      upstream::read_rest(socket);
    });
    streaming f(http2, peer.port());
    collector sink;
    const auto got = f.stream({.sink = &sink});
    BOOST_TEST(!got.error, got.error.message());
    BOOST_TEST(got.answer.status == 410u);
    BOOST_TEST(got.answer.body == "too old");
    BOOST_TEST(sink.text() == "");
  }
}

BOOST_AUTO_TEST_CASE(exchange_may_set_its_own_limit_for_the_body) {
  for (const bool http2 : {false, true}) {
    for (const auto& [limit, expected] :
         {std::pair{std::size_t{400'000}, error_code()},
          std::pair{std::size_t{100}, make_error_code(client_error::response_too_large)}}) {
      upstream peer([&](tcp::socket& socket, int) {
        answer_writer answer(socket, http2);
        answer.begin();
        for (int i = 0; i < 30; ++i) answer.part(std::string(10'000, 'x'));
        answer.end();
        upstream::read_rest(socket);
      });
      streaming f(http2, peer.port());
      BOOST_TEST(f.stream({.body_bytes = limit}).error == expected);
    }
  }
}

BOOST_AUTO_TEST_CASE(body_that_ends_without_its_last_piece_is_no_response) {
  for (const bool http2 : {false, true}) {
    upstream peer([&](tcp::socket& socket, int) {
      answer_writer answer(socket, http2);
      answer.begin();
      answer.part("half");
      close_in_order(socket);
    });
    streaming f(http2, peer.port());
    collector sink;
    BOOST_TEST(f.stream({.sink = &sink}).error == make_error_code(client_error::closed));
    BOOST_TEST(sink.text() == "half");
    BOOST_TEST(eventually([&] { return f.open() == 0; }));
  }
}

BOOST_AUTO_TEST_CASE(stream_that_is_reset_in_the_middle_is_no_response) {
  upstream peer([&](tcp::socket& socket, int) {
    answer_writer answer(socket, true);
    answer.begin();
    answer.part("half");
    upstream::write(socket, bytes_of({frame::rst_stream, 0, 1, big_endian(2)}));
    upstream::read_rest(socket);
  });
  streaming f(true, peer.port());
  collector sink;
  BOOST_TEST(f.stream({.sink = &sink}).error == make_error_code(client_error::closed));
  BOOST_TEST(sink.text() == "half");
  BOOST_TEST(f.open() == 1);
}

BOOST_AUTO_TEST_CASE(body_without_a_length_streams_until_the_connection_ends) {
  upstream peer([&](tcp::socket& socket, int) {
    upstream::read_through(socket, "the body");
    upstream::write(socket, "HTTP/1.1 200 OK\r\n\r\nto the ");
    upstream::write(socket, "end");
    close_in_order(socket);
  });
  streaming f(false, peer.port());
  collector sink;
  BOOST_TEST(!f.stream({.sink = &sink}).error);
  BOOST_TEST(sink.text() == "to the end");
}

BOOST_AUTO_TEST_CASE(sink_that_has_enough_ends_its_exchange_and_no_other) {
  std::string resets;
  {
    std::promise<void> enough;
    upstream peer([&](tcp::socket& socket, int) {
      answer_writer first(socket, true);
      answer_writer second(socket, true, 3);
      first.begin();
      first.part("en");
      second.begin();
      second.part("one ");
      first.part("ough");
      enough.get_future().wait();
      first.part("too much");
      second.part("two");
      second.end();
      resets = read_resets(socket);
    });
    streaming f(true, peer.port());
    collector short_one(3);
    collector other;
    auto first = f.begin_stream({.sink = &short_one});
    BOOST_TEST(short_one.eventually_has("en"));
    auto second = f.begin_stream({.sink = &other});
    BOOST_TEST(client_fixture::end(std::move(first)).error ==
               make_error_code(client_error::abandoned));
    enough.set_value();
    BOOST_TEST(!client_fixture::end(std::move(second)).error);
    BOOST_TEST(short_one.text() == "enough");
    BOOST_TEST(other.text() == "one two");
    BOOST_TEST(f.open() == 1);
  }
  BOOST_TEST(resets == "1:8 ");
}

BOOST_AUTO_TEST_CASE(connection_whose_response_was_abandoned_is_closed) {
  std::atomic<bool> left{false};
  upstream peer([&](tcp::socket& socket, int) {
    answer_writer answer(socket, false);
    answer.begin();
    while (answer.part("more and more")) {
    }
    left = true;
  });
  streaming f(false, peer.port());
  collector sink(100);
  BOOST_TEST(f.stream({.sink = &sink}).error == make_error_code(client_error::abandoned));
  BOOST_TEST(eventually([&] { return left.load(); }));
  BOOST_TEST(eventually([&] { return f.open() == 0; }));
}

BOOST_AUTO_TEST_CASE(sink_may_begin_another_exchange) {
  for (const bool http2 : {false, true}) {
    served f(http2);
    collector sink;
    std::future<outcome> other;
    sink.on_bytes = [&] { other = f.begin("/other", "inner"); };
    auto outer = f.begin("/", "the body", {.sink = &sink});
    BOOST_TEST(!client_fixture::end(std::move(outer)).error);
    BOOST_TEST(sink.text() == "the body");
    BOOST_TEST(client_fixture::end(std::move(other)).answer.body == "inner");
  }
}

BOOST_AUTO_TEST_CASE(response_that_falls_silent_is_abandoned) {
  for (const bool http2 : {false, true}) {
    for (const bool any_part : {false, true}) {
      upstream peer([&](tcp::socket& socket, int) {
        answer_writer answer(socket, http2);
        answer.begin();
        if (any_part) answer.part("then nothing");
        upstream::read_rest(socket);
      });
      streaming f(http2, peer.port(), {.exchange = milliseconds(100)});
      collector sink;
      const auto got =
          f.stream({.sink = &sink, .limit = std::chrono::minutes(5), .silence = milliseconds(100)});
      BOOST_TEST(got.error == make_error_code(client_error::timed_out));
      BOOST_TEST(got.answer.status == 200u);
    }
  }
}

BOOST_AUTO_TEST_CASE(head_that_never_comes_is_not_awaited_for_as_long_as_the_body) {
  for (const bool http2 : {false, true}) {
    upstream peer([&](tcp::socket& socket, int) { upstream::read_rest(socket); });
    streaming f(http2, peer.port(), {.exchange = milliseconds(100)});
    collector sink;
    BOOST_TEST(
        f.stream({.sink = &sink, .limit = std::chrono::minutes(5), .silence = milliseconds(50)})
            .error == make_error_code(client_error::timed_out));
  }
}

BOOST_AUTO_TEST_CASE(response_that_goes_on_outlives_the_clients_limit) {
  for (const bool http2 : {false, true}) {
    constexpr auto limit = milliseconds(800);  // far more than a busy machine takes for one piece
    const auto until = std::chrono::steady_clock::now() + 2 * limit;
    std::atomic<int> taken{0};
    upstream peer([&](tcp::socket& socket, int) {
      answer_writer answer(socket, http2);
      answer.begin();
      for (int sent = 0; std::chrono::steady_clock::now() < until;) {
        answer.part(std::string(100, 'x'));  // frames of less would be a flood
        ++sent;
        if (!eventually([&] { return taken >= sent; })) return;
      }
      answer.end();
      upstream::read_rest(socket);
    });
    streaming f(http2, peer.port(), {.exchange = limit});
    collector sink;
    sink.on_bytes = [&] { ++taken; };
    const auto got = f.stream({.sink = &sink, .limit = std::chrono::minutes(5), .silence = limit});
    BOOST_TEST(!got.error, got.error.message());
  }
}

BOOST_AUTO_TEST_CASE(response_without_end_is_left_at_its_limit) {
  for (const bool http2 : {false, true}) {
    upstream peer([&](tcp::socket& socket, int) {
      answer_writer answer(socket, http2);
      answer.begin();
      while (answer.part(std::string(100, 'm'))) {  // frames of less would be a flood
      }
    });
    streaming f(http2, peer.port());
    collector sink;
    const auto got =
        f.stream({.sink = &sink, .limit = milliseconds(200), .silence = std::chrono::minutes(1)});
    BOOST_TEST(got.error == make_error_code(client_error::timed_out));
    BOOST_TEST(got.answer.status == 200u);
    f.here.on_thread([&] { f.used->retire(); });
  }
}

asio::awaitable<void> stream_in_group(client* through, body_sink* sink, error_code* result) {
  client_slot slot;
  *result = co_await through->acquire(slot);
  if (*result) co_return;
  request what;
  what.body = "the body";
  response answer;
  *result = co_await slot.exchange(what, answer, {.sink = sink});
}

/// Begins the exchange when it is already cancelled, so that the first wait throws. Whoever has
/// seen `waits` may cancel it; what comes before is over and would not see that.
asio::awaitable<void> stream_when_cancelled(client* through, body_sink* sink,
                                            std::atomic<bool>* waits, bool* threw) {
  co_await asio::this_coro::throw_if_cancelled(false);
  client_slot slot;
  const auto error = co_await through->acquire(slot);
  if (error) co_return;
  const auto executor = co_await asio::this_coro::executor;
  rw::core::wake never(executor);
  *waits = true;
  co_await never.wait();
  request what;
  what.body = "the body";
  response answer;
  auto exchange = slot.exchange(what, answer, {.sink = sink});
  co_await asio::this_coro::throw_if_cancelled(true);
  try {
    co_await std::move(exchange);
  } catch (const boost::system::system_error&) {
    *threw = true;
  }
}

asio::awaitable<void> join(rw::core::task_group* group) {
  co_await group->join();
}

BOOST_AUTO_TEST_CASE(cancelled_exchange_resets_its_stream_and_no_other) {
  std::string resets;
  {
    std::promise<void> cancelled;
    upstream peer([&](tcp::socket& socket, int) {
      answer_writer first(socket, true);
      answer_writer second(socket, true, 3);
      first.begin();
      first.part("one");
      second.begin();
      second.part("two");
      cancelled.get_future().wait();
      second.part("more");
      second.end();
      resets = read_resets(socket);
    });
    streaming f(true, peer.port());
    rw::core::task_group group(f.here.executor());
    collector sink;
    collector other;
    error_code result;
    group.spawn(stream_in_group(f.used.get(), &sink, &result));
    BOOST_TEST(sink.eventually_has("one"));
    auto second = f.begin_stream({.sink = &other});
    BOOST_TEST(other.eventually_has("two"));
    group.cancel();
    f.here.call(join(&group));
    cancelled.set_value();
    BOOST_TEST(result == make_error_code(client_error::shut_down));
    BOOST_TEST(!client_fixture::end(std::move(second)).error);
    BOOST_TEST(other.text() == "twomore");
  }
  BOOST_TEST(resets == "1:8 ");
}

BOOST_AUTO_TEST_CASE(cancelled_exchange_closes_its_connection) {
  std::atomic<bool> left{false};
  upstream peer([&](tcp::socket& socket, int) {
    answer_writer answer(socket, false);
    answer.begin();
    answer.part("one");
    upstream::read_rest(socket);
    left = true;
  });
  streaming f(false, peer.port());
  rw::core::task_group group(f.here.executor());
  collector sink;
  error_code result;
  group.spawn(stream_in_group(f.used.get(), &sink, &result));
  BOOST_TEST(sink.eventually_has("one"));
  group.cancel();
  f.here.call(join(&group));
  BOOST_TEST(result == make_error_code(client_error::shut_down));
  BOOST_TEST(eventually([&] { return left.load(); }));
}

BOOST_AUTO_TEST_CASE(exchange_that_ends_by_an_exception_leaves_nothing_behind) {
  for (const bool http2 : {false, true}) {
    served f(http2);
    rw::core::task_group group(f.here.executor());
    collector sink;
    std::atomic<bool> waits{false};
    bool threw = false;
    group.spawn(stream_when_cancelled(f.used.get(), &sink, &waits, &threw));
    BOOST_TEST(eventually([&] { return waits.load(); }));
    group.cancel();
    f.here.call(join(&group));
    BOOST_TEST(threw);
    BOOST_TEST(f.ask_client("/", "next").answer.body == "next");
    BOOST_TEST(eventually([&] { return f.open() == 1; }));
  }
}

BOOST_AUTO_TEST_CASE(response_to_head_has_no_body) {
  upstream peer(answering("HTTP/1.1 200 OK\r\ncontent-length: 100\r\n\r\n"));
  streaming f(false, peer.port());
  request what;
  what.method = "HEAD";
  BOOST_TEST(!f.ask_client(std::move(what)).error);
}

BOOST_AUTO_TEST_CASE(opened_exchange_goes_on_beyond_the_head_of_its_response) {
  std::promise<void> opened;
  upstream peer(begun([&](answer_writer& answer, tcp::socket&) {
    opened.get_future().wait();
    answer.part("one ");
    answer.part("two");
    answer.end();
  }));
  streaming f(true, peer.port());
  collector sink;
  const auto got = f.open_stream({.sink = &sink});
  BOOST_TEST(!got.error, got.error.message());
  BOOST_TEST(got.answer.status == 200U);
  BOOST_TEST(f.rest != nullptr);
  BOOST_TEST(!sink.ended());
  opened.set_value();
  BOOST_TEST(sink.eventually_ends({}));
  BOOST_TEST(sink.text() == "one two");
  f.drop();
  BOOST_TEST(f.open() == 1);
}

BOOST_AUTO_TEST_CASE(opened_exchange_may_end_with_its_object) {
  std::promise<void> opened;
  upstream peer(begun([&](answer_writer& answer, tcp::socket&) {
    opened.get_future().wait();
    answer.end();
  }));
  streaming f(true, peer.port());
  collector sink;
  sink.ends_with = &f.rest;
  BOOST_TEST(!f.open_stream({.sink = &sink}).error);
  opened.set_value();
  BOOST_TEST(sink.eventually_ends({}));
  f.here.on_thread([&] { BOOST_TEST(f.rest == nullptr); });
  BOOST_TEST(f.open() == 1);
}

BOOST_AUTO_TEST_CASE(opened_exchange_that_is_dropped_is_reset_and_no_other) {
  std::string resets;
  {
    std::promise<void> dropped;
    upstream peer([&](tcp::socket& socket, int) {
      answer_writer first(socket, true);
      answer_writer second(socket, true, 3);
      first.begin();
      second.begin();
      second.part("one ");
      dropped.get_future().wait();
      first.part("too late");
      second.part("two");
      second.end();
      resets = read_resets(socket);
    });
    streaming f(true, peer.port());
    collector sink;
    collector other;
    BOOST_TEST(!f.open_stream({.sink = &sink}).error);
    auto second = f.begin_stream({.sink = &other});
    BOOST_TEST(other.eventually_has("one "));
    f.drop();
    dropped.set_value();
    BOOST_TEST(!client_fixture::end(std::move(second)).error);
    BOOST_TEST(other.text() == "one two");
    BOOST_TEST(!sink.ended());
    BOOST_TEST(sink.text() == "");
  }
  BOOST_TEST(resets == "1:8 ");
}

BOOST_AUTO_TEST_CASE(refusal_is_a_whole_response_of_an_exchange_that_was_to_be_opened) {
  upstream peer([&](tcp::socket& socket, int) {
    answer_writer answer(socket, true);
    answer.begin(410);
    answer.part("too old");
    answer.end();
    upstream::read_rest(socket);
  });
  streaming f(true, peer.port());
  collector sink;
  const auto got = f.open_stream({.sink = &sink});
  BOOST_TEST(!got.error, got.error.message());
  BOOST_TEST(got.answer.status == 410U);
  BOOST_TEST(got.answer.body == "too old");
  BOOST_TEST(f.rest == nullptr);
  BOOST_TEST(!sink.ended());
}

BOOST_AUTO_TEST_CASE(opened_exchange_ends_with_its_connection) {
  std::promise<void> opened;
  upstream peer(begun([&](answer_writer&, tcp::socket& socket) {
    opened.get_future().wait();
    close_in_order(socket);
  }));
  streaming f(true, peer.port());
  collector sink;
  BOOST_TEST(!f.open_stream({.sink = &sink}).error);
  opened.set_value();
  BOOST_TEST(sink.eventually_ends(client_error::closed));
  BOOST_TEST(eventually([&] { return f.open() == 0; }));
}

BOOST_AUTO_TEST_CASE(opened_exchange_ends_with_its_limit) {
  upstream peer(begun());
  streaming f(true, peer.port());
  collector sink;
  BOOST_TEST(!f.open_stream({.sink = &sink, .limit = milliseconds(200)}).error);
  BOOST_TEST(sink.eventually_ends(client_error::timed_out));
}

BOOST_AUTO_TEST_CASE(opened_exchange_ends_with_its_client_and_may_outlive_that) {
  upstream peer(begun());
  streaming f(true, peer.port());
  collector sink;
  BOOST_TEST(!f.open_stream({.sink = &sink}).error);
  f.here.call(f.used->close());
  BOOST_TEST(sink.ended());
  f.here.on_thread([&] { f.used.reset(); });
  f.drop();
  f.use(peer.port());
}

namespace {

/// Exchanges that `client_slot::begin` begins, one after the other.
struct begun_exchange {
  explicit begun_exchange(streaming& in) : f(in) { what.body = "the body"; }
  ~begun_exchange() {
    f.here.on_thread([this] { under_way.reset(); });
  }

  /// Acquires a slot, and begins one. False if it was refused.
  bool begin(exchange_options options = {}) {
    f.here.call(acquire());
    bool taken = false;
    f.here.on_thread([&] {
      under_way = slot.begin(what, got.answer, std::move(options), [this](error_code error) {
        got.error = error;
        under_way.reset();
        if (next) std::exchange(next, nullptr)();
        ended.set_value();
      });
      taken = under_way != nullptr;
    });
    return taken;
  }
  void end() {
    if (ended.get_future().wait_for(patience) != std::future_status::ready) {
      throw std::runtime_error("no end in sight");
    }
  }

  streaming& f;
  request what;
  outcome got;
  std::function<void()> next;  ///< called in the end
  std::promise<void> ended;
  client_slot slot;
  std::unique_ptr<opened_exchange> under_way;

 private:
  asio::awaitable<void> acquire() {
    const auto error = co_await f.used->acquire(slot);
    if (error) throw boost::system::system_error(error);
  }
};

}  // namespace

BOOST_AUTO_TEST_CASE(exchange_without_a_coroutine_tells_its_end) {
  upstream peer(begun([&](answer_writer& answer, tcp::socket&) {
    answer.part("one ");
    answer.part("two");
    answer.end();
  }));
  streaming f(true, peer.port());
  begun_exchange exchange(f);
  BOOST_TEST(exchange.begin());
  exchange.end();
  BOOST_TEST(!exchange.got.error, exchange.got.error.message());
  BOOST_TEST(exchange.got.answer.status == 200U);
  BOOST_TEST(exchange.got.answer.body == "one two");
  BOOST_TEST(f.open() == 1);
}

BOOST_AUTO_TEST_CASE(end_of_an_exchange_may_begin_the_next) {
  upstream peer([&](tcp::socket& socket, int) {
    for (const std::uint32_t stream : {1U, 3U}) {
      answer_writer answer(socket, true, stream);
      answer.begin();
      answer.end();
    }
    upstream::read_rest(socket);
  });
  streaming f(true, peer.port());
  begun_exchange first(f);
  begun_exchange second(f);
  bool acquired = false;
  first.next = [&] {
    acquired = f.used->try_acquire(second.slot);
    if (!acquired) return second.ended.set_value();
    second.under_way = second.slot.begin(second.what, second.got.answer, {}, [&](error_code error) {
      second.got.error = error;
      second.ended.set_value();
    });
    if (second.under_way == nullptr) second.ended.set_value();
  };
  BOOST_TEST(first.begin());
  first.end();
  second.end();
  BOOST_TEST(acquired);
  BOOST_TEST(second.got.answer.status == 200U);
  BOOST_TEST(!second.got.error, second.got.error.message());
  BOOST_TEST(f.opened() == 1);
}

BOOST_AUTO_TEST_CASE(exchange_without_a_coroutine_ends_with_its_limit_and_with_its_connection) {
  upstream silent(begun());
  streaming f(true, silent.port());
  begun_exchange late(f);
  BOOST_TEST(late.begin({.limit = milliseconds(200)}));
  late.end();
  BOOST_TEST((late.got.error == client_error::timed_out));

  upstream leaving(begun([](answer_writer&, tcp::socket& socket) { close_in_order(socket); }));
  streaming g(true, leaving.port());
  begun_exchange broken(g);
  BOOST_TEST(broken.begin());
  broken.end();
  BOOST_TEST((broken.got.error == client_error::closed));
}

BOOST_AUTO_TEST_CASE(exchange_without_a_coroutine_that_is_dropped_is_reset_and_not_told) {
  std::string resets;
  {
    std::promise<void> requested;
    upstream peer(begun([&](answer_writer&, tcp::socket& socket) {
      requested.set_value();
      resets = read_resets(socket);
    }));
    streaming f(true, peer.port());
    begun_exchange exchange(f);
    BOOST_TEST(exchange.begin());
    BOOST_TEST((requested.get_future().wait_for(patience) == std::future_status::ready));
    f.here.on_thread([&] { exchange.under_way.reset(); });
    f.here.call(f.used->close());
    BOOST_TEST(
        (exchange.ended.get_future().wait_for(milliseconds(0)) == std::future_status::timeout));
  }
  BOOST_TEST(resets == "1:8 ");
}

BOOST_AUTO_TEST_CASE(slot_stays_where_an_exchange_is_not_begun) {
  upstream peer(begun([&](answer_writer& answer, tcp::socket&) { answer.end(); }));
  streaming f(true, peer.port());
  begun_exchange exchange(f);
  exchange.what.headers.add("content-length", "8");
  BOOST_TEST(!exchange.begin());
  BOOST_TEST(bool(exchange.slot));
  exchange.what.headers.clear();
  BOOST_TEST(exchange.begin());
  exchange.end();
  BOOST_TEST(!exchange.got.error, exchange.got.error.message());
  BOOST_TEST(!exchange.slot);
}

BOOST_AUTO_TEST_SUITE_END()
