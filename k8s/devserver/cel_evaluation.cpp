#include "rw/core/text.hpp"
#include "rw/k8s/devserver/cel.hpp"
#include "rw/k8s/devserver/cel_operand.hpp"

#include <boost/json/array.hpp>
#include <boost/json/object.hpp>
#include <boost/json/serialize.hpp>
#include <boost/json/string.hpp>

#include <algorithm>
#include <cmath>
#include <limits>
#include <optional>
#include <re2/re2.h>
#include <utility>

namespace rw::k8s::devserver {
namespace cel {
namespace {

using kind = cel_node::kind;

/// Nodes that one evaluation may visit.
constexpr std::size_t most_steps = 1'000'000;

class evaluator {
 public:
  evaluator(const json::value& self, const json::value* old_self)
      : self_(self), old_self_(old_self) {}

  operand run(const cel_node& node) {
    if (++steps_ > most_steps) return operand::failure("operation cancelled: cost limit exceeded");
    switch (node.is) {
      case kind::literal:
        return operand::of(node.value);
      case kind::name:
        return variable(node.text);
      case kind::select:
        return select(run(*node.args[0]), node.text);
      case kind::has: {
        const auto of = run(*node.args[0]);
        if (of.failed()) return of;
        if (!of.get().is_object()) return no_overload("has");
        return json::value(of.get().get_object().contains(node.text));
      }
      case kind::index:
        return item(node);
      case kind::call:
      case kind::method:
        return call(node);
      case kind::unary:
        return unary(node);
      case kind::binary:
        return binary(node);
      case kind::ternary: {
        const auto selected = run(*node.args[0]);
        if (selected.failed()) return selected;
        if (!selected.get().is_bool()) return no_overload("?:");
        return run(*node.args[selected.get().get_bool() ? 1 : 2]);
      }
      case kind::list:
        return list(node);
      case kind::map:
        return map(node);
      case kind::macro:
        return macro(node);
    }
    return no_overload(node.text);
  }

 private:
  operand variable(const std::string& name) {
    for (auto at = scope_.rbegin(); at != scope_.rend(); ++at) {
      if (at->first == name) return operand::of(*at->second);
    }
    if (name == "self") return operand::of(self_);
    if (name == "oldSelf" && old_self_ != nullptr) return operand::of(*old_self_);
    return operand::failure("no such attribute: " + name);
  }

  /// A part of what is borrowed is borrowed, too.
  operand part(operand of, const json::value* found, const std::string& name) {
    if (found == nullptr) return operand::failure("no such key: " + name);
    if (of.is_borrowed()) return operand::of(*found);
    return json::value(*found);
  }
  operand select(operand of, const std::string& name) {
    if (of.failed()) return of;
    if (!of.get().is_object()) return no_overload("." + name);
    const auto* const found = of.get().get_object().if_contains(name);
    return part(std::move(of), found, name);
  }

  operand item(const cel_node& node) {
    auto of = run(*node.args[0]);
    if (of.failed()) return of;
    const auto at = run(*node.args[1]);
    if (at.failed()) return at;
    const auto& key = at.get();
    if (of.get().is_object() && key.is_string()) {
      const auto* const found = of.get().get_object().if_contains(text_in(key));
      return part(std::move(of), found, std::string(text_in(key)));
    }
    if (!of.get().is_array() || !key.is_int64()) return no_overload("[]");
    const auto& all = of.get().get_array();
    const auto index = key.get_int64();
    if (index < 0 || static_cast<std::uint64_t>(index) >= all.size()) {
      return operand::failure("index out of bounds: " + std::to_string(index));
    }
    return part(std::move(of), &all[static_cast<std::size_t>(index)], {});
  }

  operand unary(const cel_node& node) {
    const auto of = run(*node.args[0]);
    if (of.failed()) return of;
    if (node.text == "!" && of.get().is_bool()) return json::value(!of.get().get_bool());
    if (node.text == "-" && of.get().is_double()) return json::value(-of.get().get_double());
    if (node.text == "-" && of.get().is_int64()) return whole_number("-", 0, of.get().get_int64());
    return no_overload(node.text);
  }

  /// An error counts only if the other side does not decide.
  operand logic(const cel_node& node, bool decides) {
    auto left = run(*node.args[0]);
    if (left.is(decides)) return left;
    auto right = run(*node.args[1]);
    if (right.is(decides)) return right;
    if (left.failed()) return left;
    if (right.failed()) return right;
    if (!left.get().is_bool() || !right.get().is_bool()) return no_overload(node.text);
    return json::value(!decides);
  }

  operand binary(const cel_node& node) {
    const auto& name = node.text;
    if (name == "&&") return logic(node, false);
    if (name == "||") return logic(node, true);
    const auto left = run(*node.args[0]);
    if (left.failed()) return left;
    const auto right = run(*node.args[1]);
    if (right.failed()) return right;
    const auto& a = left.get();
    const auto& b = right.get();
    if (name == "==") return json::value(equal(a, b));
    if (name == "!=") return json::value(!equal(a, b));
    if (name == "in") return among(a, b);
    if (name[0] != '<' && name[0] != '>') return arithmetic(name, a, b);
    const auto is = order(a, b);
    if (!is) return no_overload(name);
    if (name == "<") return json::value(*is < 0);
    if (name == "<=") return json::value(*is <= 0);
    return json::value(name == ">" ? *is > 0 : *is >= 0);
  }

  operand among(const json::value& a, const json::value& b) {
    if (b.is_object()) return json::value(a.is_string() && b.get_object().contains(text_in(a)));
    if (!b.is_array()) return no_overload("in");
    steps_ += b.get_array().size();
    return json::value(std::ranges::any_of(
        b.get_array(), [&](const json::value& entry) { return equal(a, entry); }));
  }

  operand list(const cel_node& node) {
    json::array all;
    for (const auto& arg : node.args) {
      auto made = run(*arg);
      if (made.failed()) return made;
      all.push_back(made.get());
    }
    return json::value(std::move(all));
  }

  operand map(const cel_node& node) {
    json::object all;
    for (std::size_t i = 0; i + 1 < node.args.size(); i += 2) {
      const auto key = run(*node.args[i]);
      if (key.failed()) return key;
      const auto value = run(*node.args[i + 1]);
      if (value.failed()) return value;
      if (!key.get().is_string()) return operand::failure("unsupported key type");
      all[text_in(key.get())] = value.get();
    }
    return json::value(std::move(all));
  }

  operand macro(const cel_node& node) {
    const auto of = run(*node.args[0]);
    if (of.failed()) return of;
    json::array keys;
    if (of.get().is_object()) {
      for (const auto& field : of.get().get_object()) keys.emplace_back(json::string(field.key()));
    } else if (!of.get().is_array()) {
      return no_overload(node.text);
    }
    const auto& all = of.get().is_array() ? of.get().get_array() : keys;
    if (node.text == "map" || node.text == "filter") return collect(node, all);
    return quantify(node, all);
  }

  operand run_for(const cel_node& node, std::size_t argument, const json::value& entry) {
    scope_.emplace_back(node.variable, &entry);
    auto made = run(*node.args[argument]);
    scope_.pop_back();
    return made;
  }

  operand quantify(const cel_node& node, const json::array& all) {
    const bool every = node.text == "all";
    const bool single = node.text == "exists_one";
    std::size_t count = 0;
    std::string error;
    for (const auto& entry : all) {
      auto made = run_for(node, 1, entry);
      if (made.failed() || !made.get().is_bool()) {
        if (single) return made.failed() ? made : no_overload(node.text);
        if (error.empty()) error = made.failed() ? made.error : "no such overload";
        continue;
      }
      if (made.get().get_bool()) ++count;
      if (!single && made.get().get_bool() != every) return json::value(!every);
    }
    if (!error.empty()) return operand::failure(std::move(error));
    return json::value(single ? count == 1 : every);
  }

  operand collect(const cel_node& node, const json::array& all) {
    const bool filters = node.text == "filter" || node.args.size() == 3;
    json::array made;
    for (const auto& entry : all) {
      if (filters) {
        auto wanted = run_for(node, 1, entry);
        if (wanted.failed()) return wanted;
        if (!wanted.is(true)) continue;
      }
      if (node.text == "filter") {
        made.push_back(entry);
        continue;
      }
      auto value = run_for(node, node.args.size() - 1, entry);
      if (value.failed()) return value;
      made.push_back(value.get());
    }
    return json::value(std::move(made));
  }

  operand call(const cel_node& node) {
    json::array args;
    for (const auto& arg : node.args) {
      auto made = run(*arg);
      if (made.failed()) return made;
      args.push_back(made.get());
    }
    if (args.empty()) return no_overload(node.text);
    const auto& name = node.text;
    auto& first = args[0];
    if (name == "size") return size(first);
    if (name == "dyn") return std::move(first);
    if (name == "int" || name == "uint" || name == "double" || name == "string" || name == "bool") {
      return convert(name, first);
    }
    if (first.is_string()) return text_call(name, args);
    if (first.is_array()) return list_call(name, args);
    return no_overload(name);
  }

  static operand size(const json::value& of) {
    if (of.is_string()) return json::value(length(text_in(of)));
    if (of.is_array()) return json::value(static_cast<std::int64_t>(of.get_array().size()));
    if (of.is_object()) return json::value(static_cast<std::int64_t>(of.get_object().size()));
    return no_overload("size");
  }

  static operand convert(const std::string& to, const json::value& of) {
    if (to == "string") {
      return of.is_string() ? operand(of) : operand(json::value(json::serialize(of)));
    }
    if (to == "bool") {
      if (of.is_bool()) return of;
      if (of.is_string() && of.get_string() == "true") return json::value(true);
      if (of.is_string() && of.get_string() == "false") return json::value(false);
      return operand::failure("type conversion error to bool");
    }
    if (to == "double") {
      if (of.is_number()) return json::value(*real(of));
      const auto number = of.is_string() ? core::parse_number<double>(text_in(of)) : std::nullopt;
      return number ? operand(json::value(*number)) : operand::failure("type conversion error");
    }
    if (of.is_double()) {
      const double whole = std::trunc(of.get_double());
      if (std::abs(whole) < 9.2e18) return json::value(static_cast<std::int64_t>(whole));
      return operand::failure("integer overflow");
    }
    if (of.is_int64()) return of;
    const auto number =
        of.is_string() ? core::parse_number<std::int64_t>(text_in(of)) : std::nullopt;
    return number ? operand(json::value(*number)) : operand::failure("type conversion error");
  }

  operand text_call(const std::string& name, const json::array& args) {
    const auto text = text_in(args[0]);
    steps_ += text.size() / 16;
    if (args.size() == 1) {
      if (name == "lowerAscii") return json::value(core::lower(text));
      if (name == "trim") return json::value(json::string(core::trimmed(text)));
      if (name == "upperAscii") {
        std::string upper(text);
        for (auto& c : upper) c = c >= 'a' && c <= 'z' ? static_cast<char>(c - 32) : c;
        return json::value(upper);
      }
      return no_overload(name);
    }
    if (!args[1].is_string()) return no_overload(name);
    const auto with = text_in(args[1]);
    if (name == "startsWith") return json::value(text.starts_with(with));
    if (name == "endsWith") return json::value(text.ends_with(with));
    if (name == "contains") return json::value(text.find(with) != std::string_view::npos);
    if (name == "indexOf") {
      const auto at = text.find(with);
      if (at == std::string_view::npos) return json::value(-1);
      return json::value(length(text.substr(0, at)));
    }
    if (name == "matches") {
      const re2::RE2 pattern({with.data(), with.size()}, re2::RE2::Quiet);
      if (!pattern.ok()) return operand::failure("invalid regular expression: " + pattern.error());
      return json::value(re2::RE2::PartialMatch({text.data(), text.size()}, pattern));
    }
    if (name != "replace" || args.size() != 3 || !args[2].is_string() || with.empty()) {
      return no_overload(name);
    }
    std::string made;
    std::size_t from = 0;
    for (auto at = text.find(with); at != std::string_view::npos; at = text.find(with, from)) {
      made.append(text.substr(from, at - from)).append(text_in(args[2]));
      from = at + with.size();
    }
    return json::value(made.append(text.substr(from)));
  }

  operand list_call(const std::string& name, const json::array& args) {
    const auto& all = args[0].get_array();
    steps_ += all.size();
    if (name == "join") {
      std::string made;
      const bool has = args.size() > 1 && args[1].is_string();
      for (const auto& entry : all) {
        if (!entry.is_string()) return no_overload(name);
        if (&entry != all.data() && has) made += text_in(args[1]);
        made += text_in(entry);
      }
      return json::value(made);
    }
    if (name == "isSorted") {
      const auto descends = [](const json::value& a, const json::value& b) {
        return order(a, b).value_or(1) > 0;
      };
      return json::value(std::ranges::adjacent_find(all, descends) == all.end());
    }
    if (name == "indexOf" && args.size() == 2) {
      const auto at = std::ranges::find_if(
          all, [&](const json::value& entry) { return equal(entry, args[1]); });
      return json::value(at == all.end() ? std::int64_t{-1} : at - all.begin());
    }
    if (name == "sum") {
      operand made(json::value(0));
      for (const auto& entry : all) {
        made = arithmetic("+", made.get(), entry);
        if (made.failed()) return made;
      }
      return made;
    }
    if ((name != "min" && name != "max") || all.empty()) return no_overload(name);
    const json::value* best = all.data();
    for (const auto& entry : all) {
      const auto is = order(entry, *best);
      if (!is) return no_overload(name);
      if (name == "min" ? *is < 0 : *is > 0) best = &entry;
    }
    return json::value(*best);
  }

  const json::value& self_;
  const json::value* const old_self_;
  std::size_t steps_ = 0;
  std::vector<std::pair<std::string, const json::value*>> scope_;
};

}  // namespace
}  // namespace cel

cel_result cel_expression::evaluate(const boost::json::value& self,
                                    const boost::json::value* old_self) const {
  cel::evaluator running(self, old_self);
  auto made = running.run(*root_);
  if (made.failed()) return {{}, std::move(made.error)};
  return {made.get(), {}};
}

}  // namespace rw::k8s::devserver
