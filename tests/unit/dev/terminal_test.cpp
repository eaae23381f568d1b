#include "rw/reactors/dev/terminal.hpp"

#include <boost/test/unit_test.hpp>

#include "tests/unit/dev/conduit.hpp"
#include <string>

BOOST_AUTO_TEST_SUITE(terminal)

using rw::test::conduit;
using rw::test::drawing;

BOOST_AUTO_TEST_CASE(terminal_replaces_its_region_in_one_write) {
  const conduit out;
  rw::dev::terminal screen({.out = out.ends[1]});
  screen.draw({}, "one\ntwo");
  BOOST_TEST(out.take() == drawing("one\ntwo"));
  screen.draw("line\n", "three");
  BOOST_TEST(out.take() == drawing("\r\x1b[1A\x1b[Jline\nthree"));
  screen.draw({}, "four");
  BOOST_TEST(out.take() == drawing("\r\x1b[Jfour"));
  screen.clear();
  BOOST_TEST(out.take() == "\r\x1b[J");
  screen.clear();
  BOOST_TEST(out.take() == "");
}

BOOST_AUTO_TEST_CASE(terminal_erases_lines_that_have_been_wrapped) {
  const conduit out;
  rw::dev::terminal screen({.out = out.ends[1]});
  // Of 80 columns, as a pipe has none; colours take none.
  screen.draw({}, std::string(81, 'x') + "\n\x1b[31m" + std::string(80, 'y') + "\x1b[0m");
  out.take();
  screen.clear();
  BOOST_TEST(out.take() == "\r\x1b[2A\x1b[J");
}

BOOST_AUTO_TEST_CASE(terminal_erases_its_region_when_it_is_destroyed) {
  const conduit out;
  {
    rw::dev::terminal screen({.out = out.ends[1]});
    screen.draw({}, "one\ntwo");
    out.take();
  }
  BOOST_TEST(out.take() == "\r\x1b[1A\x1b[J");
}

BOOST_AUTO_TEST_CASE(terminal_leaves_logs_that_go_elsewhere_as_they_are) {
  const conduit out;
  const conduit err;
  rw::dev::terminal screen({.out = out.ends[1], .err = err.ends[1]});
  screen.draw({}, "one");
  out.take();
  screen.log("\x1b \xc3\xa4\n");
  BOOST_TEST(err.take() == "\x1b \xc3\xa4\n");
  BOOST_TEST(out.take() == "");
}

BOOST_AUTO_TEST_SUITE_END()
