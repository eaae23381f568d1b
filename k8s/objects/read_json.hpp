#pragma once

#include "rw/core/text_error.hpp"

#include <boost/json/value.hpp>
#include <boost/system/result.hpp>

#include <cstddef>
#include <cstdint>
#include <string_view>

namespace rw::k8s {

/// What a JSON text may cost as a DOM. Boost.JSON's objects find members by a hash that whoever
/// writes the text can aim at, whatever their capacity, so no promise rests on it: an object of
/// n > 18 members is taken to need n^2 comparisons.
struct json_budget {
  std::size_t depth = 256;                             ///< of nested arrays and objects
  std::size_t memory_of_each_byte = 12;                ///< objects of Kubernetes take about 7
  std::size_t least_memory = std::size_t{1} << 20;     ///< that a small text may take in any case
  bool is_counted = true;                              ///< false: of a text that was within before
  std::uint64_t comparisons = std::uint64_t{1} << 26;  ///< one object of 8,192 members
};

/// What a text would cost, counted without building anything.
struct json_cost {
  std::size_t memory = 0;  ///< bytes of the DOM, and of the parser at its peak
  std::uint64_t comparisons = 0;
  bool is_too_deep = false;  ///< then nothing was counted beyond
};

/// Counts in one pass, whatever the bytes are: what a text that is not JSON costs until the parser
/// finds that.
json_cost json_cost_of(std::string_view text, std::size_t max_depth);

/// Returns the end of a sentence that says why a text is over the budget, such as "has objects of
/// too many members"; empty if it is not.
std::string_view over_budget(std::string_view text, const json_budget& budget = {});

/// Makes a DOM of a whole JSON text (RFC 8259) that is within the budget; of duplicate names the
/// last one counts. The error is the end of a sentence. Every DOM of foreign bytes is made here;
/// what need not be a DOM is read by core::json_document.
boost::system::result<boost::json::value, core::text_error> read_json(
    std::string_view text, const json_budget& budget = {});

}  // namespace rw::k8s
