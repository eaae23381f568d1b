#include "rw/k8s/objects/label_selector.hpp"

#include "rw/core/text.hpp"
#include "rw/k8s/objects/qualified_name.hpp"

#include <boost/json/array.hpp>
#include <boost/json/object.hpp>
#include <boost/json/serialize.hpp>

#include <algorithm>
#include <optional>
#include <utility>

namespace rw::k8s {
namespace {

namespace json = boost::json;

core::text_error bad(std::string message) {
  return {std::move(message)};
}

std::string json_quoted(std::string_view text) {
  return json::serialize(json::string(text));
}

std::string joined(const std::vector<std::string>& errors) {
  std::string text;
  for (const auto& error : errors) {
    if (!text.empty()) text += "; ";
    text += error;
  }
  return text;
}

std::optional<std::int64_t> integer(std::string_view text) {
  if (text.starts_with('+')) {
    text.remove_prefix(1);
    if (text.starts_with('-')) return std::nullopt;
  }
  return core::parse_number<std::int64_t>(text);
}

enum class token : std::uint8_t { end, word, symbol };

/// Tokens of a label selector: words, and symbols of one or two characters.
class label_lexer {
 public:
  explicit label_lexer(std::string_view text) : rest_(text) { advance(); }

  token kind() const noexcept { return kind_; }
  std::string_view text() const noexcept { return text_; }
  bool is(std::string_view symbol) const noexcept {
    return kind_ == token::symbol && text_ == symbol;
  }

  /// Advances to the next token; returns the current one.
  std::pair<token, std::string_view> take() {
    const std::pair was(kind_, text_);
    advance();
    return was;
  }

 private:
  static constexpr std::string_view spaces = " \t\r\n";
  static constexpr std::string_view symbols = "=!(),<>";

  void advance() {
    rest_.remove_prefix(std::min(rest_.find_first_not_of(spaces), rest_.size()));
    std::size_t length = 0;
    kind_ = token::end;
    if (!rest_.empty() && symbols.find(rest_.front()) != std::string_view::npos) {
      kind_ = token::symbol;
      length = rest_.starts_with("==") || rest_.starts_with("!=") ? 2 : 1;
    } else if (!rest_.empty()) {
      kind_ = token::word;
      length = std::min(rest_.find_first_of(" \t\r\n=!(),<>"), rest_.size());
    }
    text_ = rest_.substr(0, length);
    rest_.remove_prefix(length);
  }

  std::string_view rest_;
  token kind_ = token::end;
  std::string_view text_;
};

}  // namespace

/// Parses the text of a label selector; its functions have the names of the grammar.
class label_selector_parser {
 public:
  explicit label_selector_parser(std::string_view text) : lexer_(text) {}

  selector_result<label_selector> selector() {
    if (lexer_.kind() == token::end) return std::move(into_);
    for (bool first = true;; first = false) {
      if (lexer_.kind() != token::word && !lexer_.is("!")) {
        return found(first ? "', expected: !, identifier, or 'end of string'"
                           : "', expected: identifier after ','");
      }
      const auto added = requirement();
      if (!added) return bad("unable to parse requirement: " + added.error().message);
      if (lexer_.kind() == token::end) return std::move(into_);
      if (!lexer_.is(",")) return found("', expected: ',' or 'end of string'");
      lexer_.take();
    }
  }

 private:
  using comparison = label_selector::comparison;

  core::text_error found(std::string_view expected) const {
    return bad("found '" + std::string(lexer_.text()) + std::string(expected));
  }

  selector_result<void> requirement() {
    const bool absent = lexer_.is("!");
    if (absent) lexer_.take();
    if (lexer_.kind() != token::word) return found("', expected: identifier");
    std::string key(lexer_.take().second);
    if (const auto errors = label_key_errors(key); !errors.empty()) {
      return bad("invalid label key " + json_quoted(key) + ": " + joined(errors));
    }
    if (absent) return into_.add(std::move(key), comparison::missing, {});
    if (lexer_.kind() == token::end || lexer_.is(",")) {
      return into_.add(std::move(key), comparison::exists, {});
    }
    return compared(std::move(key));
  }

  selector_result<void> compared(std::string key) {
    static constexpr std::pair<std::string_view, comparison> operators[] = {
        {"=", comparison::in},      {"==", comparison::in},        {"in", comparison::in},
        {"!=", comparison::not_in}, {"notin", comparison::not_in}, {">", comparison::greater},
        {"<", comparison::less}};
    const auto* const operation =
        std::ranges::find(operators, lexer_.text(), [](const auto& known) { return known.first; });
    if (operation == std::end(operators)) {
      return found("', expected: '=', '!=', '==', 'in', notin'");
    }
    const bool several = lexer_.take().first == token::word;
    auto values = several ? list() : value();
    if (!values) return values.error();
    return into_.add(std::move(key), operation->second, std::move(*values));
  }

  selector_result<std::vector<std::string>> value() {
    if (lexer_.kind() == token::end || lexer_.is(",")) return std::vector<std::string>{""};
    if (lexer_.kind() != token::word) return found("', expected: identifier");
    return std::vector<std::string>{std::string(lexer_.take().second)};
  }

  /// "(a,b)"; an omitted value between commas or parentheses is an empty one.
  selector_result<std::vector<std::string>> list() {
    if (!lexer_.is("(")) return found("' expected: '('");
    lexer_.take();
    std::vector<std::string> values;
    for (;;) {
      const bool given = lexer_.kind() == token::word;
      values.emplace_back(given ? lexer_.take().second : std::string_view());
      if (!lexer_.is(",") && !lexer_.is(")")) {
        return found(given || values.size() > 1 ? "', expected: ',' or ')'"
                                                : "', expected: ',', ')' or identifier");
      }
      if (lexer_.take().second == ")") return values;
    }
  }

  label_lexer lexer_;
  label_selector into_;
};

selector_result<label_selector> label_selector::parse(std::string_view text) {
  return label_selector_parser(text).selector();
}

selector_result<void> label_selector::add(std::string key, comparison op,
                                          std::vector<std::string> values) {
  if (const auto errors = label_key_errors(key); !errors.empty()) {
    return bad("invalid label key " + json_quoted(key) + ": " + joined(errors));
  }
  term made{std::move(key), op, std::move(values)};
  switch (op) {
    case comparison::in:
    case comparison::not_in:
      if (made.values.empty()) {
        return bad("for 'in', 'notin' operators, values set can't be empty");
      }
      break;
    case comparison::exists:
    case comparison::missing:
      if (!made.values.empty()) {
        return bad("values set must be empty for exists and does not exist");
      }
      break;
    case comparison::greater:
    case comparison::less:
      const auto bound = integer(made.values.front());
      if (!bound) return bad("for 'Gt', 'Lt' operators, the value must be an integer");
      made.bound = *bound;
      break;
  }
  for (const auto& value : made.values) {
    if (const auto errors = label_value_errors(value); !errors.empty()) {
      return bad("invalid label value: " + json_quoted(value) +
                 ": at key: " + json_quoted(made.key) + ": " + joined(errors));
    }
  }
  terms_.push_back(std::move(made));
  return {};
}

namespace {

const json::value* member(const json::object& of, std::string_view name) {
  const auto* const found = of.if_contains(name);
  return found != nullptr && !found->is_null() ? found : nullptr;
}

std::string_view text_of(const json::value* value) {
  return value != nullptr && value->is_string() ? std::string_view(value->get_string())
                                                : std::string_view();
}

selector_result<std::vector<std::string>> strings(const json::value* list) {
  std::vector<std::string> out;
  if (list == nullptr) return out;
  if (!list->is_array()) return bad("values of a label selector requirement must be a list");
  for (const auto& entry : list->get_array()) {
    if (!entry.is_string()) return bad("values of a label selector requirement must be strings");
    out.emplace_back(entry.get_string());
  }
  return out;
}

}  // namespace

selector_result<label_selector> label_selector::from_json(const json::value& selector) {
  label_selector made;
  if (selector.is_null()) {
    made.nothing_ = true;
    return made;
  }
  if (!selector.is_object()) return bad("a label selector must be an object");
  if (const auto* const labels = member(selector.get_object(), "matchLabels")) {
    if (!labels->is_object()) return bad("matchLabels of a label selector must be an object");
    for (const auto& [key, value] : labels->get_object()) {
      if (!value.is_string()) return bad("matchLabels of a label selector must be strings");
      const auto added = made.add(key, comparison::in, {std::string(value.get_string())});
      if (!added) return added.error();
    }
  }
  const auto* const expressions = member(selector.get_object(), "matchExpressions");
  if (expressions == nullptr) return made;
  if (!expressions->is_array()) return bad("matchExpressions of a label selector must be a list");
  for (const auto& expression : expressions->get_array()) {
    if (!expression.is_object()) return bad("matchExpressions of a label selector must be objects");
    static constexpr std::pair<std::string_view, comparison> operators[] = {
        {"In", comparison::in},
        {"NotIn", comparison::not_in},
        {"Exists", comparison::exists},
        {"DoesNotExist", comparison::missing}};
    const auto name = text_of(member(expression.get_object(), "operator"));
    const auto* const operation =
        std::ranges::find(operators, name, [](const auto& known) { return known.first; });
    if (operation == std::end(operators)) {
      return bad(json_quoted(name) + " is not a valid label selector operator");
    }
    auto values = strings(member(expression.get_object(), "values"));
    if (!values) return values.error();
    const auto added = made.add(std::string(text_of(member(expression.get_object(), "key"))),
                                operation->second, std::move(*values));
    if (!added) return added.error();
  }
  return made;
}

bool label_selector::term::matches(const std::string_view* value) const {
  switch (op) {
    case comparison::exists:
      return value != nullptr;
    case comparison::missing:
      return value == nullptr;
    case comparison::in:
      return value != nullptr && std::ranges::find(values, *value) != values.end();
    case comparison::not_in:
      return value == nullptr || std::ranges::find(values, *value) == values.end();
    case comparison::greater:
    case comparison::less:
      const auto number = value != nullptr ? integer(*value) : std::nullopt;
      return number && (op == comparison::greater ? *number > bound : *number < bound);
  }
  return false;
}

bool label_selector::matches(const json::value* labels) const {
  if (nothing_) return false;
  const auto* const all = labels != nullptr ? labels->if_object() : nullptr;
  return std::ranges::all_of(terms_, [all](const term& term) {
    const auto* const found = all != nullptr ? all->if_contains(term.key) : nullptr;
    if (found == nullptr) return term.matches(nullptr);
    const auto value = text_of(found);
    return term.matches(&value);
  });
}

}  // namespace rw::k8s
