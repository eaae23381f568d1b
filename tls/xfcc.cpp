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

bool is_key_character(char c) {
  return (core::lower(c) >= 'a' && core::lower(c) <= 'z') || (c >= '0' && c <= '9') || c == '-' ||
         c == '_';
}

/// Reads the header from left to right. Each function advances `at_` past what it has read, and
/// returns false on malformed input.
class reader {
 public:
  explicit reader(std::string_view text) : text_(text) {}

  bool header(std::vector<xfcc_element>& out) {
    do {
      if (!element(out.emplace_back())) return false;
    } while (take(','));
    return position_ == text_.size();
  }

 private:
  bool element(xfcc_element& out) {
    single_keys seen;
    do {
      if (!pair(out, seen)) return false;
    } while (take(';'));
    return true;
  }

  /// Which of the keys that must not repeat have been read.
  struct single_keys {
    bool hash = false;
    bool cert = false;
    bool chain = false;
    bool subject = false;
  };

  bool pair(xfcc_element& out, single_keys& seen) {
    std::string_view key;
    std::string value;
    blanks();
    if (!name(key) || !take('=')) return false;
    if (!(take('"') ? quoted(value) : plain(value))) return false;
    blanks();
    if (core::iequals(key, "by")) return add(out.by, std::move(value));
    if (core::iequals(key, "uri")) return add(out.uri, std::move(value));
    if (core::iequals(key, "dns")) return add(out.dns, std::move(value));
    if (core::iequals(key, "hash")) return set(out.hash, seen.hash, std::move(value));
    if (core::iequals(key, "cert")) return set(out.cert, seen.cert, std::move(value));
    if (core::iequals(key, "chain")) return set(out.chain, seen.chain, std::move(value));
    if (core::iequals(key, "subject")) return set(out.subject, seen.subject, std::move(value));
    return true;
  }

  static bool add(std::vector<std::string>& to, std::string value) {
    to.push_back(std::move(value));
    return true;
  }

  static bool set(std::string& to, bool& seen, std::string value) {
    if (std::exchange(seen, true)) return false;
    to = std::move(value);
    return true;
  }

  bool name(std::string_view& out) {
    const auto begin = position_;
    while (position_ < text_.size() && is_key_character(text_[position_])) ++position_;
    out = text_.substr(begin, position_ - begin);
    return !out.empty();
  }

  bool plain(std::string& out) {
    const auto begin = position_;
    for (; position_ < text_.size(); ++position_) {
      const char c = text_[position_];
      if (c == ',' || c == ';') break;
      if (c == '"' || is_control(c)) return false;
    }
    auto end = position_;
    while (end > begin && (text_[end - 1] == ' ' || text_[end - 1] == '\t')) --end;
    out.assign(text_, begin, end - begin);
    return true;
  }

  bool quoted(std::string& out) {
    for (; position_ < text_.size(); ++position_) {
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

  bool take(char c) {
    if (position_ == text_.size() || text_[position_] != c) return false;
    ++position_;
    return true;
  }

  void blanks() {
    while (position_ < text_.size() && (text_[position_] == ' ' || text_[position_] == '\t'))
      ++position_;
  }

  std::string_view text_;
  std::size_t position_ = 0;
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

boost::system::result<std::vector<xfcc_element>> parse_xfcc(std::string_view header,
                                                            std::size_t limit) {
  if (header.size() > limit) return error_code(xfcc_error::too_large);
  if (header.find_first_not_of(" \t") == std::string_view::npos) {
    return error_code(xfcc_error::missing);
  }
  std::vector<xfcc_element> out;
  if (!reader(header).header(out)) return error_code(xfcc_error::malformed);
  return out;
}

boost::system::result<xfcc_element> nearest(std::string_view header, std::size_t limit) {
  auto elements = parse_xfcc(header, limit);
  if (!elements) return elements.error();
  return std::move(elements->back());
}

boost::system::result<certificate> nearest_certificate(std::string_view header, std::size_t limit) {
  const auto element = nearest(header, limit);
  if (!element) return element.error();
  return element->client_certificate();
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

boost::system::result<certificate> xfcc_element::client_certificate() const {
  if (cert.empty()) return error_code(xfcc_error::no_certificate);
  const auto pem = decode_pem(cert);
  if (!pem) return pem.error();
  auto parsed = certificate::from_pem(*pem);
  if (!parsed) return error_code(xfcc_error::unparsable_certificate);
  return parsed;
}

boost::system::result<std::vector<certificate>> xfcc_element::intermediates() const {
  if (chain.empty()) return std::vector<certificate>();
  const auto pem = decode_pem(chain);
  if (!pem) return pem.error();
  auto parsed = load_pem_bundle(*pem);
  if (!parsed) return error_code(xfcc_error::unparsable_certificate);
  parsed->erase(parsed->begin());
  return std::move(*parsed);
}

}  // namespace rw::tls
