#pragma once

#include "core/clock.hpp"
#include "core/lru_map.hpp"
#include "core/token_bucket.hpp"
#include "k8s/names.hpp"

#include <boost/asio/awaitable.hpp>

#include <chrono>
#include <cstddef>
#include <functional>
#include <map>
#include <memory>
#include <unordered_set>

namespace rw::kyma_router {

struct pace {
  core::duration interval = std::chrono::seconds(1);
  unsigned burst = 32;  ///< that many may come at once, after a while without any
};

/// Lets each key pass once per interval, and a few at once. What comes more often is held back, and
/// passes as one when its time has come; the last one is never lost.
///
/// Everything happens on one executor.
class pacer {
 public:
  using destination = std::function<void(const k8s::object_key&)>;

  pacer(core::clock& clock, pace how, destination to);

  /// False if the key is held back.
  bool pass(const k8s::object_key& key);

  /// Lets pass what was held back, until cancelled; then all of it passes at once.
  boost::asio::awaitable<void> run();

  std::size_t held() const noexcept { return held_.size(); }

 private:
  void release(core::time_point until);

  core::clock& clock_;
  const pace how_;
  const destination to_;
  /// One that is forgotten here, among so many, may pass a little early.
  core::lru_map<k8s::object_key, core::token_bucket, k8s::object_key_hash> buckets_{16384};
  std::unordered_set<k8s::object_key, k8s::object_key_hash> held_;
  std::multimap<core::time_point, k8s::object_key> due_;  ///< those held, by when they may pass
  std::unique_ptr<core::timer> alarm_;                    ///< while it runs
};

}  // namespace rw::kyma_router
