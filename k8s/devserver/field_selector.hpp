#pragma once

#include "rw/k8s/devserver/problem.hpp"

#include <boost/json/value.hpp>

#include <string>
#include <string_view>
#include <vector>

namespace rw::k8s::devserver {

/// A field selector ("metadata.name=a,spec.nodeName!=b"); `\,`, `\=` and `\\` are the characters
/// themselves. The caller checks which fields a kind supports.
class field_selector {
 public:
  struct term {
    std::string path;  ///< names separated by dots
    std::string value;
    bool equal = true;
  };
  static outcome<field_selector> parse(std::string_view text);

  /// A missing field counts as empty; numbers and booleans are compared in their JSON form.
  bool matches(const boost::json::value& object) const;
  const std::vector<term>& terms() const noexcept { return terms_; }
  /// The same, to change where fields are read.
  std::vector<term>& terms() noexcept { return terms_; }
  bool empty() const noexcept { return terms_.empty(); }

 private:
  std::vector<term> terms_;
};

}  // namespace rw::k8s::devserver
