#pragma once

#include "rw/k8s/objects/label_selector.hpp"

#include <boost/json/value.hpp>

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace rw::runtime_rollout {

/// A number of runtimes, absolute or as a share of all.
struct share {
  unsigned value = 0;
  bool percent = false;

  /// A share of `total`, rounded down, but not less than `least`; an absolute number as it is.
  std::size_t of(std::size_t total, std::size_t least) const noexcept;
  friend bool operator==(const share&, const share&) = default;
};
/// "5" or "10%". None for anything else, and beyond 100 %.
std::optional<share> parse_share(std::string_view text);

/// Prometheus must say so before a step ends.
struct verification {
  std::string query = {};
  double threshold = 0;  ///< the query's one value must be at most this

  friend bool operator==(const verification&, const verification&) = default;
};

/// Runtimes that get a content before those of later steps.
struct step {
  /// "5" or "10%" of all that take part, those of earlier steps by number included (a percentage is
  /// 2 at least), or a label selector, of runtimes beside these.
  std::string runtimes = "1%";
  /// Time for which they must be ready with the content.
  std::chrono::milliseconds bake = std::chrono::seconds(10);
  std::optional<verification> verify = {};

  friend bool operator==(const step&, const step&) = default;
};

/// A step of a roll-out. Those at positions below `below` belong to it, and those that have its
/// labels, unless they belong to an earlier one.
struct placed_step {
  step of = {};
  std::uint64_t below = 0;

  friend bool operator==(const placed_step&, const placed_step&) = default;
};

/// Where a runtime is in each roll-out: the first 32 bits of the SHA-256 of its uid.
std::uint32_t position_of(std::string_view uid);

/// The selectors of the steps; one that is empty, of a step by number, selects nothing.
std::vector<k8s::label_selector> selectors_of(const std::vector<step>& steps);
/// The first of the selectors that matches.
std::optional<std::size_t> first_match(const std::vector<k8s::label_selector>& selectors,
                                       const boost::json::value* labels);

struct member {
  std::uint32_t position = 0;
  std::optional<std::size_t> labelled = {};  ///< the first step that has its labels
  bool answers = true;
  bool proves = true;  ///< it responds, and was not failing before
};

/// Raises `below` of each step by number until it has as many that prove something as it should; in
/// no other way do steps change while a content is rolled out. Where none proves anything, those
/// that respond count. The first step is by number (1%), too, where none of its labels proves
/// anything.
void raise(std::vector<placed_step>& steps, const std::vector<member>& all);

/// The index of the step that a runtime belongs to; one more than the last: to the others.
std::size_t step_of(const std::vector<placed_step>& steps, const member& runtime);

}  // namespace rw::runtime_rollout
