#pragma once

#include "rw/core/text_error.hpp"

#include <boost/json/value.hpp>
#include <boost/system/result.hpp>

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

namespace rw::k8s {

/// The error is a sentence in the words of kube-apiserver.
template <class T>
using selector_result = boost::system::result<T, core::text_error>;

/// A label selector, as a query parameter writes it ("a=b,c!=d,e in (f,g),!h,i>5"), or as
/// metav1.LabelSelector (matchLabels, matchExpressions). Grammar, semantics and error texts are
/// those of kube-apiserver (Kubernetes: "Labels and Selectors"): `!=` and `notin` match objects
/// without the label, `<` and `>` compare integers.
class label_selector {
 public:
  /// Parses a text. An empty text selects everything.
  static selector_result<label_selector> parse(std::string_view text);
  /// Reads a metav1.LabelSelector. An empty object selects everything, null selects nothing.
  /// Returns the first error.
  static selector_result<label_selector> from_json(const boost::json::value& selector);

  /// `labels` is metadata.labels, or null.
  bool matches(const boost::json::value* labels) const;
  bool empty() const noexcept { return terms_.empty() && !nothing_; }

 private:
  friend class label_selector_parser;

  enum class comparison : std::uint8_t { exists, missing, in, not_in, greater, less };
  struct term {
    std::string key;
    comparison op;
    std::vector<std::string> values;
    std::int64_t bound = 0;  ///< of greater and less

    bool matches(const std::string_view* value) const;
  };
  selector_result<void> add(std::string key, comparison op, std::vector<std::string> values);

  std::vector<term> terms_;
  bool nothing_ = false;
};

}  // namespace rw::k8s
