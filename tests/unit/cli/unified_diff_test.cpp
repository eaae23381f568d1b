#include "rw/reactors/cli/unified_diff.hpp"

#include <boost/test/unit_test.hpp>

#include <cstdio>
#include <random>
#include <string>
#include <string_view>

BOOST_AUTO_TEST_SUITE(unified_diff)

using rw::cli::unified_diff;

namespace {

std::string numbered(int from, int to) {
  std::string out;
  for (int i = from; i <= to; ++i) out += std::to_string(i) + "\n";
  return out;
}

std::string take_line(std::string_view& text) {
  const auto line = text.substr(0, text.find('\n') + 1);
  text.remove_prefix(line.size());
  return std::string(line);
}

/// Applies the hunks, each at the line that its header names.
std::string patched(std::string_view before, std::string_view hunks) {
  std::string out;
  int at = 1;
  while (!hunks.empty()) {
    const auto header = take_line(hunks);
    int first = 0;
    int count = 1;
    BOOST_REQUIRE(std::sscanf(header.c_str(), "@@ -%d,%d", &first, &count) >= 1);
    for (const auto begin = count == 0 ? first + 1 : first; at < begin; ++at) {
      out += take_line(before);
    }
    while (!hunks.empty() && !hunks.starts_with("@@")) {
      const auto line = take_line(hunks);
      if (line.front() != '+') {
        BOOST_REQUIRE_EQUAL(take_line(before), line.substr(1));
        ++at;
      }
      if (line.front() != '-') out += line.substr(1);
    }
  }
  return out + std::string(before);
}

}  // namespace

BOOST_AUTO_TEST_CASE(hunk_has_three_lines_of_context) {
  BOOST_TEST(unified_diff(numbered(1, 20), numbered(1, 9) + "x\n" + numbered(11, 20)) ==
             "@@ -7,7 +7,7 @@\n 7\n 8\n 9\n-10\n+x\n 11\n 12\n 13\n");
  BOOST_TEST(unified_diff("a\nb\n", "a\nb\n").empty());
  BOOST_TEST(unified_diff("", "a\n") == "@@ -0,0 +1 @@\n+a\n");
  BOOST_TEST(unified_diff("a\n", "") == "@@ -1 +0,0 @@\n-a\n");
}

BOOST_AUTO_TEST_CASE(edits_apart_by_more_than_six_lines_are_hunks_of_their_own) {
  const auto near = unified_diff("x\n" + numbered(1, 6) + "y\n", numbered(1, 6));
  BOOST_TEST(near == "@@ -1,8 +1,6 @@\n-x\n 1\n 2\n 3\n 4\n 5\n 6\n-y\n");
  const auto apart = unified_diff("x\n" + numbered(1, 7) + "y\n", numbered(1, 7));
  BOOST_TEST(apart == "@@ -1,4 +1,3 @@\n-x\n 1\n 2\n 3\n@@ -6,4 +5,3 @@\n 5\n 6\n 7\n-y\n");
}

BOOST_AUTO_TEST_CASE(hunks_make_the_second_text_of_the_first) {
  std::mt19937 random(7);
  for (int round = 0; round < 60; ++round) {
    std::string before;
    std::string after;
    const auto lines = 1 + random() % 40;
    for (unsigned i = 0; i < lines; ++i) {
      const auto line = std::to_string(random() % 7) + "\n";
      if (random() % 5 != 0) before += line;
      if (random() % 5 != 0) after += line;
    }
    BOOST_REQUIRE_EQUAL(patched(before, unified_diff(before, after)), after);
  }
}

BOOST_AUTO_TEST_CASE(texts_with_too_many_pairs_of_lines_are_replaced) {
  const auto hunks = unified_diff("a\n" + numbered(1, 5000) + "b\n", numbered(2, 5001));
  BOOST_TEST(hunks.starts_with("@@ -1,5002 +1,5000 @@\n-a\n-1\n-2\n"));
}

BOOST_AUTO_TEST_SUITE_END()
