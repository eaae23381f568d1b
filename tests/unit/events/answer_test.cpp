#include "rw/reactors/events/review.hpp"

#include <boost/json/parse.hpp>
#include <boost/json/serialize.hpp>
#include <boost/json/value.hpp>
#include <boost/test/unit_test.hpp>

#include <string>
#include <vector>

BOOST_AUTO_TEST_SUITE(answer)

namespace {

using namespace rw::admission;
namespace json = boost::json;

json::value written_for(const review_decision& decided,
                        std::vector<std::string_view> warnings = {}) {
  std::string out;
  append_response(out, decided, warnings);
  return json::parse(out);
}

review_decision decided_with(const std::string& uid, review_effect what = review_effect::event) {
  review_decision decided;
  decided.uid = uid;
  decided.effect = what;
  return decided;
}

}  // namespace

BOOST_AUTO_TEST_CASE(response_allows_and_echoes_the_uid) {
  const auto written = written_for(decided_with("u-1", review_effect::connect_unsupported));
  const auto expected = json::parse(R"({"kind":"AdmissionReview","apiVersion":"admission.k8s.io/v1",
    "response":{"uid":"u-1","allowed":true,
    "status":{"metadata":{},"status":"Success","message":"operation CONNECT not supported"}}})");
  BOOST_TEST(json::serialize(written) == json::serialize(expected));
}

BOOST_AUTO_TEST_CASE(response_has_the_version_of_the_review) {
  auto decided = decided_with("u");
  BOOST_TEST((written_for(decided).at("apiVersion") == "admission.k8s.io/v1"));
  decided.version = review_version::v1beta1;
  BOOST_TEST((written_for(decided).at("apiVersion") == "admission.k8s.io/v1beta1"));
}

BOOST_AUTO_TEST_CASE(response_allows_whatever_the_effect_and_has_a_message) {
  for (int i = 0; i <= static_cast<int>(review_effect::unknown_manager); ++i) {
    const auto written = written_for(decided_with("u", static_cast<review_effect>(i)));
    const auto& response = written.at("response").as_object();
    BOOST_TEST(response.at("allowed").as_bool());
    BOOST_TEST(!response.at("status").at("message").as_string().empty());
    BOOST_TEST(!response.contains("warnings"));
  }
}

BOOST_AUTO_TEST_CASE(warnings_are_written_if_there_are_any) {
  const auto written = written_for(decided_with("u"), {"first", "sec\"ond"});
  BOOST_TEST(json::serialize(written.at("response").at("warnings")) == R"(["first","sec\"ond"])");
}

BOOST_AUTO_TEST_CASE(hostile_uids_stay_inside_their_string) {
  for (const std::string& uid : {std::string("\"}],\\"), std::string("a\0b", 3),
                                 std::string("\n\x1f"), std::string("\xC3\xA9")}) {
    BOOST_TEST((written_for(decided_with(uid)).at("response").at("uid") == json::string_view(uid)));
  }
  BOOST_TEST((written_for(decided_with("\xFF")).at("response").at("uid") == "\xEF\xBF\xBD"));
}

BOOST_AUTO_TEST_CASE(response_is_appended) {
  std::string out = "before";
  append_response(out, decided_with("u"));
  BOOST_TEST(out.starts_with("before{"));
}

BOOST_AUTO_TEST_SUITE_END()
