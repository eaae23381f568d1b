#include "rw/k8s/devserver/cel.hpp"

#include <boost/json/parse.hpp>
#include <boost/json/serialize.hpp>
#include <boost/test/unit_test.hpp>

#include <initializer_list>
#include <string>
#include <string_view>
#include <utility>

BOOST_AUTO_TEST_SUITE(cel)

using rw::k8s::devserver::cel_expression;

namespace {

namespace json = boost::json;

/// The result for the self below, or its error.
std::string result(std::string_view text, std::string_view old_self = {}) {
  const auto self = json::parse(R"({
      "n": 5, "zero": 0, "d": 1.5, "t": "abc", "empty": "", "yes": true, "null": null,
      "l": ["a1", "a2"], "numbers": [3, 1, 2], "m": {"k": 3, "j": 1},
      "items": [{"name": "x", "on": true}, {"name": "y"}], "a-b": 1, "in": 2})");
  const auto made = cel_expression::parse(text);
  if (!made.error.empty()) return "parse: " + made.error;
  if (!made.unsupported.empty()) return "unsupported: " + made.unsupported;
  const auto old = old_self.empty() ? json::value() : json::parse(old_self);
  const auto got = made.evaluate(self, old_self.empty() ? nullptr : &old);
  return got.error.empty() ? json::serialize(got.value) : "error: " + got.error;
}

void check_all(std::initializer_list<std::pair<const char*, const char*>> cases) {
  for (const auto& [text, expected] : cases) {
    const auto is = result(text);
    BOOST_TEST(is == expected, text << " is " << is << ", not " << expected);
  }
}

}  // namespace

BOOST_AUTO_TEST_CASE(operators_bind_as_in_the_specification) {
  check_all({{"1 + 2 * 3", "7"},
             {"(1 + 2) * 3", "9"},
             {"7 / 2 - 7 % 2", "2"},
             {"-7 / 2", "-3"},
             {"1 < 2 && 2 < 3 || false", "true"},
             {"!true || true", "true"},
             {"1 + 1 == 2 ? 'a' : 'b'", "\"a\""},
             {"false ? 1 : true ? 2 : 3", "2"},
             {"- -1", "1"},
             {"0x10", "16"},
             {"1e2", "1E2"},
             {"// a comment\n1", "1"}});
}

BOOST_AUTO_TEST_CASE(texts_have_escapes_and_raw_forms) {
  check_all({{R"('a' + "b")", "\"ab\""},
             {R"('\x41\u00e4\n')", "\"A\xC3\xA4\\n\""},
             {R"(r'\d' == '\\d')", "true"},
             {"'''it's'''", "\"it's\""},
             {"size('\xC3\xA4\xC3\xB6')", "2"}});
}

BOOST_AUTO_TEST_CASE(fields_are_selected_and_tested) {
  check_all({{"self.n", "5"},
             {"self.m.k", "3"},
             {"self['t']", "\"abc\""},
             {"self.l[1]", "\"a2\""},
             {"self.items[0].name", "\"x\""},
             {"has(self.n) && !has(self.none)", "true"},
             {"has(self.items[1].on)", "false"},
             {"self.a__dash__b + self.__in__", "3"},
             {"self.none", "error: no such key: none"},
             {"self.l[2]", "error: index out of bounds: 2"},
             {"self.n.x", "error: no such overload: .x"},
             {"other", "error: no such attribute: other"}});
}

BOOST_AUTO_TEST_CASE(error_is_absorbed_by_the_side_that_decides) {
  check_all({{"self.none == 1 || true", "true"},
             {"true || self.none == 1", "true"},
             {"self.none == 1 && false", "false"},
             {"self.none == 1 && true", "error: no such key: none"},
             {"self.none == 1 || false", "error: no such key: none"}});
}

BOOST_AUTO_TEST_CASE(macros_run_over_lists_and_keys_of_maps) {
  check_all({{"self.l.all(x, x.startsWith('a'))", "true"},
             {"self.m.all(k, self.m[k] > 0)", "true"},
             {"self.m.exists(k, self.m[k] > 2)", "true"},
             {"self.numbers.exists_one(x, x > 2)", "true"},
             {"self.numbers.filter(x, x > 1)", "[3,2]"},
             {"self.numbers.map(x, x * 2)", "[6,2,4]"},
             {"self.numbers.map(x, x > 1, x * 2)", "[6,4]"},
             {"self.items.map(i, i.name)", "[\"x\",\"y\"]"},
             {"self.items.all(i, i.on)", "error: no such key: on"},
             {"self.items.exists(i, i.on)", "true"},
             {"[[1, 2], [3]].all(x, x.all(y, y > 0 && size(x) > 0))", "true"},
             {"[].all(x, false) && ![].exists(x, true)", "true"}});
}

BOOST_AUTO_TEST_CASE(values_are_compared_by_content) {
  check_all({{"1 == 1.0", "true"},
             {"self.items[1] == {'name': 'y'}", "true"},
             {"[1, 2] == [2, 1]", "false"},
             {"2 in self.numbers", "true"},
             {"'k' in self.m && !('x' in self.m)", "true"},
             {"'b' > 'a' && 1 <= 1.5", "true"},
             {"self.null == null", "true"},
             {"1 < 'a'", "error: no such overload: <"}});
}

BOOST_AUTO_TEST_CASE(arithmetic_does_not_overflow) {
  check_all({{"9223372036854775807 + 1", "error: integer overflow"},
             {"-9223372036854775807 - 2", "error: integer overflow"},
             {"3037000500 * 3037000500", "error: integer overflow"},
             {"1 / self.zero", "error: division by zero"},
             {"1 % self.zero", "error: modulus by zero"},
             {"self.d * 2.0", "3E0"},
             {"9223372036854775808", "parse: syntax error at 0: the number is too large"}});
}

BOOST_AUTO_TEST_CASE(functions_of_texts_and_lists) {
  check_all({{"self.t.matches('^[a-z]+$')", "true"},
             {"'x'.matches('(')", "error: invalid regular expression: missing ): ("},
             {"self.t.contains('b') && self.t.endsWith('c')", "true"},
             {"string(self.n) + '!'", "\"5!\""},
             {"int('12') + int(1.9)", "13"},
             {"' a '.trim().upperAscii()", "\"A\""},
             {"self.l.join(',')", "\"a1,a2\""},
             {"self.numbers.max() - self.numbers.min() + self.numbers.sum()", "8"},
             {"[1, 2, 2].isSorted() && !self.numbers.isSorted()", "true"},
             {"'a-b-a'.replace('a', 'x')", "\"x-b-x\""},
             {"'abc'.indexOf('c')", "2"},
             {"size(self.m) + self.l.size()", "4"}});
}

BOOST_AUTO_TEST_CASE(text_that_is_no_expression_is_an_error) {
  for (const auto* text : {"", "1 +", "self.a > > 3", "(1", "[1", "'a", "self.", "has(1)", "1 2",
                           "self.l.all(1, true)", "a ? b", "'\\q'", "{1", "@"}) {
    const auto is = result(text);
    BOOST_TEST(is.starts_with("parse: "), text << " is " << is);
  }
  const auto deep = std::string(100'000, '(') + "1" + std::string(100'000, ')');
  BOOST_TEST(result(deep).starts_with("parse: "));
  BOOST_TEST(result(std::string(100'000, '!') + "true").starts_with("parse: "));
}

BOOST_AUTO_TEST_CASE(function_that_is_unknown_is_told) {
  check_all({{"quantity('1') == quantity('1')", "unsupported: quantity()"},
             {"self.t.find('a') == ''", "unsupported: find()"},
             {"self.?n.hasValue()", "unsupported: hasValue()"},
             {"self.l.all(i, x, x != '')", "unsupported: all() with 3 arguments"}});
}

BOOST_AUTO_TEST_CASE(evaluation_is_bounded) {
  std::string rule = "x7 > 0";
  for (int i = 7; i > 0; --i) {
    rule = "[1, 2, 3, 4, 5, 6, 7, 8, 9, 10].all(x" + std::to_string(i) + ", " + rule + ")";
  }
  BOOST_TEST(result(rule).starts_with("error: operation cancelled: cost limit exceeded"));
}

BOOST_AUTO_TEST_CASE(old_self_is_there_on_updates_only) {
  BOOST_TEST(cel_expression::parse("self == oldSelf").uses_old_self());
  BOOST_TEST(!cel_expression::parse("self.oldSelf == 1").uses_old_self());
  BOOST_TEST(result("oldSelf.n", R"({"n": 1})") == "1");
  BOOST_TEST(result("oldSelf.n") == "error: no such attribute: oldSelf");
}

BOOST_AUTO_TEST_SUITE_END()
