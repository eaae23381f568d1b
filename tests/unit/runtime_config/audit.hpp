#pragma once

#include <boost/asio/awaitable.hpp>

#include "tests/unit/runtime_config/land.hpp"
#include <cstddef>
#include <string>
#include <vector>

namespace rw::runtime_config_test {

/// What the API server's own history says, from the beginning.
struct findings {
  std::string wrong;  ///< a line for each write that should not have been
  std::size_t ours = 0, kims = 0, marks = 0, handovers = 0;
};

/// Reads a runtime's history: each revision of what configures it, whose write it was (confirmed by
/// its managedFields), between which of the fences that KIM and the author have put there.
///   - A write is ours only where the author has asked for `direct`, since before KIM began or
///     after. So none is on a runtime that was never asked to be.
///   - A Deployment of the same version keeps its generation: its pods are not restarted.
///   - No source goes back to an earlier version.
asio::awaitable<void> audit_runtime(land* in, std::string runtime, findings* into);

/// Reads the Runtimes' history:
///   - It is said that nothing is signalled only where no mark stands, and not in a mode that is
///     signalled; a mark is set only where it is signalled and together with what it stands for.
///   - Both are written by us under the signalling field manager.
asio::awaitable<void> audit_marks(land* in, findings* into);

}  // namespace rw::runtime_config_test
