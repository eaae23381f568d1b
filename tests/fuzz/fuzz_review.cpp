// The reader of reviews must say what the reference says; what it echoes must make a valid answer.

#include "rw/reactors/events/json_compare.hpp"
#include "rw/reactors/events/review.hpp"

#include <boost/json/parse.hpp>
#include <boost/json/value.hpp>

#include "tests/fuzz/check.hpp"
#include "tests/oracle/review_reference.hpp"
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

bool is_no_json(const review_result& of) {
  return of.has_error() &&
         (of.error() == review_error::malformed_json || of.error() == review_error::too_deep);
}

/// Of a text that is both malformed and too deep each names one; and about exponents near 2^31.
bool differs_as_documented(std::string_view body, const review_result& decided,
                           const review_result& reference) {
  if (!is_no_json(decided)) return false;
  if (is_no_json(reference)) return true;
  std::size_t digits = 0;
  for (std::size_t i = 0; i < body.size(); ++i) {
    const bool is_digit = body[i] >= '0' && body[i] <= '9';
    const bool begins = i > 0 && (body[i - 1] == 'e' || body[i - 1] == 'E' || body[i - 1] == '+' ||
                                  body[i - 1] == '-');
    digits = !is_digit ? 0 : begins ? 1 : digits == 0 ? 0 : digits + 1;
    if (digits > 9) return true;
  }
  return false;
}

void check_review(const std::string& body, reader& fast) {
  const auto decided = fast.read(body);
  const auto reference = read_review_reference(body);
  check(decided == reference || differs_as_documented(body, decided, reference),
        "reader and reference agree");
  if (decided) check_answer(*decided);
}

/// The two sides of a `|` compare the same either way.
void check_comparison(std::string_view body) {
  const auto middle = body.find('|');
  if (middle == std::string_view::npos) return;
  const auto a = body.substr(0, middle);
  const auto b = body.substr(middle + 1);
  const std::string left(a);
  const std::string right(b);
  const rw::core::json_document first(left);
  const rw::core::json_document other(right);
  if (!first.root().exists() || !other.root().exists()) return;
  const bool equal = json_equal(first.root(), other.root());
  check(equal == json_equal(other.root(), first.root()), "equality is symmetric");
  check(equal == reference_equal(left, right), "equality is the reference's");
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  static reader fast;
  const std::string body(reinterpret_cast<const char*>(data), size);
  check_review(body, fast);
  check_comparison(body);
  return 0;
}
