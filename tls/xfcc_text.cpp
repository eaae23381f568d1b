#include "rw/tls/xfcc.hpp"

namespace rw::tls {
namespace {

constexpr char first_control_less = 0x20;

void append_encoded(std::string& to, std::string_view pem) {
  for (const char c : pem) {
    switch (c) {
      case '\n':
        to += "%0A";
        break;
      case ' ':
        to += "%20";
        break;
      case '+':
        to += "%2B";
        break;
      case '/':
        to += "%2F";
        break;
      case '=':
        to += "%3D";
        break;
      default:
        to += c;
    }
  }
}

/// No field value may hold control characters (RFC 9110, section 5.5); names that come from a
/// certificate might.
char in_field(char c) {
  const bool control = (c >= 0 && c < first_control_less) || c == 0x7f;
  return control ? '?' : c;
}

void append_quoted(std::string& to, std::string_view value) {
  to += '"';
  for (const char c : value) {
    if (c == '"' || c == '\\') to += '\\';
    to += in_field(c);
  }
  to += '"';
}

/// Appends a value as it is, whatever it holds.
void append_plain(std::string& to, std::string_view key, std::string_view value) {
  to += key;
  for (const char c : value) to += in_field(c);
}

}  // namespace

std::string xfcc_of(const certificate& client, const std::vector<std::string>& by) {
  std::string out;
  for (const auto& uri : by) {
    append_plain(out, "By=", uri);
    out += ';';
  }
  out += "Hash=" + client.fingerprint() + ";Cert=\"";
  append_encoded(out, client.pem());
  out += "\";Subject=";
  append_quoted(out, client.subject());
  for (const auto& uri : client.uris()) append_plain(out, ";URI=", uri);
  for (const auto& name : client.dns_names()) append_plain(out, ";DNS=", name);
  return out;
}

}  // namespace rw::tls
