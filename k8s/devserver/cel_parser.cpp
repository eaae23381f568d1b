#include "rw/core/text.hpp"
#include "rw/k8s/devserver/cel.hpp"

#include <boost/json/string.hpp>

#include <algorithm>
#include <array>
#include <charconv>
#include <optional>
#include <utility>

namespace rw::k8s::devserver {
namespace cel {
namespace {

namespace json = boost::json;
using node_ptr = std::unique_ptr<cel_node>;
using kind = cel_node::kind;

constexpr unsigned deepest = 64;

constexpr std::array<std::string_view, 5> macros{"all", "exists", "exists_one", "map", "filter"};
constexpr std::array<std::string_view, 17> functions{
    "size",       "int",        "uint",     "double",   "string", "bool",
    "startsWith", "endsWith",   "contains", "matches",  "type",   "dyn",
    "lowerAscii", "upperAscii", "trim",     "isSorted", "join"};
constexpr std::array<std::string_view, 5> more_functions{"min", "max", "sum", "indexOf", "replace"};

struct parse_error {
  std::string text;
};

bool is_letter(char c) {
  return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || c == '_';
}
bool is_digit(char c) {
  return c >= '0' && c <= '9';
}

/// Recursive descent over the grammar of the specification ("Syntax").
class parser {
 public:
  explicit parser(std::string_view text) : rest_(text), size_(text.size()) {}

  node_ptr whole() {
    auto made = expression();
    skip();
    if (!rest_.empty()) fail("unexpected '" + std::string(rest_.substr(0, 1)) + "'");
    return made;
  }

  std::string unsupported;
  bool uses_old_self = false;

 private:
  [[noreturn]] void fail(const std::string& reason) const {
    throw parse_error{"at " + std::to_string(size_ - rest_.size()) + ": " + reason};
  }

  void skip() {
    while (!rest_.empty()) {
      if (rest_.starts_with("//")) {
        rest_.remove_prefix(std::min(rest_.find('\n'), rest_.size()));
      } else if (rest_[0] == ' ' || (rest_[0] >= '\t' && rest_[0] <= '\r')) {
        rest_.remove_prefix(1);
      } else {
        return;
      }
    }
  }

  bool take(std::string_view token) {
    skip();
    if (!rest_.starts_with(token)) return false;
    rest_.remove_prefix(token.size());
    return true;
  }
  void need(std::string_view token) {
    if (!take(token)) fail("'" + std::string(token) + "' is missing");
  }

  std::string_view identifier() {
    skip();
    std::size_t end = 0;
    while (end < rest_.size() && (is_letter(rest_[end]) || (end > 0 && is_digit(rest_[end])))) {
      ++end;
    }
    const auto name = rest_.substr(0, end);
    rest_.remove_prefix(end);
    return name;
  }

  static node_ptr make(kind is, std::string text, node_ptr a = {}, node_ptr b = {},
                       node_ptr c = {}) {
    auto made = std::make_unique<cel_node>();
    made->is = is;
    made->text = std::move(text);
    for (auto* const operand : {&a, &b, &c}) {
      if (*operand) made->args.push_back(std::move(*operand));
    }
    return made;
  }

  node_ptr expression() {
    if (++depth_ > deepest) fail("it is nested too deeply");
    auto made = either();
    if (take("?")) {
      auto yes = either();
      need(":");
      made = make(kind::ternary, "?", std::move(made), std::move(yes), expression());
    }
    --depth_;
    return made;
  }

  node_ptr either() {
    auto made = conjunction();
    while (take("||")) made = make(kind::binary, "||", std::move(made), conjunction());
    return made;
  }

  node_ptr conjunction() {
    auto made = relation();
    while (take("&&")) made = make(kind::binary, "&&", std::move(made), relation());
    return made;
  }

  node_ptr relation() {
    auto made = sum();
    for (;;) {
      std::string_view found;
      for (const std::string_view sign : {"==", "!=", "<=", ">=", "<", ">"}) {
        if (found.empty() && take(sign)) found = sign;
      }
      if (found.empty() && takes_in()) found = "in";
      if (found.empty()) return made;
      made = make(kind::binary, std::string(found), std::move(made), sum());
    }
  }

  bool takes_in() {
    skip();
    const bool is = rest_.starts_with("in") &&
                    (rest_.size() == 2 || (!is_letter(rest_[2]) && !is_digit(rest_[2])));
    if (is) rest_.remove_prefix(2);
    return is;
  }

  node_ptr sum() {
    auto made = product();
    for (;;) {
      if (take("+")) {
        made = make(kind::binary, "+", std::move(made), product());
      } else if (take("-")) {
        made = make(kind::binary, "-", std::move(made), product());
      } else {
        return made;
      }
    }
  }

  node_ptr product() {
    auto made = unary();
    for (;;) {
      std::string_view found;
      for (const std::string_view sign : {"*", "/", "%"}) {
        if (found.empty() && take(sign)) found = sign;
      }
      if (found.empty()) return made;
      made = make(kind::binary, std::string(found), std::move(made), unary());
    }
  }

  node_ptr unary() {
    if (++depth_ > deepest) fail("it is nested too deeply");
    node_ptr made;
    if (take("!")) {
      made = make(kind::unary, "!", unary());
    } else if (take("-")) {
      made = make(kind::unary, "-", unary());
    } else {
      made = member();
    }
    --depth_;
    return made;
  }

  node_ptr member() {
    auto made = primary();
    for (;;) {
      if (take(".")) {
        if (take("?")) unsupported = "optional values";
        const std::string name(identifier());
        if (name.empty()) fail("a field's name is missing");
        made = take("(") ? method(std::move(made), name)
                         : make(kind::select, cel_property(name), std::move(made));
      } else if (take("[")) {
        if (take("?")) unsupported = "optional values";
        made = make(kind::index, "[", std::move(made), expression());
        need("]");
      } else {
        return made;
      }
    }
  }

  node_ptr method(node_ptr of, const std::string& name) {
    if (std::ranges::find(macros, name) != macros.end()) {
      auto made = make(kind::macro, name, std::move(of));
      made->variable = identifier();
      if (made->variable.empty()) fail("the variable of " + name + "() is missing");
      while (take(",")) made->args.push_back(expression());
      need(")");
      const auto count = made->args.size() - 1;
      if (count == 0 || count > (name == "map" ? 2U : 1U)) {
        // all(i, x, ...) and such have two variables.
        unsupported = name + "() with " + std::to_string(count + 1) + " arguments";
      }
      return made;
    }
    auto made = make(kind::method, name, std::move(of));
    arguments(*made, ")");
    know(name);
    return made;
  }

  void arguments(cel_node& into, std::string_view end) {
    while (!take(end)) {
      into.args.push_back(expression());
      if (take(end)) return;
      need(",");
    }
  }

  void know(const std::string& name) {
    const bool known = std::ranges::find(functions, name) != functions.end() ||
                       std::ranges::find(more_functions, name) != more_functions.end();
    if (!known) unsupported = name + "()";
  }

  node_ptr primary() {
    skip();
    if (rest_.empty()) fail("it ends too early");
    if (take("(")) {
      auto made = expression();
      need(")");
      return made;
    }
    if (take("[")) {
      auto made = make(kind::list, "[");
      arguments(*made, "]");
      return made;
    }
    if (take("{")) return map_literal();
    if (is_digit(rest_[0]) || (rest_[0] == '.' && rest_.size() > 1 && is_digit(rest_[1]))) {
      return number();
    }
    if (auto made = text_literal()) return made;
    const std::string name(identifier());
    if (name.empty()) fail("unexpected '" + std::string(rest_.substr(0, 1)) + "'");
    if (name == "true" || name == "false" || name == "null") {
      auto made = make(kind::literal, name);
      if (name != "null") made->value = name == "true";
      return made;
    }
    if (!take("(")) {
      uses_old_self = uses_old_self || name == "oldSelf";
      return make(kind::name, name);
    }
    auto made = make(kind::call, name);
    arguments(*made, ")");
    if (name == "has") {
      if (made->args.size() != 1 || made->args[0]->is != kind::select) {
        fail("has() needs the selection of a field");
      }
      made->args[0]->is = kind::has;
      return std::move(made->args[0]);
    }
    know(name);
    return made;
  }

  node_ptr map_literal() {
    auto made = make(kind::map, "{");
    while (!take("}")) {
      made->args.push_back(expression());
      need(":");
      made->args.push_back(expression());
      if (take("}")) break;
      need(",");
    }
    return made;
  }

  node_ptr number() {
    auto made = make(kind::literal, "number");
    const auto* const begin = rest_.data();
    const auto* const end = begin + rest_.size();
    std::size_t used = 0;
    if (rest_.starts_with("0x") || rest_.starts_with("0X")) {
      std::int64_t whole = 0;
      const auto read = std::from_chars(begin + 2, end, whole, 16);
      if (read.ec != std::errc()) fail("the number is too large");
      made->value = whole;
      used = static_cast<std::size_t>(read.ptr - begin);
    } else {
      const auto last = std::min(rest_.find_first_not_of("0123456789"), rest_.size());
      const bool real =
          last < rest_.size() &&
          ((rest_[last] == '.' && last + 1 < rest_.size() && is_digit(rest_[last + 1])) ||
           rest_[last] == 'e' || rest_[last] == 'E');
      if (real) {
        double fraction = 0;
        const auto read = std::from_chars(begin, end, fraction);
        made->value = fraction;
        used = static_cast<std::size_t>(read.ptr - begin);
      } else {
        std::int64_t whole = 0;
        const auto read = std::from_chars(begin, end, whole);
        if (read.ec != std::errc()) fail("the number is too large");
        made->value = whole;
        used = static_cast<std::size_t>(read.ptr - begin);
      }
    }
    rest_.remove_prefix(used);
    if (rest_.starts_with('u') || rest_.starts_with('U')) rest_.remove_prefix(1);
    return made;
  }

  node_ptr text_literal() {
    auto at = rest_;
    const bool raw = at.starts_with('r') || at.starts_with('R');
    if (raw) at.remove_prefix(1);
    if (at.starts_with("b'") || at.starts_with("b\"")) unsupported = "bytes";
    if (at.empty() || (at[0] != '\'' && at[0] != '"')) return nullptr;
    const bool triple = at.size() >= 3 && at[1] == at[0] && at[2] == at[0];
    const std::string quote(triple ? 3 : 1, at[0]);
    at.remove_prefix(quote.size());
    std::string text;
    while (!at.starts_with(quote)) {
      if (at.empty()) fail("a text has no end");
      if (at[0] == '\\' && !raw) {
        at.remove_prefix(1);
        escape(at, text);
      } else {
        text += at[0];
        at.remove_prefix(1);
      }
    }
    at.remove_prefix(quote.size());
    rest_ = at;
    auto made = make(kind::literal, "text");
    made->value = json::string(text);
    return made;
  }

  void escape(std::string_view& at, std::string& into) {
    static constexpr std::string_view names = "abfnrtv\\'\"`?";
    static constexpr std::string_view means = "\a\b\f\n\r\t\v\\'\"`?";
    if (at.empty()) fail("a text has no end");
    const auto known = names.find(at[0]);
    if (known != std::string_view::npos) {
      into += means[known];
      at.remove_prefix(1);
      return;
    }
    const std::size_t digits = at[0] == 'x' ? 2 : at[0] == 'u' ? 4 : at[0] == 'U' ? 8 : 0;
    unsigned code = 0;
    if (digits == 0 || at.size() <= digits ||
        std::from_chars(at.data() + 1, at.data() + 1 + digits, code, 16).ptr !=
            at.data() + 1 + digits) {
      fail("unknown escape sequence");
    }
    at.remove_prefix(digits + 1);
    if (code < 0x80) {
      into += static_cast<char>(code);
    } else if (code < 0x800) {
      into += static_cast<char>(0xC0 | (code >> 6));
      into += static_cast<char>(0x80 | (code & 0x3F));
    } else if (code < 0x10000) {
      into += static_cast<char>(0xE0 | (code >> 12));
      into += static_cast<char>(0x80 | ((code >> 6) & 0x3F));
      into += static_cast<char>(0x80 | (code & 0x3F));
    } else {
      unsupported = "characters beyond U+FFFF in escapes";
    }
  }

  std::string_view rest_;
  const std::size_t size_;
  unsigned depth_ = 0;
};

}  // namespace
}  // namespace cel

std::string cel_property(std::string_view identifier) {
  static constexpr std::pair<std::string_view, std::string_view> known[] = {
      {"__underscores__", "__"}, {"__dot__", "."}, {"__dash__", "-"}, {"__slash__", "/"}};
  std::string text;
  while (!identifier.empty()) {
    const auto* const found = std::ranges::find_if(
        known, [&](const auto& prefix) { return identifier.starts_with(prefix.first); });
    if (found != std::end(known)) {
      text += found->second;
      identifier.remove_prefix(found->first.size());
    } else if (text.empty() && identifier.starts_with("__") && identifier.ends_with("__") &&
               identifier.size() > 4) {
      return std::string(identifier.substr(2, identifier.size() - 4));  // a keyword
    } else {
      text += identifier[0];
      identifier.remove_prefix(1);
    }
  }
  return text;
}

cel_expression cel_expression::parse(std::string_view text) {
  cel_expression made;
  cel::parser reading(text);
  try {
    made.root_ = reading.whole();
    made.unsupported = reading.unsupported;
    made.uses_old_self_ = reading.uses_old_self;
  } catch (const cel::parse_error& wrong) {
    made.error = "syntax error " + wrong.text;
  }
  return made;
}

}  // namespace rw::k8s::devserver
