// A header says one certificate outside of quotes, or nothing.

#include "rw/core/text.hpp"
#include "rw/tls/xfcc.hpp"

#include "tests/fuzz/check.hpp"
#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>

namespace {

using rw::fuzz::check;

/// The header without what is in quotes; nothing if a quote has no end.
bool outside_of_quotes(std::string_view header, std::string& out) {
  bool quoted = false;
  for (std::size_t i = 0; i < header.size(); ++i) {
    if (quoted && header[i] == '\\') {
      ++i;
    } else if (header[i] == '"') {
      quoted = !quoted;
      out += '"';
    } else if (!quoted) {
      out += rw::core::lower(header[i]);
    }
  }
  return !quoted;
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  const std::string_view header(reinterpret_cast<const char*>(data), size);
  const auto found = rw::tls::parse_xfcc(header);
  std::string plain;
  const bool closed = outside_of_quotes(header, plain);
  const auto first = plain.find("cert=");
  if (found) {
    check(closed, "quotes have their ends");
    check(first != plain.npos && plain.find("cert=", first + 1) == plain.npos, "there is one Cert");
    static_cast<void>(found->client_certificate());
    static_cast<void>(found->intermediates());
  } else {
    const auto several = rw::tls::make_error_code(rw::tls::xfcc_error::several_certificates);
    check(found.error() != several ||
              (first != plain.npos && plain.find("cert", first + 1) != plain.npos),
          "two are two");
  }
  const auto decoded = rw::tls::percent_decode(header);
  check(!decoded || decoded->size() <= header.size(), "decoding does not make text longer");
  return 0;
}
