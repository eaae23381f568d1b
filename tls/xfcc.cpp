#include "rw/tls/xfcc.hpp"

#include "rw/core/text.hpp"

#include <algorithm>
#include <optional>
#include <utility>

namespace rw::tls {
namespace {

using boost::system::error_code;

struct xfcc_error_category final : boost::system::error_category {
  const char* name() const noexcept override { return "xfcc"; }
  std::string message(int code) const override {
    switch (static_cast<xfcc_error>(code)) {
      case xfcc_error::missing:
        return "X-Forwarded-Client-Cert is missing";
      case xfcc_error::too_large:
        return "X-Forwarded-Client-Cert is too large";
      case xfcc_error::malformed:
        return "X-Forwarded-Client-Cert is malformed";
      case xfcc_error::no_certificate:
        return "X-Forwarded-Client-Cert has no Cert";
      case xfcc_error::several_certificates:
        return "X-Forwarded-Client-Cert has more than one Cert";
      case xfcc_error::undecodable:
        return "X-Forwarded-Client-Cert: Cert is not percent-encoded";
      case xfcc_error::unparsable_certificate:
        return "X-Forwarded-Client-Cert: Cert is not a certificate";
    }
    return "unknown X-Forwarded-Client-Cert error";
  }
};

bool is_control(char c) {
  const auto byte = static_cast<unsigned char>(c);
  return (byte < 0x20 && c != '\t') || byte == 0x7f;
}

std::string_view trimmed_right(std::string_view text) {
  while (!text.empty() && (text.back() == ' ' || text.back() == '\t')) text.remove_suffix(1);
  return text;
}

/// Returns the number of `cert=` in a text, in any case of letters.
std::size_t certs_in(std::string_view text) {
  constexpr std::string_view name = "cert=";
  std::size_t count = 0;
  for (std::size_t i = 0; i + name.size() <= text.size(); ++i) {
    if (core::iequals(text.substr(i, name.size()), name)) ++count;
  }
  return count;
}

constexpr std::string_view not_in_keys = "\"\t\r\n";

/// Reads the header from left to right: pairs, and what else is between separators. Each function
/// returns false on malformed input.
class reader {
 public:
  explicit reader(std::string_view text) : text_(text) {}

  bool header() {
    while (position_ < text_.size()) {
      if (!piece()) return false;
      ++position_;  // the separator
    }
    return chains_ < 2;
  }

  std::size_t certs() const noexcept { return certs_; }
  forwarded_client& found() noexcept { return found_; }

 private:
  bool piece() {
    blanks();
    const auto equals = text_.find_first_of("=,;", position_);
    const bool is_pair = equals != std::string_view::npos && text_[equals] == '=';
    std::string unused;
    std::string* out = &unused;
    if (is_pair) {
      const auto key = text_.substr(position_, equals - position_);
      if (key.find_first_of(not_in_keys) != std::string_view::npos) return false;
      certs_ += certs_in(text_.substr(position_, equals + 1 - position_));
      if (core::iequals(key, "cert")) {
        out = &found_.cert;
      } else if (core::iequals(key, "chain")) {
        ++chains_;
        out = &found_.chain;
      }
      position_ = equals + 1;
      blanks();
      if (position_ < text_.size() && text_[position_] == '"')
        return quoted(*out) && at_end_of_value();
    }
    return plain(*out);
  }

  /// Reads up to a separator. There is no quote but at a value's beginning: otherwise one that a
  /// client wrote could meet one of the proxy's.
  bool plain(std::string& out) {
    const auto begin = position_;
    for (; position_ < text_.size(); ++position_) {
      const char c = text_[position_];
      if (c == ',' || c == ';') break;
      if (c == '"' || is_control(c)) return false;
    }
    out = trimmed_right(text_.substr(begin, position_ - begin));
    certs_ += certs_in(out);
    return true;
  }

  /// Reads a value from its quote to behind the other one.
  bool quoted(std::string& out) {
    for (++position_; position_ < text_.size(); ++position_) {
      char c = text_[position_];
      if (c == '"') {
        ++position_;
        return true;
      }
      if (c == '\\' && ++position_ < text_.size()) c = text_[position_];
      if (position_ == text_.size() || is_control(c)) return false;
      out += c;
    }
    return false;
  }

  bool at_end_of_value() {
    blanks();
    return position_ == text_.size() || text_[position_] == ',' || text_[position_] == ';';
  }

  void blanks() {
    while (position_ < text_.size() && (text_[position_] == ' ' || text_[position_] == '\t'))
      ++position_;
  }

  std::string_view text_;
  std::size_t position_ = 0;
  std::size_t certs_ = 0;
  std::size_t chains_ = 0;
  forwarded_client found_;
};

int digit(char c) {
  if (c >= '0' && c <= '9') return c - '0';
  c = core::lower(c);
  return c >= 'a' && c <= 'f' ? c - 'a' + 10 : -1;
}

}  // namespace

const boost::system::error_category& xfcc_category() noexcept {
  static const xfcc_error_category category;
  return category;
}

error_code make_error_code(xfcc_error e) noexcept {
  return {static_cast<int>(e), xfcc_category()};
}

boost::system::result<forwarded_client> parse_xfcc(std::string_view header, std::size_t limit) {
  if (header.size() > limit) return error_code(xfcc_error::too_large);
  if (header.find_first_not_of(" \t") == std::string_view::npos) {
    return error_code(xfcc_error::missing);
  }
  reader read(header);
  if (!read.header()) return error_code(xfcc_error::malformed);
  if (read.certs() > 1) return error_code(xfcc_error::several_certificates);
  if (read.found().cert.empty()) return error_code(xfcc_error::no_certificate);
  return std::move(read.found());
}

boost::system::result<std::string> percent_decode(std::string_view text) {
  std::string out;
  out.reserve(text.size());
  for (std::size_t i = 0; i < text.size(); ++i) {
    if (text[i] != '%') {
      out += text[i];
      continue;
    }
    if (text.size() - i < 3) return error_code(xfcc_error::undecodable);
    const int high = digit(text[i + 1]);
    const int low = digit(text[i + 2]);
    if (high < 0 || low < 0) return error_code(xfcc_error::undecodable);
    out += static_cast<char>(high * 16 + low);
    i += 2;
  }
  return out;
}

namespace {

/// Decodes a PEM text. In one that a form's encoding made (Go's url.QueryEscape), '+' is a blank;
/// its own plus signs are encoded.
boost::system::result<std::string> decode_pem(std::string text) {
  if (text.starts_with("-----BEGIN+")) std::ranges::replace(text, '+', ' ');
  return percent_decode(text);
}

}  // namespace

boost::system::result<certificate> forwarded_client::client_certificate() const {
  const auto pem = decode_pem(cert);
  if (!pem) return pem.error();
  auto parsed = certificate::from_pem(*pem);
  if (!parsed) return error_code(xfcc_error::unparsable_certificate);
  return parsed;
}

boost::system::result<std::vector<certificate>> forwarded_client::intermediates() const {
  if (chain.empty()) return std::vector<certificate>();
  const auto pem = decode_pem(chain);
  if (!pem) return pem.error();
  auto parsed = load_pem_bundle(*pem);
  if (!parsed) return error_code(xfcc_error::unparsable_certificate);
  parsed->erase(parsed->begin());
  return std::move(*parsed);
}

}  // namespace rw::tls
