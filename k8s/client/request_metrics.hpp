#pragma once

#include "rw/core/clock.hpp"
#include "rw/core/metrics.hpp"
#include "rw/k8s/client/call.hpp"

#include <array>
#include <string>
#include <string_view>
#include <vector>

namespace rw::k8s {

/// The time series of one client. They are made when they are first needed, since thousands of
/// clients live in one process, most of which ask few things; clients of the same name share them.
class request_metrics {
 public:
  request_metrics(core::metrics& registry, std::string client);

  /// One attempt has ended: with a status, or (0) with the failure of that name.
  void count(verb verb, unsigned status, std::string_view otherwise);
  void took(verb verb, core::duration time);
  void retried() { retries_.Increment(); }
  void limited(core::duration wait);

 private:
  struct series {
    verb operation;
    unsigned status;
    std::string_view otherwise;
    core::counter* counter;
  };

  core::metrics& registry_;
  const std::string client_;
  core::counter& retries_;
  core::counter* limited_ = nullptr;
  std::vector<series> requests_;
  std::array<core::histogram*, verbs> durations_{};
};

}  // namespace rw::k8s
