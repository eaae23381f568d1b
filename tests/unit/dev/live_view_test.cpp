#include "rw/reactors/dev/live_view.hpp"

#include "rw/core/task_group.hpp"

#include <boost/asio/io_context.hpp>
#include <boost/test/unit_test.hpp>

#include "tests/unit/dev/conduit.hpp"
#include "tests/unit/manual_clock.hpp"
#include <chrono>
#include <string>
#include <string_view>

BOOST_AUTO_TEST_SUITE(live_view)

namespace core = rw::core;
using rw::dev::live_state;
using rw::dev::terminal;
using rw::test::conduit;
using rw::test::drawing;
using std::chrono::milliseconds;

namespace {

/// A view of a system whose state the test sets.
struct stage {
  stage() {
    state.runtimes.emplace();
    state.runtimes->push_back({.name = "r", .state = "installed", .heartbeat = "live"});
    tasks.spawn(view.run());
    pass({});
  }
  ~stage() {
    tasks.cancel();
    pass({});
  }

  /// Moves time on, and lets the view act.
  std::string pass(core::duration time) {
    clock.advance(time);
    context.poll();
    return out.take();
  }

  conduit out;
  conduit err;
  terminal screen{{.out = out.ends[1], .err = err.ends[1], .movable = true, .colours = false}};
  core::manual_clock clock;
  boost::asio::io_context context;
  live_state state;
  rw::dev::live_view view{context.get_executor(), clock, screen, [this] { return state; }};
  core::task_group tasks{context.get_executor()};
};

}  // namespace

BOOST_AUTO_TEST_CASE(table_is_shown_on_terminals_unless_told_otherwise) {
  using rw::dev::shows_table;
  using rw::dev::table_mode;
  const terminal movable({.movable = true});
  const terminal pipe({});
  rw::dev::dev_settings settings;
  BOOST_TEST(shows_table(settings, movable));
  BOOST_TEST(!shows_table(settings, pipe));
  settings.table = table_mode::always;
  BOOST_TEST(shows_table(settings, pipe));
  settings.table = table_mode::never;
  BOOST_TEST(!shows_table(settings, movable));
  settings = {};
  settings.json = true;
  BOOST_TEST(!shows_table(settings, movable));
}

BOOST_AUTO_TEST_CASE(view_draws_nothing_while_nothing_changes) {
  stage s;
  for (int i = 0; i < 20; ++i) BOOST_TEST(s.pass(milliseconds(250)) == "");
  s.state.runtimes->front().heartbeat = "silent";
  BOOST_TEST(s.pass(milliseconds(250)).find("1 silent") != std::string::npos);
  BOOST_TEST(s.pass(milliseconds(250)) == "");
}

BOOST_AUTO_TEST_CASE(view_draws_four_times_a_second_at_most) {
  stage s;
  s.pass(milliseconds(1000));
  int drawings = 0;
  std::string text;
  for (int i = 0; i < 999; ++i) {
    s.view.print("line\n");
    const auto drawn = s.out.take() + s.pass(milliseconds(1));
    if (!drawn.empty()) ++drawings;
    text += drawn;
  }
  BOOST_TEST(drawings == 4);
  text += s.pass(milliseconds(250));
  std::size_t lines = 0;
  for (auto at = text.find("line\n"); at != std::string::npos; at = text.find("line\n", at + 1)) {
    ++lines;
  }
  BOOST_TEST(lines == 999U);
}

BOOST_AUTO_TEST_CASE(line_after_a_pause_is_printed_at_once) {
  stage s;
  s.pass(milliseconds(1000));
  s.view.print("line\n");
  BOOST_TEST(s.out.take().find("line\n") != std::string::npos);
}

BOOST_AUTO_TEST_CASE(view_prints_what_waits_when_it_ends) {
  stage s;
  s.pass(milliseconds(1000));
  s.view.print("first\n");
  s.out.take();
  s.view.print("second\n");
  BOOST_TEST(s.out.take() == "");
  s.view.end();
  BOOST_TEST(s.out.take() == "\r\x1b[2A\x1b[J" + drawing("second\n"));
  s.view.print("third\n");
  BOOST_TEST(s.out.take() == drawing("third\n"));
}

BOOST_AUTO_TEST_CASE(view_shows_the_table_after_the_progress) {
  stage s;
  s.state.progress = {.issuer = true, .prepared = 1, .runtimes = 2};
  BOOST_TEST(s.pass(milliseconds(250)).find("1 of 2 runtimes prepared") != std::string::npos);
  s.state.progress.reset();
  BOOST_TEST(s.pass(milliseconds(250)).find("RUNTIME") != std::string::npos);
}

BOOST_AUTO_TEST_SUITE_END()
