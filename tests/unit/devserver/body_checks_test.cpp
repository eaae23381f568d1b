#include "rw/k8s/devserver/json_access.hpp"
#include "rw/k8s/devserver/json_reader.hpp"
#include "rw/k8s/devserver/schedule_text.hpp"

#include <boost/json/parse.hpp>
#include <boost/json/serialize.hpp>
#include <boost/test/unit_test.hpp>

#include <string>
#include <utility>
#include <vector>

BOOST_AUTO_TEST_SUITE(body_checks)

using namespace rw::k8s::devserver;

BOOST_AUTO_TEST_CASE(field_is_duplicate_within_one_object_only) {
  const auto found = [](std::string_view text) {
    std::string reason;
    return read_json(text, repeated_fields::merged, reason)->duplicates;
  };
  using paths = std::vector<std::string>;
  BOOST_TEST(found(R"({"a": {"b": 1}, "c": {"b": 2}, "d": [{"b": 1}, {"b": 2}]})").empty());
  BOOST_TEST((found(R"({"a": {"b": 1, "c": 2, "b": 3}})") == paths{"a.b"}));
  BOOST_TEST((found(R"({"a": [0, {"b": 1}, {"b": 1, "b": 2}]})") == paths{"a[2].b"}));
  BOOST_TEST((found(R"({"a": 1, "\u0061": 2})") == paths{"a"}));
}

BOOST_AUTO_TEST_CASE(duplicate_fields_are_bounded) {
  std::string text = R"({"a": 0)";
  for (int i = 0; i < 100; ++i) text += R"(, "a": 1)";
  std::string reason;
  const auto read = read_json(text + "}", repeated_fields::replaced, reason);
  BOOST_TEST(read->duplicates.size() == 16U);
}

BOOST_AUTO_TEST_CASE(repeated_field_is_replaced_or_merged) {
  const auto value = [](std::string_view text, repeated_fields repeated) {
    std::string reason;
    return boost::json::serialize(read_json(text, repeated, reason)->value);
  };
  const auto* const text =
      R"({"m":{"a":"1"},"l":[{"n":"x","p":1},{"n":"y"}],"s":1,"m":{"b":"2"},"l":[{"p":2}],"s":2})";
  BOOST_TEST(value(text, repeated_fields::replaced) == R"({"m":{"b":"2"},"l":[{"p":2}],"s":2})");
  BOOST_TEST(value(text, repeated_fields::merged) ==
             R"({"m":{"a":"1","b":"2"},"l":[{"n":"x","p":2}],"s":2})");
}

BOOST_AUTO_TEST_CASE(text_that_is_no_json_is_refused) {
  std::string reason;
  for (const auto* text : {"", "{", "{}x", "[1,]", R"({"a" 1})", "01", "\"\xff\""}) {
    BOOST_TEST(!read_json(text, repeated_fields::merged, reason), text);
    BOOST_TEST(!reason.empty());
  }
}

BOOST_AUTO_TEST_CASE(numbers_are_those_that_go_writes) {
  const auto read = [](std::string_view text) {
    auto value = boost::json::parse(text);
    return normalize_numbers(value) ? boost::json::serialize(value) : "out of range";
  };
  const std::pair<std::string_view, std::string_view> all[] = {
      {"[2.0,2e0,1E0,-0.0,1e2]", "[2,2,1,0,100]"},
      {"9223372036854775807", "9223372036854775807"},
      {"9223372036854775808", "9223372036854776000"},
      {"12345678901234567890", "12345678901234567000"},
      {"-9223372036854775808.0", "-9223372036854775808"},
      {R"({"a":[1.5]})", R"({"a":[1.5E0]})"},
      {R"({"a":[1e400]})", "out of range"},
  };
  for (const auto& [text, written] : all) BOOST_TEST(read(text) == written);
}

BOOST_AUTO_TEST_CASE(cron_schedule_has_five_fields_in_their_ranges) {
  for (const auto* text : {"* * * * *", "*/15 0-6,12 1 jan-Mar SUN", "0  0 1 1 0", "@hourly",
                           "5/10 ? * * 6", "59 23 31 12 6"}) {
    BOOST_TEST(is_cron_schedule(text), text);
  }
  for (const auto* text :
       {"", "bad", "* * * *", "* * * * * *", "60 * * * *", "* 24 * * *", "* * 0 * *", "* * * 13 *",
        "* * * * 7", "5-1 * * * *", "*/0 * * * *", "1,, * * * *", "@sometimes", "- * * * *"}) {
    BOOST_TEST(!is_cron_schedule(text), text);
  }
}

BOOST_AUTO_TEST_CASE(time_zone_is_a_name_and_no_path_out_of_its_folder) {
  BOOST_TEST(is_time_zone("Etc/UTC"));
  for (const auto* name : {"", "Local", "../../../etc/passwd", "No Where", "Etc/UTC\n"}) {
    BOOST_TEST(!is_time_zone(name), name);
  }
}

BOOST_AUTO_TEST_SUITE_END()
