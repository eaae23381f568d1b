#pragma once

#include "rw/core/clock.hpp"

#include <chrono>
#include <cstddef>
#include <deque>
#include <string>

namespace rw::k8s::test {

/// The latest that happened, for whoever has to find out why a history went wrong.
class journal {
 public:
  explicit journal(const core::clock& clock, std::size_t most = 60)
      : clock_(clock), began_(clock.now()), most_(most) {}

  void note(const std::string& what) {
    using seconds_passed = std::chrono::duration<double>;
    const auto seconds = std::chrono::duration_cast<seconds_passed>(clock_.now() - began_).count();
    lines_.push_back(std::to_string(seconds) + " s: " + what + "\n");
    if (lines_.size() > most_) lines_.pop_front();
  }

  std::string tail() const {
    std::string all;
    for (const auto& line : lines_) all += "    " + line;
    return all;
  }

 private:
  const core::clock& clock_;
  const core::time_point began_;
  const std::size_t most_;
  std::deque<std::string> lines_;
};

}  // namespace rw::k8s::test
