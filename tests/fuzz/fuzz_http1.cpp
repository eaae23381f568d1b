// A request must be read the same way however the network cuts it into pieces.

#include "rw/core/http/parser.hpp"

#include <boost/beast/http/error.hpp>

#include "tests/fuzz/check.hpp"
#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>

namespace {

using rw::fuzz::check;

constexpr std::size_t header_limit = 1024;
constexpr std::size_t body_limit = 512;

struct outcome {
  rw::http::request request;
  boost::beast::error_code error;
  std::size_t taken = 0;
  bool complete = false;
};

/// Reads one request that comes in pieces of `step` bytes.
void read(std::string_view bytes, std::size_t step, outcome& into) {
  const rw::http::request_parser::limit_source limit = [](const rw::http::request&) {
    return body_limit;
  };
  into.request.clear();
  rw::http::request_parser parser(into.request, limit, header_limit);
  for (std::size_t there = 0; there < bytes.size() && !into.error && !parser.is_done();) {
    there = std::min(there + step, bytes.size());
    into.taken += rw::http::feed(parser, bytes.substr(into.taken, there - into.taken), into.error);
    check(into.taken <= there, "no more is taken than there is");
  }
  into.complete = !into.error && parser.is_done();
}

void check_same(const outcome& a, const outcome& b) {
  // Where exactly a header becomes too large does depend on the pieces in Beast's parser.
  const auto too_large = boost::beast::http::error::header_limit;
  if (a.error == too_large || b.error == too_large) return;
  check(a.complete == b.complete, "whole, however it is cut");
  if (!a.complete) return;
  check(a.taken == b.taken, "it ends at the same byte");
  check(a.request.method == b.request.method, "the same method");
  check(a.request.target == b.request.target, "the same target");
  check(a.request.body == b.request.body, "the same body");
  check(a.request.headers.size() == b.request.headers.size(), "the same fields");
  for (std::size_t i = 0; i < a.request.headers.size(); ++i) {
    check(a.request.headers[i].name == b.request.headers[i].name, "the same name");
    check(a.request.headers[i].value == b.request.headers[i].value, "the same value");
  }
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  const std::string_view bytes(reinterpret_cast<const char*>(data), size);
  outcome whole;
  read(bytes, bytes.size() + 1, whole);
  check(whole.request.body.size() <= body_limit, "the body is limited");
  // A field of four bytes counts 32 more. Beast looks at its limit after each line.
  const auto most = std::min(2 * header_limit, bytes.size());
  check(whole.request.headers.bytes() <= 9 * most, "the header is limited");
  for (const std::size_t step : {std::size_t{1}, std::size_t{3}, std::size_t{7}}) {
    outcome cut;
    read(bytes, step, cut);
    check(cut.request.body.size() <= body_limit, "the body is limited");
    check_same(whole, cut);
  }
  return 0;
}
