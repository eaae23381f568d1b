#include "rw/k8s/devserver/field_selector.hpp"

#include <boost/json/object.hpp>
#include <boost/json/serialize.hpp>

#include <algorithm>
#include <utility>

namespace rw::k8s::devserver {
namespace {

namespace json = boost::json;

problem bad(std::string message) {
  return {.code = 400, .reason = "BadRequest", .message = std::move(message)};
}

/// Returns `text` up to its first comma that is not escaped; the rest stays in `text`.
std::string_view cut_term(std::string_view& text) {
  bool escaped = false;
  for (std::size_t i = 0; i < text.size(); ++i) {
    if (text[i] == ',' && !escaped) {
      const auto term = text.substr(0, i);
      text.remove_prefix(i + 1);
      return term;
    }
    escaped = text[i] == '\\' && !escaped;
  }
  return std::exchange(text, {});
}

outcome<std::string> unescaped(std::string_view value) {
  std::string out;
  for (std::size_t i = 0; i < value.size(); ++i) {
    const char c = value[i];
    if (c == '\\') {
      const auto escape = value.substr(i, 2);
      if (escape != "\\\\" && escape != "\\," && escape != "\\=") {
        return bad("invalid field selector: invalid escape sequence: " + std::string(escape));
      }
      out += escape[1];
      ++i;
    } else if (c == '=' || c == ',') {
      return bad("invalid field selector: unescaped character in value: " + std::to_string(int{c}));
    } else {
      out += c;
    }
  }
  return out;
}

const json::value* at_path(const json::value& object, std::string_view path) {
  const auto* at = &object;
  while (at != nullptr && !path.empty()) {
    if (!at->is_object()) return nullptr;
    const auto dot = std::min(path.find('.'), path.size());
    at = at->get_object().if_contains(path.substr(0, dot));
    path.remove_prefix(std::min(dot + 1, path.size()));
  }
  return at;
}

}  // namespace

outcome<field_selector> field_selector::parse(std::string_view text) {
  field_selector made;
  while (!text.empty()) {
    const auto term = cut_term(text);
    if (term.empty()) continue;
    const auto sign = term.find('=');
    if (sign == std::string_view::npos) {
      return bad("invalid selector: '" + std::string(term) + "'; can't understand '" +
                 std::string(term) + "'");
    }
    const bool equal = sign == 0 || term[sign - 1] != '!';
    const bool twice = equal && term.substr(sign).starts_with("==");
    auto value = unescaped(term.substr(sign + (twice ? 2 : 1)));
    if (!value) return value.error();
    made.terms_.push_back(
        {std::string(term.substr(0, equal ? sign : sign - 1)), std::move(*value), equal});
  }
  return made;
}

bool field_selector::matches(const json::value& object) const {
  return std::ranges::all_of(terms_, [&object](const term& term) {
    const auto* const found = at_path(object, term.path);
    if (found != nullptr && found->is_string()) {
      return (std::string_view(found->get_string()) == term.value) == term.equal;
    }
    const bool nothing = found == nullptr || found->is_null();
    return ((nothing ? std::string() : json::serialize(*found)) == term.value) == term.equal;
  });
}

}  // namespace rw::k8s::devserver
