#pragma once

#include <boost/json/value.hpp>

#include <cstddef>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace rw::bootstrapper {

/// One thing that is wrong with what is to be brought to a runtime: where, as somebody who has to
/// mend it would look for it ("ConfigMap kcp-system/a, rt-bootstrapper-config.json,
/// namespaceFeatures.kyma-system[1]"), and what, the end of a sentence ("is no feature").
struct problem {
  std::string where;
  std::string text;

  std::string message() const { return where.empty() ? text : where + ": " + text; }
  friend bool operator==(const problem&, const problem&) = default;
};

using problems = std::vector<problem>;

/// All of them in one line, beyond `most` only their number.
std::string describe(const problems& all, std::size_t most = 5);

/// Collects problems below one place; nested ones add to the place's name.
class findings {
 public:
  findings(problems& into, std::string where) : into_(into), where_(std::move(where)) {}

  void add(std::string text) const { into_.push_back({where_, std::move(text)}); }
  void add(const std::string& field, std::string text) const { at(field).add(std::move(text)); }

  /// A member: "a.b"; below the name of a whole document: "a, b".
  findings at(const std::string& field) const {
    return {into_, where_.empty() ? field : where_ + separator_ + field, "."};
  }
  findings at(std::size_t index) const {
    return {into_, where_ + "[" + std::to_string(index) + "]", "."};
  }

 private:
  findings(problems& into, std::string where, const char* separator)
      : into_(into), where_(std::move(where)), separator_(separator) {}

  problems& into_;
  std::string where_;
  const char* separator_ = ", ";
};

/// Parses JSON. What is wrong is told without a word of the text, which may be a credential.
std::optional<boost::json::value> parse_json(std::string_view text, findings wrong);

}  // namespace rw::bootstrapper
