#pragma once

#include "reactors/rollout.hpp"

#include <chrono>
#include <cstddef>
#include <optional>
#include <string>

namespace rw::gateway_secret {

/// What is to be known before the gateway serves with another certificate.
struct gate_question {
  std::string authority;  ///< fingerprint of the CA that every runtime must trust by then
  std::string newest;     ///< of the one that came last, which need not be the same
  std::chrono::system_clock::time_point since;  ///< when that was
  /// A runtime that has been out of reach for so long does not hold the others up any more.
  std::chrono::seconds unreachable_after;
};

struct gate_answer {
  bool open = false;
  std::size_t runtimes = 0;
  std::size_t missing = 0;  ///< runtimes that hold it shut
  std::string who = {};     ///< in words, and for a few of them why; empty if it is open
  /// When it is worth to ask again though nothing changes.
  std::optional<std::chrono::system_clock::time_point> look_again = {};
};

/// The gate is open when every runtime that can be reached was seen to trust the authority, and
/// with a client certificate that was issued since: by that authority, by the newest, or later than
/// `since`. Certificates have whole seconds, so one of the same second is not later. Runtimes that
/// were not seen yet hold it shut, and so does a board that is not complete.
gate_answer ask_gate(const rollout_board& board, const gate_question& question,
                     std::chrono::system_clock::time_point now);

}  // namespace rw::gateway_secret
