#include "rw/core/json/json_view.hpp"

#include "rw/core/json/json_fold.hpp"

#include <boost/test/unit_test.hpp>

#include <string>
#include <vector>

BOOST_AUTO_TEST_SUITE(json_view)

using rw::core::json_document;
using rw::core::json_flaw;

namespace {

json_flaw flaw_of(const std::string& text, std::size_t depth = 8) {
  return json_document(text, depth).flaw();
}

/// Writes what it is asked for, so that the order of calls can be seen.
struct scribe {
  std::vector<std::string>* said;

  std::uint64_t say(std::string text) {
    said->push_back(std::move(text));
    return said->size();
  }
  std::uint64_t text(std::string_view content) { return say("text " + std::string(content)); }
  std::uint64_t scalar(std::string_view text) { return say("scalar " + std::string(text)); }
  std::uint64_t begin_array() { return say("array"); }
  std::uint64_t add_element(std::uint64_t, std::uint64_t) { return say("element"); }
  std::uint64_t member(std::string_view name, std::uint64_t) {
    return say("member " + std::string(name));
  }
  std::uint64_t object(std::uint64_t) { return say("object"); }
};

}  // namespace

BOOST_AUTO_TEST_CASE(document_is_read_whole_or_not_at_all) {
  for (const std::string good : {"1", "-0.5e-7", "true", " null ", R"("\ud83d\ude00")", "[]",
                                 R"({"a":[1,{}]})", "1e2147483647"}) {
    BOOST_TEST((flaw_of(good) == json_flaw::none), good);
  }
  for (const std::string bad : {"",
                                " ",
                                "1 2",
                                "01",
                                "1.",
                                "-",
                                "tru",
                                "truex",
                                "[1,]",
                                "{\"a\"}",
                                "{\"a\":1,}",
                                "{1:2}",
                                "[1",
                                "\"",
                                R"("\x")",
                                R"("\ud83d")",
                                "\"\xff\"",
                                "\"\\\n\"",
                                "[1]]",
                                "nul",
                                "1e2147483648",
                                "\xEF\xBB\xBF[]"}) {
    BOOST_TEST((flaw_of(bad) == json_flaw::malformed), bad);
  }
  BOOST_TEST((flaw_of(std::string("1\0", 2)) == json_flaw::malformed));
  BOOST_TEST((flaw_of("[[1]]", 2) == json_flaw::none));
  BOOST_TEST((flaw_of("[[[1]]]", 2) == json_flaw::too_deep));
  BOOST_TEST(!json_document("[").root().exists());
}

BOOST_AUTO_TEST_CASE(view_finds_the_last_member_of_a_name_however_it_is_spelled) {
  const std::string text =
      R"({"a":{"b":"x\n\u00e9"},"c":[1,"2",{"d":null}],"\u0061":{"b":7,"n":-8}})";
  const json_document document(text);
  const auto root = document.root();
  BOOST_TEST(root.find({"a", "b"}).integer().value() == 7);
  BOOST_TEST(root.find({"a", "n"}).integer().value() == -8);
  BOOST_TEST(!root.find({"a", "n"}).unsigned_integer());
  BOOST_TEST(root.find("c").size() == 3u);
  BOOST_TEST(root.find("c").text() == R"([1,"2",{"d":null}])");
  BOOST_TEST(!root.find({"c", "d"}).exists());
  BOOST_TEST(!root.find({"x", "y", "z"}).exists());
  std::string seen;
  root.find("c").elements([&](rw::core::json_view element) { seen += element.string() + "|"; });
  BOOST_TEST(seen == "|2||");
  seen.clear();
  root.members([&](std::string_view name, rw::core::json_view) { seen += name; });
  BOOST_TEST(seen == "aca");
}

BOOST_AUTO_TEST_CASE(string_is_given_without_its_escapes) {
  const std::string text = R"(["\"\\\/\b\f\n\r\t","\u0041\u00e9\u20ac\ud83d\ude00","plain"])";
  const json_document document(text);
  std::vector<std::string> all;
  document.root().elements([&](rw::core::json_view element) { all.push_back(element.string()); });
  BOOST_TEST(all == (std::vector<std::string>{"\"\\/\b\f\n\r\t",
                                              "A\xC3\xA9\xE2\x82\xAC\xF0\x9F\x98\x80", "plain"}),
             boost::test_tools::per_element());
}

BOOST_AUTO_TEST_CASE(documents_may_be_open_at_once) {
  const std::string outer = R"({"inner":"{\"a\":1}"})";
  const json_document first(outer);
  const auto inner = first.root().find("inner").string();
  const json_document second(inner);
  BOOST_TEST(second.root().find("a").integer().value() == 1);
  BOOST_TEST(first.root().find("inner").string() == inner);
}

BOOST_AUTO_TEST_CASE(fold_goes_from_the_leaves_up) {
  std::vector<std::string> said;
  const std::string text = R"({"b":[true,"x"],"a":{}})";
  rw::core::json_fold<scribe>(scribe{&said})(json_document(text).root());
  BOOST_TEST(
      said == (std::vector<std::string>{"array", "scalar true", "element", "text x", "element",
                                        "member b", "object", "member a", "object"}),
      boost::test_tools::per_element());
}

BOOST_AUTO_TEST_SUITE_END()
