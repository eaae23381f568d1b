#pragma once

#include <boost/json/value.hpp>

#include <cstddef>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace rw::bootstrapper {

/// One finding of a validation: the field as an operator would search for it ("ConfigMap
/// kcp-system/a, rt-bootstrapper-config.json, namespaceFeatures.kyma-system[1]") and what it
/// violates, the end of a sentence.
struct diagnostic {
  std::string field;
  std::string detail;

  std::string message() const { return field.empty() ? detail : field + ": " + detail; }
  friend bool operator==(const diagnostic&, const diagnostic&) = default;
};

/// Errors make the input invalid; warnings are reported, and the input is used.
struct diagnostics {
  std::vector<diagnostic> errors = {};
  std::vector<diagnostic> warnings = {};
};

/// All messages in one line; beyond `most` only their number.
std::string describe(const std::vector<diagnostic>& all, std::size_t most = 5);

/// A field below which diagnostics are collected. Refers to its diagnostics.
class field_path {
 public:
  field_path(diagnostics& into, std::string path) : into_(into), path_(std::move(path)) {}

  void error(std::string detail) const { into_.errors.push_back({path_, std::move(detail)}); }
  void warning(std::string detail) const { into_.warnings.push_back({path_, std::move(detail)}); }
  void error(const std::string& field, std::string detail) const {
    at(field).error(std::move(detail));
  }

  /// A member: "a.b"; below the name of a document: "a, b".
  field_path at(const std::string& field) const {
    return {into_, path_.empty() ? field : path_ + separator_ + field, "."};
  }
  field_path at(std::size_t index) const {
    return {into_, path_ + "[" + std::to_string(index) + "]", "."};
  }

 private:
  field_path(diagnostics& into, std::string path, const char* separator)
      : into_(into), path_(std::move(path)), separator_(separator) {}

  diagnostics& into_;
  std::string path_;
  const char* separator_ = ", ";
};

/// Parses JSON. The error quotes nothing of the text, which may be a credential.
std::optional<boost::json::value> parse_json(std::string_view text, const field_path& path);

}  // namespace rw::bootstrapper
