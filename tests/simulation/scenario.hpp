#pragma once

#include "tests/simulation/api_model.hpp"
#include "tests/simulation/control_plane.hpp"
#include "tests/simulation/runtime.hpp"
#include "tests/simulation/silence.hpp"
#include "tests/simulation/writer.hpp"
#include <cstddef>
#include <cstdint>
#include <functional>
#include <map>
#include <string>
#include <string_view>
#include <vector>

namespace rw::simulation {

/// What became of one seed.
struct outcome {
  std::uint64_t seed = 0;
  std::vector<std::string> violations;  ///< empty: all promises were kept
  std::vector<std::string> trace;
  std::uint64_t hash = 0;  ///< of the trace
  std::size_t changes = 0;
  std::size_t events = 0;
  std::map<std::string_view, std::size_t> resyncs;  ///< by reason
};

/// Runs what the seed chooses: a runtime's configuration, writes, and faults; then heals
/// everything, lets time go by until all is told, and holds the history against the promises.
outcome run(std::uint64_t seed, bool verbose);

}  // namespace rw::simulation
