// The identity that a header gives must not depend on how it is asked for.

#include "rw/tls/xfcc.hpp"

#include "tests/fuzz/check.hpp"
#include <cstddef>
#include <cstdint>
#include <string_view>

namespace {

using rw::fuzz::check;

void check_elements(std::string_view header) {
  const auto elements = rw::tls::parse_xfcc(header);
  const auto nearest = rw::tls::nearest(header);
  check(elements.has_value() == nearest.has_value(),
        "the nearest element is there if there are any");
  if (!elements) {
    check(elements.error() == nearest.error(), "both name the same error");
    return;
  }
  check(!elements->empty(), "a header that is well-formed has an element");
  check(elements->back().cert == nearest->cert && elements->back().hash == nearest->hash,
        "the nearest element is the last one");
  const auto from_element = nearest->client_certificate();
  const auto from_header = rw::tls::nearest_certificate(header);
  check(from_element.has_value() == from_header.has_value(),
        "one certificate, however it is asked for");
  static_cast<void>(nearest->intermediates());
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  const std::string_view header(reinterpret_cast<const char*>(data), size);
  check_elements(header);
  const auto decoded = rw::tls::percent_decode(header);
  check(!decoded || decoded->size() <= header.size(), "decoding does not make text longer");
  return 0;
}
