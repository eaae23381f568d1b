#include "rw/reactors/events/review.hpp"

#include <boost/test/unit_test.hpp>

#include "review_text.hpp"
#include "tests/oracle/review_reference.hpp"
#include <cstddef>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

BOOST_AUTO_TEST_SUITE(review)

namespace {

using namespace rw::admission;
using result = review_result;

/// Asks the reader, and checks that the reference says the same.
result read(const std::string& body) {
  reader fast;
  auto decided = fast.read(body);
  const auto reference = read_review_reference(body);
  BOOST_TEST((decided == reference), "reader and reference disagree about " << body.substr(0, 600));
  return decided;
}

void check_verdict(const review_text& review, review_effect expected) {
  const auto decided = read(review.text());
  BOOST_REQUIRE(decided.has_value());
  BOOST_TEST(message(decided->effect) == message(expected));
  BOOST_TEST(decided->uid == "0df28fbd-5f5f-11e8-bc74-36e6bb280816");
  if (expected != review_effect::event) BOOST_TEST((decided->event == rw::watch_event{}));
}

void check_error(const std::string& body, review_error expected) {
  const auto decided = read(body);
  BOOST_REQUIRE(decided.has_error());
  BOOST_TEST((decided.error() == expected));
  BOOST_TEST(!reason(expected).empty());
}

const rw::watch_event kyma_default{
    "", {"operator.kyma-project.io", "v1beta2", "Kyma"}, {"kyma-system", "default"}};

review_text update(review_text::json spec, review_text::json old_spec) {
  review_text review;
  review.object = review_text::watched(spec, R"({"state":"Ready"})");
  review.old_object = review_text::watched(old_spec, R"({"state":"Processing"})");
  return review;
}

review_text status_update(review_text::json status, review_text::json old_status) {
  review_text review;
  review.subresource = "\"status\"";
  review.object = review_text::watched(R"({"a":1})", status);
  review.old_object = review_text::watched(R"({"a":2})", old_status);
  return review;
}

}  // namespace

BOOST_AUTO_TEST_CASE(update_of_a_subresource_is_an_event_when_it_is_watched) {
  const std::vector<std::string> watched{"scale", "resize"};
  review_text review;
  for (const auto& [name, expected] : {std::pair(R"("scale")", review_effect::event),
                                       std::pair(R"("resize")", review_effect::event),
                                       std::pair(R"("Scale")", review_effect::invalid_subresource),
                                       std::pair(R"("log")", review_effect::invalid_subresource)}) {
    review.subresource = name;
    reader fast;
    const auto decided = fast.read(review.text(), watched);
    BOOST_REQUIRE(decided.has_value());
    BOOST_TEST((decided->effect == expected));
    BOOST_TEST((decided == read_review_reference(review.text(), watched)));
  }
}

BOOST_AUTO_TEST_CASE(create_is_an_event_for_the_object) {
  review_text review;
  review.operation = "\"CREATE\"";
  review.old_object = "null";
  check_verdict(review, review_effect::event);
  BOOST_TEST((read(review.text())->event == kyma_default));
}

BOOST_AUTO_TEST_CASE(delete_is_an_event_for_the_old_object) {
  review_text review;
  review.operation = "\"DELETE\"";
  review.object = "null";
  check_verdict(review, review_effect::event);
  BOOST_TEST((read(review.text())->event == kyma_default));
  review.object = R"({"metadata":{"name":"other"}})";
  BOOST_TEST(read(review.text())->event.watched.name == "default");
}

BOOST_AUTO_TEST_CASE(update_is_an_event_if_the_specs_differ) {
  check_verdict(update(R"({"a":1})", R"({"a":2})"), review_effect::event);
  check_verdict(update(R"({"a":[1,2]})", R"({"a":[2,1]})"), review_effect::event);
  check_verdict(update(R"({"a":[1,2]})", R"({"a":[1]})"), review_effect::event);
  check_verdict(update(R"({"a":{"b":1}})", R"({"a":{}})"), review_effect::event);
  check_verdict(update(R"({"a":1})", R"({"a":1,"b":null})"), review_effect::event);
  check_verdict(update(R"("x")", R"("y")"), review_effect::event);
  check_verdict(update(R"({"a":"1"})", R"({"a":1})"), review_effect::event);
  check_verdict(update(R"({"a":true})", R"({"a":false})"), review_effect::event);
  check_verdict(update(R"({"a":9007199254740993})", R"({"a":9007199254740992})"),
                review_effect::event);
  BOOST_TEST((read(review_text().text())->event == kyma_default));
}

BOOST_AUTO_TEST_CASE(update_is_no_event_if_the_specs_are_equal) {
  check_verdict(update(R"({"a":1,"b":[{}]})", R"({"a":1,"b":[{}]})"), review_effect::no_change);
  check_verdict(update(R"({"a":1,"b":2})", R"({"b":2, "a":1})"), review_effect::no_change);
  check_verdict(update(R"({"a":1.0,"b":-0})", R"({"a":10e-1,"b":0})"), review_effect::no_change);
  check_verdict(update(R"({"a":"\u0041\/"})", R"({"a":"A/"})"), review_effect::no_change);
  check_verdict(update(R"({"a":1,"a":2})", R"({"a":3,"a":2})"), review_effect::no_change);
  check_verdict(update(R"({"x":{"a":1},"x":{"a":2}})", R"({"x":{"a":3},"\u0078":{"a":2}})"),
                review_effect::no_change);
}

BOOST_AUTO_TEST_CASE(update_is_an_event_if_a_spec_is_missing) {
  check_verdict(update(std::nullopt, R"({"a":1})"), review_effect::event);
  check_verdict(update(R"({"a":1})", std::nullopt), review_effect::event);
  check_verdict(update(std::nullopt, std::nullopt), review_effect::event);
  check_verdict(update("null", "null"), review_effect::event);
}

BOOST_AUTO_TEST_CASE(update_of_the_status_is_an_event_if_the_statuses_differ) {
  check_verdict(status_update(R"({"s":1})", R"({"s":2})"), review_effect::event);
  check_verdict(status_update(R"({"s":1})", std::nullopt), review_effect::event);
  check_verdict(status_update("null", R"({"s":1})"), review_effect::event);
  check_verdict(status_update(R"({"s":1,"t":2})", R"({"t":2,"s":1})"), review_effect::no_change);
  check_verdict(status_update(std::nullopt, "null"), review_effect::no_change);
  auto review = status_update(R"({"s":1})", R"({"s":2})");
  review.subresource = "\"StAtUs\"";
  check_verdict(review, review_effect::event);
}

BOOST_AUTO_TEST_CASE(update_of_another_subresource_is_no_event) {
  review_text review;
  review.subresource = "\"scale\"";
  check_verdict(review, review_effect::invalid_subresource);
  review.subresource = "\"statuses\"";
  check_verdict(review, review_effect::invalid_subresource);
}

BOOST_AUTO_TEST_CASE(empty_or_null_subresource_is_none) {
  review_text review;
  for (const auto* none : {"\"\"", "null"}) {
    review.subresource = none;
    check_verdict(review, review_effect::event);
  }
}

BOOST_AUTO_TEST_CASE(connect_is_not_supported) {
  review_text review;
  review.operation = "\"CONNECT\"";
  check_verdict(review, review_effect::connect_unsupported);
  BOOST_TEST(message(review_effect::connect_unsupported) == "operation CONNECT not supported");
}

BOOST_AUTO_TEST_CASE(dry_run_is_never_an_event) {
  review_text review;
  review.dry_run = "true";
  for (const auto* operation : {"CREATE", "UPDATE", "DELETE", "CONNECT", "PATCH"}) {
    review.operation = '"' + std::string(operation) + '"';
    check_verdict(review, review_effect::dry_run);
  }
}

BOOST_AUTO_TEST_CASE(operation_that_is_unknown_or_missing_is_no_event) {
  review_text review;
  for (const review_text::json& operation :
       {review_text::json("\"PATCH\""), review_text::json("\"update\""), review_text::json("null"),
        review_text::json()}) {
    review.operation = operation;
    check_verdict(review, review_effect::unknown_operation);
  }
}

BOOST_AUTO_TEST_CASE(reader_tells_both_versions_apart) {
  review_text review;
  BOOST_TEST((read(review.text())->version == review_version::v1));
  review.api_version = R"("admission.k8s.io/v1beta1")";
  BOOST_TEST((read(review.text())->version == review_version::v1beta1));
}

BOOST_AUTO_TEST_CASE(review_without_api_version_or_kind_is_read_as_v1) {
  for (const review_text::json& none :
       {review_text::json(), review_text::json("null"), review_text::json("\"\"")}) {
    review_text review;
    review.api_version = none;
    BOOST_TEST((read(review.text())->event == kyma_default));
    review.review_kind = none;
    BOOST_TEST((read(review.text())->version == review_version::v1));
    review.api_version = R"("admission.k8s.io/v1beta1")";
    BOOST_TEST((read(review.text())->version == review_version::v1beta1));
  }
  check_error("{}", review_error::no_request);
  check_error(R"({"apiVersion":1,"request":null})", review_error::wrong_type);
  check_error(R"({"kind":[]})", review_error::wrong_type);
}

BOOST_AUTO_TEST_CASE(name_and_namespace_fall_back_to_the_request_together) {
  review_text review;
  review.operation = "\"CREATE\"";
  review.object = R"({"metadata":{"namespace":"elsewhere"}})";
  BOOST_TEST((read(review.text())->event.watched == rw::object_key{"kyma-system", "default"}));
  review.object = std::nullopt;
  review.old_object = std::nullopt;
  BOOST_TEST((read(review.text())->event.watched == rw::object_key{"kyma-system", "default"}));
}

BOOST_AUTO_TEST_CASE(namespace_is_that_of_the_request_when_the_object_has_none) {
  // As API servers before 1.24 call at CREATE: they default metadata.namespace only afterwards.
  review_text review;
  for (const auto* metadata :
       {R"({"metadata":{"name":"default"}})", R"({"metadata":{"name":"default","namespace":""}})",
        R"({"metadata":{"name":"default","namespace":null}})"}) {
    for (const auto* operation : {"\"CREATE\"", "\"UPDATE\""}) {
      review.operation = operation;
      review.object = metadata;
      BOOST_TEST((read(review.text())->event == kyma_default));
    }
  }
  review.operation = "\"DELETE\"";
  review.old_object = review.object;
  review.object = "null";
  BOOST_TEST((read(review.text())->event == kyma_default));
}

BOOST_AUTO_TEST_CASE(cluster_scoped_object_has_no_namespace) {
  review_text review;
  review.operation = "\"CREATE\"";
  review.object = R"({"metadata":{"name":"cluster-wide"}})";
  for (const review_text::json& none : {review_text::json(), review_text::json("\"\"")}) {
    review.ns = none;
    BOOST_TEST((read(review.text())->event.watched == rw::object_key{"", "cluster-wide"}));
  }
  // The request for a Namespace names it as its namespace, too.
  review.gvk = R"({"group":"","version":"v1","kind":"Namespace"})";
  review.name = review.ns = R"("blue")";
  for (const auto* object : {R"({"metadata":{"name":"blue"}})", R"({"metadata":{}})"}) {
    review.object = object;
    BOOST_TEST((read(review.text())->event.watched == rw::object_key{"", "blue"}));
  }
  review.gvk = R"({"group":"example.org","version":"v1","kind":"Namespace"})";
  BOOST_TEST((read(review.text())->event.watched == rw::object_key{"blue", "blue"}));
}

BOOST_AUTO_TEST_CASE(kind_falls_back_to_the_objects) {
  review_text review;
  review.gvk = std::nullopt;
  BOOST_TEST((read(review.text())->event == kyma_default));
  review.gvk = R"({"group":"x","version":"y","kind":null})";
  BOOST_TEST((read(review.text())->event == kyma_default));
  review.object = R"({"apiVersion":"v1","kind":"Pod","metadata":{"name":"p"}})";
  BOOST_TEST((read(review.text())->event.gvk == rw::group_version_kind{"", "v1", "Pod"}));
}

BOOST_AUTO_TEST_CASE(object_without_name_or_kind_is_no_event) {
  review_text review;
  review.operation = "\"CREATE\"";
  review.name = "\"\"";
  review.object = R"({"kind":"Pod","metadata":{"generateName":"x-"}})";
  check_verdict(review, review_effect::unidentified);
  review.object = R"({"metadata":{"name":"x"}})";
  review.gvk = "{}";
  check_verdict(review, review_effect::unidentified);
}

BOOST_AUTO_TEST_CASE(annotations_do_not_matter) {
  review_text review;
  review.object = review_text::watched("1", "2", review_text::metadata(R"(,"annotations":[1])"));
  BOOST_TEST((read(review.text())->effect == review_effect::event));
}

BOOST_AUTO_TEST_CASE(of_duplicate_names_the_last_wins) {
  review_text review;
  review.operation = R"("CONNECT","operation":"UPDATE")";
  review.dry_run = R"(true,"dryRun":false)";
  BOOST_TEST((read(review.text())->event == kyma_default));
  review.object =
      *review.object +
      R"(,"object":{"metadata":{"name":"first"},"metadata":{"name":"x","name":"last"}})";
  BOOST_TEST(read(review.text())->event.watched.name == "last");
  const auto twice = review.around(R"(1,"request":)" + review.request());
  BOOST_TEST(read(twice)->event.watched.name == "last");
  check_error(review.around(review.request() + R"(,"request":null)"), review_error::no_request);
}

BOOST_AUTO_TEST_CASE(escapes_in_relevant_fields_are_decoded) {
  review_text review;
  review.uid = R"("a\"\u00e9\ud83d\ude00")";
  review.object = R"({"m\u0065tadata":{"name":"n\u0061me"},"kind":"Kyma"})";
  const auto decided = read(review.text());
  BOOST_TEST(decided->uid == "a\"\xC3\xA9\xF0\x9F\x98\x80");
  BOOST_TEST(decided->event.watched.name == "name");
}

BOOST_AUTO_TEST_CASE(white_space_anywhere_changes_nothing) {
  std::string spaced;
  bool in_string = false;
  const auto compact = review_text().text();
  for (std::size_t i = 0; i < compact.size(); ++i) {
    if (compact[i] == '"' && (i == 0 || compact[i - 1] != '\\')) in_string = !in_string;
    spaced += compact[i];
    const bool structural = std::string_view("{}[]:,").find(compact[i]) != std::string_view::npos;
    if (!in_string && structural) spaced += " \r\n\t";
  }
  BOOST_TEST((read(spaced + "\n")->event == kyma_default));
}

BOOST_AUTO_TEST_CASE(empty_body_is_rejected) {
  check_error("", review_error::empty_body);
  check_error(" \n", review_error::malformed_json);
}

BOOST_AUTO_TEST_CASE(reader_rejects_invalid_json) {
  const auto good = review_text().text();
  for (const auto& bad :
       std::vector<std::string>{"hello", "{", "{]", "{\"a\":[}", "{'a':1}", good + "}", good + good,
                                good + "x", good + ",", "\xEF\xBB\xBF" + good, "[" + good,
                                good.substr(1), "{\"a\" 1}", "{\"a\":1,}", "{,}", "{\"a\"}"}) {
    check_error(bad, review_error::malformed_json);
  }
}

BOOST_AUTO_TEST_CASE(reader_validates_skipped_parts) {
  for (const auto* bad : {"[1,]",
                          "[1 2]",
                          "{\"a\":[}",
                          "[{]",
                          "{\"a\":1]",
                          "01",
                          "1.",
                          "+1",
                          ".5",
                          "1e",
                          "-",
                          "tru",
                          "nul",
                          "truex",
                          "\"\\x\"",
                          "\"\\u12g4\"",
                          "\"\\ud800\"",
                          "\"\\udc00\"",
                          "\"\\ud800\\u0041\"",
                          "\"a\"b",
                          "\"a\" \"b\"",
                          "a\"b\"",
                          "{1:2}",
                          "{\"a\":1 \"b\":2}",
                          "\"\n\"",
                          "\"\x01\"",
                          "\"\xFF\"",
                          "\"\xC0\x80\"",
                          "\"\xED\xA0\x80\"",
                          "\\",
                          "1\\",
                          "NaN",
                          "Infinity",
                          "/**/1",
                          "\x0c",
                          "\x1a",
                          "[\x0c]",
                          "[1\x0c"
                          "2]",
                          "{\"a\"\x1a"
                          "1}"}) {
    review_text review;
    review.object =
        review_text::watched("1", "2", review_text::metadata(",\"x\":" + std::string(bad)));
    check_error(review.text(), review_error::malformed_json);
  }
}

BOOST_AUTO_TEST_CASE(nul_bytes_are_refused) {
  auto body = review_text().text();
  check_error(body + '\0', review_error::malformed_json);
  check_error(std::string(1, '\0'), review_error::malformed_json);
  body[body.find("default")] = '\0';
  check_error(body, review_error::malformed_json);
}

BOOST_AUTO_TEST_CASE(truncated_input_is_rejected_at_each_length) {
  const auto body = review_text().text();
  for (std::size_t length = 1; length < body.size(); ++length) {
    check_error(body.substr(0, length), review_error::malformed_json);
  }
}

BOOST_AUTO_TEST_CASE(hundred_thousand_levels_are_rejected) {
  const std::size_t levels = 100'000;
  check_error(std::string(levels, '['), review_error::too_deep);
  std::string objects;
  for (std::size_t i = 0; i < levels; ++i) objects += "{\"a\":";
  check_error(objects, review_error::too_deep);
  review_text review;
  review.object = review_text::watched(std::string(levels, '[') + std::string(levels, ']'), "1");
  check_error(review.text(), review_error::too_deep);
}

BOOST_AUTO_TEST_CASE(five_hundred_levels_are_read_and_compared) {
  const auto nested = [](const std::string& inner) {
    return std::string(500, '[') + inner + std::string(500, ']');
  };
  check_verdict(update(nested("1"), nested("2")), review_effect::event);
  check_verdict(update(nested("1"), nested("1.0")), review_effect::no_change);
  check_verdict(update(nested(R"({"a":1,"b":2})"), nested(R"({"b":2,"a":1})")),
                review_effect::no_change);
}

BOOST_AUTO_TEST_CASE(reader_rejects_other_objects_than_admission_reviews) {
  for (const auto* other : {"[]", "1", "null", "\"x\"", "true"}) {
    check_error(other, review_error::not_admission_review);
  }
  review_text review;
  review.review_kind = "\"ConversionReview\"";
  check_error(review.text(), review_error::not_admission_review);
  review.api_version = std::nullopt;
  check_error(review.text(), review_error::not_admission_review);
  for (const auto* version : {"\"admission.k8s.io/v2\"", "\"v1\""}) {
    review = {};
    review.api_version = version;
    check_error(review.text(), review_error::not_admission_review);
  }
}

BOOST_AUTO_TEST_CASE(missing_or_null_request_is_rejected) {
  check_error(review_text().around(std::nullopt), review_error::no_request);
  check_error(review_text().around("null"), review_error::no_request);
}

BOOST_AUTO_TEST_CASE(missing_or_empty_uid_is_rejected) {
  review_text review;
  for (const review_text::json& uid :
       {review_text::json(), review_text::json("null"), review_text::json("\"\"")}) {
    review.uid = uid;
    check_error(review.text(), review_error::no_uid);
  }
}

BOOST_AUTO_TEST_CASE(wrong_types_are_refused_wherever_they_are_looked_at) {
  using member = review_text::json review_text::*;
  const std::vector<std::pair<member, std::vector<std::string>>> wrong = {
      {&review_text::uid, {"1", "{}", "true"}},
      {&review_text::gvk,
       {"1", "[]", "\"x\"", R"({"group":1})", R"({"version":[]})", R"({"kind":true})"}},
      {&review_text::name, {"1", "[]", "{}"}},
      {&review_text::ns, {"1e3", "false"}},
      {&review_text::operation, {"1", "[\"UPDATE\"]"}},
      {&review_text::subresource, {"7", "{}"}},
      {&review_text::dry_run, {"\"true\"", "1", "{}", "[]"}},
      {&review_text::object,
       {"1", "[]", "\"x\"", "true", R"({"metadata":[]})", R"({"metadata":{"name":1}})",
        R"({"metadata":{"namespace":{}}})", R"({"apiVersion":1})", R"({"kind":{}})"}},
      {&review_text::old_object, {"1", "[]", R"({"metadata":"x"})"}}};
  for (const auto& [which, values] : wrong) {
    for (const auto& value : values) {
      review_text review;
      review.*which = value;
      check_error(review.text(), review_error::wrong_type);
    }
  }
  check_error(review_text().around("1"), review_error::wrong_type);
  check_error(review_text().around("[]"), review_error::wrong_type);
}

BOOST_AUTO_TEST_CASE(large_body_is_read_and_its_memory_given_back) {
  review_text review;
  const auto spec = R"({"data":")" + std::string(3'000'000, 'x') + R"("})";
  review.object = review_text::watched(spec, "1");
  review.old_object = review_text::watched(spec, "2");
  reader fast;
  for (const auto& body : {review.text(), review_text().text(), review.text()}) {
    BOOST_TEST((fast.read(body) == read_review_reference(body)));
  }
}

BOOST_AUTO_TEST_CASE(reader_goes_on_after_bad_bodies) {
  reader fast;
  const auto good = review_text().text();
  for (int i = 0; i < 3; ++i) {
    BOOST_TEST(fast.read("{").has_error());
    BOOST_TEST((fast.read(good)->event == kyma_default));
  }
}

BOOST_AUTO_TEST_CASE(review_is_unidentified_when_a_name_exceeds_253_bytes) {
  const auto name = [](std::size_t size) { return '"' + std::string(size, 'n') + '"'; };
  const auto with_metadata = [&](const std::string& metadata) {
    review_text review;
    review.object = review_text::watched(R"({"a":1})", {}, metadata);
    return review;
  };
  check_verdict(with_metadata(R"({"name":)" + name(253) + "}"), review_effect::event);
  check_verdict(with_metadata(R"({"name":)" + name(254) + "}"), review_effect::name_too_long);
  check_verdict(with_metadata(R"({"name":"a","namespace":)" + name(253) + "}"),
                review_effect::event);
  check_verdict(with_metadata(R"({"name":"a","namespace":)" + name(254) + "}"),
                review_effect::name_too_long);
  for (const auto* part : {"group", "version", "kind"}) {
    for (const std::size_t size : {253, 254}) {
      review_text review;
      review.gvk = R"({"kind":"Kyma",")" + std::string(part) + "\":" + name(size) + "}";
      check_verdict(review, size == 253 ? review_effect::event : review_effect::name_too_long);
    }
  }
  review_text of_request = with_metadata("{}");
  of_request.name = name(254);
  check_verdict(of_request, review_effect::name_too_long);
  review_text equal;
  equal.object = equal.old_object =
      review_text::watched(R"({"a":1})", {}, R"({"name":)" + name(254) + "}");
  check_verdict(equal, review_effect::no_change);
}

BOOST_AUTO_TEST_CASE(review_is_refused_when_its_uid_exceeds_253_bytes) {
  review_text review;
  review.uid = '"' + std::string(253, 'u') + '"';
  BOOST_TEST(read(review.text()).has_value());
  review.uid = '"' + std::string(254, 'u') + '"';
  check_error(review.text(), review_error::no_uid);
}

BOOST_AUTO_TEST_SUITE_END()
