#pragma once

#include "rw/reactors/runtime_rollout/decision.hpp"

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <string>

namespace rw::runtime_rollout_test {

using namespace std::chrono_literals;
using runtime_rollout::health;
using runtime_rollout::phase;

inline const runtime_rollout::wall_time start{std::chrono::seconds(1'700'000'000)};

inline std::string name(std::size_t i) {
  return (i < 10 ? "r0" : "r") + std::to_string(i);
}

/// Runtimes that run with "a", for long, which was rolled out to the end; "b" is to come.
struct fleet {
  explicit fleet(std::size_t count) {
    for (std::size_t i = 0; i < count; ++i) {
      all[name(i)] = {.wanted = "b",
                      .completed = "a",
                      .in_place = "a",
                      .is = health::ready,
                      .since = start - 24h,
                      .position = static_cast<std::uint32_t>(i)};
    }
    state.content = "content a";
    state.at = phase::completed;
  }

  /// Decides, and admits as the roll-out would.
  const runtime_rollout::rollout_decision& decide() {
    request.verified.reset();
    last = runtime_rollout::decide(state, request, all, with, now);
    while (last.to_verify && verify) {
      request.verified = verify(*last.to_verify);
      last = runtime_rollout::decide(last.next, request, all, with, now);
    }
    state = last.next;
    for (auto& [key, each] : all) {
      if (!last.admitted.contains(key)) {
        each.admitted.reset();
      } else if (!each.admitted) {
        each.admitted = now;
      }
    }
    return last;
  }

  /// An admitted runtime takes the content.
  void take(const std::string& key, health is = health::ready) {
    auto& each = all.at(key);
    each.in_place = each.wanted;
    each.is = is;
    each.since = now;
  }

  /// All that are admitted and do not have it take it; how many did.
  std::size_t take_all(health is = health::ready) {
    std::size_t out = 0;
    for (const auto& key : last.admitted) {
      if (all.at(key).updated()) continue;
      take(key, is);
      ++out;
    }
    return out;
  }

  /// The runtimes of the first step.
  runtime_rollout::name_set canaries() const {
    runtime_rollout::name_set out;
    for (const auto& [key, each] : all) {
      if (step_of(state.steps, {each.position, each.labelled}) == 0) out.insert(key);
    }
    return out;
  }

  /// To where the canaries are done.
  void pass_canaries() {
    decide();
    take_all();
    now += 10s;
    decide();
  }

  runtime_rollout::participants all;
  runtime_rollout::state state;
  runtime_rollout::rollout_request request{.content = "content b"};
  runtime_rollout::limits with;
  runtime_rollout::wall_time now = start;
  runtime_rollout::rollout_decision last;
  /// Null: a verification has no result yet.
  std::function<runtime_rollout::verification_result(std::size_t)> verify;
};

}  // namespace rw::runtime_rollout_test
