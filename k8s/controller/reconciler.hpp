#pragma once

#include "rw/core/clock.hpp"
#include "rw/k8s/objects/failure.hpp"
#include "rw/k8s/objects/names.hpp"

#include <boost/asio/awaitable.hpp>

#include <cstdint>
#include <string>

namespace rw::k8s {

/// Result of a reconcile, and the next action.
struct reconcile_result {
  enum class kind : std::uint8_t {
    done,           ///< the actual state matches the desired state of this key
    requeue_after,  ///< as done, but reconcile again after `after`
    error,          ///< it does not match; retry after a backoff
    terminal,       ///< it does not match, and a retry is useless before something changes
  };

  static reconcile_result done() { return {}; }
  /// Not an error: resets the key's backoff.
  static reconcile_result requeue_after(core::duration by) {
    return {kind::requeue_after, by, {}, {}};
  }
  /// `text` is for people. Two errors with the same `reason` are the same state and logged once.
  /// Without a reason the text decides, so it should not have numbers that change from try to try.
  static reconcile_result error(std::string text, std::string reason = {}) {
    return {kind::error, {}, std::move(text), std::move(reason)};
  }
  /// Makes an error of a failed request. The retry comes no earlier than its retry_after.
  static reconcile_result error(const failure& cause) {
    return {kind::error, cause.retry_after, cause.message,
            cause.code.message() + " " + std::to_string(cause.status) + " " + cause.reason};
  }
  static reconcile_result terminal(std::string text, std::string reason = {}) {
    return {kind::terminal, {}, std::move(text), std::move(reason)};
  }

  kind type = kind::done;
  core::duration after{};  ///< requeue_after: delay; error: minimum delay
  std::string text = {};
  std::string reason = {};
};

/// Moves the actual state to the desired state of a key's object. Level-based: it reads the state
/// and never an event. The controller may call it at any time, also for deleted objects, and
/// several changes may cause one call.
class reconciler {
 public:
  virtual ~reconciler() = default;

  /// Reconciles a key. Several run at once for different keys, on one executor; never two for one
  /// key. When cancelled, because of its time limit or at shutdown, it should end soon. An
  /// exception counts as an error and is logged as a bug.
  virtual boost::asio::awaitable<reconcile_result> reconcile(object_key key) = 0;
};

}  // namespace rw::k8s
