#pragma once

#include "rw/core/log.hpp"
#include "rw/core/metrics.hpp"
#include "rw/k8s/controller/event_sink.hpp"
#include "rw/k8s/objects/types.hpp"
#include "rw/reactors/gateway_secret/rotation.hpp"

#include <array>
#include <chrono>
#include <optional>
#include <string>

namespace rw::gateway_secret {

/// Reports the rotation: by an event when its state changes, by a log line also when the missing
/// runtimes change, by metrics always.
class report {
 public:
  report(core::logger& log, core::metrics& metrics, k8s::event_sink& events);

  /// Reports a new plan. `about` is the gateway Secret.
  void planned(const rotation_plan& made, const gateway_content* gateway,
               const k8s::object_reference& about);
  /// Reports that the plan's write succeeded.
  void done(const rotation_plan& made, const k8s::object_reference& about);
  /// Reports when the served certificate and the root's expire, and whether the former is about to.
  void expiry(const std::optional<tls::certificate>& served, const std::optional<root_secret>& root,
              wall_time now, std::chrono::seconds window, const k8s::object_reference& about);

 private:
  void emit(const k8s::object_reference& about, bool bad, std::string_view reason,
            const std::string& message);

  static constexpr std::size_t phases = 5;

  core::logger& log_;
  core::metrics& metrics_;
  k8s::event_sink& events_;
  std::array<core::gauge*, phases> phase_{};
  core::gauge& authorities_;
  core::gauge& missing_;
  core::gauge& excused_;
  core::gauge& held_up_;
  core::gauge& deadline_;
  core::gauge& close_to_expiry_;
  core::gauge& served_until_;
  core::gauge& root_until_;
  std::string logged_;    ///< what was logged last
  std::string reported_;  ///< the state of the last event
  bool close_ = false;
};

}  // namespace rw::gateway_secret
