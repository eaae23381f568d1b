#include "rw/k8s/objects/types.hpp"

#include "rw/k8s/objects/base64.hpp"

#include <boost/json/parse.hpp>
#include <boost/json/serialize.hpp>
#include <boost/test/unit_test.hpp>

namespace rw::k8s {
BOOST_AUTO_TEST_SUITE(types)

namespace json = boost::json;
using namespace std::chrono_literals;

namespace {

json::value object(std::string_view text) {
  return json::parse(text);
}

std::chrono::system_clock::time_point at(std::string_view text) {
  return parse_rfc3339(text).value();
}

}  // namespace

BOOST_AUTO_TEST_CASE(times_are_written_as_the_api_writes_them) {
  const auto when = at("2026-11-21T09:08:07.000123Z");
  BOOST_TEST(format_time(when) == "2026-11-21T09:08:07Z");
  BOOST_TEST(format_micro_time(when) == "2026-11-21T09:08:07.000123Z");
  BOOST_TEST(format_micro_time(at("1999-12-31T23:59:59.999999Z")) == "1999-12-31T23:59:59.999999Z");
  BOOST_TEST((parse_rfc3339(format_micro_time(when)) == when));
}

BOOST_AUTO_TEST_CASE(metadata_readers_accept_missing_fields) {
  const auto one = object(
      R"({"apiVersion":"v1","kind":"ConfigMap","metadata":{"namespace":"a","name":"b","uid":"u",
          "resourceVersion":"7","generation":3,"labels":{"x":"1"},"annotations":{"y":"2"}}})");
  BOOST_TEST((key_of(one) == object_key{"a", "b"}));
  BOOST_TEST(uid_of(one) == "u");
  BOOST_TEST(resource_version_of(one) == "7");
  BOOST_TEST(generation_of(one) == 3);
  BOOST_TEST(!is_being_deleted(one));
  BOOST_TEST((label(one, "x") == "1"));
  BOOST_TEST(!has_label(one, "y"));
  BOOST_TEST(has_label(one, "x"));
  BOOST_TEST(has_annotation(one, "y"));
  BOOST_TEST(!has_annotation(one, "x"));
  BOOST_TEST((annotation(one, "y") == "2"));
  BOOST_TEST((reference_to(one) == object_reference{"v1", "ConfigMap", "a", "b", "u", "7"}));
  for (const char* odd : {"null", "7", "[]", "{}", R"({"metadata":[]})",
                          R"({"metadata":{"name":1,"labels":"x","generation":"1"}})"}) {
    const auto none = object(odd);
    BOOST_TEST((key_of(none) == object_key{}));
    BOOST_TEST(generation_of(none) == 0);
    BOOST_TEST(!has_label(none, "x"));
    BOOST_TEST(label(none, "x") == "");
    BOOST_TEST(owners_of(none).empty());
    BOOST_TEST(!has_finalizer(none, "f"));
    BOOST_TEST(!find_condition(none, "Ready"));
    BOOST_TEST((read_lease(none) == lease{}));
  }
  BOOST_TEST(
      is_being_deleted(object(R"({"metadata":{"deletionTimestamp":"2026-01-01T00:00:00Z"}})")));
}

BOOST_AUTO_TEST_CASE(labels_and_annotations_are_set_where_there_were_none) {
  json::value one;
  BOOST_TEST(set_label(one, "a", "1"));
  BOOST_TEST(!set_label(one, "a", "1"));
  BOOST_TEST(set_annotation(one, "b", "2"));
  BOOST_TEST(set_annotation(one, "b", "3"));
  BOOST_TEST(json::serialize(one) ==
             R"({"metadata":{"labels":{"a":"1"},"annotations":{"b":"3"}}})");
}

BOOST_AUTO_TEST_CASE(finalizers_are_added_once_and_removed) {
  auto one = object(R"({"metadata":{"finalizers":["x"]}})");
  BOOST_TEST(add_finalizer(one, "y"));
  BOOST_TEST(!add_finalizer(one, "y"));
  BOOST_TEST(has_finalizer(one, "y"));
  BOOST_TEST(remove_finalizer(one, "x"));
  BOOST_TEST(!remove_finalizer(one, "x"));
  BOOST_TEST(json::serialize(one) == R"({"metadata":{"finalizers":["y"]}})");
}

BOOST_AUTO_TEST_CASE(owners_are_known_by_their_uid) {
  const owner_reference owner{"a/v1", "A", "n", "u", false, false};
  const owner_reference controller{"a/v1", "A", "n", "u", true, true};
  json::value one;
  BOOST_TEST(set_owner(one, owner));
  BOOST_TEST(!set_owner(one, owner));
  BOOST_TEST((owners_of(one) == std::vector{owner}));
  BOOST_TEST(set_owner(one, controller));
  BOOST_TEST((owners_of(one) == std::vector{controller}));
}

BOOST_AUTO_TEST_CASE(conditions_transition_time_changes_only_with_its_status) {
  json::value one;
  const auto first = at("2026-01-01T00:00:00Z");
  BOOST_TEST(set_condition(one, {"Ready", "False", "Starting", "soon", 1}, first));
  BOOST_TEST(!set_condition(one, {"Ready", "False", "Starting", "soon", 1}, first + 1h));
  BOOST_TEST(set_condition(one, {"Ready", "False", "Waiting", "for it", 2}, first + 2h));
  BOOST_TEST(json::serialize(one) ==
             R"({"status":{"conditions":[{"type":"Ready","status":"False",)"
             R"("lastTransitionTime":"2026-01-01T00:00:00Z","reason":"Waiting",)"
             R"("message":"for it","observedGeneration":2}]}})");
  BOOST_TEST(set_condition(one, {"Ready", "True", "Done", "", 2}, first + 3h));
  BOOST_TEST(set_condition(one, {"Other", "True", "Done", ""}, first + 4h));
  BOOST_TEST(json::serialize(one).find("T03:00:00Z") != std::string::npos);
  BOOST_TEST(find_condition(one, "Ready")->reason == "Done");
  BOOST_TEST(find_condition(one, "Other")->observed_generation == 0);
}

BOOST_AUTO_TEST_CASE(lease_is_read_as_it_was_written) {
  json::value one;
  const lease spec{"me", 15s, at("2026-01-01T00:00:00.5Z"), at("2026-01-01T00:00:01.000001Z"), 4};
  write_lease(one, spec);
  BOOST_TEST((read_lease(one) == spec));
  BOOST_TEST(
      json::serialize(one) ==
      R"({"spec":{"holderIdentity":"me","leaseDurationSeconds":15,"leaseTransitions":4,)"
      R"("acquireTime":"2026-01-01T00:00:00.500000Z","renewTime":"2026-01-01T00:00:01.000001Z"}})");
}

BOOST_AUTO_TEST_CASE(secret_data_is_base64) {
  json::value one;
  set_secret_data(one, "k", "value");
  BOOST_TEST(json::serialize(one) == R"({"data":{"k":"dmFsdWU="}})");
  BOOST_TEST((secret_data(one, "k") == "value"));
  BOOST_TEST(!secret_data(one, "other"));
  BOOST_TEST(!secret_data(object(R"({"data":{"k":"?"}})"), "k"));
}

BOOST_AUTO_TEST_CASE(base64_decode_accepts_wrapped_text_and_demands_padding) {
  for (const std::string text : {"", "a", "ab", "abc", "abcd", "\xFF\xFE\xFD"}) {
    BOOST_TEST((base64_decode(base64_encode(text)) == text));
  }
  BOOST_TEST((base64_decode("\tYW\r\nJj ZA=\n=\n") == "abcd"));
  for (const auto* text : {"YQ", "YQ=", "YQ===", "Y=Q=", "=YQ=", "====", "YWJj=", "YWJj----",
                           "YWJj-", "YW_j", "YWJj\x0B", "YWJjYQ==YWJj"}) {
    BOOST_TEST(!base64_decode(text), text);
  }
}

BOOST_AUTO_TEST_SUITE_END()
}  // namespace rw::k8s
