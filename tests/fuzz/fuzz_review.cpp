// The reader of reviews must say what the reference says; what it echoes must make a valid answer.

#include "rw/reactors/admission/json_compare.hpp"
#include "rw/reactors/admission/review.hpp"

#include <boost/json/parse.hpp>
#include <boost/json/value.hpp>

#include "tests/fuzz/check.hpp"
#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>

namespace {

using namespace rw::admission;
using rw::fuzz::check;

void check_answer(const review_decision& decided) {
  std::string out;
  append_response(out, decided);
  boost::system::error_code error;
  const auto answer = boost::json::parse(out, error);
  check(!error, "an answer is valid JSON");
  const auto* response = answer.as_object().if_contains("response");
  check(response != nullptr &&
            response->as_object().at("uid") == boost::json::string_view(decided.uid),
        "an answer echoes the uid");
}

void check_review(const std::string& body, reader& fast, rw::contract agreed) {
  const auto decided = fast.read(body);
  check(decided == read_review_reference(body, agreed), "reader and reference agree");
  if (decided) check_answer(*decided);
}

/// The two sides of a `|` compare the same either way.
void check_comparison(std::string_view body) {
  const auto middle = body.find('|');
  if (middle == std::string_view::npos) return;
  const auto a = body.substr(0, middle);
  const auto b = body.substr(middle + 1);
  check(json_equal(a, b) == json_equal(b, a), "equality is symmetric");
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  static reader v1(rw::contract::v1);
  static reader v2(rw::contract::v2);
  const std::string body(reinterpret_cast<const char*>(data), size);
  check_review(body, v1, rw::contract::v1);
  check_review(body, v2, rw::contract::v2);
  check_comparison(body);
  return 0;
}
