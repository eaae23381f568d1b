#include "rw/k8s/objects/object.hpp"

#include <boost/json/value.hpp>
#include <boost/test/unit_test.hpp>

#include "tests/unit/k8s/samples.hpp"
#include <stdexcept>
#include <string>
#include <thread>
#include <vector>

BOOST_AUTO_TEST_SUITE(object)

using namespace rw::k8s::test;
using rw::k8s::object;

BOOST_AUTO_TEST_CASE(object_has_its_text_and_the_fields_that_machinery_needs) {
  const auto text = configmap("a", "7");
  const auto made = object::from_text(text);
  BOOST_TEST(made.text() == text);
  BOOST_TEST(made.name() == "a");
  BOOST_TEST(made.ns() == "default");
  BOOST_TEST(made.uid() == "u-a");
  BOOST_TEST(made.resource_version() == "7");
  BOOST_TEST(to_string(made.key()) == "default/a");
  BOOST_TEST(made.parse().at("data").at("k").as_string() == "x");
}

BOOST_AUTO_TEST_CASE(object_takes_little_more_than_its_text) {
  const auto text = configmap("a", "7", {}, std::string(1000, 'x'));
  BOOST_TEST(object::from_text(text).bytes() == text.size() + 33);
}

BOOST_AUTO_TEST_CASE(handle_without_object_is_empty) {
  const object none;
  BOOST_TEST(!none);
  BOOST_TEST(none.text().empty());
  BOOST_TEST(none.name().empty());
  BOOST_TEST(none.bytes() == 0U);
  BOOST_TEST(none.parse().is_null());
  BOOST_TEST((none == object()));
}

BOOST_AUTO_TEST_CASE(white_space_between_tokens_is_not_kept) {
  const auto made = object::from_text(
      " {\r\n\t\"metadata\" : { \"name\" : \"a b\" ,\n\"labels\" : { } } , \"list\" : [ 1 , 2 ] } "
      "\n");
  BOOST_TEST(made.text() == R"({"metadata":{"name":"a b","labels":{}},"list":[1,2]})");
  BOOST_TEST(made.name() == "a b");
}

BOOST_AUTO_TEST_CASE(names_with_escapes_are_resolved) {
  const std::string text =
      R"({"meta\u0064ata":{"n\u0061me":"a\"\u00e9\ud83d\ude00","namespace":"n\/s","uid":"u","resourceVersion":"\u0037"}})";
  const auto made = object::from_text(text);
  BOOST_TEST(made.text() == text);
  BOOST_TEST(made.name() == "a\"\u00e9\U0001F600");
  BOOST_TEST(made.ns() == "n/s");
  BOOST_TEST(made.uid() == "u");
  BOOST_TEST(made.resource_version() == "7");
}

BOOST_AUTO_TEST_CASE(of_members_that_stand_twice_the_last_one_counts) {
  BOOST_TEST(object::from_text(R"({"metadata":{"name":"a","name":"b"}})").name() == "b");
  const auto twice =
      object::from_text(R"({"metadata":{"name":"a","namespace":"n"},"metadata":{"name":"b"}})");
  BOOST_TEST(twice.name() == "b");
  BOOST_TEST(twice.ns().empty());
  BOOST_CHECK_THROW(object::from_text(R"({"metadata":{"name":"a"},"metadata":null})"),
                    std::invalid_argument);
}

BOOST_AUTO_TEST_CASE(numbers_are_kept_to_the_last_digit) {
  const std::string digits(100, '7');
  const std::string text =
      R"({"metadata":{"name":"a"},"n":[1.0,1e5,-0,12345678901234567890123,)" + digits + "]}";
  BOOST_TEST(object::from_text(text).text() == text);
}

BOOST_AUTO_TEST_CASE(reader_rejects_text_that_is_no_object_with_the_reason) {
  const auto refused = [](const std::string& text, const std::string& why) {
    BOOST_CHECK_EXCEPTION(object::from_text(text), std::invalid_argument,
                          [&](const std::invalid_argument& e) {
                            BOOST_TEST_MESSAGE(e.what());
                            return std::string(e.what()).find(why) != std::string::npos;
                          });
  };
  refused("", "is not JSON");
  refused("{", "is not JSON");
  refused(R"({"metadata":{"name":"a"}}x)", "is not JSON");
  refused(R"({"metadata":{"name":"a"},"x":01})", "is not JSON");
  refused(R"({"metadata":{"name":"a"},"x":"\q"})", "is not JSON");
  refused("{\"metadata\":{\"name\":\"\xff\"}}", "is not JSON");
  refused("[]", "is not an object of Kubernetes");
  refused("{}", "is not an object of Kubernetes");
  refused(R"({"metadata":{}})", "is not an object of Kubernetes");
  refused(R"({"metadata":{"name":1}})", "is not an object of Kubernetes");
  refused(R"({"metadata":{"name":")" + std::string(70000, 'a') + R"("}})",
          "is not an object of Kubernetes");
  refused(R"({"metadata":{"name":"a"},"x":)" + std::string(300, '[') + std::string(300, ']') + "}",
          "nests too deep");
}

BOOST_AUTO_TEST_CASE(object_is_as_deep_as_it_can_be_parsed) {
  const std::string text =
      R"({"metadata":{"name":"a"},"x":)" + std::string(250, '[') + std::string(250, ']') + "}";
  BOOST_TEST(object::from_text(text).parse().is_object());
}

BOOST_AUTO_TEST_CASE(handles_may_be_copied_and_dropped_in_several_threads) {
  const auto shared = configmap_object("a", "7");
  std::vector<std::thread> threads;
  for (int t = 0; t < 4; ++t) {
    threads.emplace_back([shared] {
      for (int i = 0; i < 10000; ++i) {
        auto copy = shared;
        const auto moved = std::move(copy);
        if (moved.name() != "a") std::abort();
      }
    });
  }
  for (auto& each : threads) each.join();
  BOOST_TEST(shared.name() == "a");
}

BOOST_AUTO_TEST_SUITE_END()
