#pragma once

#include "core/clock.hpp"
#include "k8s/objects/failure.hpp"
#include "k8s/objects/names.hpp"

#include <boost/asio/awaitable.hpp>

#include <cstdint>
#include <string>

namespace rw::k8s {

/// What became of a reconcile, and what is to happen next.
struct reconcile_result {
  enum class kind : std::uint8_t {
    done,           ///< the world is as it should be, as far as this key is concerned
    requeue_after,  ///< so it is, but it is to be looked at again later
    error,          ///< it is not; again, after a backoff
    terminal,       ///< it is not, and trying again won't help before something changes
  };

  static reconcile_result done() { return {}; }
  /// Not an error: the key's backoff ends.
  static reconcile_result requeue_after(core::duration by) {
    return {kind::requeue_after, by, {}, {}};
  }
  /// `text` is for people. Two errors with the same `reason` are the same state and logged once;
  /// without one the text decides, so it should not have numbers that change from try to try.
  static reconcile_result error(std::string text, std::string reason = {}) {
    return {kind::error, {}, std::move(text), std::move(reason)};
  }
  /// The same from a failed request, which must not come again before its retry_after.
  static reconcile_result error(const failure& why) {
    return {kind::error, why.retry_after, why.message,
            why.code.message() + " " + std::to_string(why.status) + " " + why.reason};
  }
  static reconcile_result terminal(std::string text, std::string reason = {}) {
    return {kind::terminal, {}, std::move(text), std::move(reason)};
  }

  kind what = kind::done;
  core::duration after{};  ///< requeue_after: how long; error: how long at least
  std::string text = {};
  std::string reason = {};
};

/// Brings the world to the state that a key's object asks for. It reads the world and never an
/// event (it is level-based): it may be called at any time, for objects that are gone, too, and
/// several changes may have become one call.
class reconciler {
 public:
  virtual ~reconciler() = default;

  /// For different keys it runs several times at once, on one executor; for one key never. When it
  /// is cancelled, because of its time limit or the end, it should end soon. An exception counts as
  /// an error and is logged as what it is: a bug.
  virtual boost::asio::awaitable<reconcile_result> reconcile(object_key key) = 0;
};

}  // namespace rw::k8s
