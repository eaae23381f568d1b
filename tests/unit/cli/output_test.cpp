#include "rw/reactors/cli/output.hpp"

#include <boost/asio/bind_cancellation_slot.hpp>
#include <boost/asio/cancellation_signal.hpp>
#include <boost/asio/co_spawn.hpp>
#include <boost/asio/error.hpp>
#include <boost/asio/io_context.hpp>
#include <boost/test/unit_test.hpp>

#include <algorithm>
#include <csignal>
#include <cstdio>
#include <fcntl.h>
#include <optional>
#include <string>
#include <unistd.h>

BOOST_AUTO_TEST_SUITE(output)

namespace {

struct piped {
  piped() { BOOST_REQUIRE(::pipe2(ends, O_CLOEXEC) == 0); }
  ~piped() {
    for (const int end : ends) ::close(end);
  }

  void begin(std::string lines) {
    outcome.reset();
    boost::asio::co_spawn(
        context, out.emplace(context.get_executor(), ends[1]).write(std::move(lines)),
        boost::asio::bind_cancellation_slot(
            cancel.slot(),
            [this](std::exception_ptr, boost::system::error_code error) { outcome = error; }));
    go_on();
  }
  void go_on() {
    context.restart();
    context.poll();
  }
  std::string take(std::size_t size) {
    std::string bytes(size, '\0');
    bytes.resize(static_cast<std::size_t>(::read(ends[0], bytes.data(), size)));
    return bytes;
  }

  int ends[2] = {};
  boost::asio::io_context context;
  boost::asio::cancellation_signal cancel;
  std::optional<rw::cli::output> out;
  std::optional<boost::system::error_code> outcome;
};

std::string lines(int count) {
  std::string out;
  for (int i = 0; i < count; ++i) out += std::to_string(i) + std::string(200, 'x') + '\n';
  return out;
}

}  // namespace

BOOST_AUTO_TEST_CASE(write_suspends_while_its_reader_stalls_and_then_goes_on) {
  piped f;
  const auto all = lines(2000);
  f.begin(all);
  BOOST_TEST(!f.outcome);
  BOOST_TEST(f.out->unwritten() > 0u);
  std::string got;
  while (got.size() < all.size()) {
    got += f.take(10'000);
    f.go_on();
  }
  BOOST_TEST((got == all));
  BOOST_REQUIRE(f.outcome.has_value());
  BOOST_TEST(!*f.outcome);
  BOOST_TEST(f.out->unwritten() == 0u);
}

BOOST_AUTO_TEST_CASE(cancelled_write_counts_unwritten_lines) {
  piped f;
  f.begin(lines(2000));
  f.cancel.emit(boost::asio::cancellation_type::terminal);
  f.go_on();
  BOOST_REQUIRE(f.outcome.has_value());
  BOOST_TEST(*f.outcome == boost::asio::error::operation_aborted);
  const auto got = f.take(1 << 20);
  const auto whole = static_cast<std::size_t>(std::count(got.begin(), got.end(), '\n'));
  BOOST_TEST(f.out->unwritten() + whole == 2000u);
}

BOOST_AUTO_TEST_CASE(write_fails_when_its_reader_has_gone) {
  std::signal(SIGPIPE, SIG_IGN);
  piped f;
  ::close(f.ends[0]);
  f.begin(lines(1));
  BOOST_REQUIRE(f.outcome.has_value());
  BOOST_TEST(*f.outcome == boost::system::errc::broken_pipe);
  BOOST_TEST(f.out->unwritten() == 1u);
}

BOOST_AUTO_TEST_CASE(write_goes_to_a_file_at_once) {
  piped f;
  std::FILE* file = std::tmpfile();
  BOOST_REQUIRE(file != nullptr);
  BOOST_REQUIRE(::dup2(::fileno(file), f.ends[1]) >= 0);
  const auto all = lines(2000);
  f.begin(all);
  BOOST_TEST((f.outcome && !*f.outcome));
  BOOST_TEST(::lseek(::fileno(file), 0, SEEK_END) == static_cast<off_t>(all.size()));
  std::fclose(file);
}

BOOST_AUTO_TEST_SUITE_END()
