#include "rw/k8s/devserver/json_path.hpp"

#include "rw/k8s/devserver/json_access.hpp"

#include <boost/json/array.hpp>

#include <algorithm>
#include <charconv>

namespace rw::k8s::devserver {

namespace json = boost::json;

class json_path::parser {
 public:
  explicit parser(std::string_view text) : rest_(text) {}

  bool parse(std::vector<step>& into) {
    if (rest_.starts_with('{') && rest_.ends_with('}')) {
      rest_ = rest_.substr(1, rest_.size() - 2);
    }
    if (rest_.starts_with('$')) rest_.remove_prefix(1);
    while (!rest_.empty()) {
      const bool good = rest_.front() == '[' ? bracket(into) : name(into);
      if (!good) return false;
    }
    return true;
  }

 private:
  bool take(std::string_view text) {
    if (!rest_.starts_with(text)) return false;
    rest_.remove_prefix(text.size());
    return true;
  }

  bool name(std::vector<step>& into) {
    take(".");
    std::string text;
    while (!rest_.empty() && rest_.front() != '.' && rest_.front() != '[') {
      if (rest_.front() == '\\' && rest_.size() > 1) rest_.remove_prefix(1);
      text += rest_.front();
      rest_.remove_prefix(1);
    }
    if (text == "*") {
      into.push_back({step::kind::all});
    } else if (!text.empty()) {
      into.push_back({step::kind::name, text});
    } else {
      return rest_.starts_with('[') || rest_.empty();
    }
    return true;
  }

  bool bracket(std::vector<step>& into) {
    if (take("[*]")) {
      into.push_back({step::kind::all});
      return true;
    }
    if (take("[?(@.")) return filter(into);
    if (rest_.starts_with("['") || rest_.starts_with("[\"")) return quoted_name(into);
    take("[");
    step step{step::kind::index};
    const auto end = std::from_chars(rest_.data(), rest_.data() + rest_.size(), step.index);
    if (end.ec != std::errc()) return false;
    rest_.remove_prefix(static_cast<std::size_t>(end.ptr - rest_.data()));
    into.push_back(std::move(step));
    return take("]");
  }

  bool quoted_name(std::vector<step>& into) {
    const char quote = rest_[1];
    rest_.remove_prefix(2);
    const auto end = rest_.find(quote);
    if (end == std::string_view::npos) return false;
    into.push_back({step::kind::name, std::string(rest_.substr(0, end))});
    rest_.remove_prefix(end + 1);
    return take("]");
  }

  bool filter(std::vector<step>& into) {
    const auto end = rest_.find_first_of("=! ");
    if (end == std::string_view::npos) return false;
    step step{step::kind::filter, std::string(rest_.substr(0, end))};
    rest_.remove_prefix(end);
    skip_blanks();
    step.equal = rest_.starts_with("==");
    if (!take("==") && !take("!=")) return false;
    skip_blanks();
    const auto close = rest_.find(")]");
    if (close == std::string_view::npos) return false;
    std::string literal(rest_.substr(0, close));
    while (!literal.empty() && literal.back() == ' ') literal.pop_back();
    if (literal.size() >= 2 && literal.front() == '\'') literal.front() = literal.back() = '"';
    std::string reason;
    auto value = parse_json(literal, reason);
    if (!value) return false;
    step.value = std::move(*value);
    rest_.remove_prefix(close);
    into.push_back(std::move(step));
    return take(")]");
  }

  void skip_blanks() {
    while (rest_.starts_with(' ')) rest_.remove_prefix(1);
  }

  std::string_view rest_;
};

std::optional<json_path> json_path::parse(std::string_view text) {
  json_path result;
  if (!parser(text).parse(result.steps_)) return {};
  return result;
}

std::vector<const json::value*> json_path::find(const json::value& in) const {
  std::vector<const json::value*> found{&in};
  for (const auto& step : steps_) {
    std::vector<const json::value*> next;
    for (const auto* value : found) {
      if (step.form == step::kind::name) {
        const auto* field = devserver::find(*value, {step.name});
        if (field != nullptr) next.push_back(field);
        continue;
      }
      if (value->is_object() && step.form == step::kind::all) {
        for (const auto& field : value->get_object()) next.push_back(&field.value());
      }
      if (!value->is_array()) continue;
      const auto& items = value->get_array();
      if (step.form == step::kind::index) {
        const auto size = static_cast<std::int64_t>(items.size());
        const auto index = step.index < 0 ? size + step.index : step.index;
        if (index >= 0 && index < size) next.push_back(&items[static_cast<std::size_t>(index)]);
        continue;
      }
      for (const auto& item : items) {
        const auto* field =
            step.form == step::kind::filter ? devserver::find(item, {step.name}) : nullptr;
        if (step.form == step::kind::all ||
            (field != nullptr && (*field == step.value) == step.equal)) {
          next.push_back(&item);
        }
      }
    }
    found = std::move(next);
  }
  return found;
}

bool json_path::set(json::value& in, json::value value) const {
  auto* at = &in;
  for (const auto& step : steps_) {
    if (step.form != step::kind::name) return false;
    if (!at->is_object()) at->emplace_object();
    at = &at->get_object()[step.name];
  }
  *at = std::move(value);
  return true;
}

}  // namespace rw::k8s::devserver
