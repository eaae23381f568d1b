#pragma once

#include "rw/core/clock.hpp"
#include "rw/k8s/objects/names.hpp"

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <optional>
#include <string_view>
#include <unordered_map>

namespace rw::k8s {

/// Tracks which keys fail, and how, so that an error is logged when it begins, changes or ends, and
/// not at each try. Bounded: failures of keys beyond `capacity` are all logged.
class failing_keys {
 public:
  explicit failing_keys(std::size_t capacity) : capacity_(capacity) {}

  /// Records a failure. Returns true if it is to be logged. `state` identifies the error; a change
  /// of it is logged at most once a minute.
  bool failed(const object_key& key, std::string_view state, core::time_point now) {
    const auto hash = std::hash<std::string_view>()(state);
    const auto at = keys_.find(key);
    if (at == keys_.end()) {
      if (keys_.size() < capacity_) keys_.emplace(key, known{hash, now, now, 1});
      return true;
    }
    known& key_state = at->second;
    ++key_state.tries;
    if (key_state.state == hash || now - key_state.told < std::chrono::minutes(1)) return false;
    key_state.state = hash;
    key_state.told = now;
    return true;
  }

  struct past {
    core::time_point since;
    std::uint64_t tries;
  };
  /// Records a success. Returns the failure that it ends, if any.
  std::optional<past> succeeded(const object_key& key) {
    if (keys_.empty()) return std::nullopt;
    const auto at = keys_.find(key);
    if (at == keys_.end()) return std::nullopt;
    const past over{at->second.since, at->second.tries};
    keys_.erase(at);
    return over;
  }

  std::size_t size() const noexcept { return keys_.size(); }

 private:
  struct known {
    std::size_t state;  ///< hash of the error
    core::time_point since;
    core::time_point told;
    std::uint64_t tries;
  };

  const std::size_t capacity_;
  std::unordered_map<object_key, known, object_key_hash> keys_;
};

}  // namespace rw::k8s
