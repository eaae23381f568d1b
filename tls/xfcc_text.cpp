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

/// Appends a value in double quotes. No field value may hold control characters (RFC 9110, section
/// 5.5); names that come from a certificate might.
void append_quoted(std::string& to, std::string_view value) {
  to += '"';
  for (const char c : value) {
    if (c == '"' || c == '\\') to += '\\';
    const bool control = (c >= 0 && c < first_control_less) || c == 0x7f;
    to += control ? '?' : c;
  }
  to += '"';
}

/// Appends a value as it is, or in quotes if it would otherwise end early.
void append_plain(std::string& to, std::string_view key, std::string_view value) {
  to += key;
  const bool plain = value.find_first_of(",;=\"\\ ") == std::string_view::npos;
  if (plain) {
    to += value;
  } else {
    append_quoted(to, value);
  }
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
