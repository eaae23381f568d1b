#include "rw/k8s/devserver/duplicate_fields.hpp"
#include "rw/k8s/devserver/schedule_text.hpp"

#include <boost/test/unit_test.hpp>

#include <string>
#include <vector>

BOOST_AUTO_TEST_SUITE(body_checks)

using namespace rw::k8s::devserver;

BOOST_AUTO_TEST_CASE(field_is_duplicate_within_one_object_only) {
  const auto found = [](std::string_view text) { return duplicate_fields(text); };
  using paths = std::vector<std::string>;
  BOOST_TEST(found(R"({"a": {"b": 1}, "c": {"b": 2}, "d": [{"b": 1}, {"b": 2}]})").empty());
  BOOST_TEST((found(R"({"a": {"b": 1, "c": 2, "b": 3}})") == paths{"a.b"}));
  BOOST_TEST((found(R"({"a": [0, {"b": 1}, {"b": 1, "b": 2}]})") == paths{"a[2].b"}));
  BOOST_TEST((found(R"({"a": 1, "\u0061": 2})") == paths{"a"}));
}

BOOST_AUTO_TEST_CASE(duplicate_fields_are_bounded) {
  std::string text = R"({"a": 0)";
  for (int i = 0; i < 100; ++i) text += R"(, "a": 1)";
  BOOST_TEST(duplicate_fields(text + "}").size() == 16U);
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
