#pragma once

#include "rw/reactors/shared/bootstrapper_sources.hpp"

#include <boost/json/array.hpp>
#include <boost/json/value.hpp>

#include <string>
#include <string_view>

namespace rw::cli {

/// True if a RuntimeBootstrapper takes part in the roll-out: it is written to, and shares the
/// content of the manager's usual sources.
bool takes_part(const boost::json::value& bootstrapper, const bootstrapper_sources& usual);

/// What `rollout plan` prints: a table of the step of each runtime, in the order of the steps, and
/// within one of the runtimes' positions. Pure.
///
/// `rollout`: a RuntimeRollout. `runtimes`: its runtimes as objects with uid and labels (Kymas, or
/// Runtimes). While content is rolled out its steps are as they were placed; those of the next
/// content, and steps that are changed, are placed as if all runtimes responded.
std::string plan_of(const boost::json::value& rollout, const boost::json::array& runtimes);

}  // namespace rw::cli
