#pragma once

#include <string>
#include <string_view>

namespace rw::cli {

/// Compares two texts by lines, in the unified format (POSIX, diff -u): hunks with three lines of
/// context, without the header that names the files. Empty if they are equal.
///
/// A shortest edit script, by the longest common subsequence; where the parts that differ have more
/// than 16 million pairs of lines, all of one part is replaced by the other.
std::string unified_diff(std::string_view before, std::string_view after);

}  // namespace rw::cli
