#pragma once

#include <string_view>

namespace rw {

/// What is known of a reason or an alert: an entry of the table that `explain` prints, and of which
/// deploy/runbook.md is made. Texts have Markdown's backquotes, and name documents by their paths.
struct explanation {
  std::string_view word = {};  ///< in CamelCase, or a state as it is shown
  std::string_view meaning = {};
  std::string_view causes = {};    ///< the usual ones; empty: nothing is wrong
  std::string_view next = {};      ///< what to do about it; empty: nothing
  std::string_view commands = {};  ///< what to look at first; empty: the group's
  std::string_view fires = {};     ///< of an alert: when; empty: it is a reason
};

}  // namespace rw
