#include "rw/k8s/cache/watch_decoder.hpp"

#include <boost/test/unit_test.hpp>

#include "tests/unit/k8s/samples.hpp"
#include <string>
#include <vector>

BOOST_AUTO_TEST_SUITE(watch_decoder)

using namespace rw::k8s::test;
using rw::k8s::decoded_event;
using rw::k8s::errc;

namespace {

/// Decodes, and remembers what was told: "added a@1", "bookmark @7 end", "error 410 Gone".
struct listener {
  bool operator()(const decoded_event& event) {
    static constexpr const char* words[] = {"added", "modified", "deleted", "bookmark", "error"};
    std::string line = words[static_cast<std::size_t>(event.type)];
    if (event.type == decoded_event::kind::error) {
      line += " " + std::to_string(event.status.status) + " " + event.status.reason;
    } else {
      line += " " + std::string(event.subject.name()) + "@" + std::string(event.resource_version);
    }
    if (event.initial_events_end) line += " end";
    told.push_back(line);
    texts.emplace_back(event.subject.text());
    return told.size() < enough;
  }

  /// Feeds all of `bytes` in portions.
  bool feed(std::string_view bytes, std::size_t portion = ~std::size_t{0}) {
    bool go_on = true;
    for (; go_on && !bytes.empty(); bytes.remove_prefix(std::min(portion, bytes.size()))) {
      // A copy of its own, so that reading past it is found out.
      const std::vector<char> piece(
          bytes.begin(),
          bytes.begin() + static_cast<std::ptrdiff_t>(std::min(portion, bytes.size())));
      go_on = decoder.feed({piece.data(), piece.size()});
    }
    return go_on;
  }

  std::size_t enough = ~std::size_t{0};
  std::size_t limit = 1 << 20;
  bool metadata_only = false;
  std::vector<std::string> told = {};
  std::vector<std::string> texts = {};
  rw::k8s::watch_decoder decoder{{configmaps(), metadata_only},
                                 rw::k8s::projection::without_managed_fields(),
                                 limit,
                                 [this](const decoded_event& event) { return (*this)(event); }};
};

using lines = std::vector<std::string>;

void check_refused(const std::string& line, const std::string& why,
                   errc code = errc::bad_response) {
  listener heard;
  BOOST_TEST(!heard.feed(event("ADDED", configmap("a", "1")) + line + "\n"));
  BOOST_TEST(heard.told == lines{"added a@1"});
  BOOST_TEST(heard.decoder.error().is(code));
  BOOST_TEST_MESSAGE(heard.decoder.error().message);
  BOOST_TEST(heard.decoder.error().message.find(why) != std::string::npos,
             heard.decoder.error().message);
}

}  // namespace

BOOST_AUTO_TEST_CASE(decoder_passes_on_each_kind_of_event) {
  listener heard;
  BOOST_TEST(heard.feed(event("ADDED", configmap("a", "1")) +
                        event("MODIFIED", configmap("a", "2")) + bookmark("3") +
                        event("DELETED", configmap("a", "4")) + error_event(410, "Expired")));
  BOOST_TEST(heard.told == (lines{"added a@1", "modified a@2", "bookmark @3", "deleted a@4",
                                  "error 410 Expired"}));
  BOOST_TEST(heard.texts[0].find("managedFields") == std::string::npos);
  BOOST_TEST(!heard.decoder.error().code);
}

BOOST_AUTO_TEST_CASE(events_are_the_same_however_the_bytes_are_cut) {
  const auto stream = event("ADDED", configmap("a", "1")) + "\n\r\n" +
                      event("MODIFIED", configmap("b", "2", {}, "a \\\"b\\\" \\u00e9")) +
                      bookmark("3", true) + event("DELETED", configmap("a", "4"));
  const lines expected{"added a@1", "modified b@2", "bookmark @3 end", "deleted a@4"};
  for (std::size_t portion = 1; portion < stream.size(); ++portion) {
    listener heard;
    BOOST_TEST(heard.feed(stream, portion));
    if (heard.told != expected) BOOST_ERROR("in portions of " << portion);
  }
}

BOOST_AUTO_TEST_CASE(end_of_a_streaming_list_is_known_by_its_annotation) {
  listener heard;
  BOOST_TEST(heard.feed(bookmark("3", true) + bookmark("4")));
  BOOST_TEST(heard.feed(
      event("BOOKMARK", R"({"metadata":{"annotations":{"k8s.io/initial-events-end":"false"},)"
                        R"("resourceVersion":"5"}})") +
      event("BOOKMARK", R"({"metadata":{"annotations":null,"resourceVersion":"6"}})")));
  BOOST_TEST(heard.told == (lines{"bookmark @3 end", "bookmark @4", "bookmark @5", "bookmark @6"}));
}

BOOST_AUTO_TEST_CASE(type_may_stand_behind_the_object_and_names_may_have_escapes) {
  listener heard;
  BOOST_TEST(heard.feed(R"({"object":)" + configmap("a", "1") + R"(,"type":"ADDED"})" + "\n"));
  BOOST_TEST(
      heard.feed(R"({"typ\u0065":"MODIFI\u0045D","obj\u0065ct":)" + configmap("b", "2") + "}\n"));
  BOOST_TEST(heard.feed(event("ADDED", configmap("\\u0063", "3"))));
  BOOST_TEST(heard.told == (lines{"added a@1", "modified b@2", "added c@3"}));
}

BOOST_AUTO_TEST_CASE(decoder_uses_the_last_of_duplicate_names) {
  listener heard;
  BOOST_TEST(heard.feed(R"({"type":"ADDED","type":"DELETED","object":)" + configmap("a", "1") +
                        R"(,"object":)" + configmap("b", "2") + "}\n"));
  BOOST_TEST(heard.told == lines{"deleted b@2"});
}

BOOST_AUTO_TEST_CASE(white_space_of_an_object_is_dropped) {
  listener heard;
  BOOST_TEST(heard.feed(
      "{ \"type\" : \"ADDED\" , \"object\" : { \"kind\" : \"ConfigMap\" , \"apiVersion\" : \"v1\" ,"
      "\"metadata\" : { \"managedFields\" : [ ] , \"name\" : \"a\" , \"resourceVersion\" : \"1\" } "
      "} } \r\n"));
  BOOST_TEST(
      heard.texts ==
      lines{
          R"({"kind":"ConfigMap","apiVersion":"v1","metadata":{"name":"a","resourceVersion":"1"}})"});
}

BOOST_AUTO_TEST_CASE(decoder_stops_when_handler_returns_false) {
  listener heard;
  heard.enough = 2;
  BOOST_TEST(!heard.feed(bookmark("1") + bookmark("2") + bookmark("3")));
  BOOST_TEST(heard.told.size() == 2U);
  BOOST_TEST(!heard.decoder.error().code);
}

BOOST_AUTO_TEST_CASE(decoder_rejects_a_line_that_is_no_event_with_the_reason) {
  check_refused("<html>", "is not JSON");
  check_refused("{", "is not JSON");
  check_refused(event("ADDED", configmap("b", "2") + "}"), "is not JSON");
  check_refused(R"({"type":"ADDED","object":{"metadata":{"name":"\x"}}})", "is not JSON");
  check_refused("[]", "is no object with type and object");
  check_refused("{}", "is no object with type and object");
  check_refused(R"({"type":"ADDED"})", "is no object with type and object");
  check_refused(R"({"type":"ADDED","object":null})", "is no object with type and object");
  check_refused(R"({"type":1,"object":{}})", "is no object with type and object");
  check_refused(R"({"type":"RENAMED","object":{}})", "has no type that is known");
  check_refused(R"({"object":{}})", "has no type that is known");
}

BOOST_AUTO_TEST_CASE(decoder_rejects_an_object_of_another_resource_with_the_reason) {
  const auto refused = [](const std::string& object, const std::string& why) {
    auto line = event("ADDED", object);
    line.pop_back();
    check_refused(line, why);
  };
  refused(R"({"kind":"Secret","apiVersion":"v1","metadata":{"name":"a","resourceVersion":"1"}})",
          "is no ConfigMap");
  refused(R"({"kind":"ConfigMap","apiVersion":"v2","metadata":{"name":"a","resourceVersion":"1"}})",
          "is no ConfigMap");
  refused(R"({"metadata":{"name":"a","resourceVersion":"1"}})", "is no ConfigMap");
  refused(R"({"kind":"ConfigMap","apiVersion":"v1","metadata":{"resourceVersion":"1"}})",
          "without metadata.name");
  refused(R"({"kind":"ConfigMap","apiVersion":"v1","metadata":{"name":"","resourceVersion":"1"}})",
          "without metadata.name");
  refused(R"({"kind":"ConfigMap","apiVersion":"v1","metadata":{"name":"a"}})",
          "without metadata.resourceVersion");
  refused(R"({"kind":"ConfigMap","apiVersion":"v1"})", "without metadata.name");
  refused(R"({"kind":"ConfigMap","apiVersion":"v1","metadata":{"name":7,"resourceVersion":"1"}})",
          "is no object with type and object");
  check_refused(R"({"type":"BOOKMARK","object":{"metadata":{}}})", "without resourceVersion");
}

BOOST_AUTO_TEST_CASE(line_that_is_too_long_is_rejected_before_all_of_it_came) {
  listener heard{.limit = 1000};
  const std::string huge(20 << 20, 'x');
  BOOST_TEST(!heard.feed(bookmark("1") + R"({"type":")" + huge, 4096));
  BOOST_TEST(heard.told == lines{"bookmark @1"});
  BOOST_TEST(heard.decoder.error().is(errc::too_large));
  BOOST_TEST(heard.decoder.error().message.find("1000 bytes") != std::string::npos);

  listener at_once{.limit = 1000};
  BOOST_TEST(!at_once.feed(event("ADDED", configmap("a", "1", {}, std::string(1000, 'x')))));
  BOOST_TEST(at_once.decoder.error().is(errc::too_large));
}

BOOST_AUTO_TEST_CASE(line_may_have_exactly_the_limit) {
  const auto line = event("ADDED", configmap("a", "1"));
  for (const std::size_t portion : {std::size_t{7}, line.size()}) {
    listener enough{.limit = line.size() - 1};
    BOOST_TEST(enough.feed(line, portion));
    BOOST_TEST(enough.told.size() == 1U);
    listener less{.limit = line.size() - 2};
    BOOST_TEST(!less.feed(line, portion));
  }
}

BOOST_AUTO_TEST_CASE(partial_metadata_is_welcome_where_it_was_asked_for) {
  const std::string partial =
      R"({"kind":"PartialObjectMetadata","apiVersion":"meta.k8s.io/v1","metadata":{"name":"a","resourceVersion":"1"}})";
  listener asked{.metadata_only = true};
  BOOST_TEST(asked.feed(event("ADDED", partial) + event("ADDED", configmap("b", "2"))));
  BOOST_TEST(asked.told == (lines{"added a@1", "added b@2"}));
  listener not_asked;
  BOOST_TEST(!not_asked.feed(event("ADDED", partial)));
}

BOOST_AUTO_TEST_CASE(status_of_an_error_is_a_failure) {
  rw::k8s::failure told;
  rw::k8s::watch_decoder decoder({configmaps(), false}, rw::k8s::projection::whole(), 1 << 20,
                                 [&](const decoded_event& event) {
                                   told = event.status;
                                   return true;
                                 });
  decoder.feed(error_event(410, "Expired"));
  BOOST_TEST(told.is(errc::gone));
  BOOST_TEST(told.message.find("said so") != std::string::npos);
  decoder.feed(event("ERROR", R"({"kind":"Status","code":429,"reason":"TooManyRequests",)"
                              R"("details":{"retryAfterSeconds":7}})"));
  BOOST_TEST(told.is(errc::too_many_requests));
  BOOST_TEST(told.retry_after.count() == 7);
  decoder.feed(event("ERROR", R"("what is this")"));
  BOOST_TEST(told.code.failed());
}

BOOST_AUTO_TEST_SUITE_END()
