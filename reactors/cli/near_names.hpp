#pragma once

#include <string>
#include <string_view>
#include <vector>

namespace rw::cli {

/// Returns the known names that a mistyped one may stand for, the nearest first, at most three:
/// those that begin with it, and those within two insertions, deletions and replacements
/// (Levenshtein).
std::vector<std::string> near_names(std::string_view given, const std::vector<std::string>& known);

/// Says that KCP has no such Kyma, and which names are near, or which Kymas there are.
std::string unknown_kyma(const std::string& given, const std::vector<std::string>& known);

}  // namespace rw::cli
